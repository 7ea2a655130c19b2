package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	xterm "golang.org/x/term"
)

// term is what is known of where output goes: how wide it is and whether it takes colours.
type term struct {
	width  int  // columns
	flows  bool // no terminal: lines are as long as they are
	colour bool
	errTTY bool // progress may be drawn on standard error
}

const (
	narrowest = 24
	widest    = 110 // longer lines are hard to read
	piped     = 80
	unbroken  = 1 << 20
)

func newTerm(c console) term {
	t := term{width: piped, errTTY: isTerminal(c.err)}
	if isTerminal(c.out) {
		if w, _, err := xterm.GetSize(int(c.out.(*os.File).Fd())); err == nil && w > 0 {
			t.width = w
		}
		none, _ := c.env("NO_COLOR")
		kind, _ := c.env("TERM")
		t.colour = none == "" && kind != "dumb"
	} else {
		t.flows = true
		if v, ok := c.env("COLUMNS"); ok {
			if w, err := strconv.Atoi(v); err == nil && w > 0 {
				t.width, t.flows = w, false
			}
		}
	}
	t.width = max(narrowest, min(t.width, widest))
	return t
}

// room is what a line may take beside an indent, in columns.
func (t term) room(indent int) int {
	if t.flows {
		return unbroken
	}
	return max(narrowest/2, t.width-indent)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

func (t term) paint(code, s string) string {
	if !t.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t term) bold(s string) string   { return t.paint("1", s) }
func (t term) dim(s string) string    { return t.paint("2", s) }
func (t term) red(s string) string    { return t.paint("31", s) }
func (t term) green(s string) string  { return t.paint("32", s) }
func (t term) yellow(s string) string { return t.paint("33", s) }
func (t term) cyan(s string) string   { return t.paint("36", s) }

// columns is the width of a text on the terminal: wide characters take two, marks none.
func columns(s string) int { return uniseg.StringWidth(s) }

// clean makes text from a store safe for a terminal: one line, no control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// cut shortens a line to a width, whole characters only, and marks that it did.
func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	var b strings.Builder
	used, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// pad fills a text up to a width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-columns(s)))
}

// wrap breaks text into lines of at most width columns, at spaces where there are any. Line breaks
// of the text stay.
func wrap(s string, width int) []string {
	var out []string
	for para := range strings.SplitSeq(s, "\n") {
		out = append(out, wrapLine(strings.TrimRight(para, " \t\r"), width)...)
	}
	return out
}

func wrapLine(s string, width int) []string {
	var out []string
	var line strings.Builder
	used := 0
	for _, word := range pieces(s, width) {
		w := columns(word)
		if used > 0 && used+columns(strings.TrimRight(word, " ")) > width {
			out = append(out, strings.TrimRight(line.String(), " "))
			line.Reset()
			used = 0
			word = strings.TrimLeft(word, " ")
			w = columns(word)
		}
		line.WriteString(word)
		used += w
	}
	return append(out, strings.TrimRight(line.String(), " "))
}

// pieces splits a line where it may be broken; no piece is wider than width.
func pieces(s string, width int) []string {
	var out []string
	state := -1
	for s != "" {
		var seg string
		seg, s, _, state = uniseg.FirstLineSegmentInString(s, state)
		for columns(strings.TrimRight(seg, " ")) > width {
			head := strings.TrimSuffix(cut(seg, width+1), "…")
			if head == "" {
				break
			}
			out = append(out, head)
			seg = seg[len(head):]
		}
		out = append(out, seg)
	}
	return out
}

// table lines up rows under a header. Columns named in right are aligned to the right; the last
// column is cut to what is left of the width.
type table struct {
	header []string
	right  map[int]bool
	rows   [][]string
}

func (tb *table) add(cells ...string) { tb.rows = append(tb.rows, cells) }

func (tb *table) print(w io.Writer, t term) {
	widths := make([]int, len(tb.header))
	for _, row := range append([][]string{tb.header}, tb.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], columns(c))
		}
	}
	render := func(row []string) string {
		var b strings.Builder
		for i, c := range row {
			switch {
			case tb.right[i]:
				b.WriteString(strings.Repeat(" ", widths[i]-columns(c)) + c)
			case i == len(row)-1:
				b.WriteString(c)
			default:
				b.WriteString(pad(c, widths[i]))
			}
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		return cut(strings.TrimRight(b.String(), " "), t.room(0))
	}
	_, _ = fmt.Fprintln(w, t.dim(render(tb.header)))
	for _, row := range tb.rows {
		_, _ = fmt.Fprintln(w, render(row))
	}
}
