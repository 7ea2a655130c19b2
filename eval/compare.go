package eval

import (
	"fmt"
	"slices"
	"sort"
)

// Comparison is the difference of two reports on the same set.
type Comparison struct {
	A       string       `json:"a"` // the systems
	B       string       `json:"b"`
	CommitA string       `json:"commitA,omitempty"`
	CommitB string       `json:"commitB,omitempty"`
	Set     string       `json:"set"`
	Queries int          `json:"queries"` // in both
	OnlyA   int          `json:"onlyA,omitempty"`
	OnlyB   int          `json:"onlyB,omitempty"`
	Rows    []Difference `json:"rows"`
	Metric  string       `json:"metric"` // by which queries are won and lost
	Won     []Move       `json:"won"`    // by B, the largest gain first
	Lost    []Move       `json:"lost"`
}

// Verdict is what a difference amounts to.
type Verdict string

// The verdicts, of B against A.
const (
	Same   Verdict = "no significant difference"
	Better Verdict = "B is better"
	Worse  Verdict = "B is worse"
	More   Verdict = "B has more" // of a metric that is neither good nor bad
	Less   Verdict = "B has less"
)

// Level is the p-value below which a difference counts, after Holm's correction.
const Level = 0.05

// Difference is one metric in one category.
type Difference struct {
	Metric   string  `json:"metric"`
	Category string  `json:"category"` // "" for all queries
	Unit     Unit    `json:"unit"`
	N        int     `json:"n"`
	A        float64 `json:"a"`
	B        float64 `json:"b"`
	Low      float64 `json:"low"` // 95 % interval of B-A
	High     float64 `json:"high"`
	P        float64 `json:"p"`        // of the randomisation test
	Adjusted float64 `json:"adjusted"` // by Holm, over the rows of the same kind: all queries, or categories
	Verdict  Verdict `json:"verdict"`
}

// Move is a query that one of the two answers better.
type Move struct {
	Gain float64 `json:"gain"` // of B over A, in the metric
	A    Outcome `json:"a"`
	B    Outcome `json:"b"`
}

// compared are the metrics of a comparison.
func compared(format string) []Metric {
	keep := map[string]bool{"recall@5": true, "recall@10": true, "recall@20": true, "all@10": true, "MRR@10": true, "nDCG@10": true, "newer first": true, "stale alone": true}
	for _, b := range []int{1000, 4000} {
		for _, name := range []string{"budget recall", "precision", "tokens", "false recall", "false tokens"} {
			keep[At(name, b)] = true
		}
	}
	return slices.DeleteFunc(Metrics(format), func(m Metric) bool { return !keep[m.Name] })
}

// Compare tests two reports against each other, query by query. metric names the one by which
// queries are listed as won and lost; "" means nDCG@10. Reports of different sets are an error.
func Compare(a, b *Report, metric string) (*Comparison, error) {
	if a.Set != b.Set || a.Format != b.Format {
		return nil, fmt.Errorf("the reports are of different sets: %s (%s) and %s (%s)", a.Set, a.Format, b.Set, b.Format)
	}
	if metric == "" {
		metric = "nDCG@10"
	}
	c := &Comparison{A: a.System, B: b.System, CommitA: a.Commit, CommitB: b.Commit, Set: a.Set, Metric: metric, Won: []Move{}, Lost: []Move{}}
	pairs := c.pair(a, b)
	if len(pairs) == 0 {
		return nil, fmt.Errorf("the reports of %s have no query in common", a.Set)
	}
	cats := slices.DeleteFunc(slices.Clone(a.Categories), func(cat string) bool { return !slices.Contains(b.Categories, cat) })
	for _, m := range compared(a.Format) {
		c.difference(m, "", pairs)
	}
	all := len(c.Rows)
	if len(cats) > 1 {
		for _, m := range compared(a.Format) {
			for _, cat := range cats {
				c.difference(m, cat, pairs)
			}
		}
	}
	judge(c.Rows[:all], a.Format)
	judge(c.Rows[all:], a.Format)
	i := slices.IndexFunc(Metrics(a.Format), func(m Metric) bool { return m.Name == metric })
	if i < 0 {
		return nil, fmt.Errorf("no metric is called %q", metric)
	}
	c.moves(Metrics(a.Format)[i], pairs)
	return c, nil
}

// pair matches the queries of both reports.
func (c *Comparison) pair(a, b *Report) [][2]*Outcome {
	at := map[string]int{}
	for i, o := range b.Outcomes {
		at[o.ID] = i
	}
	var out [][2]*Outcome
	for i := range a.Outcomes {
		o := &a.Outcomes[i]
		if j, ok := at[o.ID]; ok && b.Outcomes[j].Negative == o.Negative {
			out = append(out, [2]*Outcome{o, &b.Outcomes[j]})
		} else {
			c.OnlyA++
		}
	}
	c.Queries, c.OnlyB = len(out), len(b.Outcomes)-len(out)
	return out
}

// difference adds a row, where any query has the metric in both.
func (c *Comparison) difference(m Metric, cat string, pairs [][2]*Outcome) {
	var va, vb []float64
	for _, p := range pairs {
		if cat != "" && p[0].Cat != cat {
			continue
		}
		x, ok := m.Value(p[0])
		y, too := m.Value(p[1])
		if ok && too {
			va, vb = append(va, x), append(vb, y)
		}
	}
	if len(va) == 0 {
		return
	}
	r := compare(va, vb, random("compare", m.Name, cat))
	c.Rows = append(c.Rows, Difference{
		Metric: m.Name, Category: cat, Unit: m.Unit, N: r.n, A: round(r.a, 6), B: round(r.b, 6), Low: r.low, High: r.high, P: round(r.p, 6),
	})
}

// judge adjusts the p-values of a family of rows and says what each amounts to. A difference counts
// where the test says so and the interval of the difference leaves out zero.
func judge(rows []Difference, format string) {
	lower, neither := map[string]bool{}, map[string]bool{}
	for _, m := range Metrics(format) {
		prefix, _ := budgetOf(m.Name)
		lower[m.Name], neither[m.Name] = m.Lower, prefix == "tokens"
	}
	p := make([]float64, len(rows))
	for i, r := range rows {
		p[i] = r.P
	}
	for i, adjusted := range holm(p) {
		r := &rows[i]
		r.Adjusted, r.Verdict = round(adjusted, 6), Same
		if adjusted >= Level || r.Low <= 0 && r.High >= 0 {
			continue
		}
		up := r.B > r.A
		switch {
		case neither[r.Metric] && up:
			r.Verdict = More
		case neither[r.Metric]:
			r.Verdict = Less
		case up != lower[r.Metric]:
			r.Verdict = Better
		default:
			r.Verdict = Worse
		}
	}
}

// moves lists the queries whose value of a metric differs.
func (c *Comparison) moves(m Metric, pairs [][2]*Outcome) {
	for _, p := range pairs {
		x, ok := m.Value(p[0])
		y, too := m.Value(p[1])
		if !ok || !too || x == y {
			continue
		}
		gain := y - x
		if m.Lower {
			gain = -gain
		}
		move := Move{Gain: round(gain, 6), A: *p[0], B: *p[1]}
		if gain > 0 {
			c.Won = append(c.Won, move)
		} else {
			c.Lost = append(c.Lost, move)
		}
	}
	sort.SliceStable(c.Won, func(i, j int) bool { return c.Won[i].Gain > c.Won[j].Gain })
	sort.SliceStable(c.Lost, func(i, j int) bool { return c.Lost[i].Gain < c.Lost[j].Gain })
}

// Significant says whether any row tells the two apart.
func (c *Comparison) Significant() bool {
	return slices.ContainsFunc(c.Rows, func(d Difference) bool { return d.Verdict != Same })
}
