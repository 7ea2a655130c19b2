package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Keys whose parts hold the separator name different messages.
func TestKeysAreUnambiguous(t *testing.T) {
	e := open(t, nil, nil)
	for _, h := range []struct{ key, id, text string }{
		{"agent:main:googlechat:group:spaces/a", "b/c", "the first group's words"},
		{"agent:main:googlechat:group:spaces/a/b", "c", "the other group's words"},
		{"agent:main:googlechat:group:spaces/a%2fb", "c", "a third group's words"},
	} {
		for _, page := range [][]HistoryEntry{
			{{EntryID: h.id, Message: user(h.text, day)}},
			{{EntryID: h.id + "/2", IdempotencyKey: "x/y", Message: user("the same words", day)}},
		} {
			res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: h.key, SessionKey: h.key, History: page})
			if err != nil || res.ImportedMessages != 1 {
				t.Errorf("%s: %+v %v", h.key, res, err)
			}
		}
		if ms := rows(t, e, h.key); len(ms) != 2 || ms[0].Text != h.text {
			t.Errorf("%s holds %d messages", h.key, len(ms))
		}
	}
}

// A long text of a group is the person's own where they say it themselves; a boot file that a
// second session restates is noise.
func TestRestatedWithinItsScope(t *testing.T) {
	e := open(t, nil, nil)
	long := strings.Repeat("the harbour plan with its seven piers and their owners ", 20)
	recalled := map[string]bool{}
	for i, key := range []string{"agent:main:telegram:group:-9", "agent:main:telegram:direct:7", mainKey, otherKey} {
		commit(t, e, turn(key, fmt.Sprint("k", i), user(long, day+int64(i))))
		recalled[key] = rows(t, e, key)[0].Kind == 0
	}
	if !recalled["agent:main:telegram:direct:7"] || !recalled[mainKey] {
		t.Errorf("words of one scope made noise of another's: %v", recalled)
	}
	if recalled[otherKey] {
		t.Error("a restated text is recalled")
	}
}

// A long import without times keeps every repetition, over its pages, and a second one adds nothing.
func TestRepetitionsOverPages(t *testing.T) {
	const lines, page = 3000, 500
	var h []HistoryEntry
	for i := range lines {
		role, text := "user", "ok"
		if i%2 == 1 {
			role, text = "assistant", "done"
		}
		h = append(h, HistoryEntry{EntryID: fmt.Sprint("c", i), Seq: int64(i + 1), Message: raw(fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))})
	}
	e := open(t, nil, nil)
	for _, want := range []int{lines, 0} {
		start, got := time.Now(), 0
		for at := 0; at < lines; at += page {
			res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: h[at : at+page]})
			if err != nil {
				t.Fatal(err)
			}
			got += res.ImportedMessages
		}
		if n := total(t, e); got != want || n != lines {
			t.Errorf("%d new, want %d; %d rows", got, want, n)
		}
		t.Log(time.Since(start))
	}
	// An event that only came with its content is the same one, not the next repetition.
	e = open(t, nil, nil)
	ms := raw(`{"role":"user","content":"ok"}`)
	if _, err := e.Ingest(t.Context(), IngestParams{SessionID: "s", SessionKey: mainKey, Message: ms}); err != nil {
		t.Fatal(err)
	}
	if res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: h[1000:1001]}); err != nil || res.ImportedMessages != 0 {
		t.Errorf("%+v %v", res, err)
	}
}
