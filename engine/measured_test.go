package engine

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// An engine that has just started takes what it measured of a session's history from the store: the
// result is the same, only what is new is measured, and the store holds no word of it.
func TestMeasuresOutliveTheProcess(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	h := []json.RawMessage{
		raw(`{"role":"custom","customType":"note","content":"aside"}`),
		raw(`{"role":"user","content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"text","text":"see"}],"__openclaw":{"senderIsOwner":false}}`),
		raw(`7`),
	}
	for len(h) < 120 {
		h = append(h, history(rng, 5)...)
		h = append(h, user(fmt.Sprintf("where is the violet folder %d? %s", len(h), strings.Repeat("Quetzalcoatl ", 40)), day+int64(len(h))), assistant("in the attic", day))
	}
	dir := t.TempDir()
	p := AssembleParams{SessionID: "s", SessionKey: "agent:main:explicit:long", Messages: h, Prompt: "and the copper kettle?", TokenBudget: 20_000}
	var results []string
	for process := range 3 {
		e, done := openAt(t, dir, nil, nil)
		if process == 0 {
			storeNotes(t, e)
		}
		if process > 0 {
			e.unwritten[p.SessionKey] = -1 << 40 // it is not written, and the count stays
		}
		res, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		e.keeping.Wait()
		if fresh := e.unwritten[p.SessionKey]; process > 0 && fresh != -1<<40 {
			t.Errorf("process %d measured %d bytes again", process, fresh+1<<40)
		}
		delete(e.unwritten, p.SessionKey)
		list, err := e.store.State(t.Context(), measuredBucket, p.SessionKey)
		if err != nil || len(list) == 0 || bytes.Contains(list, []byte("Quetzal")) || bytes.Contains(list, []byte("violet")) {
			t.Fatalf("process %d: %d bytes of measures, %v: %q", process, len(list), err, list[:min(len(list), 300)])
		}
		again := bare(t).measureAll(h)
		for i, m := range e.measureAll(h) {
			if m.wordless {
				m = new(*m)
				m.words, m.wordless = wordsOf(h[i], m), false
			}
			if fmt.Sprintf("%+v", flat(m)) != fmt.Sprintf("%+v", flat(again[i])) {
				t.Fatalf("process %d, message %d:\n%+v\n%+v", process, i, m, again[i])
			}
		}
		tr := res.Trace
		results = append(results, fmt.Sprint(string(join(res.Messages)), tr.Recall.Question, tr.Recall.Context, tr.Scope, res.EstimatedTokens))
		if results[process] != results[0] {
			t.Errorf("process %d: another result\n%s\nwant\n%s", process, results[process], results[0])
		}
		p.Messages = append(slices.Clip(h), user("one more", day), assistant("yes", day))
		if _, err := e.Assemble(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if fresh := e.unwritten[p.SessionKey]; fresh == 0 || fresh > 300 {
			t.Errorf("process %d: %d bytes are new", process, fresh)
		}
		p.Messages = h
		done()
	}

	// Forgetting something of the session drops the list, whoever is about to write one.
	e, done := openAt(t, dir, nil, nil)
	defer done()
	commit(t, e, turn(p.SessionKey, "k", user("forget me", day)))
	e.unwritten[p.SessionKey] = worthWriting
	if _, err := e.Forget(t.Context(), Forgetting{Session: p.SessionKey}); err != nil {
		t.Fatal(err)
	}
	if list, err := e.store.State(t.Context(), measuredBucket, p.SessionKey); err != nil || len(list) > 0 {
		t.Errorf("%d bytes of measures after a forgetting: %v", len(list), err)
	}
}

// A list that another version wrote, or that is damaged, is not used.
func TestForeignMeasures(t *testing.T) {
	h := longHistory()[:200]
	want := bare(t).measureAll(h)
	var foreign bytes.Buffer
	list := measuredList{Form: "0.0.1/1"}
	for i, m := range want {
		s := storedOf(m, bytesKeyOf(h[i]))
		s.Tokens = 1
		list.Messages = append(list.Messages, s)
	}
	if err := gob.NewEncoder(&foreign).Encode(list); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]byte{"damaged": []byte("no gob"), "another version's": foreign.Bytes()} {
		e := open(t, nil, nil)
		if err := e.store.SetState(t.Context(), measuredBucket, mainKey, list); err != nil {
			t.Fatal(err)
		}
		got := e.measureOf(t.Context(), mainKey, h)
		for i := range h {
			if got[i].tokens != want[i].tokens {
				t.Fatalf("%s: message %d has %d tokens, want %d", name, i, got[i].tokens, want[i].tokens)
			}
		}
	}
}

// flat is a measure with its owner by value.
func flat(m *measure) any {
	owner := "unknown"
	if m.owner != nil {
		owner = fmt.Sprint(*m.owner)
	}
	c := *m
	c.owner = nil
	if len(c.calls) == 0 {
		c.calls = nil
	}
	return struct {
		measure
		Owner string
	}{c, owner}
}
