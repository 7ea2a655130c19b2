package embed

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text safe to send: valid UTF-8 (lone surrogates and stray bytes become U+FFFD) without NUL. It returns ""
// for a text that shows nothing: white space, controls, zero-width and other invisible letters only.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(text, "\x00", "")
	if strings.IndexFunc(text, visible) < 0 {
		return ""
	}
	return text
}

func visible(r rune) bool {
	switch r {
	case utf8.RuneError, '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800': // fillers and the blank braille cell
		return false
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r)
}

// tokensOf estimates how many tokens a model makes of text: one for four ASCII letters, two other ASCII characters or
// one character of another script. It only decides where to cut before a server has to object.
func tokensOf(text string) int {
	quarters := 0
	for _, r := range text {
		switch {
		case r >= utf8.RuneSelf:
			quarters += 4
		case unicode.IsLetter(r) || r == ' ':
			quarters++
		default:
			quarters += 2
		}
	}
	return (quarters + 3) / 4
}

// parts cuts text into pieces of at most limit estimated tokens.
func parts(text string, limit int) []string {
	if tokensOf(text) <= limit {
		return []string{text}
	}
	a, b := halve(text)
	if a == "" || b == "" {
		return []string{text}
	}
	return append(parts(a, limit), parts(b, limit)...)
}

// halve cuts text near its middle, at white space if some is near, never inside a character. A half may be empty.
func halve(text string) (string, string) {
	mid := len(text) / 2
	reach := len(text) / 8
	if i := strings.IndexFunc(text[mid:min(len(text), mid+reach)], unicode.IsSpace); i >= 0 {
		return text[:mid+i], text[mid+i:]
	}
	if i := strings.LastIndexFunc(text[mid-reach:mid], unicode.IsSpace); i >= 0 {
		mid += i - reach
	}
	for mid > 0 && !utf8.RuneStart(text[mid]) {
		mid--
	}
	return text[:mid], text[mid:]
}
