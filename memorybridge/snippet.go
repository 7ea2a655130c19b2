package memorybridge

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SnippetSize is how long a snippet may be, in bytes.
const SnippetSize = 700

// Span is a half-open range of bytes.
type Span struct{ Start, End int }

// Snippet cuts out of a text the whole lines that hold most of what matched, with as many lines around
// them as fit into SnippetSize, and says which they are, counted from first. A line that is too long
// for that is cut around the match, at the ends of sentences where there are some, with an ellipsis at
// each cut.
func Snippet(text string, first int, matched []Span) (snippet string, start, end int) {
	lines := strings.Split(text, "\n")
	if len(text) <= SnippetSize {
		return text, first, first + len(lines) - 1
	}
	hits, offset := make([]int, len(lines)), make([]int, len(lines)+1)
	at := 0
	for i, line := range lines {
		offset[i] = at
		at += len(line) + 1
	}
	offset[len(lines)] = at
	line := 0
	for _, m := range matched {
		for line < len(lines)-1 && m.Start >= offset[line+1] {
			line++
		}
		hits[line]++
	}
	from, to := window(lines, hits)
	if to-from == 1 && len(lines[from]) > SnippetSize {
		var inside []Span
		for _, m := range matched {
			if m.Start >= offset[from] && m.End <= offset[from]+len(lines[from]) {
				inside = append(inside, Span{m.Start - offset[from], m.End - offset[from]})
			}
		}
		return cutAround(lines[from], inside), first + from, first + from
	}
	for from < to-1 && strings.TrimSpace(lines[from]) == "" {
		from++
	}
	for to-1 > from && strings.TrimSpace(lines[to-1]) == "" {
		to--
	}
	return strings.Join(lines[from:to], "\n"), first + from, first + to - 1
}

// window chooses the lines: the run of lines that fits and holds the most matches, the first of
// such, widened on both sides as far as it fits.
func window(lines []string, hits []int) (from, to int) {
	best, size, sum, low := -1, 0, 0, 0
	for high := range lines {
		size += len(lines[high]) + 1
		sum += hits[high]
		for low < high && (size > SnippetSize || hits[low] == 0) {
			size -= len(lines[low]) + 1
			sum -= hits[low]
			low++
		}
		if sum > best {
			best, from, to = sum, low, high+1
		}
	}
	size = 0
	for _, line := range lines[from:to] {
		size += len(line) + 1
	}
	for {
		grew := false
		if from > 0 && size+len(lines[from-1])+1 <= SnippetSize {
			from--
			size += len(lines[from]) + 1
			grew = true
		}
		if to < len(lines) && size+len(lines[to])+1 <= SnippetSize {
			size += len(lines[to]) + 1
			to++
			grew = true
		}
		if !grew {
			return from, to
		}
	}
}

// cutAround cuts a long line around what matched.
func cutAround(line string, matched []Span) string {
	mid := 0
	if len(matched) > 0 {
		mid = (matched[0].Start + matched[min(len(matched), 8)-1].End) / 2
		if mid-matched[0].Start > SnippetSize/2 {
			mid = matched[0].Start + SnippetSize/4
		}
	}
	from := max(0, min(mid-SnippetSize/2, len(line)-SnippetSize))
	to := min(len(line), from+SnippetSize)
	from, to = sentenceStart(line, from), sentenceEnd(line, from, to)
	out := strings.TrimSpace(line[from:to])
	if from > 0 {
		out = "… " + out
	}
	if to < len(line) {
		out += " …"
	}
	return out
}

var sentenceEnds = []string{". ", "! ", "? ", "。", "！", "？"}

// sentenceStart moves a cut forward to the start of a sentence or word that is near, never into a character.
func sentenceStart(s string, i int) int {
	if i == 0 {
		return 0
	}
	near := s[i:min(len(s), i+120)]
	for _, end := range sentenceEnds {
		if k := strings.Index(near, end); k >= 0 {
			return i + k + len(end)
		}
	}
	if k := strings.IndexByte(near, ' '); k >= 0 && k < 40 {
		return i + k + 1
	}
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// sentenceEnd moves a cut back to the end of a sentence or word that is near.
func sentenceEnd(s string, from, i int) int {
	if i == len(s) {
		return i
	}
	low := max(from, i-120)
	near := s[low:i]
	for _, end := range sentenceEnds {
		if k := strings.LastIndex(near, end); k > 0 {
			return low + k + len(end)
		}
	}
	if k := strings.LastIndexByte(near, ' '); k > len(near)-40 && k > 0 {
		return low + k
	}
	for i > from && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// Citation names a place in a file the way the host does: path#L3-L9, path#L3 for one line.
func Citation(path string, start, end int) string {
	if start == end {
		return fmt.Sprintf("%s#L%d", path, start)
	}
	return fmt.Sprintf("%s#L%d-L%d", path, start, end)
}

// Cites reports whether results carry citations: always with "on", never with "off", otherwise where
// the conversation is not a group's.
func Cites(mode string, group bool) bool {
	return mode == "on" || mode != "off" && !group
}
