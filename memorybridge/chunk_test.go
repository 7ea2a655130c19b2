package memorybridge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	text := `---
title: Boat
tags: [sailing, "repair"]
date: 2026-02-03
owner: Ann
---
Words before any heading.

# Rigging

## 2026-05-01

The shroud was replaced.

` + "```sh\n# no heading\n\n## neither\n```" + `

Mast
====

Keel bolts: 12 Nm.
`
	d := Parse("memory/projects/my-boat.md", text)
	if d.Title != "Boat" || d.Private || !cmp.Equal(d.Tags, []string{"sailing", "repair"}) || d.Date.Format(time.DateOnly) != "2026-02-03" {
		t.Errorf("front matter: %+v", d)
	}
	type part struct {
		Start, End  int
		Date, First string
	}
	var got []part
	for _, c := range d.Chunks {
		first, _, _ := strings.Cut(c.Text, "\n")
		got = append(got, part{c.Start, c.End, c.Date.Format(time.DateOnly), first})
	}
	want := []part{
		{1, 6, "2026-02-03", "---"}, {7, 7, "2026-02-03", "Words before any heading."},
		{9, 19, "2026-05-01", "# Rigging"}, {21, 24, "2026-02-03", "Mast"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	last := d.Chunks[len(d.Chunks)-1]
	for _, word := range []string{"Boat", "sailing repair", "projects my boat"} {
		if !strings.Contains(last.Context, word) {
			t.Errorf("the context %q lacks %q", last.Context, word)
		}
	}
}

// Whatever a file holds, its chunks are its lines: all of them but blank ones, in order, each once.
func TestChunksAreTheLines(t *testing.T) {
	files := map[string]string{
		"list":   "# Facts\n" + strings.Repeat("- one fact about the kettle and the harbour, with a number 4417 in it\n  and a second line\n", 60),
		"fence":  "# Code\n\n````\n" + strings.Repeat("x := 1 // ``` not the end\n\n", 300) + "````\nafter\n",
		"open":   "```\nnever closed\n# so no heading\n",
		"huge":   strings.Repeat("word ", 100_000) + "\nsecond line\n",
		"no end": "a", "empty": "", "blank": "\n\n \n", "rule": "---\n\nno front matter\n",
		"headings": "# A\n## B\n### C\ntext\n# D\n",
		"han":      strings.Repeat("青岛海测电子有限公司联系人是王丽。", 2000) + "\n",
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(text, "\n")
			covered := map[int]string{}
			last := 0
			for _, c := range Parse("memory/x.md", text).Chunks {
				if c.Start < 1 || c.End > len(lines) || c.Start < last || len(c.Text) > chunkMost+200 {
					t.Fatalf("lines %d to %d after %d, %d bytes", c.Start, c.End, last, len(c.Text))
				}
				last = c.End
				if whole := strings.Join(lines[c.Start-1:c.End], "\n"); c.Start != c.End && whole != c.Text {
					t.Fatalf("lines %d to %d are not the text %q", c.Start, c.End, c.Text)
				}
				for n := c.Start; n <= c.End; n++ {
					covered[n] += c.Text
				}
			}
			for i, line := range lines {
				if _, ok := covered[i+1]; !ok && strings.TrimSpace(line) != "" {
					t.Errorf("line %d is in no chunk: %q", i+1, line[:min(len(line), 60)])
				}
				if len(line) > chunkMost && covered[i+1] != line {
					t.Errorf("the parts of line %d are not the line", i+1)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# a\n\n```\n# b\n```\n- c\n", "memory/2026-03-07.md")
	f.Add("---\ntitle: x\n", "MEMORY.md")
	f.Fuzz(func(t *testing.T, text, name string) {
		decoded, ok := Decode([]byte(text))
		if !ok {
			return
		}
		lines := len(strings.Split(decoded, "\n"))
		for _, c := range Parse(name, decoded).Chunks {
			if c.Start < 1 || c.End < c.Start || c.End > lines {
				t.Fatalf("lines %d to %d of %d", c.Start, c.End, lines)
			}
			s, start, end := Snippet(c.Text, c.Start, nil)
			if start < c.Start || end > max(c.End, start) || len(s) > SnippetSize+20 && len(c.Text) > SnippetSize {
				t.Fatalf("snippet of %d bytes, lines %d to %d in %d to %d", len(s), start, end, c.Start, c.End)
			}
		}
	})
}

func TestDates(t *testing.T) {
	for name, want := range map[string]string{
		"memory/2026-03-07.md": "2026-03-07", "memory/2026-03-07-dentist.md": "2026-03-07", "memory/2026/03/07.md": "2026-03-07",
		"memory/2026-13-07.md": "", "memory/2026-02-30.md": "", "MEMORY.md": "", "memory/ticket-12026-03-07.md": "",
	} {
		got := ""
		if d := Parse(name, "text").Date; !d.IsZero() {
			got = d.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPrivate(t *testing.T) {
	for head, want := range map[string]bool{
		"---\nprivate: true\n---\n": true, "---\nvisibility: private\n---\n": true, "---\nprivate: false\n---\n": false, "private: true\n": false,
		"+++\nprivate = true\n+++\n": true,
	} {
		if got := Parse("memory/a.md", head+"text").Private; got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
	for path, want := range map[string]Class{
		"MEMORY.md": Curated, "memory.md": Curated, "USER.md": Curated, "DREAMS.md": Dream, "memory/dreaming/a.md": Dream,
		"memory/a.md": Note, "memory/x/y/z.md": Note,
	} {
		if got, ok := Classify(path); got != want || !ok {
			t.Errorf("%s: %s %v", path, got, ok)
		}
	}
	for _, path := range []string{"a.md", "memory/a.txt", "../memory/a.md", "memory/../a.md", "/memory/a.md", "memory", "Memory/a.md"} {
		if c, ok := Classify(path); ok {
			t.Errorf("%s is %s", path, c)
		}
	}
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":     {"häuser\n", "häuser\n"},
		"mark":      {"\xEF\xBB\xBFhi", "hi"},
		"utf-16le":  {"\xFF\xFEh\x00\xe4\x00\n\x00", "hä\n"},
		"utf-16be":  {"\xFE\xFF\x00h\x00\xe4", "hä"},
		"no mark":   {"h\x00e\x00l\x00l\x00o\x00", "hello"},
		"latin-1":   {"h\xe4user", "häuser"},
		"1252":      {"\x93quoted\x94", "“quoted”"},
		"damaged":   {"größe ä ö ü \xff end", "größe ä ö ü \uFFFD end"},
		"crlf":      {"a\r\nb\r\n", "a\nb\n"},
		"old mac":   {"a\rb", "a\nb"},
		"nul":       {"this is a line with one \x00 in it", "this is a line with one   in it"},
		"empty":     {"", ""},
		"odd bytes": {"\xFF\xFEh", "\uFFFD"},
	} {
		if got, ok := Decode([]byte(c.in)); got != c.want || !ok {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
	if text, ok := Decode([]byte{0x7f, 'E', 'L', 'F', 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0}); ok {
		t.Errorf("a program is text: %q", text)
	}
}

func TestSnippet(t *testing.T) {
	lines := make([]string, 60)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %02d is about the garden and nothing else", i)
	}
	lines[41] = "line 41 names the zeppelin"
	text := strings.Join(lines, "\n")
	at := strings.Index(text, "zeppelin")
	got, start, end := Snippet(text, 100, []Span{{at, at + 8}})
	if start > 141 || end < 141 || got != strings.Join(lines[start-100:end-99], "\n") || len(got) > SnippetSize || end-start < 10 {
		t.Errorf("lines %d to %d: %q", start, end, got)
	}
	long := strings.Repeat("A sentence about the garden. ", 80) + "Here the zeppelin lands. " + strings.Repeat("And another one. ", 80)
	at = strings.Index(long, "zeppelin")
	got, start, end = Snippet(long, 7, []Span{{at, at + 8}})
	if start != 7 || end != 7 || !strings.Contains(got, "Here the zeppelin lands.") || !strings.HasPrefix(got, "… A sentence") || !strings.HasSuffix(got, ". …") || len(got) > SnippetSize+10 {
		t.Errorf("%d to %d: %q", start, end, got)
	}
	if got, start, end := Snippet("short\ntwo", 3, nil); got != "short\ntwo" || start != 3 || end != 4 {
		t.Errorf("%q %d %d", got, start, end)
	}
}

func TestCitationForm(t *testing.T) {
	if a, b := Citation("MEMORY.md", 3, 9), Citation("MEMORY.md", 3, 3); a != "MEMORY.md#L3-L9" || b != "MEMORY.md#L3" {
		t.Error(a, b)
	}
	for _, c := range []struct {
		mode  string
		group bool
		want  bool
	}{{"on", true, true}, {"off", false, false}, {"auto", false, true}, {"auto", true, false}, {"", false, true}} {
		if Cites(c.mode, c.group) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestCut(t *testing.T) {
	text := strings.Repeat("line\n", 300)
	for _, c := range []struct{ from, lines, wantFrom, wantLines, next int }{
		{0, 0, 1, 120, 121}, {290, 0, 290, 11, 0}, {5, 2, 5, 2, 7}, {301, 0, 301, 0, 0}, {300, 1, 300, 1, 0},
	} {
		e := Cut(text, c.from, c.lines)
		if e.From != c.wantFrom || e.Lines != c.wantLines || e.NextFrom != c.next || e.Truncated != (c.next > 0) || e.Total != 300 {
			t.Errorf("%+v: %+v", c, e)
		}
	}
	if e := Cut(strings.Repeat("ü", 20_000)+"\nx", 1, 5); len([]rune(e.Text)) != ExcerptSize || !e.Truncated || e.NextFrom != 0 || e.Lines != 1 {
		t.Errorf("one huge line: %d characters, %+v", len([]rune(e.Text)), Excerpt{From: e.From, Lines: e.Lines, NextFrom: e.NextFrom})
	}
	if e := Cut(strings.Repeat(strings.Repeat("x", 999)+"\n", 30), 1, 30); e.Lines != 12 || e.NextFrom != 13 {
		t.Errorf("many long lines: %d, goes on at %d", e.Lines, e.NextFrom)
	}
	if e := Cut("", 1, 1); e.Total != 0 || e.Text != "" || e.Truncated {
		t.Errorf("nothing: %+v", e)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
