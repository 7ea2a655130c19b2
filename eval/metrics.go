package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Metric is a number that every query it applies to has; a report gives its mean.
type Metric struct {
	Name string
	Unit Unit
	// Lower says that less is better. It is false for a number that is neither.
	Lower bool
	Doc   string // definition and source
	// Value computes it for an outcome; ok is false where it does not apply.
	Value func(o *Outcome) (v float64, ok bool)
}

// Unit is what a metric counts.
type Unit string

// The units.
const (
	Share  Unit = "share" // 0..1
	Tokens Unit = "tokens"
)

// evidence says whether metrics of evidence apply to an outcome.
func (o *Outcome) evidence() bool { return !o.Negative && len(o.Gold) > 0 }

// RecallAt is the share of the relevant documents among the first k (trec_eval: recall_k).
func RecallAt(gold []Gold, k int) float64 {
	return float64(within(gold, k)) / float64(len(gold))
}

// AnyAt is 1 where a relevant document is among the first k (trec_eval: success_k). It flatters:
// a question that needs two documents counts as answered with one.
func AnyAt(gold []Gold, k int) float64 { return truth(within(gold, k) > 0) }

// AllAt is 1 where all relevant documents are among the first k.
func AllAt(gold []Gold, k int) float64 { return truth(within(gold, k) == len(gold)) }

// ReciprocalRank is one over the rank of the first relevant document, 0 where none is among the
// first k (trec_eval: recip_rank over a run cut to k).
func ReciprocalRank(gold []Gold, k int) float64 {
	best := 0
	for _, g := range gold {
		if g.Rank > 0 && g.Rank <= k && (best == 0 || g.Rank < best) {
			best = g.Rank
		}
	}
	if best == 0 {
		return 0
	}
	return 1 / float64(best)
}

// NDCG is the discounted cumulative gain of the first k over the best possible one: the gain is
// the grade, the discount log2(rank+1) (Järvelin and Kekäläinen 2002; trec_eval: ndcg_cut_k).
func NDCG(gold []Gold, k int) float64 {
	dcg := 0.0
	grades := make([]int, 0, len(gold))
	for _, g := range gold {
		if g.Rank > 0 && g.Rank <= k {
			dcg += float64(g.grade()) / math.Log2(float64(g.Rank+1))
		}
		grades = append(grades, g.grade())
	}
	slices.SortFunc(grades, func(a, b int) int { return b - a })
	ideal := 0.0
	for i, grade := range grades[:min(k, len(grades))] {
		ideal += float64(grade) / math.Log2(float64(i+2))
	}
	return dcg / ideal
}

func within(gold []Gold, k int) (n int) {
	for _, g := range gold {
		if g.Rank > 0 && g.Rank <= k {
			n++
		}
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Metrics lists what a report on a set of that format gives, in order.
func Metrics(format string) []Metric {
	var out []Metric
	out = append(out, rankingMetrics()...)
	out = append(out, sessionMetrics()...)
	out = append(out, contextMetrics()...)
	out = append(out, updateMetrics()...)
	out = append(out, silenceMetrics()...)
	if format == LongMemEval {
		out = append(out, longMemEvalMetrics()...)
	}
	return out
}

func ranking(name, doc string, f func(gold []Gold) float64) Metric {
	return Metric{Name: name, Unit: Share, Doc: doc, Value: func(o *Outcome) (float64, bool) {
		if !o.evidence() {
			return 0, false
		}
		return f(o.Gold), true
	}}
}

func rankingMetrics() []Metric {
	var out []Metric
	for _, k := range []int{5, 10, 20, 50} {
		out = append(out, ranking("recall@"+strconv.Itoa(k), fmt.Sprintf("share of the evidence among the first %d hits (trec_eval recall_%d)", k, k), func(g []Gold) float64 { return RecallAt(g, k) }))
	}
	for _, k := range []int{5, 10} {
		out = append(out, ranking("any@"+strconv.Itoa(k), fmt.Sprintf("questions with some evidence among the first %d (trec_eval success_%d)", k, k), func(g []Gold) float64 { return AnyAt(g, k) }))
	}
	for _, k := range []int{5, 10, 20} {
		out = append(out, ranking("all@"+strconv.Itoa(k), fmt.Sprintf("questions with all their evidence among the first %d", k), func(g []Gold) float64 { return AllAt(g, k) }))
	}
	return append(out,
		ranking("MRR@10", "mean reciprocal rank of the first evidence, 0 beyond ten (trec_eval recip_rank)", func(g []Gold) float64 { return ReciprocalRank(g, 10) }),
		ranking("nDCG@10", "normalised discounted cumulative gain (trec_eval ndcg_cut_10)", func(g []Gold) float64 { return NDCG(g, 10) }),
	)
}

func sessionMetrics() []Metric {
	session := func(name, doc string, f func([]GoldSession) float64) Metric {
		return Metric{Name: name, Unit: Share, Doc: doc, Value: func(o *Outcome) (float64, bool) {
			if o.Negative || len(o.Sessions) == 0 {
				return 0, false
			}
			return f(o.Sessions), true
		}}
	}
	count := func(s []GoldSession, k int) (n int) {
		for _, g := range s {
			if g.Rank > 0 && g.Rank <= k {
				n++
			}
		}
		return n
	}
	return []Metric{
		session("session recall@5", "share of the evidence's sessions among the first five sessions; a session is ranked by its best message", func(s []GoldSession) float64 {
			return float64(count(s, 5)) / float64(len(s))
		}),
		session("session all@5", "questions with all the evidence's sessions among the first five", func(s []GoldSession) float64 {
			return truth(count(s, 5) == len(s))
		}),
	}
}

// in returns the outcome's context of a budget.
func (o *Outcome) in(budget int) (InContext, bool) {
	i := slices.IndexFunc(o.Contexts, func(c InContext) bool { return c.Budget == budget })
	if i < 0 {
		return InContext{}, false
	}
	return o.Contexts[i], true
}

// At names a metric of contexts at a budget, like "budget recall 4k".
func At(name string, budget int) string {
	if budget < 1000 {
		return name + " " + strconv.FormatFloat(float64(budget)/1000, 'f', -1, 64) + "k"
	}
	return name + " " + strconv.Itoa(budget/1000) + "k"
}

func contextMetrics() []Metric {
	var out []Metric
	add := func(name, doc string, unit Unit, f func(o *Outcome, c InContext) (float64, bool)) {
		for _, b := range Budgets() {
			out = append(out, Metric{Name: At(name, b), Unit: unit, Doc: doc, Value: func(o *Outcome) (float64, bool) {
				c, ok := o.in(b)
				if !ok || !o.evidence() {
					return 0, false
				}
				return f(o, c)
			}})
		}
	}
	add("budget recall", "share of the evidence inside the context that assemble returns at that budget of tokens, window included", Share, func(o *Outcome, c InContext) (float64, bool) {
		return float64(c.Found) / float64(len(o.Gold)), true
	})
	add("window recall", "the part of budget recall that the recent window alone gives", Share, func(o *Outcome, c InContext) (float64, bool) {
		return float64(c.Window) / float64(len(o.Gold)), true
	})
	add("precision", "share of the recalled messages that are evidence, over questions for which something was recalled", Share, func(_ *Outcome, c InContext) (float64, bool) {
		return float64(c.Relevant) / float64(max(1, c.Items)), c.Items > 0
	})
	add("tokens", "tokens of the recalled block, over questions with evidence", Tokens, func(_ *Outcome, c InContext) (float64, bool) {
		return float64(c.Tokens), true
	})
	return out
}

func updateMetrics() []Metric {
	add := func(name, doc string, lower bool, f func(u *Update) (bool, bool)) Metric {
		return Metric{Name: name, Unit: Share, Lower: lower, Doc: doc, Value: func(o *Outcome) (float64, bool) {
			if o.Update == nil {
				return 0, false
			}
			v, ok := f(o.Update)
			return truth(v), ok
		}}
	}
	return []Metric{
		add("newer first", "of facts that changed, with either value among the hits: the newest is ranked above every replaced one", false, func(u *Update) (bool, bool) {
			return u.Newer > 0 && (u.Older == 0 || u.Newer < u.Older), u.Newer > 0 || u.Older > 0
		}),
		add("stale alone", fmt.Sprintf("a replaced value is in the context (%d tokens) and the newest is not", ReferenceBudget), true, func(u *Update) (bool, bool) {
			return u.OlderShown && !u.NewerShown, true
		}),
		add("stale undated", "a replaced value is in the context without the date it was said", true, func(u *Update) (bool, bool) {
			return u.OlderUndated, true
		}),
	}
}

func silenceMetrics() []Metric {
	var out []Metric
	for _, b := range Budgets() {
		out = append(out, Metric{Name: At("false recall", b), Unit: Share, Lower: true,
			Doc: "questions with nothing to recall for which something was recalled", Value: func(o *Outcome) (float64, bool) {
				c, ok := o.in(b)
				return truth(c.Items > 0), ok && o.Negative
			}})
	}
	for _, b := range Budgets() {
		out = append(out, Metric{Name: At("false tokens", b), Unit: Tokens, Lower: true,
			Doc: "tokens recalled for questions with nothing to recall", Value: func(o *Outcome) (float64, bool) {
				c, ok := o.in(b)
				return float64(c.Tokens), ok && o.Negative
			}})
	}
	return out
}

// longMemEvalMetrics are those of LongMemEval's own programs: candidates are the user's turns,
// recall is all or nothing, and the gain of rank 2 is not discounted. Its published figures leave
// abstention questions out; the variants "with abstention" keep them.
func longMemEvalMetrics() []Metric {
	var out []Metric
	for _, with := range []bool{false, true} {
		suffix := ""
		if with {
			suffix = ", with abstention"
		}
		add := func(level string, k int, ranks func(*UserTurns) []int) {
			value := func(f func(ranks []int, k int) float64) func(o *Outcome) (float64, bool) {
				return func(o *Outcome) (float64, bool) {
					if o.Turns == nil || o.Abstain && !with || len(ranks(o.Turns)) == 0 {
						return 0, false
					}
					return f(ranks(o.Turns), k), true
				}
			}
			name := func(n string) string { return fmt.Sprintf("%s %s@%d%s", level, n, k, suffix) }
			out = append(out,
				Metric{Name: name("recall_any"), Unit: Share, Doc: "LongMemEval: some evidence among the first k of the user's turns", Value: value(lmeAny)},
				Metric{Name: name("recall_all"), Unit: Share, Doc: "LongMemEval: all evidence among the first k of the user's turns", Value: value(lmeAll)},
				Metric{Name: name("ndcg_any"), Unit: Share, Doc: "LongMemEval: its nDCG, in which rank 2 counts as much as rank 1", Value: value(LongMemEvalNDCG)},
			)
		}
		for _, k := range []int{5, 10, 50} {
			add("turn", k, func(u *UserTurns) []int { return u.Turns })
		}
		for _, k := range []int{5, 10} {
			add("session", k, func(u *UserTurns) []int { return u.Sessions })
		}
	}
	return out
}

func lmeAny(ranks []int, k int) float64 {
	return truth(slices.ContainsFunc(ranks, func(r int) bool { return r > 0 && r <= k }))
}

func lmeAll(ranks []int, k int) float64 {
	return truth(!slices.ContainsFunc(ranks, func(r int) bool { return r == 0 || r > k }))
}

// LongMemEvalNDCG is LongMemEval's nDCG over the ranks of the relevant items, 0 for one that was
// not returned: rank 1 gains 1, rank r gains 1/log2(r).
func LongMemEvalNDCG(ranks []int, k int) float64 {
	gain := func(r int) float64 {
		if r == 1 {
			return 1
		}
		return 1 / math.Log2(float64(r))
	}
	dcg, ideal := 0.0, 0.0
	for i, r := range ranks {
		if r > 0 && r <= k {
			dcg += gain(r)
		}
		if i < k {
			ideal += gain(i + 1)
		}
	}
	return dcg / ideal
}

// isContext says whether a metric is of a budget, and which.
func budgetOf(name string) (prefix string, budget int) {
	for _, b := range Budgets() {
		if p, ok := strings.CutSuffix(name, At("", b)); ok {
			return p, b
		}
	}
	return name, 0
}
