package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// hostPass is what the host does to the list it gets, before the model sees it: the indexes of the
// messages in the order they are sent, and -1 for every result it makes up. A frame reaches from an
// assistant message with calls to the next one; each call takes one result of its frame, which moves
// next to it; other results are dropped, and so is a frame that ended in an error.
func hostPass(raws []json.RawMessage) []int {
	var out []int
	ms := make([]message, len(raws))
	for i, r := range raws {
		ms[i], _ = decode(r)
	}
	for i := 0; i < len(ms); {
		if len(ms[i].calls) == 0 {
			if ms[i].result == "" {
				out = append(out, i)
			}
			i++
			continue
		}
		end := i + 1
		for end < len(ms) && len(ms[end].calls) == 0 {
			end++
		}
		results, rest := map[string][]int{}, []int{}
		for j := i + 1; j < end; j++ {
			if id := ms[j].result; id != "" {
				results[id] = append(results[id], j)
			} else {
				rest = append(rest, j)
			}
		}
		if ms[i].stop != "error" && ms[i].stop != "aborted" {
			out = append(out, i)
			for _, id := range ms[i].calls {
				if len(results[id]) == 0 {
					out = append(out, -1)
					continue
				}
				out = append(out, results[id][0])
				results[id] = results[id][1:]
			}
		}
		out = append(out, rest...)
		i = end
	}
	return out
}

// touched says what the host's pass would change about a list.
func touched(raws []json.RawMessage) []string {
	order := hostPass(raws)
	for i := range raws {
		if i >= len(order) || order[i] != i {
			return []string{fmt.Sprintf("the host would send %v of %d messages", order, len(raws))}
		}
	}
	if len(order) != len(raws) {
		return []string{"the host would add a message"}
	}
	return nil
}

// PAIR-01, PAIR-02, PAIR-09, PAIR-10, CACHE-04: for random histories, every budget at which the window changes, and every start a window had
// before, the host's pairing pass has nothing to do with what Assemble returns; the last turn is
// whole, and what was kept is the caller's own objects.
func TestHostPassChangesNothing(t *testing.T) {
	e := open(t, nil, nil)
	storeNotes(t, e)
	rng := rand.New(rand.NewPCG(11, 12))
	for round := range 12 {
		h := history(rng, 2+rng.IntN(6))
		if bad := touched(h); len(bad) > 0 {
			t.Fatal(bad)
		}
		ms := e.measureAll(h)
		l := lay(ms)
		var budgets []int
		for _, c := range l.cuts {
			exact := l.suffs[c] + e.tokens.count(Guide)
			for _, b := range []float64{float64(exact) - 1, float64(exact), float64(exact) + 1, float64(exact) / cutTo, float64(exact) + 400} {
				budgets = append(budgets, int(b/usableShare)+1)
			}
		}
		rng.Shuffle(len(budgets), func(i, j int) { budgets[i], budgets[j] = budgets[j], budgets[i] }) // each meets another's anchor
		key := fmt.Sprintf("agent:main:explicit:h%d", round)
		for _, budget := range append(budgets, 1, 2, 2_000_000) {
			res, err := e.Assemble(t.Context(), AssembleParams{SessionID: key, SessionKey: key, Messages: h, Prompt: "where is the violet folder?", TokenBudget: Tokens(budget)})
			if err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("round %d budget %d: %+v", round, budget, res.Trace.Window)
			if bad := append(touched(res.Messages), pairing(res.Messages)...); len(bad) > 0 {
				t.Fatal(where, bad)
			}
			holds := l.leadTokens()+l.suffs[l.live]+res.Trace.Budget.Addition <= res.Trace.Budget.Usable
			if holds && res.Trace.Window.First > l.live && res.Trace.Window.Reason != "from the anchor" {
				t.Fatal(where, "the last turn was cut")
			}
			for i, at := range res.Kept {
				if i > 0 && at > res.Trace.Window.First && at != res.Kept[i-1]+1 && !slices.Contains(res.Trace.Window.Shortened, at-1) {
					t.Fatal(where, "a hole in the window at", at)
				}
			}
			if holds && (res.EstimatedTokens > res.Trace.Budget.Usable || len(res.Trace.Window.Shortened) > 0) {
				t.Fatal(where, res.EstimatedTokens, res.Trace.Budget)
			}
			if !holds && len(res.Trace.Window.Shortened) == 0 && len(res.Trace.Notes) == 0 {
				t.Fatal(where, "the live turn does not fit, and nothing says so")
			}
			if hidden := res.Trace.Window.First > 0 || len(res.Trace.Window.Shortened) > 0 || res.EstimatedTokens > res.Trace.Budget.Usable; hidden != (res.PromptAuthority == PreassemblyMayOverflow) {
				t.Fatal(where, res.PromptAuthority)
			}
		}
	}
}

// However broken a history is, cutting it breaks nothing more: what the host's pass would make up or
// drop in the window, it would have made up or dropped in the whole.
func TestBrokenHistories(t *testing.T) {
	e := open(t, nil, nil)
	rng := rand.New(rand.NewPCG(13, 14))
	for round := range 60 {
		h := history(rng, 2+rng.IntN(5))
		for range 1 + rng.IntN(4) { // lose, repeat, swap or garble a message
			i := rng.IntN(len(h))
			switch rng.IntN(6) {
			case 0:
				if len(h) > 2 {
					h = slices.Delete(h, i, i+1)
				}
			case 1:
				h = slices.Insert(h, i, h[rng.IntN(len(h))])
			case 2:
				j := rng.IntN(len(h))
				h[i], h[j] = h[j], h[i]
			case 3:
				h[i] = raw(strings.Replace(string(h[i]), `"toolUse"`, `"aborted"`, 1))
			case 4:
				h = slices.Insert(h, i, raw(`{"role":"branchSummary","summary":"s","fromId":"x"}`))
			case 5:
				h = slices.Insert(h, i, raw([]string{`null`, `7`, `{"role":"unheard","x":1.0}`, `{"role":"user","content":null}`, `{"role":"assistant","content":[]}`}[rng.IntN(5)]))
			}
		}
		madeUp := func(list []json.RawMessage) (n int) {
			for _, i := range hostPass(list) {
				if i < 0 {
					n++
				}
			}
			return n
		}
		whole := madeUp(h)
		dropped := len(h) - len(hostPass(h)) + whole
		key := fmt.Sprintf("agent:main:explicit:x%d", round)
		ms := e.measureAll(h)
		for _, s := range lay(ms).suffs {
			res, err := e.Assemble(t.Context(), AssembleParams{SessionID: key, SessionKey: key, Messages: h, Prompt: "ok", TokenBudget: Tokens(float64(s+200) / usableShare)})
			if err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("round %d, %+v\nin  %s\nout %s", round, res.Trace.Window, join(h), join(res.Messages))
			if got := madeUp(res.Messages); got > whole {
				t.Fatalf("%d results made up, %d in the whole: %s", got, whole, where)
			}
			if got := len(res.Messages) - len(hostPass(res.Messages)) + madeUp(res.Messages); got > dropped {
				t.Fatalf("%d messages dropped, %d in the whole: %s", got, dropped, where)
			}
			if len(res.Messages) < len(h)-res.Trace.Window.First-dropped {
				t.Fatalf("messages are missing: %s", where)
			}
		}
	}
}
