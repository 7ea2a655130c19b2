package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// gated is an in-process embedder whose passages wait until it is opened; questions it answers.
type gated struct {
	embed.Embedder
	open chan struct{}
}

func (g gated) InProcess() bool { return true }

func (g gated) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	if kind == embed.Passage {
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g.Embedder.Embed(ctx, kind, texts)
}

func parcels(n int) []HistoryEntry {
	h := make([]HistoryEntry, n)
	for i := range h {
		h[i] = HistoryEntry{EntryID: fmt.Sprint("e", i), Seq: int64(i + 1), Message: user(fmt.Sprintf("parcel P-%05d went to the harbour", i), day+int64(i)*1000)}
		if i > 0 {
			h[i].ParentID = h[i-1].EntryID
		}
	}
	return h
}

// PERF-01: a long history is accepted while nothing of it can be stored, turns go on beside it, an end
// of the process loses none of it, and in the end every message is there once.
func TestLongHistoryInTheBackground(t *testing.T) {
	const n = 3000
	dir := t.TempDir()
	emb := gated{embedtest.Hashed(16), make(chan struct{})}
	e, done := openAt(t, dir, emb, nil)
	boot := func() BootstrapResult {
		t.Helper()
		res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "id-" + mainKey, SessionKey: mainKey, History: parcels(n), Complete: true})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := boot(); !res.Bootstrapped || res.ImportedMessages != n || !strings.Contains(res.Reason, "in the background") {
		t.Errorf("accepted: %+v", res)
	}
	if left, entries, err := e.journal.left(); left != 1 || entries != n || err != nil {
		t.Errorf("%d histories with %d entries wait, %v", left, entries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.CommitTurn(ctx, turn(mainKey, "k0", user("never", day))); err == nil {
		t.Error("a cancelled turn was committed")
	}
	question(t, e, mainKey, "what is new?")
	done() // a check of the store is part of it

	free := gated{embedtest.Hashed(16), make(chan struct{})}
	close(free.open)
	e, done = openAt(t, dir, free, nil)
	defer done()
	commit(t, e, turn(mainKey, "k1", user("the walrus is called Otto", day+n*1000), assistant("noted", day+n*1000+1)))
	if err := e.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	ms := rows(t, e, mainKey)
	if len(ms) != n+2 || ms[n].Text != "the walrus is called Otto" || ms[n].Kind != index.Said {
		t.Errorf("%d rows, want %d; the turn is %+v", len(ms), n+2, ms[n].Text)
	}
	if block, _ := question(t, e, otherKey, "what is the walrus called?"); !strings.Contains(block, "Otto") {
		t.Errorf("recalled %q", block)
	}
	if res := boot(); res.ImportedMessages != 0 {
		t.Errorf("again: %+v", res)
	}
	if keys, err := e.store.StateKeys(t.Context(), journalBucket); err != nil || len(keys) != 0 {
		t.Errorf("left in the journal: %v %v", keys, err)
	}
}

// A turn that is stored between the acceptance of a history and its storing is not taken for a branch
// that was cut, and forgetting reaches what only was accepted.
func TestTurnBesideAnAcceptedHistory(t *testing.T) {
	emb := gated{embedtest.Hashed(16), make(chan struct{})}
	e := open(t, emb, nil)
	h := parcels(1200)
	p := BootstrapParams{SessionID: "id-" + mainKey, SessionKey: mainKey, History: h, Complete: true}
	if _, err := e.Bootstrap(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	stored := make(chan error, 1)
	go func() {
		p := turn(mainKey, "k1", user("the walrus is called Otto", day+2_000_000))
		p.Admission.EntryID, p.Admission.Role = "new", "user"
		_, err := e.CommitTurn(t.Context(), p)
		stored <- err
	}()
	for n := 0; n == 0; { // its row is there before its vector
		ms := rows(t, e, mainKey)
		for _, m := range ms {
			if strings.Contains(m.Text, "Otto") {
				n++
			}
		}
	}
	close(emb.open)
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	if err := e.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range rows(t, e, mainKey) {
		if m.Kind != index.Said {
			t.Errorf("cut off: %s", m.Text)
		}
	}
	more := BootstrapParams{SessionID: "x", SessionKey: otherKey, History: parcels(1100)}
	if _, err := e.Bootstrap(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Forget(t.Context(), Forgetting{Session: otherKey}); err != nil || n != 1100 {
		t.Errorf("forgot %d, %v", n, err)
	}
	if _, err := e.Bootstrap(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if err := e.Settle(t.Context()); err != nil || len(rows(t, e, otherKey)) != 0 {
		t.Errorf("forgotten messages are back: %v", err)
	}
}
