package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// HOST-02, RCL-13: what a turn said is recalled from another session at once, and after a restart.
func TestRecallAcrossSessions(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, embedtest.Hashed(64), nil)
	commit(t, e, turn(mainKey, "k1", user("my bike is green and was stolen in Ghent", day), assistant("noted, a green bike", day+1000)))
	for _, name := range []string{"at once", "after a restart"} {
		block, tr := question(t, e, otherKey, "what colour was my bike?")
		if !strings.Contains(block, "my bike is green") {
			t.Errorf("%s: not recalled: %+v", name, tr.Recall)
		}
		if !strings.Contains(block, "2026-11-30") || !strings.Contains(block, "UTC") || !strings.Contains(block, mainKey) {
			t.Errorf("%s: undated or unlabelled: %s", name, block)
		}
		if name == "at once" {
			done()
			e, done = openAt(t, dir, embedtest.Hashed(64), nil)
		}
	}
	done()
}

// HOST-03, HOST-04, DUP-02: however a turn arrives, and however often, it is stored once.
func TestExactlyOnce(t *testing.T) {
	u, a := user("book the table for eight", day), assistant("done", day+500)
	after := func(t *testing.T, e *Engine, ms ...json.RawMessage) {
		t.Helper()
		if err := e.AfterTurn(t.Context(), AfterTurnParams{SessionID: "id-" + mainKey, SessionKey: mainKey, Messages: ms}); err != nil {
			t.Fatal(err)
		}
	}
	plain := func(m json.RawMessage) json.RawMessage { // without a time
		var v map[string]any
		_ = json.Unmarshal(m, &v)
		delete(v, "timestamp")
		out, _ := json.Marshal(v)
		return out
	}
	for name, ms := range map[string][2]json.RawMessage{"with times": {u, a}, "without times": {plain(u), plain(a)}} {
		t.Run(name, func(t *testing.T) {
			e := open(t, nil, nil)
			after(t, e, ms[0], ms[1])
			if got := commit(t, e, turn(mainKey, "k1", ms[0], ms[1])); got != Committed {
				t.Error(got)
			}
			if got := commit(t, e, turn(mainKey, "k1", ms[0], ms[1])); got != Duplicate {
				t.Error(got)
			}
			after(t, e, ms[0], ms[1])
			if n := total(t, e); n != 2 {
				t.Errorf("%d rows", n)
			}
			if _, err := e.CommitTurn(t.Context(), turn(mainKey, "k1", user("something else", day+9))); !errors.Is(err, index.ErrConflict) {
				t.Errorf("another turn under the same key: %v", err)
			}
			if n := total(t, e); n != 2 {
				t.Errorf("%d rows after a conflict", n)
			}
		})
		t.Run(name+", commit first", func(t *testing.T) {
			e := open(t, nil, nil)
			commit(t, e, turn(mainKey, "k1", ms[0], ms[1]))
			after(t, e, ms[0], ms[1])
			if n := total(t, e); n != 2 {
				t.Errorf("%d rows", n)
			}
		})
	}
	t.Run("growing afterTurn", func(t *testing.T) {
		e := open(t, nil, nil)
		var h []json.RawMessage
		for i := range 6 {
			h = append(h, user(fmt.Sprintf("line %d", i), day+int64(i)))
		}
		for _, n := range []int{4, 6} {
			p := AfterTurnParams{SessionID: "s", SessionKey: mainKey, Messages: h[:n], PrePromptMessageCount: 2}
			if err := e.AfterTurn(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if n := total(t, e); n != 6 {
			t.Errorf("%d rows", n)
		}
	})
	t.Run("same key order of fields", func(t *testing.T) {
		e := open(t, nil, nil)
		commit(t, e, turn(mainKey, "k", raw(`{"role":"user","content":"x","timestamp":1796000000000}`)))
		if got := commit(t, e, turn(mainKey, "k", raw(`{ "timestamp":1796000000000,"content":"x","role":"user" }`))); got != Duplicate {
			t.Error(got)
		}
	})
}

// DUP-01, DUP-03, DUP-06: re-reading a session's history adds nothing, also under new entry ids; real
// repetitions are rows of their own.
func TestHistoryAgain(t *testing.T) {
	for _, timed := range []bool{true, false} {
		t.Run(fmt.Sprintf("timed %v", timed), func(t *testing.T) {
			dir := t.TempDir()
			e, done := openAt(t, dir, embedtest.Hashed(32), nil)
			var entries []HistoryEntry
			for i := range 40 {
				text := "ok"
				if i%10 != 0 {
					text = fmt.Sprintf("statement number %d", i)
				}
				m := user(text, day+int64(i)*1000)
				if !timed {
					m = raw(fmt.Sprintf(`{"role":"user","content":%q}`, text))
				}
				entries = append(entries, HistoryEntry{EntryID: fmt.Sprint("e", i), Seq: int64(i + 1), Message: m, CreatedAt: "2026-11-30T10:00:00Z"})
			}
			boot := func(entries []HistoryEntry) int {
				t.Helper()
				res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, SessionFile: "not a file", History: entries})
				if err != nil || !res.Bootstrapped {
					t.Fatal(res, err)
				}
				return res.ImportedMessages
			}
			if n := boot(entries); n != 40 {
				t.Errorf("imported %d", n)
			}
			done()
			e, done = openAt(t, dir, embedtest.Hashed(32), nil)
			if n := boot(entries); n != 0 {
				t.Errorf("imported %d again", n)
			}
			renamed := append([]HistoryEntry{}, entries...)
			for i := range renamed {
				renamed[i].EntryID += "-rewritten"
			}
			if n := boot(renamed); n != 0 {
				t.Errorf("imported %d of a rewritten transcript", n)
			}
			if n := total(t, e); n != 40 {
				t.Errorf("%d rows", n)
			}
			done()
		})
	}
}

// Real repetitions without times, told apart by their place in the transcript.
func TestRepeatedOK(t *testing.T) {
	e := open(t, nil, nil)
	for i := range 4 {
		p := turn(mainKey, fmt.Sprint("k", i), raw(`{"role":"user","content":"ok"}`), raw(`{"role":"assistant","content":"sure","stopReason":"stop"}`))
		p.Admission = Admission{EntryAnchor: EntryAnchor{AgentID: "main", Generation: "g", EntryID: fmt.Sprint("u", i), ActiveMessagePosition: 2 * i}, Role: "user"}
		p.Terminal = EntryAnchor{AgentID: "main", Generation: "g", EntryID: fmt.Sprint("a", i), ActiveMessagePosition: 2*i + 1}
		commit(t, e, p)
	}
	if n := total(t, e); n != 8 {
		t.Errorf("%d rows, want 8", n)
	}
}

// Real repetitions within one tick of the clock, told apart by their positions; the same turn under
// another generation and other entry ids is the same turn.
func TestRepeatedWithinATick(t *testing.T) {
	e := open(t, nil, nil)
	deliver := func(key, generation string, at int) {
		t.Helper()
		p := turn(mainKey, key, user("ok", day), assistant("sure", day))
		p.Admission = Admission{EntryAnchor: EntryAnchor{AgentID: "main", Generation: generation, EntryID: "u" + key, ActiveMessagePosition: at}, Role: "user"}
		p.Terminal = EntryAnchor{AgentID: "main", Generation: generation, EntryID: "a" + key, ActiveMessagePosition: at + 1}
		commit(t, e, p)
	}
	for i := range 4 {
		deliver(fmt.Sprint("k", i), "g", 2*i)
	}
	if n := total(t, e); n != 8 {
		t.Errorf("%d rows, want 8", n)
	}
	deliver("again", "g", 2)
	deliver("rewritten", "h", 0)
	if n := total(t, e); n != 8 {
		t.Errorf("%d rows, want 8 still", n)
	}
}

// SES-06: the same entry with another text replaces the text.
func TestEdit(t *testing.T) {
	e := open(t, nil, nil)
	for _, text := range []string{"the password is swordfish", "the password is redacted"} {
		_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: []HistoryEntry{{EntryID: "e1", Seq: 1, Message: user(text, day)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if ms := rows(t, e, mainKey); len(ms) != 1 || ms[0].Text != "the password is redacted" {
		t.Errorf("%+v", ms)
	}
	if block, _ := question(t, e, otherKey, "what is swordfish about?"); strings.Contains(block, "swordfish") {
		t.Error(block)
	}
}

// HOST-05, HOST-06: full-transcript positions, repeated system messages, a failing embedder.
func TestCommitIsTolerant(t *testing.T) {
	e := open(t, embedtest.Broken(embedtest.Hashed(32), embed.ErrUnavailable), nil)
	p := turn(mainKey, "k1", user("remember the violet folder", day), raw(`{"role":"system","content":"x"}`), raw(`{"role":"system","content":"x"}`), raw(`{"role":"system","content":"x"}`), assistant("yes", day+1))
	p.Admission = Admission{EntryAnchor: EntryAnchor{AgentID: "main", Generation: "g", EntryID: "e1", ActiveMessagePosition: 1642}, LogicalTurnID: "k1", Role: "user"}
	p.Terminal = EntryAnchor{AgentID: "main", Generation: "g", EntryID: "e2", ActiveMessagePosition: 1646}
	if got := commit(t, e, p); got != Committed {
		t.Error(got)
	}
	if n := total(t, e); n != 5 {
		t.Errorf("%d rows", n)
	}
	if block, tr := question(t, e, otherKey, "where is the violet folder?"); !strings.Contains(block, "violet folder") {
		t.Errorf("%+v", tr.Recall)
	}
	for _, bad := range []CommitTurnParams{{SessionKey: mainKey}, {AdvancementKey: "a", Admission: Admission{LogicalTurnID: "b"}}} {
		if _, err := e.CommitTurn(t.Context(), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// HOST-10, HOST-11, MSG-03: whatever fails inside, there is a result, and the input is as it was.
func TestAssembleNeverFails(t *testing.T) {
	e, done := openAt(t, t.TempDir(), nil, nil)
	h := []json.RawMessage{user("hello", day), raw(`null`), raw(`{"role":"hologram","content":7}`), raw(`{`), nil, assistant("hi", day+1)}
	before := fmt.Sprintf("%q", h)
	check := func(name string, ctx context.Context) {
		t.Helper()
		res, err := e.Assemble(ctx, AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: "what about the folder?"})
		if err != nil || len(res.Messages) != len(h) || res.EstimatedTokens <= 0 || res.Trace == nil || len(res.Kept) != len(h) {
			t.Errorf("%s: %+v %v", name, res, err)
		}
		if after := fmt.Sprintf("%q", h); after != before {
			t.Errorf("%s: the input was changed", name)
		}
	}
	check("odd messages", t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check("cancelled", ctx)
	done()
	check("store closed", t.Context())
	e.search = nil
	check("panic", t.Context())
	res, err := e.Assemble(t.Context(), AssembleParams{})
	if err != nil || res.Messages == nil || res.Kept == nil || res.Insert == nil {
		t.Errorf("nothing at all: %+v %v", res, err)
	}
}

// UNI-02, MSG-01: messages come back as the bytes they were.
func TestUntouchedBytes(t *testing.T) {
	e := open(t, nil, nil)
	h := []json.RawMessage{
		raw("{ \"role\":\"user\", \"content\":\"\\ud83d < & \u2028 \\u2028\",\"n\":1.0,\"big\":12345678901234567890123,\"timestamp\":1796000000000 }"),
		raw(`{"timestamp":1796000000001,"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"abc","x":{"b":1,"a":2}},{"type":"redacted_thinking","data":"zz"},{"type":"text","text":"ok"}],"stopReason":"stop"}`),
	}
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: "go on please with the plan"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range h {
		if string(res.Messages[i]) != string(h[i]) {
			t.Errorf("message %d changed: %s", i, res.Messages[i])
		}
	}
	back, err := Rebuild(h, res.Kept, res.Insert)
	if err != nil || string(join(back)) != string(join(res.Messages)) {
		t.Errorf("by reference: %v", err)
	}
}

// HOST-12, ISO-05: a session id stands for its key once seen; an unknown one recalls nothing.
func TestMissingKey(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(otherKey, "k1", user("the violet folder is in the attic", day)))
	if _, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s9", SessionKey: mainKey}); err != nil {
		t.Fatal(err)
	}
	ask := func(id string) string {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: id, Prompt: "where is the violet folder?", TokenBudget: 9000})
		if err != nil {
			t.Fatal(err)
		}
		return blockOf(t, res)
	}
	if ask("s9") == "" {
		t.Error("the known session recalls nothing")
	}
	if got := ask("stranger"); got != "" {
		t.Errorf("an unknown session recalls %q", got)
	}
}

// ISO-02, ISO-06, ISO-08: the owner's channels share, a group and a stranger see nothing of it.
func TestAudiences(t *testing.T) {
	e := open(t, embedtest.Hashed(64), nil)
	dm := "agent:main:telegram:direct:1"
	mine := raw(fmt.Sprintf(`{"role":"user","content":"my diagnosis is asthma","timestamp":%d,"__openclaw":{"senderIsOwner":true}}`, day))
	commit(t, e, turn(dm, "k1", mine))
	for i := range 50 {
		commit(t, e, turn("agent:main:telegram:direct:77", fmt.Sprint("n", i), user(fmt.Sprintf("diagnosis asthma diagnosis asthma my diagnosis %d", i), day+int64(i))))
	}
	for session, want := range map[string]bool{
		mainKey: true, dm: true, "agent:main:telegram:group:-100:topic:7": false, "agent:main:telegram:direct:2": false,
		"agent:helper:main": false, "agent:main:cron:x": false, "": false,
	} {
		block, tr := question(t, e, session, "what is my diagnosis?")
		if got := strings.Contains(block, "is asthma"); got != want {
			t.Errorf("%q: recalled %v, want %v (%+v)", session, got, want, tr.Recall)
		}
		if strings.Contains(block, "diagnosis asthma") {
			t.Errorf("%q sees another person's words", session)
		}
	}
}

// NOISE-01, NOISE-04, NOISE-09, aborted turns: stored, never recalled.
func TestNoise(t *testing.T) {
	e := open(t, embedtest.Hashed(64), nil)
	flagged := turn(mainKey, "h1", user("heartbeat: look at the violet folder", day), assistant("HEARTBEAT_OK", day+1))
	flagged.IsHeartbeat = true
	commit(t, e, flagged)
	commit(t, e, turn(mainKey, "h2", user("Read HEARTBEAT.md if it exists: violet folder", day+10), assistant("HEARTBEAT_OK", day+11)))
	commit(t, e, turn("agent:main:cron:x", "c1", user("violet folder report", day+20), assistant("violet folder sent", day+21)))
	commit(t, e, turn(mainKey, "a1", user("the violet folder burned", day+30),
		raw(fmt.Sprintf(`{"role":"assistant","content":[],"stopReason":"aborted","timestamp":%d}`, day+31))))
	if block, _ := question(t, e, otherKey, "where is the violet folder?"); block != "" {
		t.Errorf("noise is recalled: %s", block)
	}
	if n := total(t, e); n != 8 {
		t.Errorf("%d rows", n)
	}
	boot := strings.Repeat("You are a careful assistant of the violet folder. ", 40)
	for i := range 5 {
		commit(t, e, turn(fmt.Sprintf("agent:main:explicit:b%d", i), fmt.Sprint("b", i), user(boot, day+100+int64(i))))
	}
	said := 0
	for i := range 5 {
		for _, m := range rows(t, e, fmt.Sprintf("agent:main:explicit:b%d", i)) {
			if m.Kind == index.Said {
				said++
			}
		}
	}
	if said != 1 {
		t.Errorf("%d of five restated texts are recallable", said)
	}
}

// NOISE-04: cron sessions can be learned from, and then are the owner's.
func TestLearnCron(t *testing.T) {
	e := open(t, nil, &Options{LearnCron: true})
	commit(t, e, turn("agent:main:cron:x", "c1", user("the violet folder was archived", day), assistant("ok", day+1)))
	commit(t, e, turn("agent:main:main:heartbeat", "c2", user("the violet folder is fine", day+5)))
	block, _ := question(t, e, mainKey, "where is the violet folder?")
	if !strings.Contains(block, "archived") || strings.Contains(block, "fine") {
		t.Error(block)
	}
}

// HOST-07, HOST-08, HOST-20: a host builds and disposes an engine for every turn.
func TestManyInstances(t *testing.T) {
	e := open(t, embedtest.Hashed(32), nil)
	r := NewRegistry(stub{id: LegacyID, name: "L"}, nil)
	if err := r.Register(ID, "hark", func(context.Context, FactoryContext) (ContextEngine, error) { return e, nil }); err != nil {
		t.Fatal(err)
	}
	commit(t, e, turn(mainKey, "k", user("hello", day)))
	if err := e.store.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 300 {
		res, err := r.Resolve(t.Context(), Run{Slot: ID})
		if err != nil || res.ID != ID {
			t.Fatal(res, err)
		}
		if err := res.Engine.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before+4 {
		t.Errorf("%d goroutines, were %d", after, before)
	}
	commit(t, e, turn(mainKey, "k2", user("still here", day+1)))
}

// NOISE-06: our own block in a user's message is not learned; the host's hidden message neither.
func TestOwnBlockIsNotLearned(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day)))
	block, _ := question(t, e, otherKey, "where is the violet folder?")
	if block == "" {
		t.Fatal("nothing recalled")
	}
	commit(t, e, turn(otherKey, "k2", user(block+"\n\nwhat about lunch?", day+10), customMessage(block, fixedClock()), assistant("soup", day+11)))
	ms := rows(t, e, otherKey)
	if len(ms) != 2 || ms[0].Text != "what about lunch?" {
		t.Errorf("%+v", ms)
	}
}

// HOST-04: a key belongs to one turn of one session.
func TestKeyOfAnotherSession(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(mainKey, "k1", user("the ladder is in the shed", day)))
	if _, err := e.CommitTurn(t.Context(), turn("agent:main:explicit:other", "k1", user("the ladder is in the shed", day))); !errors.Is(err, index.ErrConflict) {
		t.Errorf("the key in another session: %v", err)
	}
}
