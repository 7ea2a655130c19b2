package terms

import (
	"unicode"
	"unicode/utf8"
)

// passageWords is the size of a passage. Other sizes gave no gain when the recipe was found, and were not
// measured again since.
const passageWords = 100

// Passages cuts a text into pieces of about 100 words at the ends of sentences; two Han
// characters count as a word. A short text is one passage. The pieces are substrings that
// join to the text.
func Passages(text string) []string {
	if len(text) < 5*passageWords {
		return []string{text}
	}
	var out []string
	start, words, han := 0, 0, 0
	inWord := false
	for i, r := range text {
		space := r == ' ' || r == '\n' || r == '\t'
		switch {
		case unspaced(r):
			if han++; han%2 == 0 {
				words++
			}
		case space:
			inWord = false
		case !inWord:
			inWord = true
			words++
		}
		if words < passageWords || len(text)-i <= 3*passageWords {
			continue
		}
		if sentenceEnd(r) || words >= passageWords*4/3 && (space || unspaced(r)) || words >= 2*passageWords {
			end := i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				continue // a broken byte: cut at the next good place
			}
			out = append(out, text[start:end])
			start, words = end, 0
		}
	}
	return append(out, text[start:])
}

func sentenceEnd(r rune) bool {
	switch r {
	case '\n', '.', '?', '!', '。', '？', '！':
		return true
	}
	return false
}

// EndsInQuestion reports whether a text ends in a question mark of any script.
func EndsInQuestion(text string) bool {
	for len(text) > 0 {
		r, n := utf8.DecodeLastRuneInString(text)
		if unicode.IsSpace(r) {
			text = text[:len(text)-n]
			continue
		}
		return r == '?' || r == '？' || r == '؟' || r == ';'
	}
	return false
}
