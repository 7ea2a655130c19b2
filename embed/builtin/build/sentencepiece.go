package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The encoder's vocabulary begins with control pieces that text never produces; piece 0 stands for anything unknown.
const (
	controlPieces = 6
	unknownPiece  = 0
	unknownScore  = -20
	wordStart     = "\u2581"
)

type piece struct {
	id    int32
	score float32
}

// tokenizer splits text into SentencePiece unigram pieces: the segmentation with the highest sum of scores.
type tokenizer struct {
	pieces  map[string]piece
	longest int // in bytes
}

// readTokenizer decodes [["piece", score], …]; some scores are null and count as 0.
func readTokenizer(r io.Reader) (*tokenizer, error) {
	var raw [][2]any
	if err := json.NewDecoder(r).Decode(&raw); err != nil {
		return nil, err
	}
	t := &tokenizer{pieces: make(map[string]piece, len(raw))}
	for i, entry := range raw {
		text, ok := entry[0].(string)
		if !ok {
			return nil, fmt.Errorf("piece %d has no text", i)
		}
		if i < controlPieces {
			continue
		}
		score, _ := entry[1].(float64)
		t.pieces[text] = piece{int32(i), float32(score)}
		t.longest = max(t.longest, len(text))
	}
	return t, nil
}

// encode returns the piece ids of text; a run of unknown letters is one unknown piece.
func (t *tokenizer) encode(text string) []int32 {
	text = wordStart + strings.ReplaceAll(norm.NFKC.String(text), " ", wordStart)
	type step struct {
		score float32
		id    int32
		from  int
	}
	best := make([]step, len(text)+1)
	for i := range best {
		best[i].score = float32(math.Inf(-1))
	}
	best[0].score = 0
	reach := func(from, to int, p piece) {
		if score := best[from].score + p.score; score >= best[to].score {
			best[to] = step{score, p.id, from}
		}
	}
	for from := 0; from < len(text); {
		_, first := utf8.DecodeRuneInString(text[from:])
		known := false
		for to := from; to < len(text) && to-from < t.longest; {
			_, size := utf8.DecodeRuneInString(text[to:])
			to += size
			if p, ok := t.pieces[text[from:to]]; ok {
				known = known || to == from+first
				reach(from, to, p)
			}
		}
		if !known {
			reach(from, from+first, piece{unknownPiece, unknownScore})
		}
		from += first
	}
	var ids []int32
	for at := len(text); at > 0; at = best[at].from {
		if id := best[at].id; id != unknownPiece || len(ids) == 0 || ids[len(ids)-1] != unknownPiece {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)
	return ids
}
