package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Item is a hit as it is shown: its text whole, or an excerpt around what matched.
type Item struct {
	Hit     Hit
	Text    string
	Excerpt bool // Text is a part of the message; cuts are marked with an ellipsis
}

// Drop says why a hit was not packed.
type Drop struct {
	Seq    int64
	ID     string
	Reason string
}

// The reasons of a Drop besides NearCopy.
const (
	OverBudget = "over budget"
	NoText     = "no text to show"
	SaysNought = "says nothing by itself"
)

// PackOptions bound what is packed; zero fields mean the defaults.
type PackOptions struct {
	Tokens  int            // what all items may cost together; 0 packs nothing
	Cost    func(Item) int // tokens of an item as it will be rendered, header included; nil counts a token per four bytes
	Excerpt int            // bytes of a message above which it is shown as an excerpt; default 1000
	Items   int            // most items; default 24
}

// Pack chooses what is shown: hits in order, each whole (or a marked excerpt of a long one),
// near copies once, skipping what no longer fits so that a later, shorter one may. A newer
// statement of the same thing stands directly before the one that it replaces.
func Pack(hits []Hit, o PackOptions) (items []Item, dropped []Drop) {
	if o.Cost == nil {
		o.Cost = func(it Item) int { return (len(it.Text)+3)/4 + 12 }
	}
	if o.Excerpt <= 0 {
		o.Excerpt = 1000
	}
	if o.Items <= 0 {
		o.Items = 24
	}
	var prints []fingerprint
	left := o.Tokens
	for _, h := range arrange(hits) {
		drop := func(reason string) { dropped = append(dropped, Drop{h.Message.Seq, h.Message.ID, reason}) }
		text := strings.TrimSpace(h.Message.Text)
		if text == "" {
			text = strings.TrimSpace(h.Message.Caption)
		}
		if text == "" {
			drop(NoText)
			continue
		}
		if len(h.Matched) == 0 && acknowledgement(text) {
			drop(SaysNought) // ranked by its neighbours alone
			continue
		}
		words := fingerprintOf(text)
		words.told = numbersTold(h)
		if copied(prints, words) {
			drop(NearCopy)
			continue
		}
		it := Item{Hit: h, Text: text}
		if len(text) > o.Excerpt {
			it.Text, it.Excerpt = excerpt(h.Message.Text, h.Matched, o.Excerpt), true
		}
		cost := o.Cost(it)
		if cost > left || len(items) == o.Items {
			drop(OverBudget)
			continue
		}
		left -= cost
		items = append(items, it)
		prints = append(prints, words)
	}
	return items, dropped
}

// arrange puts each newer statement before the best hit it replaces.
func arrange(hits []Hit) (out []Hit) {
	at := map[int64]int{}
	for i, h := range hits {
		at[h.Message.Seq] = i
	}
	taken := make([]bool, len(hits))
	var take func(i int)
	take = func(i int) {
		if taken[i] {
			return
		}
		taken[i] = true
		if n, ok := at[hits[i].Newer]; ok && hits[i].Newer != 0 {
			take(n)
		}
		out = append(out, hits[i])
	}
	for i := range hits {
		take(i)
	}
	return out
}

// excerpt cuts the window of about n bytes that holds most matches, at the borders of words,
// and marks the cuts.
func excerpt(text string, matched []Span, n int) string {
	if len(text) <= n {
		return strings.TrimSpace(text)
	}
	from := window(matched, n, len(text))
	to := min(len(text), from+n)
	if a, b := wordStart(text, from), wordEnd(text, to); a < b {
		from, to = a, b
	} else { // a window shorter than its words
		from, to = cluster(text, from), cluster(text, to)
	}
	out := strings.TrimSpace(text[from:to])
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}

// window returns the start of the n bytes that hold the most matches, with the matches in
// their middle; the first such window wins.
func window(matched []Span, n, size int) int {
	best, bestCount := 0, 0
	for i := range matched {
		j, last := i, matched[i].End
		for j < len(matched) && matched[j].End-matched[i].Start <= n*4/5 {
			last = matched[j].End
			j++
		}
		if j-i > bestCount {
			bestCount = j - i
			best = (matched[i].Start+last)/2 - n/2
		}
	}
	return max(0, min(best, size-n))
}

// wordStart moves a cut forward to the start of a word, not past 40 bytes, and never into a character.
func wordStart(s string, i int) int {
	if i <= 0 {
		return 0
	}
	for k := i; k < min(len(s), i+40); k++ {
		if utf8.RuneStart(s[k]) {
			if r, _ := utf8.DecodeLastRuneInString(s[:k]); unicode.IsSpace(r) {
				return k
			}
		}
	}
	return cluster(s, i)
}

// wordEnd moves a cut back to the end of a word, not past 40 bytes.
func wordEnd(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	for k := i; k > max(0, i-40); k-- {
		if utf8.RuneStart(s[k]) {
			if r, _ := utf8.DecodeRuneInString(s[k:]); unicode.IsSpace(r) {
				return k
			}
		}
	}
	return cluster(s, i)
}

// cluster moves a cut back so that it splits neither a character nor what joins to it
// (combining marks, variation selectors, joined emoji, skin tones, flags).
func cluster(s string, i int) int {
	for i > 0 {
		for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
			i--
		}
		if i == len(s) {
			return i
		}
		r, _ := utf8.DecodeRuneInString(s[i:])
		before, n := utf8.DecodeLastRuneInString(s[:i])
		joins := unicode.Is(unicode.M, r) || r == 0x200D || before == 0x200D || r >= 0x1F3FB && r <= 0x1F3FF ||
			regional(r) && regional(before)
		if !joins {
			return i
		}
		i -= n
	}
	return i
}

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
