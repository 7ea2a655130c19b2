package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestInspectionLeavesNoTrace: what is only looked at is not remembered: not whose the session is, not
// where its window starts, not that the turn was asked about before.
func TestInspectionLeavesNoTrace(t *testing.T) {
	e := open(t, nil, nil)
	const key = "agent:main:telegram:direct:99"
	commit(t, e, turn(mainKey, "t1", user("the code of the safe is 8831", day), assistant("Noted.", day+1)))
	owner := true
	var long []json.RawMessage
	for i := range 30 {
		at := day + int64(10*i)
		long = append(long, user("tell me about the island, its birds and its ferry "+strings.Repeat("please ", i), at), assistant("It is long.", at+1))
	}
	look := AssembleParams{SessionKey: key, SessionID: "s99", Messages: long, Prompt: "what is the code of the safe?", TokenBudget: 1200, Inspect: true}
	ask := func(owner *bool) AssembleResult {
		t.Helper()
		p := look
		p.SenderIsOwner = owner
		res, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		res.Trace.Recall.Took = 0
		return res
	}
	if res := ask(&owner); !strings.Contains(string(join(res.Messages)), "8831") || res.Trace.Window.First == 0 {
		t.Fatalf("as the owner it is recalled, and the history is cut: %+v", res.Trace)
	}
	for _, at := range [][2]string{{"owner", key}, {"window", key}, {"recall", key}, {"lineage", "s99"}} {
		if value, err := e.store.State(t.Context(), at[0], at[1]); err != nil || len(value) > 0 {
			t.Errorf("%s is remembered: %s %v", at[0], value, err)
		}
	}
	if res := ask(nil); strings.Contains(string(join(res.Messages)), "8831") {
		t.Error("a stranger has become the owner")
	}
	first := ask(nil)
	if first.Trace.Recall.Cached {
		t.Error("an inspection counts as asked before")
	}
	commit(t, e, turn(key, "t2", user("my own locker has the code 7712 and not that of the safe", day+2), assistant("Noted.", day+3)))
	if res := ask(nil); !strings.Contains(string(join(res.Messages)), "7712") || res.Trace.Recall.Cached {
		t.Errorf("what was stored since is not found: %+v", res.Trace.Recall)
	}
	if a, b := ask(nil), ask(nil); string(join(a.Messages)) != string(join(b.Messages)) {
		t.Error("two looks differ")
	}
}

// TestGuideNeedsRoom: a budget that the guide alone exceeds is not spent on it.
func TestGuideNeedsRoom(t *testing.T) {
	e := open(t, nil, nil)
	for budget, want := range map[int]string{20: "", 8000: Guide} {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionKey: mainKey, Prompt: "hm?", TokenBudget: Tokens(budget)})
		if err != nil || res.SystemPromptAddition != want || res.EstimatedTokens > budget {
			t.Errorf("%d tokens: %q, %d, %v", budget, res.SystemPromptAddition, res.EstimatedTokens, err)
		}
	}
}
