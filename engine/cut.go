package engine

import (
	"fmt"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// cutRunes returns the longest beginning of text of at most limit bytes that ends between
// characters as a reader sees them.
func cutRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:boundary(text, max(limit, 0), false)]
}

// cutFront returns the longest end of text of at most limit bytes, cut like cutRunes.
func cutFront(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[boundary(text, len(text)-max(limit, 0), true):]
}

// boundary finds the grapheme boundary nearest to at: the last one not after it, or with up the
// first one not before it.
func boundary(text string, at int, up bool) int {
	const reach = 512 // longer than any cluster that occurs; bounds the work on huge texts
	pos := max(at-reach, 0)
	for pos > 0 && !utf8.RuneStart(text[pos]) {
		pos--
	}
	// A cluster never continues into a printable ASCII character, so starting there is safe.
	for i := pos; i < at && pos > 0; i++ {
		if text[i] >= ' ' && text[i] < 0x7f {
			pos = i
			break
		}
	}
	state := -1
	rest := text[pos:]
	for pos < at && rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if pos+len(cluster) > at && !up {
			break
		}
		pos += len(cluster)
	}
	return pos
}

// leftOut is the visible mark of a shortened text.
func leftOut(bytes int) string {
	return fmt.Sprintf("\n[... %d bytes left out by Hark ...]\n", bytes)
}
