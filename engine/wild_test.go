package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// wildShapes are messages as only a host, a plugin or an accident makes them; the verb is text.
var wildShapes = []string{
	`{"role":"user","content":%s,"timestamp":1796060484191,"n":12345678901234567890,"f":1.0,"e":1E5,"z":0,"a":1}`,
	`{ "timestamp" : 1796060484191.0, "content" : [ {"text":%s,"type":"text"} ], "role":"user" }`,
	`{"role":"user","content":[]}`, `{"role":"user","content":""}`, `{"role":"user","content":null}`, `{"role":"user"}`,
	`{"role":"assistant","content":[],"stopReason":"stop"}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":%s,"thinkingSignature":"Ab+/=="},{"type":"text","text":"so","textSignature":"q=="}],"stopReason":"stop"}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"x","redacted":true},{"type":"hologram","rays":[1,2.50],"t":%s}],"stopReason":"length"}`,
	`{"role":"assistant","content":%s,"stopReason":"error","errorMessage":"overloaded"}`,
	`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"z":1.0,"a":%s,"big":12345678901234567890}}],"stopReason":"toolUse"}`,
	`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"a","arguments":{}},{"type":"toolCall","id":"c1","name":"b","arguments":{"p":%s}},{"type":"toolCall","id":"c2","name":"c"}],"stopReason":"toolUse"}`,
	`{"role":"assistant","content":[{"type":"toolCall","id":"","name":"noid","arguments":"text"}],"stopReason":"aborted"}`,
	`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":%s}],"isError":false}`,
	`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[],"details":{"ok":true}}`,
	`{"role":"toolResult","toolCallId":"c2","toolName":"c","content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"text","text":%s}]}`,
	`{"role":"toolResult","toolName":"nameless","content":[{"type":"text","text":%s}]}`,
	`{"role":"bashExecution","command":%s,"output":"a b","exitCode":0,"cancelled":false,"truncated":false,"excludeFromContext":true}`,
	`{"role":"custom","customType":"note","content":%s,"display":false}`,
	`{"role":"branchSummary","summary":%s,"fromId":"x"}`,
	`{"role":"compactionSummary","summary":%s,"tokensBefore":9,"timestamp":"2026-11-30T00:00:00Z"}`,
	`{"role":"unheard","x":{"y":12345678901234567890,"t":%s}}`, `{"content":%s}`, `null`, `7`, `[%s]`, `%s`, `{}`,
}

var wildTexts = []string{
	`"ok"`, `"\ud83d lone, \u2028, <b>&amp;</b> \u0000"`, `"ab💰家👨‍👩‍👧é<|endoftext|>"`, `"นี่คือข้อความภาษาไทยที่ยาว"`, `"هذا نص عربي طويل بعض الشيء"`,
}

func wildMessage(rng *rand.Rand) json.RawMessage {
	shape := wildShapes[rng.IntN(len(wildShapes))]
	if !strings.Contains(shape, "%s") {
		return raw(shape)
	}
	text := wildTexts[rng.IntN(len(wildTexts))]
	switch rng.IntN(6) {
	case 0: // repeated so often that it has to be shortened somewhere
		text = `"` + strings.Repeat(text[1:len(text)-1]+" ", 1+rng.IntN(400)) + `"`
	case 1:
		text = string(encodeText(strings.Repeat("plain words of a line\n", 1+rng.IntN(300))))
	}
	return raw(fmt.Sprintf(shape, text))
}

// PAIR-03, PAIR-05, PAIR-07, UNI-01, UNI-02, MSG-01, MSG-03: whatever stands in a history and whatever the budget is, what is kept
// is the caller's bytes, what is shortened stays valid and signed, nothing is invented, the host's pairing
// pass has no more to do than it had, and what fits is within the budget.
func TestWildHistories(t *testing.T) {
	e := open(t, nil, nil)
	storeNotes(t, e)
	rng := rand.New(rand.NewPCG(21, 22))
	guide := e.tokens.count(Guide)
	for round := range wildRounds {
		h := history(rng, rng.IntN(3))
		for range 1 + rng.IntN(14) {
			h = slices.Insert(h, rng.IntN(len(h)+1), wildMessage(rng))
		}
		key := fmt.Sprintf("agent:main:explicit:w%d", round)
		l := lay(e.measureAll(h))
		budgets := []float64{0, 1, 100, 256, 257, -5, math.NaN(), math.Inf(1), 2_000_000}
		for _, s := range l.suffs {
			budgets = append(budgets, float64(s+guide)/usableShare+1, float64(s+guide)/usableShare/cutTo+1)
		}
		for _, budget := range budgets {
			p := AssembleParams{SessionID: key, SessionKey: key, Messages: slices.Clone(h), Prompt: "where is the violet folder?", TokenBudget: Tokens(budget)}
			res, err := e.Assemble(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			checkWild(t, fmt.Sprintf("round %d, budget %v, %+v\nin  %s\nout %s", round, budget, res.Trace.Window, join(h), join(res.Messages)), h, l, p, res)
			if string(join(p.Messages)) != string(join(h)) {
				t.Fatal("the caller's list was changed")
			}
			again, err := e.Assemble(t.Context(), p)
			if err != nil || string(join(again.Messages)) != string(join(res.Messages)) {
				t.Fatalf("round %d, budget %v: another result the second time\n%+v\n%+v\nin %s\nfirst  %s\nsecond %s", round, budget, res.Trace.Window, again.Trace.Window, briefly(h), briefly(res.Messages), briefly(again.Messages))
			}
		}
	}
}

func checkWild(t *testing.T, where string, h []json.RawMessage, l layout, p AssembleParams, res AssembleResult) {
	t.Helper()
	if back, err := Rebuild(h, res.Kept, res.Insert); err != nil || string(join(back)) != string(join(res.Messages)) {
		t.Fatal("rebuild", err, where)
	}
	if len(h) > 0 && len(res.Messages) == 0 {
		t.Fatal("nothing is left", where)
	}
	whole, left := hostPass(h), hostPass(res.Messages)
	count := func(order []int) (madeUp int) {
		for _, i := range order {
			if i < 0 {
				madeUp++
			}
		}
		return madeUp
	}
	if count(left) > count(whole) {
		t.Fatal("the host makes more up", count(left), count(whole), where)
	}
	if gone, before := len(res.Messages)-len(left)+count(left), len(h)-len(whole)+count(whole); gone > before {
		t.Fatal("the host drops more", gone, before, where)
	}
	for _, in := range res.Insert {
		if !json.Valid(in.Message) {
			t.Fatal("no JSON", string(in.Message), where)
		}
		if strings.Contains(string(in.Message), fenceName) {
			continue
		}
		same := slices.ContainsFunc(h, func(m json.RawMessage) bool { return string(m) == string(in.Message) }) // moved to its call
		if !same && len(res.Trace.Window.Shortened) == 0 {
			t.Fatal("a message is made up", string(in.Message), where)
		}
	}
	for _, sign := range []string{`"thinkingSignature":"Ab+/=="`, `"textSignature":"q=="`, `12345678901234567890`, `1.0`} { // in what is shown of the shortened too
		var had int
		for _, i := range append(slices.Clone(res.Kept), res.Trace.Window.Shortened...) {
			had += strings.Count(string(h[i]), sign)
		}
		if got := strings.Count(string(join(res.Messages)), sign); got < had {
			t.Fatal(got, "times", sign, "of", had, where)
		}
	}
	w := res.Trace.Window
	fits := l.leadTokens()+l.suffs[l.live]+res.Trace.Budget.Addition <= res.Trace.Budget.Usable
	if fits && (res.EstimatedTokens > res.Trace.Budget.Usable || len(w.Shortened) > 0) {
		t.Fatal(res.EstimatedTokens, "tokens of", res.Trace.Budget.Usable, where)
	}
	if fits && w.First > l.live && w.Reason != "from the anchor" {
		t.Fatal("the live turn was cut", where)
	}
	if alone := l.suffs[l.live] + res.Trace.Budget.Addition; alone > res.Trace.Budget.Usable && len(w.Shortened) == 0 && len(res.Trace.Notes) == 0 && w.First <= l.live {
		t.Fatal("nothing says that it does not fit", where)
	}
	if hidden := w.First > 0 || len(w.Shortened) > 0 || res.EstimatedTokens > res.Trace.Budget.Usable; hidden != (res.PromptAuthority == PreassemblyMayOverflow) {
		t.Fatal(res.PromptAuthority, where)
	}
	if b := float64(p.TokenBudget); !(b >= 1) && (res.Trace.Budget.Source != "default" || res.Trace.Budget.Reason == "") {
		t.Fatalf("budget %v is not remarked upon: %+v", b, res.Trace.Budget)
	}
}

const wildRounds = 25

// briefly is a list of messages, each shortened.
func briefly(ms []json.RawMessage) string {
	var b strings.Builder
	for i, m := range ms {
		fmt.Fprintf(&b, "\n  %d: %s (%d bytes)", i, cutRunes(string(m), 140), len(m))
	}
	return b.String()
}
