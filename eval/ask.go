package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hark/index"
	"hark/recall"
)

// rankDepth is how many documents are asked of a ranking: what the deepest metric looks at.
const rankDepth = 50

// Budgets are the token budgets of the assembled contexts, and ReferenceBudget the one at which
// fates are told.
func Budgets() []int { return []int{500, 1000, 2000, 4000, 8000} }

// ReferenceBudget is what a host with a small model leaves.
const ReferenceBudget = 4000

// shownText is how much of a text a report quotes, in bytes.
const shownText = 240

// asking puts queries to one system over one library.
type asking struct {
	set *Set
	lib *Library
	sys System
	// depth is asked of a ranking: more than rankDepth where ranks among the user's turns count.
	depth  int
	budget []int
}

// timing is how long the calls of one query took.
type timing struct {
	Rank     time.Duration
	Assemble time.Duration // at the reference budget
}

// ask puts one query and works out its outcome. A document that is not in the library is a leak
// and an error.
func (a *asking) ask(ctx context.Context, q Query) (Outcome, []string, []float64, timing, error) {
	o := Outcome{ID: q.ID, Conv: q.Conv, Cat: q.Cat, Text: q.Text, Negative: a.set.negative(q), Abstain: q.Abstain}
	var t timing
	r, err := a.sys.Rank(ctx, q, a.depth)
	if err != nil {
		return o, nil, nil, t, err
	}
	t.Rank = r.Took
	if err := a.check("ranking", r.Docs); err != nil {
		return o, nil, nil, t, err
	}
	if len(r.Scores) != len(r.Docs) {
		return o, nil, nil, t, fmt.Errorf("%d scores for %d documents", len(r.Scores), len(r.Docs))
	}
	o.Returned, o.Confidence = len(r.Docs), round(r.Confidence, 6)
	rank := map[string]int{}
	for i, d := range r.Docs {
		rank[d] = i + 1
	}
	gold := a.set.Qrels[q.ID]
	if q.Abstain {
		gold = nil
	}
	var reference Context
	for _, b := range a.budget {
		c, err := a.sys.Assemble(ctx, q, b)
		if err != nil {
			return o, nil, nil, t, err
		}
		if err := a.check("context", append(slices.Clone(c.Recalled), c.Window...)); err != nil {
			return o, nil, nil, t, err
		}
		o.Contexts = append(o.Contexts, inContext(b, c, gold))
		if b == ReferenceBudget {
			reference, t.Assemble = c, c.Took
		}
	}
	for _, d := range sortedKeys(gold) {
		g := Gold{Doc: d, Rank: rank[d], Text: a.quote(d)}
		if gold[d] > 1 {
			g.Grade = gold[d]
		}
		g.Fate, g.Why = a.fate(d, r, reference, rank[d])
		o.Gold = append(o.Gold, g)
	}
	for i, d := range r.Docs[:min(10, len(r.Docs))] {
		hit := TopHit{Doc: d, Score: round(r.Scores[i], 4), Gold: gold[d] > 0}
		if i < 3 && (missed(o.Gold, 10) || lost(o.Gold)) {
			hit.Text = a.quote(d)
		}
		o.Top = append(o.Top, hit)
	}
	a.sessions(&o, q, r, gold)
	o.Update = a.update(q, rank, reference)
	return o, r.Docs, r.Scores, t, nil
}

// check looks for documents of other conversations, and for one that is there twice.
func (a *asking) check(where string, docs []string) error {
	seen := map[string]bool{}
	for _, d := range docs {
		if !a.lib.Has(d) {
			return fmt.Errorf("leak: document %q in the %s belongs to another conversation", d, where)
		}
		if seen[d] {
			return fmt.Errorf("document %q is in the %s twice", d, where)
		}
		seen[d] = true
	}
	return nil
}

func inContext(budget int, c Context, gold map[string]int) InContext {
	in := InContext{Budget: budget, Items: len(c.Recalled), Tokens: c.Tokens, WindowTokens: c.WindowTokens, Silent: c.Silent}
	for _, d := range c.Recalled {
		if gold[d] > 0 {
			in.Relevant++
			in.Found++
		}
	}
	for _, d := range c.Window {
		if gold[d] > 0 {
			in.Window++
			in.Found++
		}
	}
	return in
}

// quote is the beginning of a document's text.
func (a *asking) quote(doc string) string {
	text := strings.Join(strings.Fields(a.lib.Docs[a.lib.rows[doc].doc].Text), " ")
	if len(text) <= shownText {
		return text
	}
	cut := shownText
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// fate tells what became of a relevant document on its way into the context, and what decided.
func (a *asking) fate(doc string, r Ranked, c Context, rank int) (Fate, *Trace) {
	switch {
	case slices.Contains(c.Recalled, doc):
		return InBlock, nil
	case slices.Contains(c.Window, doc):
		return InWindow, nil
	}
	row := a.lib.rows[doc]
	why := &Trace{}
	found := rank > 0
	if r.Pool != nil {
		if e, ok := r.Pool(doc); ok {
			why = traceOf(e)
			found = found || e.LexicalRank > 0 || e.DenseRank > 0 || e.Matched > 0
		}
	}
	why.Reason = c.Dropped[doc]
	switch {
	case row.seq == 0 || row.kind == index.Noise || row.kind == index.Summary:
		return NotIndexed, why
	case row.kind == index.Tool && c.Dropped[doc] == "":
		return NotSearched, why
	case !found:
		return NotRetrieved, why
	case len(c.Recalled) == 0 && c.Silent != "":
		why.Reason = c.Silent
		return Gated, why
	case why.Reason == recall.OverBudget || why.Reason == recall.NearCopy:
		return OverBudget, why
	case why.Reason != "":
		return Gated, why
	}
	return OutRanked, why
}

// missed says whether some evidence is not among the first k.
func missed(gold []Gold, k int) bool {
	return slices.ContainsFunc(gold, func(g Gold) bool { return g.Rank == 0 || g.Rank > k })
}

// lost says whether some evidence is not in the context.
func lost(gold []Gold) bool {
	return slices.ContainsFunc(gold, func(g Gold) bool { return g.Fate != InBlock && g.Fate != InWindow })
}

// sessions rolls the ranking up to sessions: a session is ranked by its best document.
func (a *asking) sessions(o *Outcome, q Query, r Ranked, gold map[string]int) {
	sess := func(doc string) string { return a.lib.Docs[a.lib.rows[doc].doc].Sess }
	want := a.set.Sessions[q.ID]
	if a.set.Sessions == nil {
		want = map[string]bool{}
		for d := range gold {
			want[sess(d)] = true
		}
	}
	rank := rollUp(r.Docs, sess)
	if !q.Abstain {
		for _, s := range sortedKeys(want) {
			o.Sessions = append(o.Sessions, GoldSession{s, rank[s]})
		}
	}
	if a.set.Format != LongMemEval {
		return
	}
	// The set's own programs index the user's turns alone, and count abstention questions too.
	var turns []string
	for _, d := range r.Docs {
		if a.lib.Docs[a.lib.rows[d].doc].Spk == "user" {
			turns = append(turns, d)
		}
	}
	at := map[string]int{}
	for i, d := range turns {
		at[d] = i + 1
	}
	rank = rollUp(turns, sess)
	u := &UserTurns{}
	for _, d := range sortedKeys(a.set.Qrels[q.ID]) {
		if a.lib.Docs[a.lib.rows[d].doc].Spk == "user" {
			u.Turns = append(u.Turns, at[d])
		}
	}
	for _, s := range sortedKeys(a.set.Sessions[q.ID]) {
		u.Sessions = append(u.Sessions, rank[s])
	}
	if len(u.Turns)+len(u.Sessions) > 0 {
		o.Turns = u
	}
}

// rollUp ranks groups by their first member.
func rollUp(docs []string, group func(string) string) map[string]int {
	rank := map[string]int{}
	for _, d := range docs {
		if g := group(d); rank[g] == 0 {
			rank[g] = len(rank) + 1
		}
	}
	return rank
}

// update tells what became of a value that changed: of the documents that the set calls replaced,
// or, in a category of updates, of all relevant ones but the newest.
func (a *asking) update(q Query, rank map[string]int, c Context) *Update {
	older := map[string]bool{}
	for _, d := range q.Stale {
		if a.lib.Has(d) {
			older[d] = true
		}
	}
	newest, at := "", -1
	for d := range a.set.Qrels[q.ID] {
		if i := a.lib.rows[d].doc; !older[d] && i > at {
			newest, at = d, i
		}
	}
	if len(older) == 0 && strings.Contains(strings.ToLower(q.Cat), "update") {
		for d := range a.set.Qrels[q.ID] {
			if d != newest {
				older[d] = true
			}
		}
	}
	if newest == "" || len(older) == 0 {
		return nil
	}
	u := &Update{Newer: rank[newest], NewerShown: slices.Contains(c.Recalled, newest) || slices.Contains(c.Window, newest)}
	for d := range older {
		if r := rank[d]; r > 0 && (u.Older == 0 || r < u.Older) {
			u.Older = r
		}
		u.OlderShown = u.OlderShown || slices.Contains(c.Recalled, d)
		u.OlderUndated = u.OlderUndated || slices.Contains(c.Undated, d)
	}
	return u
}

// round keeps n decimals, so that reports are the same bytes on every machine.
func round(x float64, n int) float64 {
	p := math.Pow10(n)
	return math.Round(x*p) / p
}
