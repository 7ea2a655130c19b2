package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/embed/embedtest"
	"hark/index"
)

// precision writes the time of a message as another program would.
type precision struct {
	name  string
	write func(ms int64) string // the JSON of the timestamp, "" for none
}

func iso(layout string) func(int64) string {
	return func(ms int64) string { return `"` + time.UnixMilli(ms).UTC().Format(layout) + `"` }
}

var precisions = []precision{
	{"milliseconds", func(ms int64) string { return fmt.Sprint(ms) }},
	{"seconds", func(ms int64) string { return fmt.Sprint(ms / 1000) }},
	{"rounded seconds", func(ms int64) string { return fmt.Sprint((ms + 500) / 1000) }},
	{"seconds with a fraction", func(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }},
	{"microseconds", func(ms int64) string { return fmt.Sprint(ms * 1000) }},
	{"nanoseconds in a string", func(ms int64) string { return fmt.Sprintf(`"%d"`, ms*1_000_000) }},
	{"RFC 3339", iso("2006-01-02T15:04:05.000Z07:00")},
	{"RFC 3339 in seconds", iso(time.RFC3339)},
	{"minutes", iso("2006-01-02 15:04")},
	{"none", func(int64) string { return "" }},
	{"the end of time", func(int64) string { return `"9999-12-31T23:59:59Z"` }},
}

// saidAt is a conversation in which "ok" is said four times, with the last two within a second.
func saidAt(write func(int64) string) (out []json.RawMessage) {
	for i, m := range []struct {
		text string
		ms   int64
	}{{"ok", 123}, {"the tent is in the cellar", 61_456}, {"ok", 122_999}, {"again", 123_010}, {"ok", 305_601}, {"ok", 306_250}} {
		stamp := write(day + m.ms)
		if stamp != "" {
			stamp = `,"timestamp":` + stamp
		}
		role := "user"
		if i == 1 {
			role = "assistant"
		}
		out = append(out, raw(fmt.Sprintf(`{"role":%q,"content":%q%s}`, role, m.text, stamp)))
	}
	return out
}

// copies delivers a conversation of a session in one of the ways there are.
func copies(t *testing.T, e *Engine, key, way string, ms []json.RawMessage) {
	t.Helper()
	var err error
	switch way {
	case "batch":
		_, err = e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s" + key, SessionKey: key, Messages: ms})
	case "after turn":
		err = e.AfterTurn(t.Context(), AfterTurnParams{SessionID: "s" + key, SessionKey: key, Messages: ms, PrePromptMessageCount: len(ms) - 2})
	default: // transcripts, in pages, under ids of their own
		for i := 0; i < len(ms) && err == nil; i += 2 {
			var h []HistoryEntry
			for j, m := range ms[i:min(i+2, len(ms))] {
				h = append(h, HistoryEntry{EntryID: fmt.Sprint(way, i+j), Seq: int64(i + j + 1), Message: m})
			}
			_, err = e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s" + key, SessionKey: key, History: h})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// alike reports that of two precisions one tells what the other is a copy of.
func alikeEnough(a, b string) bool {
	coarse := func(s string) bool {
		return s == "minutes" || strings.HasSuffix(s, "seconds") && s != "milliseconds" && s != "microseconds"
	}
	odd := func(s string) bool { return s == "minutes" || s == "rounded seconds" }
	return a == b || !coarse(a) || !coarse(b) || !odd(a) && !odd(b)
}

// DUP-06, TIME-01: a copy of a conversation whose times are coarser, finer, written otherwise or missing
// is the same conversation, by whatever way either comes; what is said again stays. And when it was
// forgotten, no such copy brings it back.
func TestCopiesOfOtherPrecision(t *testing.T) {
	e := open(t, nil, nil)
	ways := []string{"batch", "after turn", "transcript"}
	type pair struct {
		name, key, way string
		write          func(int64) string
	}
	var pairs []pair
	for i, first := range precisions {
		for j, second := range precisions {
			if !alikeEnough(first.name, second.name) {
				continue
			}
			n := len(pairs)
			key := fmt.Sprintf("agent:main:explicit:%d-%d", i, j)
			one, two := ways[n%3], ways[(n/3)%3]
			if two == "transcript" {
				two = "rewritten"
			}
			p := pair{fmt.Sprintf("%s (%s), then %s (%s)", first.name, one, second.name, two), key, two, second.write}
			pairs = append(pairs, p)
			copies(t, e, key, one, saidAt(first.write))
			for range 2 {
				copies(t, e, key, two, saidAt(second.write))
			}
			if got := len(rows(t, e, key)); got != 6 {
				t.Errorf("%s: %d rows: %s", p.name, got, list(t, e, key))
			}
		}
	}
	forget(t, e, Forgetting{All: true}, total(t, e))
	for n, p := range pairs {
		copies(t, e, p.key, p.way, saidAt(p.write))
		copies(t, e, p.key, "third", saidAt(precisions[0].write))
		copies(t, e, p.key, "fourth", saidAt(precisions[n%len(precisions)].write))
		if got := len(rows(t, e, p.key)); got != 0 {
			t.Errorf("%s: %d came back: %s", p.name, got, list(t, e, p.key))
		}
	}
}

// TIME-01: what was stored without a time gets its own as soon as a copy tells it, and its place in the
// order of the session.
func TestTimeLearned(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, embedtest.Hashed(16), nil)
	copies(t, e, mainKey, "batch", saidAt(precisions[9].write))
	commit(t, e, turn(mainKey, "live", user("the kite is in the hall", fixedClock().UnixMilli()-5)))
	copies(t, e, mainKey, "batch", saidAt(precisions[0].write))
	var want []int64
	for _, m := range saidAt(precisions[0].write) {
		want = append(want, mustDecode(t, string(m)).at.UnixMilli())
	}
	want = append(want, fixedClock().UnixMilli()-5)
	for range 2 {
		var got []int64
		for _, m := range rows(t, e, mainKey) {
			got = append(got, m.Time.UnixMilli())
			if m.TimeSource != index.FromMessage {
				t.Errorf("%q has its time from %d", m.Text, m.TimeSource)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("times %v, want %v", got, want)
		}
		if block, _ := question(t, e, otherKey, "where is the tent?"); !strings.Contains(block, "2026-11-30") {
			t.Error(block)
		}
		done()
		e, done = openAt(t, dir, embedtest.Hashed(16), nil)
	}
	done()
}

// A history that is handed over whole after each message grows by that message, also where it says again
// what was said, and whatever is told of the times.
func TestGrowingHistory(t *testing.T) {
	e := open(t, nil, nil)
	for i, p := range precisions {
		for _, way := range []string{"batch", "transcript", "rewritten"} {
			key := fmt.Sprintf("agent:main:explicit:%s-%d", way, i)
			all := saidAt(p.write)
			for n := range all {
				as := way
				if way == "rewritten" {
					as = fmt.Sprint(way, n, "-") // under new ids each time
				}
				copies(t, e, key, as, all[:n+1])
				if got := len(rows(t, e, key)); got != n+1 {
					t.Errorf("%s (%s): %d rows after %d messages: %s", p.name, way, got, n+1, list(t, e, key))
					break
				}
			}
		}
	}
}

func list(t *testing.T, e *Engine, key string) string {
	t.Helper()
	var b strings.Builder
	for _, m := range rows(t, e, key) {
		fmt.Fprintf(&b, "\n%d %s %q\n   %s", m.Time.UnixMilli(), m.Role, m.Text, strings.Join(m.Keys, "\n   "))
	}
	return b.String()
}

// What is said live is not taken for an earlier copy without a time, nor for what was forgotten.
func TestSaidAgainLater(t *testing.T) {
	now := time.UnixMilli(day)
	e := open(t, nil, &Options{Clock: func() time.Time { return now }})
	ms := []json.RawMessage{raw(`{"role":"user","content":"ok"}`), raw(`{"role":"assistant","content":"sure"}`)}
	if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s", SessionKey: mainKey, Messages: ms}); err != nil {
		t.Fatal(err)
	}
	commit(t, e, turn(mainKey, "k1", user("ok", day+60_000), assistant("sure", day+61_000)))
	if n := total(t, e); n != 4 {
		t.Errorf("%d rows, want 4: %s", n, list(t, e, mainKey))
	}
	now = now.Add(time.Hour)
	forget(t, e, Forgetting{All: true}, 4)
	commit(t, e, turn(mainKey, "k2", user("ok", day+2*3_600_000), assistant("sure", day+2*3_600_000+5)))
	if n := total(t, e); n != 2 {
		t.Errorf("%d rows, want the 2 said after the forgetting: %s", n, list(t, e, mainKey))
	}
}

// Turns have keys of their own: what two turns say without times was said twice, and each once.
func TestTurnsWithoutTimes(t *testing.T) {
	e := open(t, nil, nil)
	ms := []json.RawMessage{raw(`{"role":"user","content":"ok"}`), raw(`{"role":"assistant","content":"sure"}`)}
	for range 2 {
		for i := range 4 {
			commit(t, e, turn(mainKey, fmt.Sprint("k", i), ms...))
		}
		if n := total(t, e); n != 8 {
			t.Errorf("%d rows, want 8", n)
		}
		var all []json.RawMessage
		for range 4 {
			all = append(all, ms...)
		}
		if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s", SessionKey: mainKey, Messages: all}); err != nil {
			t.Fatal(err)
		}
	}
	if n := total(t, e); n != 8 {
		t.Errorf("%d rows, want 8 still: %s", n, list(t, e, mainKey))
	}
}

// SES-06: the newest form of an edited message stays, whatever the order in which the forms arrive and
// by whatever way the older ones come again.
func TestNewestEditWins(t *testing.T) {
	type form struct {
		text, created, edited string
		ms                    int64
	}
	at := func(text string, second int) form {
		return form{text: text, created: fmt.Sprintf("2026-11-30T10:00:%02dZ", second), ms: day}
	}
	give := func(t *testing.T, e *Engine, f form) {
		t.Helper()
		edited := ""
		if f.edited != "" {
			edited = `,"editedAt":"` + f.edited + `"`
		}
		m := raw(fmt.Sprintf(`{"role":"user","content":%q,"timestamp":%d%s}`, f.text, f.ms, edited))
		_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: []HistoryEntry{{EntryID: "e1", Seq: 1, Message: m, CreatedAt: f.created}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	plain := func(text string) form { return form{text: text, ms: day} }
	for name, c := range map[string]struct {
		forms []form
		want  string
	}{
		"nothing told":             {[]form{plain("a"), plain("b"), plain("a")}, "b"},
		"nothing told, thrice":     {[]form{plain("a"), plain("b"), plain("c"), plain("a"), plain("b")}, "c"},
		"events told":              {[]form{at("a", 1), at("b", 2), at("a", 1)}, "b"},
		"the newest first":         {[]form{at("c", 3), at("a", 1), at("b", 2)}, "c"},
		"edited back":              {[]form{at("a", 1), at("b", 2), at("a", 3), at("b", 2)}, "a"},
		"edit times":               {[]form{{"b", "", "2026-11-30T11:00:00Z", day}, {"a", "", "2026-11-30T10:30:00Z", day}}, "b"},
		"edit times, in order":     {[]form{{"a", "", "2026-11-30T10:30:00Z", day}, {"b", "", "2026-11-30T11:00:00Z", day}, plain("a")}, "b"},
		"times of the messages":    {[]form{{text: "b", ms: day + 5000}, {text: "a", ms: day}, {text: "c", ms: day + 9000}, {text: "b", ms: day + 5000}}, "c"},
		"an older one in between":  {[]form{{text: "a", ms: day}, {text: "c", ms: day + 9000}, {text: "b", ms: day + 5000}}, "c"},
		"confirmed in between":     {[]form{at("a", 1), at("b", 2), at("a", 4), at("a", 4), at("b", 3)}, "a"},
		"white space is no edit":   {[]form{plain("a b"), plain("a  b"), plain("a b")}, "a b"},
		"of two clocks":            {[]form{{"a", "2026-11-30T10:00:01.100Z", "", day}, {"b", "2026-11-30T10:00:01.050Z", "", day}}, "b"},
		"an older form never seen": {[]form{at("b", 2), at("old", 1), at("older", 0), plain("b")}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e, done := openAt(t, dir, nil, nil)
			defer func() { done() }()
			var old []Exported
			for i, f := range c.forms {
				give(t, e, f)
				page, err := e.Export(t.Context(), "", "", 0)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					old = page.Messages
				}
			}
			check := func(when string) {
				t.Helper()
				if ms := rows(t, e, mainKey); len(ms) != 1 || ms[0].Text != c.want {
					t.Errorf("%s: %q, want %q: %s", when, ms[0].Text, c.want, list(t, e, mainKey))
				}
			}
			check("all given")
			done()
			e, done = openAt(t, dir, nil, nil)
			if c.forms[0].text != c.want {
				if _, err := e.Restore(t.Context(), old); err != nil {
					t.Fatal(err)
				}
				check("an old export")
				m := user(c.forms[0].text, c.forms[0].ms)
				commit(t, e, turn(mainKey, "again", m))
				if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s", SessionKey: mainKey, Messages: []json.RawMessage{m}}); err != nil {
					t.Fatal(err)
				}
				check("a replayed transcript")
			}
			// The store travels, and knows the same there.
			page, err := e.Export(t.Context(), "", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			other := open(t, nil, nil)
			if _, err := other.Restore(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			for _, messages := range [][]Exported{page.Messages, old} {
				if _, err := other.Restore(t.Context(), messages); err != nil {
					t.Fatal(err)
				}
				if ms := rows(t, other, mainKey); len(ms) != 1 || ms[0].Text != c.want {
					t.Errorf("elsewhere: %q, want %q", ms[0].Text, c.want)
				}
			}
		})
	}
}
