package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hark/index"
)

// entries makes a page of a transcript: each text is an entry that follows the one before. A text's
// first letter names its entry.
func entries(parent string, from int, texts ...string) []HistoryEntry {
	var out []HistoryEntry
	for i, text := range texts {
		id := "e" + text[:1]
		out = append(out, HistoryEntry{EntryID: id, ParentID: parent, Seq: int64(from + i + 1), Message: user(text, day+int64(text[0])*1000)})
		parent = id
	}
	return out
}

func bootstrap(t *testing.T, e *Engine, complete bool, h []HistoryEntry) {
	t.Helper()
	_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "id-" + mainKey, SessionKey: mainKey, History: h, Complete: complete})
	if err != nil {
		t.Fatal(err)
	}
}

// memory lists the first letters of what can be recalled of the main session.
func memory(t *testing.T, e *Engine) string {
	t.Helper()
	out := ""
	for _, m := range rows(t, e, mainKey) {
		if m.Kind == index.Said {
			out += m.Text[:1]
		}
	}
	return out
}

// A branch that was cut is no memory, however the host lets Hark know, and is again when the person
// goes back to it.
func TestCutBranch(t *testing.T) {
	turnAt := func(key, parent string, text string) CommitTurnParams {
		p := turn(mainKey, key, user(text, day+int64(text[0])*1000), assistant("answer to "+text, day+int64(text[0])*1000+10))
		p.Admission = Admission{EntryAnchor: EntryAnchor{AgentID: "main", Generation: "g", EntryID: "e" + text[:1], EffectiveParentID: &parent, ActiveMessagePosition: int(text[0])}, Role: "user"}
		p.Terminal = EntryAnchor{AgentID: "main", Generation: "g", EntryID: "t" + text[:1], ActiveMessagePosition: int(text[0]) + 1}
		return p
	}
	said := []string{"apples are in the cellar", "berries are in the barn", "cherries are in the attic", "dates are in the garage"}
	t.Run("the transcript read again", func(t *testing.T) {
		e := open(t, nil, nil)
		bootstrap(t, e, false, entries("", 0, said...))
		bootstrap(t, e, false, entries("", 0, said[0], said[1], "eggs are in the fridge"))
		if got := memory(t, e); got != "abe" {
			t.Errorf("memory %q", got)
		}
		if block, _ := question(t, e, otherKey, "where are the cherries?"); strings.Contains(block, "attic") {
			t.Error(block)
		}
		bootstrap(t, e, false, entries("", 0, append(said, "figs are in the shed")...))
		if got := memory(t, e); got != "abcdf" {
			t.Errorf("back on the first branch: memory %q", got)
		}
		if block, _ := question(t, e, otherKey+"2", "where are the cherries?"); !strings.Contains(block, "attic") {
			t.Error("not restored")
		}
	})
	t.Run("only what is new, which names its parent", func(t *testing.T) {
		e := open(t, nil, nil)
		bootstrap(t, e, false, entries("", 0, said...))
		bootstrap(t, e, false, entries("eb", 2, "eggs are in the fridge"))
		if got := memory(t, e); got != "abe" {
			t.Errorf("memory %q", got)
		}
	})
	t.Run("cut short, nothing said since", func(t *testing.T) {
		e := open(t, nil, nil)
		bootstrap(t, e, true, entries("", 0, said...))
		bootstrap(t, e, true, entries("", 0, said[:2]...))
		if got := memory(t, e); got != "ab" {
			t.Errorf("memory %q", got)
		}
	})
	t.Run("a committed turn that goes back", func(t *testing.T) {
		e := open(t, nil, nil)
		commit(t, e, turnAt("k1", "model-change", "apples are in the cellar"))
		commit(t, e, turnAt("k2", "ta", "berries are in the barn"))
		commit(t, e, turnAt("k3", "tb", "cherries are in the attic"))
		commit(t, e, turnAt("k4", "ta", "dates are in the garage"))
		got := ""
		for _, m := range rows(t, e, mainKey) {
			if m.Kind == index.Said && m.Role == "user" {
				got += m.Text[:1]
			}
		}
		if got != "ad" {
			t.Errorf("memory %q", got)
		}
		if block, _ := question(t, e, otherKey, "answer to berries and cherries in the attic"); strings.Contains(block, "berries") || strings.Contains(block, "cherries") {
			t.Error(block)
		}
	})
	t.Run("pages in parts cut nothing", func(t *testing.T) {
		e := open(t, nil, nil)
		all := entries("", 0, said...)
		for _, at := range []int{2, 0, 2, 1, 0} {
			bootstrap(t, e, at == 2, all[at:min(at+2, len(all))])
		}
		if got := memory(t, e); got != "abcd" {
			t.Errorf("memory %q", got)
		}
	})
	t.Run("another transcript of the session is not touched", func(t *testing.T) {
		e := open(t, nil, nil)
		bootstrap(t, e, true, entries("", 0, said...))
		_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "rotated", SessionKey: mainKey, Complete: true,
			History: []HistoryEntry{{EntryID: "z", Seq: 1, Message: user("zebras are in the zoo", day+900_000)}}})
		if got := memory(t, e); err != nil || got != "abcdz" {
			t.Errorf("memory %q %v", got, err)
		}
	})
}

// SES-01, SES-02: a reset empties the window and not the memory; ids that rotate are one lineage.
func TestResetAndRotation(t *testing.T) {
	e := open(t, nil, nil)
	for i, id := range []string{"s1", "s2", "s3"} {
		p := turn(mainKey, fmt.Sprint("k", i), user(fmt.Sprintf("locker %d holds the %s", i, []string{"tent", "canoe", "skis"}[i]), day+int64(i)*1000), assistant("noted", day+int64(i)*1000+1))
		p.SessionID = id
		commit(t, e, p)
	}
	if n := len(rows(t, e, mainKey)); n != 6 {
		t.Errorf("%d rows in the lineage", n)
	}
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s4", SessionKey: mainKey, Prompt: "which locker holds the canoe?"})
	if err != nil || len(res.Kept) != 0 || !strings.Contains(blockOf(t, res), "locker 1 holds the canoe") {
		t.Errorf("after a reset: %d kept, %v, %s", len(res.Kept), err, blockOf(t, res))
	}
	// The same session under another spelling of its key, and without one.
	for _, key := range []string{"AGENT:Main:MAIN", ""} {
		p := turn(key, "k9"+key, user("locker 9 holds the kite", day+9000), assistant("noted", day+9001))
		p.SessionID = "s3"
		commit(t, e, p)
	}
	if n := len(rows(t, e, mainKey)); n != 8 {
		t.Errorf("%d rows in the lineage", n)
	}
}

// What came before a session's key was known is one row too, in the session.
func TestKeyBecomesKnown(t *testing.T) {
	e := open(t, nil, nil)
	u, a := user("locker 5 holds the kayak", day), assistant("noted", day+1)
	if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s7", Messages: []json.RawMessage{u, a}}); err != nil {
		t.Fatal(err)
	}
	if block, _ := question(t, e, otherKey, "what does locker 5 hold?"); block != "" {
		t.Errorf("recalled of nobody: %s", block)
	}
	for i := range 2 {
		p := turn(mainKey, fmt.Sprint("k", i), u, a)
		p.SessionID = "s7"
		commit(t, e, p)
	}
	if n := total(t, e); n != 2 || len(rows(t, e, mainKey)) != 2 {
		t.Errorf("%d rows", n)
	}
	if block, _ := question(t, e, otherKey+"2", "what does locker 5 hold?"); !strings.Contains(block, "kayak") {
		t.Error("not recalled")
	}
}

// A compaction's summary is stored as one, however it arrives, and never recalled.
func TestSummaryIsKeptApart(t *testing.T) {
	const summary = "The locker holds the purple canoe; the user wants it moved."
	e := open(t, nil, &Options{Runtime: summarizing{summary}})
	commit(t, e, turn(mainKey, "k", user("the locker holds the purple canoe", day), assistant("noted", day+1)))
	for range 2 {
		if _, err := e.Compact(t.Context(), CompactParams{SessionID: "id-" + mainKey, SessionKey: mainKey}); err != nil {
			t.Fatal(err)
		}
		err := e.AfterTurn(t.Context(), AfterTurnParams{SessionID: "id-" + mainKey, SessionKey: mainKey, AutoCompactionSummary: summary,
			Messages: []json.RawMessage{raw(fmt.Sprintf(`{"role":"compactionSummary","summary":%q,"tokensBefore":9,"timestamp":%d}`, summary, day+50))}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var kinds []index.Kind
	for _, m := range rows(t, e, mainKey) {
		if m.Text == summary {
			kinds = append(kinds, m.Kind)
		}
	}
	if len(kinds) != 1 || kinds[0] != index.Summary {
		t.Errorf("summaries of kinds %v", kinds)
	}
	block, _ := question(t, e, otherKey, "where is the purple canoe?")
	if !strings.Contains(block, "the locker holds the purple canoe") || strings.Contains(block, "wants it moved") {
		t.Error(block)
	}
}

// summarizing is a host whose compaction makes one summary.
type summarizing struct{ summary string }

func (c summarizing) Compact(context.Context, CompactParams) (CompactResult, error) {
	return CompactResult{OK: true, Compacted: true, Result: &Compaction{Summary: c.summary}}, nil
}
