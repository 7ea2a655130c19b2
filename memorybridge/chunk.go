package memorybridge

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// chunking cuts the lines of a document. Lines are counted from 0 here.
type chunking struct {
	doc      *Document
	lines    []string
	words    string // of the path
	headings []heading
	date     time.Time // of the nearest heading that is one
}

type heading struct {
	level int
	text  string
	date  time.Time // that holds below it; zero: what held before
}

// sections goes through the lines from a heading to the next.
func (c *chunking) sections(from int) {
	start := from
	fence := ""
	for i := from; i < len(c.lines); i++ {
		line := c.lines[i]
		if fence = fenced(fence, line); fence != "" {
			continue
		}
		level, text := headingAt(c.lines, i)
		if level == 0 {
			continue
		}
		begin := i
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
			begin = i - 1 // the text stands above its underline
		}
		if begin > start && hasBody(c.lines[start:begin]) {
			c.section(start, begin)
			start = begin
		}
		c.enter(level, text)
	}
	c.section(start, len(c.lines))
}

// fenced follows a code fence: it returns the fence that is open after the line, "" for none. Within
// one, and on the lines that open and close it, nothing is a heading.
func fenced(open, line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 && open == "" {
		return ""
	}
	mark := ""
	for _, r := range []byte("`~") {
		n := len(trimmed) - len(strings.TrimLeft(trimmed, string(r)))
		if n >= 3 {
			mark = trimmed[:n]
		}
	}
	switch {
	case open == "" && mark != "" && (mark[0] != '`' || !strings.Contains(trimmed[len(mark):], "`")):
		return mark
	case open != "" && mark != "" && mark[0] == open[0] && len(mark) >= len(open) && strings.TrimSpace(trimmed[len(mark):]) == "":
		return ""
	}
	return open
}

// headingAt reads a heading: #, or a line underlined with = or -. Its level is 0 where there is none.
func headingAt(lines []string, i int) (level int, text string) {
	line := strings.TrimRight(lines[i], " \t\r")
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || trimmed == "" {
		return 0, ""
	}
	if n := len(trimmed) - len(strings.TrimLeft(trimmed, "#")); n >= 1 && n <= 6 {
		if rest := trimmed[n:]; rest == "" || rest[0] == ' ' || rest[0] == '\t' {
			return n, strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
		}
		return 0, ""
	}
	if i == 0 {
		return 0, ""
	}
	above := strings.TrimSpace(lines[i-1])
	if above == "" || strings.ContainsAny(above[:1], "#>-*+|=") || len(above) > 200 {
		return 0, ""
	}
	if i > 1 && strings.TrimSpace(lines[i-2]) != "" {
		return 0, "" // the last line of a paragraph, and a rule
	}
	switch {
	case len(trimmed) >= 2 && strings.Trim(trimmed, "=") == "":
		return 1, above
	case len(trimmed) >= 3 && strings.Trim(trimmed, "-") == "":
		return 2, above
	}
	return 0, ""
}

// hasBody reports whether lines hold more than headings.
func hasBody(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		line = strings.TrimSpace(line)
		heading := strings.HasPrefix(line, "#") && strings.HasPrefix(strings.TrimLeft(line, "#"), " ")
		return strings.Trim(line, "=-") != "" && !heading
	})
}

// enter notes a heading that what follows stands under.
func (c *chunking) enter(level int, text string) {
	for len(c.headings) > 0 && c.headings[len(c.headings)-1].level >= level {
		c.headings = c.headings[:len(c.headings)-1]
	}
	if c.doc.Title == "" {
		c.doc.Title = text
	}
	at, _ := dateIn(text)
	c.headings = append(c.headings, heading{level, text, at})
	c.date = c.doc.Date
	for _, h := range c.headings {
		if !h.date.IsZero() {
			c.date = h.date
		}
	}
}

// section makes chunks of the lines from a heading to the next.
func (c *chunking) section(from, to int) {
	size := 0
	begin := from
	for _, b := range blocks(c.lines, from, to) {
		n := 0
		for _, line := range c.lines[b[0]:b[1]] {
			n += len(line) + 1
		}
		if size > 0 && size+n > chunkTarget && hasBody(c.lines[begin:b[0]]) {
			c.add(begin, b[0])
			begin, size = b[0], 0
		}
		size += n
	}
	c.add(begin, to)
}

// blocks are the parts of a section that are not cut where they are short enough: paragraphs, items
// of a list with what is indented below them, fenced code.
func blocks(lines []string, from, to int) [][2]int {
	var out [][2]int
	start, fence := from, ""
	cut := func(i int) {
		if i > start {
			out = append(out, [2]int{start, i})
			start = i
		}
	}
	for i := from; i < to; i++ {
		line := lines[i]
		was := fence
		if fence = fenced(fence, line); fence != "" || was != "" {
			continue
		}
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
			if i+1 < to && strings.TrimSpace(lines[i+1]) != "" && !strings.HasPrefix(lines[i+1], "  ") && !strings.HasPrefix(lines[i+1], "\t") {
				cut(i + 1)
			}
		case item(line):
			cut(i)
		}
	}
	cut(to)
	return out
}

// item reports the first line of an item of a list that stands at the margin.
func item(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "+ ") {
		return true
	}
	n := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return n > 0 && n < 5 && len(line) > n+1 && (line[n] == '.' || line[n] == ')') && line[n+1] == ' '
}

// add makes a chunk of lines, or several where they are too long for one.
func (c *chunking) add(from, to int) {
	for from < to && strings.TrimSpace(c.lines[from]) == "" {
		from++
	}
	for to > from && strings.TrimSpace(c.lines[to-1]) == "" {
		to--
	}
	for from < to {
		end, size := from, 0
		for end < to && (size == 0 || size+len(c.lines[end]) <= chunkMost) {
			size += len(c.lines[end]) + 1
			end++
		}
		if end-from == 1 && size > chunkMost {
			for _, part := range cutLine(c.lines[from]) {
				c.emit(from, end, part)
			}
		} else {
			c.emit(from, end, strings.Join(c.lines[from:end], "\n"))
		}
		from = end
	}
}

func (c *chunking) emit(from, to int, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	c.doc.Chunks = append(c.doc.Chunks, Chunk{Start: from + 1, End: to, Text: text, Context: c.context(text), Date: c.date})
}

// context joins what is known of a chunk beside its text, each thing once.
func (c *chunking) context(text string) string {
	var parts []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(parts, s) && !strings.Contains(text, s) {
			parts = append(parts, s)
		}
	}
	add(c.doc.Title)
	for _, h := range c.headings {
		add(h.text)
	}
	add(strings.Join(c.doc.Tags, " "))
	add(c.words)
	return strings.Join(parts, " · ")
}

// cutLine cuts one huge line after sentences, else between words, else between characters.
func cutLine(line string) []string {
	var out []string
	for len(line) > chunkMost {
		at := strings.LastIndexAny(line[:chunkMost], " \t")
		for _, end := range []string{". ", "! ", "? ", "。", "！", "？", "; "} {
			if i := strings.LastIndex(line[:chunkMost], end); i > chunkMost/2 {
				at = i + len(end)
				break
			}
		}
		if at < chunkMost/2 {
			for at = chunkMost; !utf8.RuneStart(line[at]); at-- {
			}
		}
		out = append(out, line[:at])
		line = line[at:]
	}
	return append(out, line)
}
