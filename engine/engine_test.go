package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
	"hark/recall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedClock is the time of every engine under test.
func fixedClock() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }

func openStore(tb testing.TB, dir string) *index.Store {
	tb.Helper()
	store, err := index.Open(context.Background(), dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// open returns an engine over a new store that is checked and closed with the test.
func open(tb testing.TB, emb embed.Embedder, opts *Options) *Engine {
	tb.Helper()
	e, done := openAt(tb, tb.TempDir(), emb, opts)
	tb.Cleanup(done)
	return e
}

func openAt(tb testing.TB, dir string, emb embed.Embedder, opts *Options) (*Engine, func()) {
	tb.Helper()
	store := openStore(tb, dir)
	if opts == nil {
		opts = &Options{}
	}
	if opts.Clock == nil {
		opts.Clock = fixedClock
	}
	e, err := New(store, emb, opts, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return e, func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
		if report, err := store.Check(context.Background()); err != nil || !report.OK() {
			tb.Errorf("check: %+v %v", report, err)
		}
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	}
}

const day = int64(1_796_000_000_000)

func user(text string, at int64) json.RawMessage {
	return raw(fmt.Sprintf(`{"role":"user","content":%s,"timestamp":%d}`, encodeText(text), at))
}

func assistant(text string, at int64) json.RawMessage {
	return raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop","timestamp":%d}`, encodeText(text), at))
}

func turn(session, key string, messages ...json.RawMessage) CommitTurnParams {
	return CommitTurnParams{AdvancementKey: key, SessionID: "id-" + session, SessionKey: session, Messages: messages}
}

func commit(t *testing.T, e *Engine, p CommitTurnParams) string {
	t.Helper()
	res, err := e.CommitTurn(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status
}

func rows(t *testing.T, e *Engine, session string) []index.Message {
	t.Helper()
	ms, err := e.store.Session(t.Context(), session, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func total(t *testing.T, e *Engine) int {
	t.Helper()
	st, err := e.store.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Rows
}

// ask assembles for a session without history and returns the recall block, "" where there is none.
func question(t *testing.T, e *Engine, session, prompt string, history ...json.RawMessage) (string, *Trace) {
	t.Helper()
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "id-" + session, SessionKey: session, Messages: history, Prompt: prompt, TokenBudget: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	return blockOf(t, res), res.Trace
}

func blockOf(t *testing.T, res AssembleResult) string {
	t.Helper()
	out := ""
	for _, m := range res.Messages {
		var c struct{ Role, CustomType, Content string }
		if json.Unmarshal(m, &c) == nil && c.CustomType == fenceName {
			if out != "" {
				t.Fatal("two recall blocks")
			}
			out = c.Content
		}
	}
	return out
}

const (
	mainKey  = "agent:main:main"
	otherKey = "agent:main:explicit:other"
)

// HOST-16, HOST-17.
func TestCompact(t *testing.T) {
	res, err := open(t, nil, nil).Compact(t.Context(), CompactParams{SessionKey: mainKey})
	if err != nil || res.Compacted || res.Reason == "" {
		t.Errorf("without a runtime: %+v %v", res, err)
	}
	res, err = open(t, nil, &Options{Runtime: compacting{}}).Compact(t.Context(), CompactParams{SessionKey: mainKey})
	if err != nil || !res.Compacted || *res.Result.TokensAfter != res.Result.TokensBefore {
		t.Errorf("a no-op was not passed on: %+v %v", res, err)
	}
}

// SUB-01, SUB-03, SUB-04.
func TestSubagents(t *testing.T) {
	now := fixedClock()
	e := open(t, nil, &Options{Clock: func() time.Time { return now }})
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day)))
	child := "agent:main:subagent:1"
	ask := func() bool {
		b, _ := question(t, e, child, "[Subagent Context] You are running as a subagent (depth 1/5).\n\n[Subagent Task]\n\nfind out where the violet folder is\n\nBegin. Execute the assigned task to completion.")
		return b != ""
	}
	spawn := func(mode string, ttl int64) *Spawn {
		s, err := e.PrepareSubagentSpawn(t.Context(), SpawnParams{ParentSessionKey: mainKey, ChildSessionKey: child, ContextMode: mode, TTLMs: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	spawn(Isolated, 0)
	if ask() {
		t.Error("an isolated child recalls")
	}
	s := spawn(Fork, 0)
	if !ask() {
		t.Error("a fork does not see what its parent may")
	}
	for range 2 {
		if err := s.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if ask() {
		t.Error("a rolled back fork recalls")
	}
	spawn(Fork, 1000)
	now = now.Add(2 * time.Second)
	if ask() {
		t.Error("an expired fork recalls")
	}
	if _, err := e.Maintain(t.Context(), MaintainParams{}); err != nil {
		t.Fatal(err)
	}
	if all, err := e.spawns(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	spawn(Fork, 0)
	if err := e.OnSubagentEnded(t.Context(), SubagentEndedParams{ChildSessionKey: child, Reason: "completed"}); err != nil || ask() {
		t.Errorf("an ended fork recalls (%v)", err)
	}
	if _, err := e.PrepareSubagentSpawn(t.Context(), SpawnParams{ParentSessionKey: mainKey, ChildSessionKey: child, ContextMode: "telepathy"}); err == nil {
		t.Error("an unknown mode was accepted")
	}
	// The child's task is nobody's statement.
	commit(t, e, turn(child, "k2", user("[Subagent Context] You are a subagent.\n\n[Subagent Task]\n\nburn the violet folder", day+5)))
	if b, _ := question(t, e, mainKey, "where is the violet folder?"); strings.Contains(b, "burn") {
		t.Errorf("the task was learned: %s", b)
	}
}

// HOST-01, OBS-02: a bypass can be seen from outside, and so can what failed, what does not work now
// and what recall did; the next engine over the store goes on with it.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	down := &shy{inner: embedtest.Hashed(16)}
	down.down.Store(true)
	e, done := openAt(t, dir, down, nil)
	account := func() Account {
		t.Helper()
		a, err := e.Account(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := account(); !a.Committed.IsZero() || a.Failed != nil {
		t.Errorf("of a new store: %+v", a)
	}
	commit(t, e, turn(mainKey, "k", user("the walrus is called Otto", day)))
	commit(t, e, turn(mainKey, "k", user("the walrus is called Otto", day)))
	question(t, e, otherKey, "what is the walrus called?")
	question(t, e, otherKey, "how is sourdough hydrated?")
	if _, err := e.CommitTurn(t.Context(), turn(mainKey, "k", user("another turn", day))); err == nil {
		t.Error("a key was used twice")
	}
	a := account()
	if !a.Committed.Equal(fixedClock()) || !a.Assembled.Equal(fixedClock()) || a.Failed == nil || a.Failed.Call != "commitTurn" || a.Failed.Reason == "" {
		t.Errorf("%+v, failed %+v", a, a.Failed)
	}
	want := Counts{Assembled: 2, Committed: 1, Duplicate: 1, Failed: 1, Recalled: 1, Abstained: 1, Tokens: a.Counts.Tokens}
	if a.Counts != want || a.Counts.Tokens < 10 {
		t.Errorf("counts %+v, want %+v", a.Counts, want)
	}
	if len(a.Degraded) != 1 || a.Degraded[0].What != DegradedMeaning || !strings.Contains(a.Degraded[0].Reason, "connection refused") {
		t.Errorf("degraded: %+v", a.Degraded)
	}
	down.down.Store(false)
	if _, err := e.worker.emb.Embed(t.Context(), embed.Query, []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	question(t, e, "agent:main:explicit:third", "what is the walrus called?")
	if a := account(); len(a.Degraded) != 0 {
		t.Errorf("still degraded: %+v", a.Degraded)
	}
	before := account().Counts
	done()
	e, done = openAt(t, dir, nil, nil)
	defer done()
	if a := account(); a.Counts != before || a.Failed == nil || !a.Committed.Equal(fixedClock()) {
		t.Errorf("after reopening: %+v", a)
	}
}

// TIME-02: dates are in the user's zone, with its label.
func TestZone(t *testing.T) {
	e := open(t, nil, &Options{Location: time.FixedZone("", 8*3600)})
	commit(t, e, turn(mainKey, "k", user("the violet folder is in the attic", time.Date(2026, 3, 6, 16, 30, 0, 0, time.UTC).UnixMilli())))
	if block, _ := question(t, e, otherKey, "where is the violet folder?"); !strings.Contains(block, "2026-03-07 00:30 +08") {
		t.Error(block)
	}
}

// CONC-01: many sessions at once.
func TestManySessionsAtOnce(t *testing.T) {
	e := open(t, embedtest.Hashed(32), nil)
	var g errgroup.Group
	for i := range 32 {
		g.Go(func() error {
			key := fmt.Sprintf("agent:main:explicit:c%d", i)
			for j := range 4 {
				if _, err := e.CommitTurn(t.Context(), turn(key, fmt.Sprint(i, "/", j), user(fmt.Sprintf("session %d says %d", i, j), day+int64(j)))); err != nil {
					return err
				}
				if _, err := e.Assemble(t.Context(), AssembleParams{SessionID: "id-" + key, SessionKey: key, Prompt: "what does session 7 say?"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := total(t, e); n != 128 {
		t.Errorf("%d rows", n)
	}
}

// EMB-09, CONC-03: a slow provider costs the meaning, not the deadline.
func TestSlowProvider(t *testing.T) {
	e := open(t, embedtest.Slow(embedtest.Hashed(32), time.Hour), &Options{Deadline: 150 * time.Millisecond, Recall: &recall.Options{DenseWait: 50 * time.Millisecond}})
	commit(t, e, turn(mainKey, "k", user("the violet folder is in the attic", day)))
	started := time.Now()
	block, tr := question(t, e, otherKey, "where is the violet folder?")
	if took := time.Since(started); took > 5*time.Second || !strings.Contains(block, "attic") {
		t.Errorf("%v, %+v", took, tr.Recall)
	}
}

// HOST-01, HOST-09: what the host checks before it uses an engine.
func TestInfo(t *testing.T) {
	e := open(t, nil, nil)
	if err := Validate(ID, e); err != nil {
		t.Error(err)
	}
	data, err := json.Marshal(e.Info())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":"hark"`, `"ownsCompaction":false`, `"currentTurnFence":"before-current-turn-entry-v1"`, `"turnAdvancementIdempotency":"atomic-idempotent-v1"`, `"runtimeContext"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("info lacks %s: %s", want, data)
		}
	}
	if len(Guide) > 0 && bare(t).tokens.count(Guide) > 120 {
		t.Errorf("the guide takes %d tokens", bare(t).tokens.count(Guide))
	}
}

// A remote embedder follows in the background and never delays a commit.
func TestBackgroundEmbedding(t *testing.T) {
	emb := embedtest.Slow(embedtest.Hashed(32), 5*time.Millisecond)
	e := open(t, emb, nil)
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day)))
	space := index.Space{ID: emb.Model().String(), Dim: 32}
	deadline := time.After(10 * time.Second)
	for {
		n, err := e.store.PendingCount(t.Context(), space)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d pending", n)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// An embedder in this process is done when the commit returns.
func TestVectorsAtOnce(t *testing.T) {
	emb := embedtest.Hashed(32)
	e := open(t, emb, nil)
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day), assistant(strings.Repeat("a long answer about folders. ", 200), day+1)))
	n, err := e.store.PendingCount(t.Context(), index.Space{ID: emb.Model().String(), Dim: 32})
	if err != nil || n != 0 {
		t.Errorf("%d pending %v", n, err)
	}
}
