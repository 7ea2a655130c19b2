package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever the history and the budget, what Assemble returns is valid, within the budget where that
// can be, made of the caller's own bytes, and the same by reference.
func TestAssembleProperties(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(otherKey, "k", user("a word and number 12345 in the attic", day)))
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		h := history(rng, 1+rng.IntN(10))
		key := fmt.Sprintf("agent:main:explicit:r%d", round)
		for _, share := range []float64{0.01, 0.2, 0.5, 0.9, 1.1, 3} {
			all := 0
			for _, m := range e.measureAll(h) {
				all += m.tokens
			}
			p := AssembleParams{SessionID: "i" + key, SessionKey: key, Messages: h, Prompt: "which number was in the attic?", TokenBudget: Tokens(share * float64(all+200))}
			res, err := e.Assemble(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("round %d share %v (%+v)", round, share, res.Trace.Window)
			if bad := pairing(res.Messages); len(bad) > 0 {
				t.Fatalf("%s: %v", where, bad)
			}
			if back, err := Rebuild(h, res.Kept, res.Insert); err != nil || string(join(back)) != string(join(res.Messages)) {
				t.Fatalf("%s: rebuild %v", where, err)
			}
			if !slices.IsSorted(res.Kept) || len(res.Messages) == 0 {
				t.Fatalf("%s: kept %v", where, res.Kept)
			}
			if len(res.Trace.Window.Shortened) == 0 && res.EstimatedTokens > max(res.Trace.Budget.Usable, 0) && res.Trace.Window.First < lay(e.measureAll(h)).live {
				t.Fatalf("%s: %d tokens of %d", where, res.EstimatedTokens, res.Trace.Budget.Usable)
			}
			again, err := e.Assemble(t.Context(), p)
			if err != nil || string(join(again.Messages)) != string(join(res.Messages)) {
				t.Fatalf("%s: another result the second time", where)
			}
		}
	}
}

// However the messages of a session arrive, in whatever order and how often, each is one row.
func TestDeliveriesModel(t *testing.T) {
	e := open(t, nil, nil)
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 40 {
		key := fmt.Sprintf("agent:main:explicit:m%d", round)
		var turns [][]json.RawMessage
		var all []json.RawMessage
		for i := range 1 + rng.IntN(5) {
			at := day + int64(i*1000)
			text := []string{"ok", "yes", "and then the other thing", "what about the second one?"}[rng.IntN(4)]
			ms := []json.RawMessage{user(text, at)}
			if rng.IntN(2) == 0 {
				ms = append(ms, raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"f","arguments":{}}],"stopReason":"toolUse","timestamp":%d}`, at+1)),
					raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c1","toolName":"f","content":[{"type":"text","text":"same"}],"timestamp":%d}`, at+2)))
			}
			ms = append(ms, assistant("done", at+3))
			turns, all = append(turns, ms), append(all, ms...)
		}
		deliver(t, e, rng, key, turns, all)
		if got := rows(t, e, key); len(got) != len(all) {
			t.Fatalf("round %d: %d rows for %d messages", round, len(got), len(all))
		}
	}
}

func deliver(t *testing.T, e *Engine, rng *rand.Rand, key string, turns [][]json.RawMessage, all []json.RawMessage) {
	t.Helper()
	ctx, id := t.Context(), "id-"+key
	position := func(n int) (at int) {
		for _, ms := range turns[:n] {
			at += len(ms)
		}
		return at
	}
	ways := []func() error{
		func() error {
			_, err := e.IngestBatch(ctx, IngestBatchParams{SessionID: id, SessionKey: key, Messages: all})
			return err
		},
		func() error {
			return e.AfterTurn(ctx, AfterTurnParams{SessionID: id, SessionKey: key, Messages: all, PrePromptMessageCount: rng.IntN(len(all) + 2)})
		},
		func() error {
			_, err := e.Ingest(ctx, IngestParams{SessionID: id, SessionKey: key, Message: all[rng.IntN(len(all))]})
			return err
		},
		func() error {
			from := rng.IntN(len(all))
			var h []HistoryEntry
			for i := from; i < len(all); i++ {
				h = append(h, HistoryEntry{EntryID: fmt.Sprint("e", i), Seq: int64(i + 1), Message: all[i]})
			}
			_, err := e.Bootstrap(ctx, BootstrapParams{SessionID: id + "-rotated", SessionKey: key, History: h})
			return err
		},
	}
	for i, ms := range turns {
		ways = append(ways, func() error {
			p := turn(key, fmt.Sprint(key, "/", i), ms...)
			first := position(i)
			p.Admission = Admission{EntryAnchor: EntryAnchor{AgentID: "main", Generation: "g", EntryID: fmt.Sprint("e", first), ActiveMessagePosition: first}, Role: "user"}
			p.Terminal = EntryAnchor{AgentID: "main", Generation: "g", EntryID: fmt.Sprint("e", first+len(ms)-1), ActiveMessagePosition: first + len(ms) - 1}
			_, err := e.CommitTurn(ctx, p)
			return err
		})
	}
	for range 8 {
		if err := ways[rng.IntN(len(ways))](); err != nil {
			t.Fatal(err)
		}
	}
	if err := ways[0](); err != nil { // so that every message was delivered once at least
		t.Fatal(err)
	}
}
