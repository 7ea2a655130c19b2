package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// bare is an engine that can measure and shorten but has no store.
func bare(tb testing.TB) *Engine {
	tb.Helper()
	tokens, err := newCounter()
	if err != nil {
		tb.Fatal(err)
	}
	return &Engine{tokens: tokens, log: slog.New(slog.DiscardHandler), seen: map[uint64]*measure{}}
}

// history makes a valid random conversation, as a host would send it: it starts with a summary now
// and then, calls tools one by one and in parallel, repeats ids, and may end in a running turn.
func history(rng *rand.Rand, turns int) []json.RawMessage {
	var out []json.RawMessage
	add := func(format string, args ...any) { out = append(out, raw(fmt.Sprintf(format, args...))) }
	words := func() string { return strings.Repeat("word and number 12345 ", 1+rng.IntN(30)) }
	ms := int64(1_796_000_000_000)
	stamp := func() int64 { ms += int64(rng.IntN(60_000)); return ms }
	if rng.IntN(3) == 0 {
		add(`{"role":"compactionSummary","summary":"%s","tokensBefore":5,"timestamp":%d}`, words(), stamp())
	}
	if rng.IntN(4) == 0 {
		add(`{"role":"assistant","content":[{"type":"text","text":"tail of what was compacted"}],"stopReason":"stop","timestamp":%d}`, stamp())
	}
	for turn := range turns {
		if rng.IntN(8) == 0 {
			add(`{"role":"custom","customType":"note","content":"%s","display":false}`, words())
		}
		for range 1 + rng.IntN(2)*rng.IntN(2) {
			add(`{"role":"user","content":"%s","timestamp":%d}`, words(), stamp())
		}
		for range rng.IntN(4) {
			n := 1 + rng.IntN(3)
			var calls, results []string
			for c := range n {
				id := fmt.Sprintf("c%d", c+rng.IntN(2)*turn*3)
				for strings.Contains(strings.Join(calls, ""), `"`+id+`"`) {
					id += "x"
				}
				calls = append(calls, fmt.Sprintf(`{"type":"toolCall","id":"%s","name":"read","arguments":{"path":"%s"}}`, id, words()))
				results = append(results, fmt.Sprintf(`{"role":"toolResult","toolCallId":"%s","toolName":"read","content":[{"type":"text","text":"%s"}],"isError":false,"timestamp":%d}`, id, words(), stamp()))
			}
			add(`{"role":"assistant","content":[{"type":"thinking","thinking":"%s","thinkingSignature":"s"},%s],"stopReason":"toolUse","timestamp":%d}`, words(), strings.Join(calls, ","), stamp())
			for _, r := range results {
				add("%s", r)
			}
		}
		if turn == turns-1 && rng.IntN(2) == 0 {
			break
		}
		if rng.IntN(9) == 0 {
			add(`{"role":"bashExecution","command":"ls","output":"%s"}`, words())
		}
		add(`{"role":"assistant","content":[{"type":"text","text":"%s"}],"stopReason":"stop","timestamp":%d}`, words(), stamp())
	}
	return out
}

// pairing is the host's pairing pass as a checker: what it would change about messages. A frame
// reaches from an assistant message with calls to the next one; every call has one result in it.
func pairing(raws []json.RawMessage) []string {
	var bad []string
	open := map[string]int{}
	settle := func() {
		for id, n := range open {
			if n > 0 {
				bad = append(bad, "no result for "+id)
			}
		}
		clear(open)
	}
	for i, r := range raws {
		m, err := decode(r)
		if err != nil {
			continue
		}
		switch {
		case len(m.calls) > 0:
			settle()
			for _, id := range m.calls {
				open[id]++
			}
		case m.result != "":
			if open[m.result] == 0 {
				bad = append(bad, fmt.Sprintf("orphan or second result %s at %d", m.result, i))
			} else {
				open[m.result]--
			}
			prev, err := decode(raws[max(i-1, 0)])
			if i == 0 || err != nil || len(prev.calls) == 0 && prev.result == "" {
				bad = append(bad, fmt.Sprintf("result at %d does not follow its call", i))
			}
		}
	}
	settle()
	return bad
}

// PAIR-01, PAIR-02, PAIR-06, PAIR-09, PAIR-10, TOK-05: for random histories, every budget and every
// anchor, the window starts between turns, keeps the last turn, and leaves the host's pairing nothing to do.
func TestEveryCutIsValid(t *testing.T) {
	e := bare(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		h := history(rng, 1+rng.IntN(8))
		ms := e.measureAll(h)
		if bad := pairing(h); len(bad) > 0 {
			t.Fatalf("the generator is wrong: %v", bad)
		}
		l := lay(ms)
		limits := []int{0, 1, 2, 100, 256, 257}
		for _, s := range l.suffs {
			limits = append(limits, s-1, s, s+1, int(float64(s)/cutTo)+1)
		}
		bad := map[int][]string{0: pairing(h)} // by start
		for _, c := range l.cuts {
			bad[c] = pairing(h[c:])
		}
		for _, limit := range limits {
			for _, anchor := range append([]int{-1}, l.cuts...) {
				w := l.choose(anchor, limit, false)
				checkWindow(t, fmt.Sprintf("round %d limit %d anchor %d", round, limit, anchor), bad, ms, l, w, limit)
			}
		}
	}
}

func checkWindow(t *testing.T, where string, pairs map[int][]string, ms []*measure, l layout, w window, limit int) {
	t.Helper()
	if w.start >= len(ms) {
		t.Fatalf("%s: empty window", where)
	}
	if w.start > l.live {
		t.Fatalf("%s: starts at %d after the last turn at %d", where, w.start, l.live)
	}
	if bad, known := pairs[w.start]; !known || len(bad) > 0 {
		t.Fatalf("%s: start %d: %v", where, w.start, bad)
	}
	if w.start > 0 && !ms[w.start].isUser() {
		t.Fatalf("%s: starts with %s", where, ms[w.start].role)
	}
	if w.tokens > limit && w.start != l.live && (l.live > l.lead || w.start > 0) {
		t.Fatalf("%s: %d tokens kept from %d though a later cut at %d exists", where, w.tokens, w.start, l.live)
	}
}

// PAIR-02, TOK-05, UNI-02: a turn over its limit is shortened, its instruction last, its calls and
// results all there.
func TestShortenKeepsStructure(t *testing.T) {
	e := bare(t)
	big := strings.Repeat("the quick brown fox jumps over the lazy dog ", 4000)
	h := []json.RawMessage{
		raw(`{"role":"user","content":"please find the fox \u2028 <b>","timestamp":1796060325050,"z":1.0,"a":12345678901234567890}`),
		raw(`{"role":"assistant","content":[{"type":"thinking","thinking":"` + big[:4000] + `","thinkingSignature":"s"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"x","body":"` + big[:9000] + `"}}],"stopReason":"toolUse"}`),
		raw(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"` + big + `"},{"type":"text","text":"short"}],"details":{"k":"\ud83d"},"isError":false}`),
	}
	ms := e.measureAll(h)
	for _, limit := range []int{1, 100, 1500, 3000, 5000, 20000} {
		before := append([]json.RawMessage{}, h...)
		changed, tokens := e.shorten(h, ms, limit)
		out := append([]json.RawMessage{}, h...)
		for i, c := range changed {
			out[i] = c
			if !json.Valid(c) {
				t.Fatalf("limit %d: message %d is no JSON", limit, i)
			}
		}
		if bad := pairing(out); len(bad) > 0 {
			t.Fatalf("limit %d: %v", limit, bad)
		}
		total := 0
		for _, m := range bare(t).measureAll(out) {
			total += m.tokens
		}
		if d := math.Abs(float64(total - tokens)); d > 0.02*float64(total)+4 {
			t.Errorf("limit %d: says %d tokens, is %d", limit, tokens, total)
		}
		if limit >= 1500 && total > limit {
			t.Errorf("limit %d: %d tokens", limit, total)
		}
		if changed[0] != nil && limit > 100 {
			t.Errorf("limit %d: the instruction was shortened", limit)
		}
		if changed[2] != nil && (!strings.Contains(string(changed[2]), "left out by Hark") || !strings.Contains(string(changed[2]), `"details":{"k":"\ud83d"}`)) {
			t.Errorf("limit %d: %.200s", limit, changed[2])
		}
		if changed[1] != nil && !strings.Contains(string(changed[1]), big[:4000]) {
			t.Errorf("limit %d: thinking was touched", limit)
		}
		for i := range h {
			if string(h[i]) != string(before[i]) {
				t.Fatal("the input was changed")
			}
		}
	}
}

// CACHE-02, CACHE-04: in a session of twice the budget the start of the window moves rarely.
func TestWindowMovesRarely(t *testing.T) {
	e := bare(t)
	rng := rand.New(rand.NewPCG(3, 4))
	h := history(rng, 120)
	ms := e.measureAll(h)
	l := lay(ms)
	limit := l.suffs[0] / 2
	moves, turns, anchor := 0, 0, -1
	for _, end := range l.cuts[1:] {
		w := lay(ms[:end]).choose(anchor, limit, false)
		turns++
		if w.moved {
			moves++
			anchor = w.start
		}
	}
	if moves == 0 || moves*20 > turns {
		t.Errorf("%d moves in %d turns", moves, turns)
	}
}

// PAIR-03, PAIR-04: a real result is kept beside its call.
func TestArrange(t *testing.T) {
	e := bare(t)
	u := `{"role":"user","content":"go"}`
	a := `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"f","arguments":{}}],"stopReason":"toolUse"}`
	r := `{"role":"toolResult","toolCallId":"c1","toolName":"f","content":[{"type":"text","text":"42"}]}`
	fake := `{"role":"toolResult","toolCallId":"c1","toolName":"f","isError":true,"content":[{"type":"text","text":"[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair."}]}`
	for name, tc := range map[string]struct {
		in   []string
		want []int
	}{
		"in order":               {[]string{u, a, r}, nil},
		"before its call":        {[]string{u, r, a}, []int{0, 2, 1}},
		"after a made-up one":    {[]string{a, fake, u, r}, []int{0, 3, 2}},
		"made up only":           {[]string{u, a, fake}, nil},
		"twice, both real":       {[]string{a, r, r}, nil},
		"same id in two turns":   {[]string{u, a, r, u, a, r}, nil},
		"without a result":       {[]string{u, a}, nil},
		"result of another call": {[]string{u, strings.ReplaceAll(r, "c1", "c9"), a}, nil},
	} {
		var h []json.RawMessage
		for _, s := range tc.in {
			h = append(h, raw(s))
		}
		got := arrange(e.measureAll(h))
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TOK-01, TOK-10: counts are within five percent of the tokenizer's.
func TestCounts(t *testing.T) {
	e := bare(t)
	for name, text := range map[string]string{
		"english": strings.Repeat("The quick brown fox jumps over the lazy dog, again. ", 3000),
		"code":    strings.Repeat("func (s *Store) Get(ctx context.Context, seqs ...int64) ([]Message, error) {\n\treturn nil, nil\n}\n", 900),
		"json":    strings.Repeat(`{"id":123456,"name":"Ann","tags":["a","b"],"at":"2026-03-07T18:53:00Z"}`, 900),
		"han":     strings.Repeat("\u6f22\u5b57\u6d4b\u8bd5\u6587\u672c", 1700),
		"emoji":   strings.Repeat("\U0001F600\U0001F680 ok ", 4000),
		"base64":  strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAdQ9xZk3", 2000),
		"special": "<|endoftext|>",
	} {
		exact, err := e.tokens.codec.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.tokens.count(text); math.Abs(float64(got-exact)) > 0.05*float64(exact) {
			t.Errorf("%s: %d tokens, the tokenizer says %d", name, got, exact)
		}
	}
	if got := e.tokens.count("<|endoftext|>"); got < 2 {
		t.Errorf("special text counts as %d", got)
	}
}

func TestChooseBudget(t *testing.T) {
	var set RuntimeSettings
	limit := Tokens(5000)
	set.Limits.PromptTokenBudget = &limit
	for _, tc := range []struct {
		call   Tokens
		set    *RuntimeSettings
		tokens int
		source string
		said   bool
	}{
		{1000, nil, 1000, "call", false}, {1, nil, 1, "call", false}, {2e6, nil, 2_000_000, "call", false},
		{0, nil, defaultBudget, "default", true}, {-4, nil, defaultBudget, "default", true}, {Tokens(math.NaN()), nil, defaultBudget, "default", true},
		{0, &set, 5000, "settings", true}, {Tokens(math.Inf(1)), nil, 1e9, "call", false},
	} {
		b := chooseBudget(tc.call, tc.set)
		if b.tokens != tc.tokens || b.source != tc.source || (b.reason != "") != tc.said {
			t.Errorf("%v: %+v", tc.call, b)
		}
	}
}

func TestRebuild(t *testing.T) {
	h := []json.RawMessage{raw("0"), raw("1"), raw("2"), raw("3")}
	got, err := Rebuild(h, []int{1, 3}, []Insertion{{0, raw(`"a"`)}, {2, raw(`"b"`)}, {4, raw(`"c"`)}})
	if err != nil || string(join(got)) != `"a"1"b"3"c"` {
		t.Errorf("%s %v", join(got), err)
	}
	for _, bad := range [][]Insertion{{{3, raw("x")}}, {{1, raw("x")}, {0, raw("y")}}} {
		if _, err := Rebuild(h, []int{1, 3}, bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func join(raws []json.RawMessage) (out []byte) {
	for _, r := range raws {
		out = append(out, r...)
	}
	return out
}

func BenchmarkMeasureRepeat(b *testing.B) {
	e := bare(b)
	var h []json.RawMessage
	for i := range 2000 {
		h = append(h, raw(fmt.Sprintf(`{"role":"user","content":"%s","timestamp":%d}`, strings.Repeat("some words ", 185), i)))
	}
	e.measureAll(h)
	for b.Loop() {
		lay(e.measureAll(h))
	}
}

// The start of a window is found among messages that repeat and have no date, in the next process too.
func TestAnchorAmongRepeats(t *testing.T) {
	dir := t.TempDir()
	var h []json.RawMessage
	for range 40 {
		h = append(h, raw(`{"role":"user","content":"run the nightly check, please, and say what it says"}`), raw(`{"role":"assistant","content":[{"type":"text","text":"The nightly check says that all is well."}],"stopReason":"stop"}`))
	}
	p := AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: "ok", TokenBudget: 700}
	var start []int
	for range 3 {
		e, done := openAt(t, dir, nil, nil)
		for range 2 {
			res, err := e.Assemble(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			start = append(start, res.Trace.Window.First)
		}
		done()
		p.Messages = append(slices.Clip(p.Messages), h[:2]...)
	}
	if start[0] == 0 || slices.Min(start) != slices.Max(start) {
		t.Errorf("the window starts at %v", start)
	}
}
