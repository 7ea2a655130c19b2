package memorybridge

import (
	"strings"
	"unicode/utf8"
)

// The bounds of an Excerpt where its caller gives none: the host's.
const (
	ExcerptLines = 120
	ExcerptSize  = 12_000 // characters
)

// Excerpt is a range of the lines of a text.
type Excerpt struct {
	Text      string
	From      int  // line, counted from 1
	Lines     int  // whole lines in Text
	Total     int  // lines of the whole text
	Truncated bool // more follows
	NextFrom  int  // where it goes on; 0 where it does not, or inside one line that is too long to be shown
}

// Cut takes lines out of a text: from counts from 1 (0 means 1), lines is how many (0 means
// ExcerptLines). At most ExcerptSize characters come back, in whole lines unless one is longer alone.
func Cut(text string, from, lines int) Excerpt {
	all := strings.Split(text, "\n")
	if n := len(all); all[n-1] == "" {
		all = all[:n-1]
	}
	if from < 1 {
		from = 1
	}
	if lines < 1 {
		lines = ExcerptLines
	}
	e := Excerpt{From: from, Total: len(all)}
	if from > len(all) {
		return e
	}
	rest := all[from-1:]
	want := rest[:min(lines, len(rest))]
	size := 0
	for _, line := range want {
		n := utf8.RuneCountInString(line)
		if e.Lines > 0 && size+1+n > ExcerptSize {
			break
		}
		size += n + min(e.Lines, 1)
		e.Lines++
	}
	e.Text = strings.Join(want[:e.Lines], "\n")
	if size > ExcerptSize {
		e.Text, e.Truncated = string([]rune(e.Text)[:ExcerptSize]), true
		return e
	}
	if e.Truncated = e.Lines < len(rest); e.Truncated {
		e.NextFrom = from + e.Lines
	}
	return e
}
