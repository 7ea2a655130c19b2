package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TOK-05, TOK-06, issue 6: every budget that holds the last turn is kept to, recall included.
func TestBudgets(t *testing.T) {
	e := open(t, nil, nil)
	for i := range 60 {
		commit(t, e, turn(otherKey, fmt.Sprint("k", i), user(fmt.Sprintf("the violet folder note %d: %s", i, strings.Repeat(fmt.Sprintf("detail %d ", i), 60)), day+int64(i))))
	}
	var h []json.RawMessage
	for i := range 40 {
		h = append(h, user(strings.Repeat(fmt.Sprintf("history %d ", i), 40), day+int64(1000+2*i)), assistant(strings.Repeat("answer ", 60), day+int64(1001+2*i)))
	}
	for _, budget := range []Tokens{1, 100, 256, 257, 400, 1000, 3000, 9000, 200_000, 2_000_000, 0, -1} {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: fmt.Sprintf("agent:main:explicit:b%v", budget), Messages: h, Prompt: "where is the violet folder?", TokenBudget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Messages) == 0 {
			t.Errorf("budget %v: empty", budget)
		}
		b := res.Trace.Budget
		if budget >= 1000 && res.EstimatedTokens > b.Usable {
			t.Errorf("budget %v: %d of %d", budget, res.EstimatedTokens, b.Usable)
		}
		if b.Recall > defaultRecallTokens || b.Recall > b.Tokens/4 {
			t.Errorf("budget %v: recall takes %d", budget, b.Recall)
		}
		sum := 0
		for _, m := range bare(t).measureAll(res.Messages) {
			sum += m.tokens
		}
		if got := res.EstimatedTokens - b.Addition; sum > got+8 || sum < got-8 {
			t.Errorf("budget %v: says %d, is %d", budget, got, sum)
		}
		if (res.PromptAuthority == PreassemblyMayOverflow) != (len(res.Kept) < len(h)) {
			t.Errorf("budget %v: authority %s with %d kept", budget, res.PromptAuthority, len(res.Kept))
		}
	}
}

// A running turn larger than the budget is shortened to it, the instruction and all pairs intact.
func TestHugeLiveTurn(t *testing.T) {
	e := open(t, nil, nil)
	h := []json.RawMessage{user("older words", day), assistant("older answer", day+1), user("read all the files, then tell me the port", day+2)}
	for i := range 80 {
		h = append(h,
			raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"f%d"}}],"stopReason":"toolUse","timestamp":%d}`, i%3, i, day+int64(10+2*i))),
			raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":%q}],"timestamp":%d}`, i%3, strings.Repeat(fmt.Sprintf("line of file %d ", i), 400), day+int64(11+2*i))))
	}
	for _, budget := range []Tokens{9000, 20_000, 90_000} {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: "read all the files, then tell me the port", TokenBudget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if res.EstimatedTokens > res.Trace.Budget.Usable {
			t.Errorf("budget %v: %d tokens (%v)", budget, res.EstimatedTokens, res.Trace.Notes)
		}
		if bad := pairing(res.Messages); len(bad) > 0 {
			t.Errorf("budget %v: %v", budget, bad)
		}
		if n := len(res.Messages) - len(h) + res.Trace.Window.First; n != 0 || string(res.Messages[0]) != string(h[2]) {
			t.Errorf("budget %v: the turn has lost or gained %d messages", budget, n)
		}
	}
}

// The anchor of a window survives a restart and ends with a compaction.
func TestAnchorSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	var h []json.RawMessage
	for i := range 60 {
		h = append(h, user(strings.Repeat(fmt.Sprintf("history %d ", i), 40), day+int64(2*i)), assistant("yes", day+int64(2*i+1)))
	}
	assembled := func(e *Engine, n int) int {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h[:n], TokenBudget: 6000})
		if err != nil {
			t.Fatal(err)
		}
		return res.Trace.Window.First
	}
	e, done := openAt(t, dir, nil, nil)
	start := assembled(e, 100)
	if start == 0 {
		t.Fatal("everything fits")
	}
	done()
	e, done = openAt(t, dir, nil, &Options{Runtime: compacting{}})
	defer done()
	if got := assembled(e, 104); got != start {
		t.Errorf("starts at %d, was %d", got, start)
	}
	if res, err := e.Compact(t.Context(), CompactParams{SessionID: "s", SessionKey: mainKey}); err != nil || !res.Compacted {
		t.Fatal(res, err)
	}
	if got := assembled(e, 20); got != 0 {
		t.Errorf("starts at %d after a compaction", got)
	}
}

type compacting struct{}

func (compacting) Compact(context.Context, CompactParams) (CompactResult, error) {
	after := 100
	return CompactResult{OK: true, Compacted: true, Result: &Compaction{TokensBefore: 100, TokensAfter: &after}}, nil
}
