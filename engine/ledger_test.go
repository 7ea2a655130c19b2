package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hark/index"
)

// dialog is a conversation as a host drives it: Assemble with the history before each prompt, then the
// tool loop, which a host with a loop hook assembles again, then the commit.
type dialog struct {
	t       *testing.T
	history []json.RawMessage
	at      int64
	budget  Tokens
}

// assemble asks for the context of a prompt.
func (c *dialog) assemble(e *Engine, history []json.RawMessage, prompt string) AssembleResult {
	c.t.Helper()
	res, err := e.Assemble(c.t.Context(), AssembleParams{SessionID: "id-" + mainKey, SessionKey: mainKey, Messages: history, Prompt: prompt, TokenBudget: c.budget})
	if err != nil {
		c.t.Fatal(err)
	}
	if bad := pairing(res.Messages); len(bad) > 0 {
		c.t.Fatal(bad)
	}
	if back, err := Rebuild(history, res.Kept, res.Insert); err != nil || string(join(back)) != string(join(res.Messages)) {
		c.t.Fatal("rebuild", err)
	}
	return res
}

// say plays a turn without tools.
func (c *dialog) say(e *Engine, prompt, answer string) AssembleResult {
	c.t.Helper()
	res := c.assemble(e, c.history, prompt)
	c.at += 1000
	ms := []json.RawMessage{user(prompt, day+c.at), assistant(answer, day+c.at+1)}
	c.history = append(slices.Clip(c.history), ms...)
	commit(c.t, e, turn(mainKey, fmt.Sprint("turn", c.at), ms...))
	return res
}

// blocksOf are the recall blocks of a result, by index.
func blocksOf(t *testing.T, res AssembleResult) map[int]string {
	t.Helper()
	out := map[int]string{}
	for i, m := range res.Messages {
		var c struct{ CustomType, Content string }
		if json.Unmarshal(m, &c) == nil && c.CustomType == fenceName {
			out[i] = c.Content
		}
	}
	return out
}

// storeNotes fills an earlier session.
func storeNotes(t *testing.T, e *Engine) {
	t.Helper()
	var ms []json.RawMessage
	for i, thing := range []string{"violet folder", "copper kettle", "garden gate", "paper lantern", "walnut cabinet"} {
		for j := range 8 {
			ms = append(ms, user(fmt.Sprintf("note %d: the %s is in room %d of the house, behind door %d", j, thing, 10*i+j, 300+i+j), day-1e8+int64(100*i+j)))
		}
	}
	if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "n", SessionKey: otherKey, Messages: ms}); err != nil {
		t.Fatal(err)
	}
}

// CACHE: the block of a turn is computed once. Retries while the store is the same and a restart of the
// process get the same bytes, and so does the tool loop, whatever was stored in between.
func TestBlockIsTheTurns(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, nil, nil)
	storeNotes(t, e)
	c := &dialog{t: t, budget: 50_000}
	c.say(e, "good morning", "Good morning.")
	const prompt = "where is the violet folder?"
	first := c.assemble(e, c.history, prompt)
	if len(blocksOf(t, first)) != 1 || first.Trace.Recall.Cached {
		t.Fatal(first.Trace.Recall.Reason)
	}
	check := func(name string, res AssembleResult, at int) {
		t.Helper()
		if got, want := blocksOf(t, res)[at], blocksOf(t, first)[2]; got != want || !res.Trace.Recall.Cached {
			t.Errorf("%s: another block (%+v)\n%s\nwant\n%s", name, res.Trace.Recall.Reason, got, want)
		}
	}
	check("retry", c.assemble(e, c.history, prompt), 2)
	loop := append(slices.Clip(c.history), user(prompt, day+9000),
		raw(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse"}`),
		raw(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"empty"}]}`))
	check("tool loop", c.assemble(e, loop, prompt), 2)
	done()
	e, done = openAt(t, dir, nil, nil)
	defer done()
	check("after a restart", c.assemble(e, c.history, prompt), 2)
	commit(t, e, turn(otherKey, "later", user("the violet folder was moved to the violet folder shelf", day+5)))
	check("tool loop after something was stored", c.assemble(e, loop, prompt), 2)
	check("tool loop after a restart", c.assemble(e, loop, prompt), 2)

	// A record that is forgotten goes with the next call.
	id := first.Trace.Recall.Items[0].ID
	seq := e.ledgers[mainKey].Now.Parts[0].Row
	if n, err := e.store.Forget(t.Context(), index.Selection{Seqs: []int64{seq}}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for _, block := range blocksOf(t, c.assemble(e, c.history, prompt)) {
		if strings.Contains(block, "id "+id+"]") {
			t.Error("a forgotten record is shown")
		}
	}
}

// CACHE-06: that nothing was recalled is remembered too, and a turn without recall adds no message.
func TestNothingIsRememberedToo(t *testing.T) {
	e := open(t, nil, nil)
	storeNotes(t, e)
	c := &dialog{t: t, budget: 50_000}
	const prompt = "what did Zebulon think of quarks?"
	if res := c.assemble(e, nil, prompt); len(res.Messages) != 0 || res.Messages == nil {
		t.Fatalf("%s", res.Messages)
	}
	loop := []json.RawMessage{user(prompt, day+9000), raw(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse"}`),
		raw(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"empty"}]}`)}
	if res := c.assemble(e, nil, prompt); !res.Trace.Recall.Cached {
		t.Error("searched again")
	}
	commit(t, e, turn(otherKey, "later", user("Zebulon thinks that quarks are small", day)))
	if res := c.assemble(e, loop, prompt); len(blocksOf(t, res)) != 0 {
		t.Errorf("a block in the middle of the turn: %s", res.Trace.Recall.Reason)
	}
	if res := c.assemble(e, []json.RawMessage{user("hi", day), assistant("hello", day)}, prompt); len(blocksOf(t, res)) != 1 {
		t.Errorf("the same words in a later turn: %s", res.Trace.Recall.Reason)
	}
}

// Blocks go with their turn unless they are kept; kept ones stay in place byte for byte, across a
// restart too, until the window is cut or the host compacts, and what they show is not shown twice.
func TestLedger(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			dir := t.TempDir()
			opts := &Options{KeepBlocks: keep, Runtime: compacting{}}
			e, done := openAt(t, dir, nil, opts)
			storeNotes(t, e)
			c := &dialog{t: t, budget: 50_000}
			c.say(e, "good morning", "Good morning.")
			var before AssembleResult
			for i, prompt := range []string{"where is the violet folder?", "where is the copper kettle?", "thanks!", "where is the garden gate?"} {
				res := c.say(e, prompt, fmt.Sprintf("That is answer %d.", i))
				want := 1
				if keep {
					want = []int{1, 2, 2, 3}[i]
					if !strings.HasPrefix(string(join(res.Messages)), string(join(before.Messages))) {
						t.Errorf("%s: the context before is not a beginning of this one", prompt)
					}
				} else if prompt == "thanks!" {
					want = 0
				}
				if got := len(blocksOf(t, res)); got != want {
					t.Errorf("%s: %d blocks, want %d (%s)", prompt, got, want, res.Trace.Recall.Reason)
				}
				before = res
			}
			if !keep {
				done()
				return
			}
			res := c.say(e, "where is the violet folder?", "I said so.")
			if strings.Count(string(join(res.Messages)), "is in room 0 of") > 1 {
				t.Error("a record is shown twice")
			}
			done()
			e, done = openAt(t, dir, nil, opts)
			defer done()
			after := c.assemble(e, c.history, "thanks!")
			if !strings.HasPrefix(string(join(after.Messages)), string(join(res.Messages))) || len(blocksOf(t, after)) != len(blocksOf(t, res)) {
				t.Error("a restart changed what was kept")
			}
			if e.mayNotRecall(Scope{}) == "" && after.EstimatedTokens > after.Trace.Budget.Usable {
				t.Error("over budget")
			}
			if _, err := e.Compact(t.Context(), CompactParams{SessionID: "id-" + mainKey, SessionKey: mainKey}); err != nil {
				t.Fatal(err)
			}
			if got := blocksOf(t, c.assemble(e, c.history, "thanks!")); len(got) != 0 {
				t.Errorf("%d blocks after a compaction", len(got))
			}
		})
	}
}

// A block stays where its turn's tools read many times its tokens after it, so that these are not billed
// again in the next turn; not where they read little, the provider has no cache, or a cut is near.
func TestBlockStaysAfterLongLoop(t *testing.T) {
	long := strings.Repeat("line of a file that a tool has read\n", 800)
	for name, tc := range map[string]struct {
		output, usage string
		budget        Tokens
		stays         bool
	}{
		"long":              {long, "", 50_000, true},
		"short":             {"a short line", "", 50_000, false},
		"long, from cache":  {long, `,"usage":{"input":10,"cacheRead":9000}`, 50_000, true},
		"long, no cache":    {long, `,"usage":{"input":9000,"cacheRead":0}`, 50_000, false},
		"long, a cut ahead": {long, "", 11_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e, done := openAt(t, dir, nil, nil)
			storeNotes(t, e)
			c := &dialog{t: t, budget: tc.budget}
			for range 3 {
				c.history = append(c.history, user("good morning", day), raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Good morning."}],"stopReason":"stop","timestamp":%d%s}`, day, tc.usage)))
			}
			const prompt = "where is the violet folder?"
			first := c.assemble(e, c.history, prompt)
			if len(blocksOf(t, first)) != 1 {
				t.Fatal(first.Trace.Recall.Reason)
			}
			sent := append(slices.Clip(first.Messages), user(prompt, day+9000),
				raw(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse"}`),
				raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":%s}]}`, encodeText(tc.output))))
			c.history = append(append(c.history, sent[len(first.Messages):]...), assistant("In room 0.", day+9001))
			for _, next := range []string{"thanks!", "where is the copper kettle?", "ok"} {
				res := c.say(e, next, "Yes.")
				if same := strings.HasPrefix(string(join(res.Messages)), string(join(sent))); same != tc.stays || (res.Trace.Recall.Kept > 0) != tc.stays {
					t.Errorf("%s: the request before is a beginning of this one: %v, %d kept, %s", next, same, res.Trace.Recall.Kept, res.Trace.Window.Reason)
				}
				if res.EstimatedTokens > res.Trace.Budget.Usable {
					t.Errorf("%s: over the budget", next)
				}
				done()
				e, done = openAt(t, dir, nil, nil)
			}
			done()
		})
	}
}

// A ledger that outgrows its room goes as a whole, and with the window when that is cut.
func TestLedgerGivesWay(t *testing.T) {
	e := open(t, nil, &Options{KeepBlocks: true})
	storeNotes(t, e)
	c := &dialog{t: t, budget: 4500}
	things := []string{"violet folder", "copper kettle", "garden gate", "paper lantern", "walnut cabinet"}
	most, drops := 0, 0
	for i := range 25 {
		res := c.say(e, fmt.Sprintf("where is the %s, question %d?", things[i%5], i), strings.Repeat(fmt.Sprintf("answer %d ", i), 30))
		if res.EstimatedTokens > res.Trace.Budget.Usable {
			t.Fatalf("turn %d: %d of %d tokens", i, res.EstimatedTokens, res.Trace.Budget.Usable)
		}
		if res.Trace.Recall.Kept == 0 && most > 0 {
			if drops++; !res.Trace.Window.Anchored && drops == 1 {
				t.Errorf("turn %d: blocks went without a word: %s", i, res.Trace.Window.Reason)
			}
		}
		most = max(most, res.Trace.Recall.Kept)
	}
	if most == 0 || drops == 0 {
		t.Errorf("%d kept, %d times none", most, drops)
	}
}

// A question that found nothing, or the old answer, is answered from what was stored since: asked again
// in the session, in a later turn that looks like the first, and in another session.
func TestStoredSince(t *testing.T) {
	e := open(t, nil, nil)
	const prompt = "what is the wifi name at the cabin?"
	if block, _ := question(t, e, mainKey, prompt); block != "" {
		t.Fatal(block)
	}
	commit(t, e, turn(otherKey, "k1", user("the wifi name at the cabin is Larkspur", day), assistant("noted", day+1)))
	for _, session := range []string{mainKey, "agent:main:explicit:third"} {
		if block, tr := question(t, e, session, prompt); !strings.Contains(block, "Larkspur") {
			t.Errorf("%s: %s", session, tr.Recall.Reason)
		}
	}
	commit(t, e, turn(otherKey, "k2", user("we changed it: the wifi name at the cabin is now Hawthorn", day+5000), assistant("noted", day+6000)))
	if block, tr := question(t, e, mainKey, prompt); !strings.Contains(block, "Hawthorn") || tr.Recall.Cached {
		t.Errorf("the old answer: %s", block)
	}
	history := []json.RawMessage{user(prompt, day+7000), assistant("I do not know.", day+7001)}
	question(t, e, mainKey, prompt, history...)
	commit(t, e, turn(otherKey, "k3", user("the wifi name at the cabin is Juniper from today", day+8000), assistant("noted", day+8001)))
	history = append(history, user(prompt, day+9000), assistant("I do not know.", day+9001))
	if block, _ := question(t, e, mainKey, prompt, append(history, user(prompt, day+9500))...); !strings.Contains(block, "Juniper") {
		t.Errorf("a turn that looks like the one before: %s", block)
	}
}
