package memorybridge

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Document is a memory file as it is searched.
type Document struct {
	Title   string    // of the front matter, else the first heading
	Tags    []string  // of the front matter
	Date    time.Time // of the front matter, else of the path; midnight UTC, zero where nothing tells
	Private bool      // the front matter keeps it to the owner's conversations
	Chunks  []Chunk
}

// Chunk is a part of a file under one heading. Lines count from 1, both ends included.
type Chunk struct {
	Start, End int
	Text       string    // the lines as they stand there
	Context    string    // what else tells what it is about: title, headings above it, tags, the words of the path
	Date       time.Time // of the nearest heading that is a date, else the document's
}

// Sizes of chunks, in bytes. A chunk of about 150 words is what the ranking's passages and its
// embedder were measured with.
const (
	chunkTarget = 900  // blocks are put together up to here
	chunkMost   = 1600 // a block is cut beyond this
)

// Parse reads a memory file. It never fails: what it does not understand is text.
func Parse(name, text string) Document {
	lines := strings.Split(text, "\n")
	if n := len(lines); n > 1 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	d := Document{Date: dateOfPath(name)}
	front := frontMatter(lines)
	d.read(front)
	c := &chunking{doc: &d, lines: lines, words: pathWords(name), date: d.Date}
	if front.extra {
		c.add(0, front.end)
	}
	c.sections(front.end)
	return d
}

// matter is the front matter of a file.
type matter struct {
	end    int // lines it takes, 0 for none
	values map[string][]string
	extra  bool // it holds more than the keys that are understood
}

var matterLine = regexp.MustCompile(`^([A-Za-z][\w-]*)[ \t]*[:=][ \t]*(.*)$`)

// frontMatter reads a block between lines of --- (YAML) or +++ (TOML) at the beginning of a file:
// keys with one value, with a list in brackets, or with a list of lines that begin with "- ".
func frontMatter(lines []string) matter {
	m := matter{values: map[string][]string{}}
	mark := strings.TrimRight(lines[0], " \t\r")
	if mark != "---" && mark != "+++" {
		return m
	}
	key := ""
	for i, line := range lines[1:] {
		line = strings.TrimRight(line, " \t\r")
		if line == mark || mark == "---" && line == "..." {
			m.end = i + 2
			break
		}
		if i > 200 {
			break
		}
		switch found := matterLine.FindStringSubmatch(line); {
		case found != nil:
			key = strings.ToLower(found[1])
			m.values[key] = append(m.values[key], list(found[2])...)
		case strings.HasPrefix(strings.TrimLeft(line, " \t"), "- ") && key != "":
			m.values[key] = append(m.values[key], scalar(strings.TrimLeft(line, " \t-")))
		}
	}
	if m.end == 0 {
		return matter{} // a rule, not the beginning of anything
	}
	for key := range m.values {
		switch key {
		case "title", "tags", "date", "private", "visibility", "created", "updated":
		default:
			m.extra = true
		}
	}
	return m
}

// list reads the value of a key.
func list(value string) []string {
	value = strings.TrimSpace(value)
	inner, ok := strings.CutPrefix(value, "[")
	if inner, closed := strings.CutSuffix(inner, "]"); ok && closed {
		var out []string
		for part := range strings.SplitSeq(inner, ",") {
			if part = scalar(part); part != "" {
				out = append(out, part)
			}
		}
		return out
	}
	if value = scalar(value); value != "" {
		return []string{value}
	}
	return nil
}

func scalar(value string) string { return strings.Trim(strings.TrimSpace(value), `"'`) }

func (d *Document) read(m matter) {
	first := func(key string) string {
		if v := m.values[key]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	d.Title = first("title")
	for _, tag := range m.values["tags"] {
		for word := range strings.FieldsSeq(tag) {
			d.Tags = append(d.Tags, strings.TrimPrefix(strings.Trim(word, ","), "#"))
		}
	}
	for _, key := range []string{"date", "created", "updated"} {
		if at, ok := dateIn(first(key)); ok {
			d.Date = at
			break
		}
	}
	switch strings.ToLower(first("private")) {
	case "true", "yes", "on", "1":
		d.Private = true
	}
	d.Private = d.Private || strings.EqualFold(first("visibility"), "private")
}

var isoDate = regexp.MustCompile(`(?:^|[^\d])(\d{4})[-/_.](\d{1,2})[-/_.](\d{1,2})(?:[^\d]|$)`)

// dateIn finds the first day in a text, written year first.
func dateIn(text string) (time.Time, bool) {
	for _, m := range isoDate.FindAllStringSubmatch(text, -1) {
		if at, ok := day(m[1], m[2], m[3]); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

func day(year, month, date string) (time.Time, bool) {
	y, _ := strconv.Atoi(year) // digits, by the expression
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(date)
	at := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < 1900 || y > 2200 || at.Month() != time.Month(m) || at.Day() != d {
		return time.Time{}, false
	}
	return at, true
}

// dateOfPath is the day of a dated note: memory/2026-03-07.md, memory/2026-03-07-dentist.md,
// memory/2026/03/07.md.
func dateOfPath(name string) time.Time {
	at, _ := dateIn(strings.TrimSuffix(name, ".md"))
	return at
}

// pathWords are the words of a path that tell something: not the fixed names.
func pathWords(name string) string {
	name = strings.TrimSuffix(path.Clean(name), ".md")
	if name == "MEMORY" || name == "memory" || name == "USER" {
		return ""
	}
	name = strings.TrimPrefix(name, "memory/")
	if !strings.ContainsFunc(name, unicode.IsLetter) {
		return "" // a date, which is indexed as such
	}
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}
