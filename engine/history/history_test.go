package history

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// texts lists the contents of a session, in order, for comparison.
func texts(t *testing.T, s Session) []string {
	t.Helper()
	var out []string
	for _, e := range s.Entries {
		var m struct {
			Content any `json:"content"`
		}
		if err := json.Unmarshal(e.Message, &m); err != nil {
			t.Fatalf("entry %s: %v", e.EntryID, err)
		}
		if text, ok := m.Content.(string); ok {
			out = append(out, text)
		} else {
			data, err := json.Marshal(m.Content)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(data))
		}
	}
	return out
}

func decode(t *testing.T, opts Options, lines ...string) *File {
	t.Helper()
	f, err := Decode("h.jsonl", []byte(strings.Join(lines, "\n")), opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func one(t *testing.T, f *File) Session {
	t.Helper()
	if len(f.Sessions) != 1 {
		t.Fatalf("%d sessions, want 1: %+v", len(f.Sessions), f.Sessions)
	}
	return f.Sessions[0]
}

func TestChat(t *testing.T) {
	f := decode(t, Options{},
		`{"session":"agent:main:telegram:direct:7","role":"user","sender":"Ann","timestamp":"2026-03-01T18:00:00+01:00","content":"the boiler is dead"}`,
		`{"session":"agent:main:telegram:direct:7","role":"assistant","sender":"hark","timestamp":1772384401,"content":"Since when?"}`,
		`{"session":"kitchen","role":"human","content":[{"type":"text","text":"hi"}]}`,
		`{"session":"main","role":"assistant","content":"","toolCalls":[{"id":"c1","name":"exec","arguments":{"cmd":"ls"}}]}`,
		`{"session":"main","role":"tool","content":"a b","toolCallId":"c1","toolName":"exec"}`,
	)
	var keys []string
	for _, s := range f.Sessions {
		keys = append(keys, s.Key)
	}
	if d := cmp.Diff([]string{"agent:main:telegram:direct:7", "agent:main:explicit:kitchen", "agent:main:main"}, keys); d != "" {
		t.Errorf("session keys: %s", d)
	}
	first := f.Sessions[0].Entries[0]
	if first.CreatedAt != "2026-03-01T17:00:00Z" || first.Role != "user" {
		t.Errorf("first entry: time %q role %q", first.CreatedAt, first.Role)
	}
	want := `{"role":"user","content":"the boiler is dead","timestamp":1772384400000,"__openclaw":{"senderName":"Ann"}}`
	if string(first.Message) != want {
		t.Errorf("message\n got %s\nwant %s", first.Message, want)
	}
	call := string(f.Sessions[2].Entries[0].Message)
	if want := `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"exec","arguments":{"cmd":"ls"}}]}`; call != want {
		t.Errorf("tool call\n got %s\nwant %s", call, want)
	}
	if f.Messages != 5 || f.Skipped != 0 || f.Format != Chat {
		t.Errorf("messages %d, skipped %d, format %s", f.Messages, f.Skipped, f.Format)
	}
}

// Importing a file again, under another name or with lines before, must give the same entries the
// same ids, and two equal lines two ids.
func TestChatIDsAreStable(t *testing.T) {
	line := `{"session":"k","role":"user","content":"ok"}`
	a := one(t, decode(t, Options{}, line, line))
	b := one(t, decode(t, Options{}, line, line, `{"session":"k","role":"user","content":"more"}`))
	if a.Entries[0].EntryID == a.Entries[1].EntryID {
		t.Error("two equal messages share an id")
	}
	for i := range a.Entries {
		if a.Entries[i].EntryID != b.Entries[i].EntryID {
			t.Errorf("entry %d: id %s became %s", i, a.Entries[i].EntryID, b.Entries[i].EntryID)
		}
	}
}

const header = `{"type":"session","version":3,"id":"s9","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}`

func msg(id, parent, role, text string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + p + `,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"` + role + `","content":"` + text + `"}}`
}

func TestOpenClawBranches(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
		skip  int
	}{
		{"a chain", []string{header, msg("a", "", "user", "one"), msg("b", "a", "assistant", "two")}, []string{"one", "two"}, 0},
		{"an edited turn leaves the old answer behind",
			[]string{header, msg("a", "", "user", "one"), msg("b", "a", "assistant", "old"), msg("c", "a", "assistant", "new")}, []string{"one", "new"}, 1},
		{"the conversation goes back to a leaf",
			[]string{header, msg("a", "", "user", "one"), msg("b", "a", "assistant", "two"), `{"type":"leaf","id":"l","parentId":"b","targetId":"a"}`}, []string{"one"}, 1},
		{"a first message sent anew",
			[]string{header, msg("a", "", "user", "draft"), msg("b", "", "user", "final")}, []string{"final"}, 1},
		{"what was said before a reset stays",
			[]string{header, msg("a", "", "user", "one"), `{"type":"reset","id":"r","parentId":null,"context":"clear"}`, msg("b", "r", "user", "two")}, []string{"one", "two"}, 0},
		{"a compaction ends nothing",
			[]string{header, msg("a", "", "user", "one"), `{"type":"compaction","id":"k","parentId":"a","summary":"S","firstKeptEntryId":"a","tokensBefore":9}`, msg("b", "k", "user", "two")}, []string{"one", "two"}, 0},
		{"an entry written again replaces the first",
			[]string{header, msg("a", "", "user", "typo"), msg("b", "a", "assistant", "two"), msg("a", "", "user", "fixed"), msg("c", "b", "user", "three")}, []string{"fixed", "two", "three"}, 0},
		{"a parent that is not in the file",
			[]string{header, msg("a", "gone", "user", "one"), msg("b", "a", "assistant", "two")}, []string{"one", "two"}, 0},
		{"version 1 without ids",
			[]string{`{"type":"session","id":"s9","timestamp":"2026-01-01T00:00:00Z"}`, `{"type":"message","message":{"role":"user","content":"one"}}`, `{"type":"message","message":{"role":"assistant","content":"two"}}`}, []string{"one", "two"}, 0},
		{"plugins' words and the host's notes are not messages",
			[]string{header, msg("a", "", "user", "one"), `{"type":"custom_message","id":"m","parentId":"a","customType":"x","content":"hidden"}`, `{"type":"custom","id":"n","parentId":"m","customType":"y","data":{}}`, msg("b", "n", "assistant", "two")}, []string{"one", "two"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := decode(t, Options{}, tt.lines...)
			s := one(t, f)
			if d := cmp.Diff(tt.want, texts(t, s)); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if f.Skipped != tt.skip {
				t.Errorf("skipped %d, want %d", f.Skipped, tt.skip)
			}
			if s.ID != "s9" || s.Key != "agent:main:explicit:s9" {
				t.Errorf("session %q under %q", s.ID, s.Key)
			}
		})
	}
}

// Rows of the host's database wrap the events; what the host stored is handed on byte for byte.
func TestOpenClawRows(t *testing.T) {
	raw := `{"role":"user","content":"a\u2028b \ud83d <&>","timestamp":1.0,"big":12345678901234567890}`
	f := decode(t, Options{},
		`{"seq":0,"created_at":1796060365671,"event":{"type":"session","version":4,"id":"s1"}}`,
		`{"seq":4,"created_at":1796060368247,"event":{"type":"message","id":"a","parentId":null,"message":`+raw+`}}`,
	)
	e := one(t, f).Entries[0]
	if string(e.Message) != raw {
		t.Errorf("message changed:\n got %s\nwant %s", e.Message, raw)
	}
	if e.EntryID != "a" || e.Seq != 4 || e.CreatedAt != "2026-11-30T17:39:28.247Z" {
		t.Errorf("entry %+v", e)
	}
}

func TestBadLines(t *testing.T) {
	const good = `{"session":"k","role":"user","content":"fine"}`
	tests := []struct {
		name, line, reason string
	}{
		{"cut off", `{"session":"k","role":"us`, "the JSON ends in the middle: the line is cut off"},
		{"no JSON", `hello`, "the line is no JSON object"},
		{"an array", `[1,2]`, "the line is a JSON array; every line has to be one JSON object"},
		{"wrong type", `{"session":5,"role":"user","content":"x"}`, `the field "session" cannot be a JSON number`},
		{"no role", `{"session":"k","content":"x"}`, `the message has no "role"`},
		{"content of no kind", `{"role":"user","content":7}`, `the field "content" has to be text or a list of content blocks`},
		{"time of no kind", `{"role":"user","content":"x","timestamp":"yesterday"}`, `the timestamp "yesterday" is neither RFC 3339 (2026-03-01T18:00:00Z) nor Unix time`},
		{"NUL bytes", "\x00\x00\x00", "the line holds only NUL bytes: the file was cut off while it was written"},
		{"a raw NUL in a text", "{\"role\":\"user\",\"content\":\"a\x00b\"}", "not valid JSON at byte 28: invalid character '\\x00' in string literal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(good + "\n\n" + tt.line + "\n" + good + "\n")
			_, err := Decode("h.jsonl", data, Options{})
			if _, ok := errors.AsType[*RejectedError](err); !ok {
				t.Fatalf("error %v, want a rejected file", err)
			}
			if want := "h.jsonl:3: " + tt.reason; err.Error() != want {
				t.Errorf("error\n got %s\nwant %s", err, want)
			}
			f, err := Decode("h.jsonl", data, Options{KeepGoing: true})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(one(t, f).Entries); n != 2 || f.Skipped != 1 || f.Messages != 3 || len(f.Bad) != 1 {
				t.Errorf("%d entries, %d skipped of %d, %d bad lines", n, f.Skipped, f.Messages, len(f.Bad))
			}
		})
	}
}

func TestNotes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := decode(t, Options{Now: now},
		"\ufeff"+`{"session":"k","role":"user","timestamp":"2031-01-01T00:00:00Z","content":"from the future"}`+"\r",
		`{"session":"k","role":"user","content":"no time"}`+"\r",
		"{\"session\":\"k\",\"role\":\"user\",\"content\":\"caf\xe9\"}\r",
		`{"session":"k","role":"narrator","content":"meanwhile"}`,
		`{"session":"k","role":"user","content":"  "}`,
		`{"session":"k","role":"user","content":"lone \ud800 surrogate, NUL \u0000"}`,
	)
	if d := cmp.Diff([]string{"from the future", "no time", "caf\uFFFD", "lone \uFFFD surrogate, NUL \x00"}, texts(t, one(t, f))); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	want := []string{
		"1 line has bytes that are not UTF-8; they were replaced by U+FFFD",
		"3 messages have no time; the time of the import is used",
		"1 message is dated in the future; check the clock it was written with",
		"1 message without content skipped",
		`messages with a role Hark does not know skipped: "narrator" (1)`,
	}
	if d := cmp.Diff(want, f.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

// An id that names two messages of a file loses neither, and the line is told; the same message under
// the same id is one. What is imported again has the same ids.
func TestIDUsedTwice(t *testing.T) {
	lines := []string{
		`{"session":"k","id":"7","role":"user","content":"apples"}`,
		`{"session":"k","id":"7","role":"user","content":"berries"}`,
		`{"session":"k","id":"7","role":"user","content":"apples"}`,
		`{"session":"k","id":"7","role":"assistant","content":"cherries"}`,
		`{"session":"k","id":"7#2","role":"user","content":"dates"}`,
		`{"session":"other","id":"7","role":"user","content":"berries"}`,
	}
	var before []string
	for range 2 {
		f := decode(t, Options{}, lines...)
		if d := cmp.Diff([]string{"apples", "berries", "cherries", "dates"}, texts(t, f.Sessions[0])); d != "" {
			t.Errorf("entries (-want +got):\n%s", d)
		}
		var ids, at []string
		for _, s := range f.Sessions {
			for _, e := range s.Entries {
				if slices.Contains(ids, s.Key+e.EntryID) {
					t.Errorf("the id %q twice", e.EntryID)
				}
				ids = append(ids, s.Key+e.EntryID)
			}
		}
		for _, w := range f.Warnings {
			path, rest, _ := strings.Cut(w.String(), ":")
			line, _, _ := strings.Cut(rest, ":")
			at = append(at, path+":"+line)
		}
		if d := cmp.Diff([]string{f.Path + ":2", f.Path + ":3", f.Path + ":4", f.Path + ":5"}, at); d != "" {
			t.Errorf("warnings (-want +got):\n%s", d)
		}
		if before != nil && !slices.Equal(ids, before) {
			t.Errorf("ids %v, were %v", ids, before)
		}
		before = ids
	}
}

// TIME-01: a time from which no message can be is no time, and said to be so.
func TestImpossibleTimes(t *testing.T) {
	odd := []string{`0`, `-5`, `"NaN"`, `1e300`, `253402300799`, `253402300799000`, `"9999-12-31T23:59:59Z"`, `"0001-01-01T00:00:00Z"`, `"1600-01-01"`, `"2262-04-12T00:00:00Z"`}
	var lines []string
	for _, at := range odd {
		lines = append(lines, `{"session":"k","role":"user","content":"x","timestamp":`+at+`}`)
	}
	f := decode(t, Options{}, lines...)
	for i, e := range one(t, f).Entries {
		if e.CreatedAt != "" || strings.Contains(string(e.Message), "timestamp") {
			t.Errorf("%s became %s %s", odd[i], e.CreatedAt, e.Message)
		}
	}
	if want := "10 messages have a time that cannot be (before 1985 or after 2199); the time of the import is used"; !slices.Contains(f.Notes, want) {
		t.Errorf("notes %q", f.Notes)
	}
}

func TestWholeFiles(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"another format", `{"hello":"world"}`, "neither an OpenClaw transcript"},
		{"one JSON array", "[\n{}]", "one JSON array"},
		{"UTF-16", "\xff\xfe{\x00", "UTF-16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode("f", []byte(tt.data), Options{})
			var form *FormatError
			if !errors.As(err, &form) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
	f, err := Decode("f", nil, Options{})
	if err != nil || len(f.Sessions) != 0 || len(f.Notes) != 1 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("word ", 1<<20)
	f := decode(t, Options{}, `{"role":"user","content":"`+long+`"}`)
	if got := texts(t, one(t, f))[0]; got != long {
		t.Errorf("a line of 5 MB came back with %d bytes, want %d", len(got), len(long))
	}
}
