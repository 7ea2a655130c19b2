package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rounds are short calls of a tool with their results.
func rounds(from, n int, words string) (out []json.RawMessage) {
	for i := from; i < from+n; i++ {
		at := day + int64(i)*10
		out = append(out, raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"ls","arguments":{"p":"a%d"}}],"stopReason":"toolUse","timestamp":%d}`, i, i, at+1)),
			raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"ls","content":[{"type":"text","text":"file%d %s"}],"isError":false,"timestamp":%d}`, i, i, words, at+2)))
	}
	return out
}

func within(t *testing.T, where string, p AssembleParams, res AssembleResult) {
	t.Helper()
	if res.EstimatedTokens > res.Trace.Budget.Usable {
		t.Errorf("%s: %d tokens of %d, %q %v", where, res.EstimatedTokens, res.Trace.Budget.Usable, res.PromptAuthority, res.Trace.Notes)
	}
	if bad := pairing(res.Messages); len(bad) > 0 {
		t.Errorf("%s: %v", where, bad)
	}
	if back, err := Rebuild(p.Messages, res.Kept, res.Insert); err != nil || string(join(back)) != string(join(res.Messages)) {
		t.Errorf("%s: rebuild %v", where, err)
	}
	if cut := len(res.Kept) < len(p.Messages); cut && res.PromptAuthority != PreassemblyMayOverflow {
		t.Errorf("%s: cut, and %q", where, res.PromptAuthority)
	}
}

// Turns that are too long for the budget although every message of them is short are cut inside: the
// last user message stays, and the newest frames whole.
func TestManyShortMessages(t *testing.T) {
	e := open(t, nil, nil)
	long := append([]json.RawMessage{user("do the big job", day)}, rounds(0, 1000, "ok")...)
	var group, reports []json.RawMessage
	reports = append(reports, user("start", day-1))
	for i := range 3000 {
		group = append(group, user(fmt.Sprintf("group message number %d about lunch", i), day+int64(i)))
		reports = append(reports, assistant(fmt.Sprintf("cron report number %d: everything is fine", i), day+int64(i)))
	}
	for name, tc := range map[string]struct {
		messages []json.RawMessage
		first    int // index that must be kept
	}{
		"tool rounds, running":     {long, 0},
		"tool rounds, done":        {append(slices.Clip(long), assistant("done", day+90_000)), 0},
		"a group":                  {group, 2999},
		"reports nobody asked for": {reports, 0},
	} {
		p := AssembleParams{SessionKey: "agent:main:explicit:" + oneWord(name), SessionID: name, Messages: tc.messages, TokenBudget: 8000, Prompt: "thanks, and what is 2+2?"}
		res, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		within(t, name, p, res)
		if !slices.Contains(res.Kept, tc.first) || !slices.Contains(res.Kept, len(tc.messages)-1) || len(res.Kept) < 100 {
			t.Errorf("%s: kept %d, %v", name, len(res.Kept), res.Kept[:3])
		}
		again, err := e.Assemble(t.Context(), p)
		if err != nil || string(join(again.Messages)) != string(join(res.Messages)) {
			t.Errorf("%s: another result the second time", name)
		}
	}
}

func oneWord(s string) string { return strings.ReplaceAll(s, " ", "-") }

// In a tool loop that outgrows the budget the requests begin alike between cuts, also in the next turn.
func TestCutInsideMovesRarely(t *testing.T) {
	e := open(t, nil, nil)
	h := []json.RawMessage{user("do the big job", day)}
	var last []json.RawMessage
	moves := 0
	step := func(prompt string) {
		p := AssembleParams{SessionKey: mainKey, SessionID: "x", Messages: h, TokenBudget: 3000, Prompt: prompt}
		res, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		within(t, fmt.Sprint(len(h)), p, res)
		if !slices.Contains(res.Kept, 0) {
			t.Fatalf("at %d the instruction is gone", len(h))
		}
		if !strings.HasPrefix(string(join(res.Messages)), string(join(last))) {
			moves++
		}
		last = res.Messages
	}
	for i := range 200 {
		h = append(h, rounds(i, 1, "ok")...)
		step("")
	}
	h = append(h, assistant("done", day+90_000))
	step("and now?")
	if moves == 0 || moves > 14 {
		t.Errorf("%d moves", moves)
	}
}

// Whatever the history, the result is within the budget wherever the last user message and the newest
// frame fit into it.
func TestFitsWhereItCan(t *testing.T) {
	e := open(t, nil, nil)
	rng := rand.New(rand.NewPCG(11, 12))
	words := func(n int) string { return strings.Repeat("alpha 家 x=1; ", rng.IntN(n)) }
	for round := range 150 {
		var h []json.RawMessage
		if rng.IntN(3) == 0 {
			h = append(h, raw(fmt.Sprintf(`{"role":"compactionSummary","summary":"what was %s","timestamp":%d}`, words(60), day)))
		}
		for range 1 + rng.IntN(6) {
			at := len(h) * 3
			for range 1 + rng.IntN(30) {
				h = append(h, user("u "+words(12), day+int64(len(h))))
			}
			h = append(h, rounds(at, rng.IntN(60), words(20))...)
			if rng.IntN(2) == 0 {
				h = append(h, assistant("a "+words(20), day+int64(len(h))))
			}
		}
		ms := e.measureAll(h)
		l := layAfter(ms, 0)
		at := l.live
		if n := len(l.inner); n > 0 {
			at = max(at, l.inner[n-1])
		}
		guide := e.tokens.count(Guide)
		for _, budget := range []int{300, 600, 1200, 2500, 6000} {
			p := AssembleParams{SessionKey: fmt.Sprintf("agent:main:explicit:f%d-%d", round, budget), SessionID: "x", Messages: h, TokenBudget: Tokens(budget), Prompt: "so what?"}
			res, err := e.Assemble(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if l.taken(at)+guide <= res.Trace.Budget.Usable {
				within(t, fmt.Sprintf("round %d budget %d %+v", round, budget, res.Trace.Window), p, res)
			} else if res.EstimatedTokens > res.Trace.Budget.Usable && res.PromptAuthority != PreassemblyMayOverflow {
				t.Errorf("round %d budget %d: over it, and %q", round, budget, res.PromptAuthority)
			}
			if last := l.asks[l.n-1]; !slices.Contains(res.Kept, last) && len(res.Trace.Window.Shortened) == 0 {
				t.Errorf("round %d budget %d: the last user message is gone", round, budget)
			}
		}
	}
}

// The host's summary of what it cut stays when the window is cut, unless it alone takes the room.
func TestSummaryStays(t *testing.T) {
	e := open(t, nil, nil)
	chat := func(summary string) []json.RawMessage {
		h := []json.RawMessage{raw(fmt.Sprintf(`{"role":"compactionSummary","summary":%s,"tokensBefore":100000,"timestamp":%d}`, encodeText(summary), day)),
			raw(fmt.Sprintf(`{"role":"branchSummary","summary":"a branch","fromId":"x","timestamp":%d}`, day))}
		for i := range 40 {
			h = append(h, user(fmt.Sprint("chat ", i, strings.Repeat(" rain and sun", 20)), day+1000+int64(i)*10), assistant(strings.Repeat("indeed lovely ", 20), day+1005+int64(i)*10))
		}
		return h
	}
	p := AssembleParams{SessionKey: mainKey, SessionID: "x", Messages: chat("## Decisions\nuse port 9000"), Prompt: "go on with the port", TokenBudget: 3500}
	for range 2 {
		res, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "small", p, res)
		if len(res.Kept) < 10 || res.Kept[0] != 0 || res.Kept[1] != 1 || res.Kept[2] == 2 || res.Trace.Window.Dropped != len(p.Messages)-len(res.Kept) {
			t.Errorf("kept %v, %+v", res.Kept, res.Trace.Window)
		}
	}
	p.Messages, p.SessionKey = chat(strings.Repeat("use port 9000 and no other. ", 1000)), otherKey
	res, err := e.Assemble(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "large", p, res)
	if res.Kept[0] == 0 || len(res.Kept) < 4 {
		t.Errorf("kept %v", res.Kept)
	}
}

// The guide takes no more than a tenth of what can be used.
func TestGuideTakesATenth(t *testing.T) {
	e := open(t, nil, nil)
	guide := e.tokens.count(Guide)
	for _, budget := range []int{100, 10 * guide, 20 * guide} {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionKey: mainKey, SessionID: "x", Messages: []json.RawMessage{user("hi", day)}, Prompt: "hi", TokenBudget: Tokens(budget)})
		if err != nil {
			t.Fatal(err)
		}
		if want := guide*10 <= res.Trace.Budget.Usable; (res.SystemPromptAddition != "") != want {
			t.Errorf("budget %d: %q", budget, res.SystemPromptAddition)
		}
	}
}
