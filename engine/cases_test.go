package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	callC1   = `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}],"stopReason":"toolUse"}`
	resultC1 = `{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"42"}],"isError":false}`
	said     = `{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}`
)

// fit assembles a list of messages for a session of its own.
func fit(t *testing.T, budget Tokens, prompt string, list ...string) AssembleResult {
	t.Helper()
	e := open(t, nil, nil)
	var h []json.RawMessage
	for _, s := range list {
		h = append(h, raw(s))
	}
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: prompt, TokenBudget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func texts(raws []json.RawMessage) string {
	var out []string
	for _, r := range raws {
		out = append(out, string(r))
	}
	return strings.Join(out, "\n")
}

// The cases of broken tool calls and turns, as users met them.
func TestPairCases(t *testing.T) {
	const ask, again = `{"role":"user","content":"what is it?"}`, `{"role":"user","content":"and now?"}`
	long := strings.Repeat("a long line of output ", 3000)
	for name, tc := range map[string]struct {
		budget Tokens
		in     []string
		want   []string // nil: as they came
	}{
		"PAIR-03 result before its call":             {50_000, []string{ask, resultC1, callC1}, []string{ask, callC1, resultC1}},
		"PAIR-05 result without content":             {50_000, []string{ask, callC1, `{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[],"details":{"ok":true}}`}, nil},
		"PAIR-06 parallel call unanswered":           {50_000, []string{ask, strings.Replace(callC1, `}],"stop`, `},{"type":"toolCall","id":"c2","name":"read","arguments":{}}],"stop`, 1), resultC1}, nil},
		"PAIR-07 user message with tool parts only":  {50_000, []string{ask, said, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`}, nil},
		"PAIR-08 two user messages in a row":         {50_000, []string{ask, again, said}, nil},
		"PAIR-09 results stay with their call":       {50_000, []string{callC1, resultC1, said}, nil},
		"PAIR-10 an id used twice":                   {50_000, []string{ask, callC1, resultC1, said, again, callC1, resultC1}, nil},
		"MSG-02 empty thinking is not made the last": {50_000, []string{ask, `{"role":"assistant","content":[{"type":"thinking","thinking":""}],"stopReason":"stop"}`, again}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			res := fit(t, tc.budget, "", tc.in...)
			want := tc.want
			if want == nil {
				want = tc.in
			}
			if got := texts(res.Messages); got != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
	t.Run("PAIR-01 cut after each index", func(t *testing.T) {
		for budget := Tokens(1); budget < 320; budget += 6 {
			res := fit(t, budget, "", ask, callC1, resultC1, said, again)
			if bad := touched(res.Messages); len(bad) > 0 || string(res.Messages[len(res.Messages)-1]) != again {
				t.Errorf("budget %v: %v %s", budget, bad, texts(res.Messages))
			}
		}
	})
	t.Run("PAIR-02 the instruction outlives the tool chain", func(t *testing.T) {
		huge := strings.Replace(resultC1, "42", long, 1)
		for _, budget := range []Tokens{400, 1000, 5000} {
			res := fit(t, budget, "", again, said, ask, callC1, huge, callC1, huge)
			got := texts(res.Messages)
			if !strings.Contains(got, ask) || !strings.Contains(got, "left out by Hark") || len(touched(res.Messages)) > 0 || len(res.Messages) != 5 {
				t.Errorf("budget %v: %.600s", budget, got)
			}
			if budget > 400 && res.EstimatedTokens > res.Trace.Budget.Usable || len(res.Trace.Window.Shortened) == 0 || res.PromptAuthority != PreassemblyMayOverflow {
				t.Errorf("budget %v: %+v %+v", budget, res.Trace.Budget, res.Trace.Window)
			}
		}
	})
	t.Run("PAIR-04 a late real result", func(t *testing.T) {
		fake := `{"role":"toolResult","toolCallId":"c1","toolName":"read","isError":true,"content":[{"type":"text","text":"[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair."}]}`
		if got := texts(fit(t, 50_000, "", callC1, fake, ask, resultC1).Messages); got != strings.Join([]string{callC1, resultC1, ask}, "\n") {
			t.Error(got)
		}
	})
}

// What the host sends beside conversation passes through or goes with its turn.
func TestOtherKinds(t *testing.T) {
	others := []string{
		`{"role":"bashExecution","command":"ls","output":"a b","exitCode":0,"cancelled":false,"truncated":false}`,
		`{"role":"branchSummary","summary":"a branch","fromId":"x"}`,
		`{"role":"custom","customType":"note","content":"a note","display":false}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s=="},{"type":"redacted_thinking","data":"zz"},{"type":"novel","x":1.0}],"stopReason":"stop"}`,
		`{"role":"unheard","x":{"y":12345678901234567890}}`,
	}
	list := []string{`{"role":"compactionSummary","summary":"what was","tokensBefore":9,"timestamp":1796060484191}`}
	for i := range 3 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat(fmt.Sprintf("turn %d ", i), 120)))
		list = append(list, others...)
		list = append(list, said)
	}
	if got := texts(fit(t, 50_000, "x", list...).Messages); got != strings.Join(list, "\n") {
		t.Errorf("all of it fits:\n%s", got)
	}
	starts := map[int]bool{}
	for budget := Tokens(200); budget < 2500; budget += 50 {
		res := fit(t, budget, "x", list...)
		starts[res.Trace.Window.First] = true
		var want []string
		for _, i := range res.Trace.Window.Head { // the summary, and the user message of a turn that is cut inside
			want = append(want, list[i])
		}
		want = append(want, list[res.Trace.Window.First:]...)
		if len(res.Trace.Window.Shortened) == 0 && texts(res.Messages) != strings.Join(want, "\n") {
			t.Errorf("budget %v: %s", budget, texts(res.Messages))
		}
	}
	for _, at := range []int{0, 8, 15} {
		if !starts[at] {
			t.Errorf("no budget cut at %d: %v", at, starts)
		}
		delete(starts, at)
	}
	if len(starts) > 0 {
		t.Errorf("cut inside a turn: %v", starts)
	}
}

// UNI-02, MSG-01, MSG-03: kept messages are the very bytes that came in.
func TestKeptBytes(t *testing.T) {
	list := []string{
		`{"role":"user","content":"\ud83d lone, \u2028, <b>&amp;</b>","n":12345678901234567890,"f":1.0,"e":1E5,"z":0,"a":1}`,
		`{ "content" : [ {"type":"thinking","thinking":"x","thinkingSignature":"Ab+/=="} , {"type":"text","text":"y","textSignature":"q"} ], "role":"assistant","stopReason":"stop" }`,
		`{"role":"user","content":null}`, `{"role":"assistant","content":[{"type":"hologram","rays":[1,2.50]}]}`, `{"content":"no role"}`, `{"role":"custom","customType":"x","content":"c"}`,
	}
	res := fit(t, 50_000, "x", list...)
	if got := texts(res.Messages); got != strings.Join(list, "\n") {
		t.Error(got)
	}
	if len(res.Kept) != len(list) || len(res.Insert) != 0 {
		t.Error(res.Kept, res.Insert)
	}
}

// TOK: what is serialized is what is counted.
func TestEverythingIsCounted(t *testing.T) {
	e := bare(t)
	words := strings.Repeat("counted words of some length ", 400)
	want := e.tokens.count(words)
	for name, m := range map[string]string{
		"text":       `{"role":"user","content":%q}`,
		"blocks":     `{"role":"assistant","content":[{"type":"text","text":%q}]}`,
		"thinking":   `{"role":"assistant","content":[{"type":"thinking","thinking":%q}]}`,
		"arguments":  `{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"f","arguments":{"a":%q}}]}`,
		"result":     `{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":%q}]}`,
		"shell":      `{"role":"bashExecution","command":"ls","output":%q}`,
		"summary":    `{"role":"compactionSummary","summary":%q}`,
		"branch":     `{"role":"branchSummary","summary":%q}`,
		"custom":     `{"role":"custom","customType":"x","content":%q}`,
		"unknown":    `{"role":"assistant","content":[{"type":"novel","v":%q}]}`,
		"odd":        `{"role":"user","content":{"v":%q}}`,
		"no message": `[%q]`,
	} {
		got := e.measureAll([]json.RawMessage{raw(fmt.Sprintf(m, words))})[0].tokens
		if off := float64(got-want) / float64(want); off < 0 || off > 0.03 {
			t.Errorf("%s: %d tokens, its words are %d", name, got, want)
		}
	}
	image := raw(fmt.Sprintf(`{"role":"user","content":[{"type":"image","mimeType":"image/png","data":%q}]}`, strings.Repeat("iVBORw0KGgo", 1<<17)))
	if got := e.measureAll([]json.RawMessage{image})[0].tokens; got != perImage+perMessage {
		t.Errorf("a picture counts as %d", got)
	}
}

// One message larger than the budget is shortened head and tail, whatever it is made of.
func TestOneHugeMessage(t *testing.T) {
	for name, unit := range map[string]string{"words": "words of a log 123 ", "han": "\u6f22\u5b57", "family": "\U0001F468\u200d\U0001F469\u200d\U0001F467", "one run": "a"} {
		text := "BEGIN " + strings.Repeat(unit, 300_000/len(unit)) + " END"
		for _, budget := range []Tokens{300, 3000, 20_000} {
			res := fit(t, budget, "", fmt.Sprintf(`{"role":"user","content":%s}`, encodeText(text)))
			var m struct{ Content string }
			if len(res.Messages) != 1 || json.Unmarshal(res.Messages[0], &m) != nil {
				t.Fatalf("%s: %.300s", name, texts(res.Messages))
			}
			if !strings.HasPrefix(m.Content, "BEGIN") || !strings.HasSuffix(m.Content, "END") || !strings.Contains(m.Content, "left out by Hark") || !utf8.ValidString(m.Content) || strings.ContainsRune(m.Content, utf8.RuneError) {
				t.Errorf("%s at %v: %.200s", name, budget, m.Content)
			}
			if res.EstimatedTokens > res.Trace.Budget.Usable || len(res.Trace.Window.Shortened) != 1 || res.PromptAuthority != PreassemblyMayOverflow {
				t.Errorf("%s at %v: %d tokens of %d, %+v", name, budget, res.EstimatedTokens, res.Trace.Budget.Usable, res.Trace.Window)
			}
		}
	}
}

// TOK-07: records are shown whole, or as an excerpt that says so; none ends in the middle of one.
func TestRecordsAreWhole(t *testing.T) {
	e := open(t, nil, &Options{RecallTokens: 700})
	var ms []json.RawMessage
	for i := range 40 {
		ms = append(ms, user(fmt.Sprintf("the violet folder, note %d: %sEnd of note %d.", i, strings.Repeat(fmt.Sprintf("detail %d of it. ", i), 30), i), day-1e8+int64(i)))
	}
	ms = append(ms, user("the violet folder at length: "+strings.Repeat("one more sentence about the violet folder. ", 90), day-1e8+99))
	if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "n", SessionKey: otherKey, Messages: ms}); err != nil {
		t.Fatal(err)
	}
	block, tr := question(t, e, mainKey, "where is the violet folder?")
	records := strings.Split(block, "\n[2")[1:]
	if len(records) < 2 || tr.Budget.Recall > 700 {
		t.Fatalf("%d records, %d tokens\n%s", len(records), tr.Budget.Recall, block)
	}
	for _, r := range records {
		head, text, _ := strings.Cut(r, "\n")
		if marked := strings.HasSuffix(head, "| excerpt]"); marked != strings.Contains(text, ellipsis) || !marked && !strings.Contains(text, "End of note") {
			t.Errorf("a record is cut without a mark:\n%s", r)
		}
	}
}

// TOK-05: what no budget can be is said, and the default stands in.
func TestOddBudgets(t *testing.T) {
	for _, b := range []Tokens{0, -1, Tokens(math.NaN()), Tokens(math.Inf(-1))} {
		res := fit(t, b, "x", said)
		if tr := res.Trace.Budget; tr.Tokens != defaultBudget || tr.Source != "default" || tr.Reason == "" || len(res.Messages) != 1 {
			t.Errorf("%v: %+v", b, tr)
		}
	}
}

// The factor of a model family is what its provider billed, over what was counted; it is bounded,
// survives a restart and makes the budget smaller.
func TestFamilyFactor(t *testing.T) {
	dir := t.TempDir()
	words := strings.Repeat("words of a tool result 12 ", 200)
	one := bare(t).measureAll([]json.RawMessage{raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c1","toolName":"f","content":[{"type":"text","text":%q}]}`, words))})[0].tokens
	loop := func(model string, rate float64) (h []json.RawMessage) {
		h = append(h, user("go on", day))
		billed := 7000.0
		for range 5 {
			h = append(h,
				raw(fmt.Sprintf(`{"role":"assistant","model":%q,"content":[{"type":"toolCall","id":"c1","name":"f","arguments":{}}],"usage":{"input":100,"cacheRead":%d},"stopReason":"toolUse"}`, model, int(billed)-100)),
				raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c1","toolName":"f","content":[{"type":"text","text":%q}]}`, words)))
			billed += rate * float64(one+perMessage+perCall+2)
		}
		return append(h, raw(said))
	}
	e, done := openAt(t, dir, nil, nil)
	call := func(model string, h []json.RawMessage) BudgetTrace {
		t.Helper()
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: "x", Model: model, TokenBudget: 50_000})
		if err != nil {
			t.Fatal(err)
		}
		return res.Trace.Budget
	}
	for model, want := range map[string]float64{"claude-opus-5": 1.3, "anthropic/gpt-6": 1, "wild-1": mostFactor, "tiny:2b": leastFactor} {
		rate := want
		switch want {
		case mostFactor:
			rate = 2.5
		case leastFactor:
			rate = 0.5
		}
		if got := call(model, loop(model, rate)).Factor; math.Abs(got-want) > 0.03 {
			t.Errorf("%s: factor %v, want %v", model, got, want)
		}
	}
	learned := call("claude-opus-5", nil)
	done()
	e, done = openAt(t, dir, nil, nil)
	defer done()
	if got := call("claude-sonnet-5", nil); got.Factor != learned.Factor || got.Family != "claude" {
		t.Errorf("after a restart %+v, was %+v", got, learned)
	}
	h := loop("claude-opus-5", 1.3)
	if a, b := call("claude-x", h).History, call("gpt-5", h).History; float64(a) < 1.25*float64(b) {
		t.Errorf("the history takes %d tokens of claude's, %d of gpt's", a, b)
	}
}

// The start of the window is the same for the whole tool loop, and is given up between turns only.
func TestWindowInTheLoop(t *testing.T) {
	e := open(t, nil, nil)
	var h []json.RawMessage
	for i := range 60 {
		h = append(h, user(strings.Repeat(fmt.Sprintf("history %d ", i), 40), day+int64(2*i)), assistant("yes", day+int64(2*i+1)))
	}
	at := func(budget Tokens, list ...json.RawMessage) int {
		t.Helper()
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: list, Prompt: "go", TokenBudget: budget})
		if err != nil {
			t.Fatal(err)
		}
		return res.Trace.Window.First
	}
	start := at(5000, h...)
	if start == 0 {
		t.Fatal("everything fits")
	}
	loop := append(slices.Clip(h), user("go", day+1000), raw(callC1), raw(resultC1))
	for _, budget := range []Tokens{5000, 100_000, 4990} {
		if got := at(budget, loop...); got != start {
			t.Errorf("in the loop, at %v: starts at %d, was %d", budget, got, start)
		}
	}
	if got := at(100_000, append(loop, raw(said))...); got != 0 {
		t.Errorf("the next turn has room for all and starts at %d", got)
	}
}

// The system prompt's addition is the same bytes while the memory plugin's sections are, and absent
// where there is nothing to say.
func TestAdditionIsStable(t *testing.T) {
	e := open(t, nil, nil)
	storeNotes(t, e)
	add := func(key, prompt string, memory ...string) string {
		t.Helper()
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "s" + key, SessionKey: key, Prompt: prompt, MemoryPrompt: memory, TokenBudget: 9000})
		if err != nil {
			t.Fatal(err)
		}
		return res.SystemPromptAddition
	}
	first := add(mainKey, "where is the violet folder?", "## Memory", "Search first.")
	if again := add(mainKey, "thanks", "## Memory", "Search first."); again != first || !strings.HasSuffix(first, Guide) {
		t.Errorf("%q\nwas\n%q", again, first)
	}
	if got := add(mainKey, "thanks"); got != Guide {
		t.Error(got)
	}
	if got := add("agent:main:subagent:x", "where is the violet folder?"); got != "" {
		t.Errorf("a session without recall or memory: %q", got)
	}
}
