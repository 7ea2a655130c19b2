package recall

import (
	"sort"
	"strings"
)

// fingerprint is the set of a text's words, to tell near copies.
type fingerprint struct {
	words []string        // distinct, sorted
	told  map[string]bool // words with digits that are part of what was asked about; nil: all are
}

func fingerprintOf(text string) fingerprint {
	w := wordsOf(clip(text, 4000))
	sort.Strings(w)
	out := w[:0]
	for i, x := range w {
		if i == 0 || x != w[i-1] {
			out = append(out, x)
		}
	}
	return fingerprint{words: out}
}

// boilerplate is the number of distinct words from which a text says so much that a number in another
// sentence than the match is no update: what a host restates with the day in it.
const boilerplate = 40

// numbersTold finds the numbers and identifiers in the sentences that matched. It returns nil, for all
// of them, where the text is short.
func numbersTold(h Hit) map[string]bool {
	text := h.Message.Text
	if len(fingerprintOf(text).words) < boilerplate {
		return nil
	}
	told := map[string]bool{}
	k := 0
	for start := 0; start < len(text); {
		end := start + sentenceLen(text[start:])
		matched := false
		for ; k < len(h.Matched) && h.Matched[k].Start < end; k++ {
			matched = true
		}
		if matched {
			for _, w := range wordsOf(text[start:end]) {
				if hasDigit(w) {
					told[w] = true
				}
			}
		}
		start = end
	}
	return told
}

func hasDigit(w string) bool { return strings.ContainsAny(w, "0123456789") }

// tells reports that a word that only one of two texts holds makes them different statements.
func (p fingerprint) tells(w string) bool { return hasDigit(w) && (p.told == nil || p.told[w]) }

// copied reports a text whose words are those of one packed already, give or take one in ten of them.
// A changed number or identifier is an update and no copy: anywhere in a short text, in a long one in
// the sentences that bear on the question.
func copied(have []fingerprint, p fingerprint) bool {
	for _, h := range have {
		if nearlyEqual(h, p) {
			return true
		}
	}
	return false
}

func nearlyEqual(p, q fingerprint) bool {
	a, b := p.words, q.words
	if len(a)*10 < len(b)*9 || len(b)*10 < len(a)*9 {
		return false
	}
	both, all, i, j := 0, 0, 0, 0
	for i < len(a) || j < len(b) {
		all++
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			both, i, j = both+1, i+1, j+1
		case j == len(b) || i < len(a) && a[i] < b[j]:
			if p.tells(a[i]) {
				return false
			}
			i++
		default:
			if q.tells(b[j]) {
				return false
			}
			j++
		}
	}
	return both*10 >= all*9
}
