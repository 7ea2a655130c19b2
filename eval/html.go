package eval

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

//go:embed report.tmpl
var reportPage string

// worst is how many misses a page opens to.
const worst = 40

// page is what the template shows.
type page struct {
	*Report
	Timing   Timing
	Tiles    []tile
	Bars     []barChart
	Budget   template.HTML
	Conf     template.HTML
	Latency  template.HTML
	FateBars []fateBar
	Misses   []Outcome
	Missed   int // questions with evidence missing from the context
	Budgets  []int
}

type tile struct{ Name, Value, Note string }

type barChart struct {
	Name string
	Doc  string
	Rows []barRow
}

type barRow struct {
	Name  string
	N     int
	Value string
	Bar   template.HTML
	All   bool // the row of all queries
}

type fateBar struct {
	Fate  Fate
	Count int
	Share float64
	Good  bool
}

// WriteHTML writes the report as one page that needs nothing beside it.
func WriteHTML(w io.Writer, rep *Report, t Timing) error {
	tmpl, err := template.New("report").Funcs(template.FuncMap{
		"pct": func(v float64) string { return fmt.Sprintf("%.1f", 100*v) },
		"est": showEstimate,
		"ms":  func(v []float64, p float64) string { return fmt.Sprintf("%.1f ms", quantileOr0(v, p)) },
		"sec": func(d time.Duration) string { return d.Round(100 * time.Millisecond).String() },
		"mib": func(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) },
		"f2":  func(v float64) string { return fmt.Sprintf("%.2f", v) },
		"rank": func(n int) string {
			if n == 0 {
				return "–"
			}
			return fmt.Sprint(n)
		},
		"cats": func(m MetricSummary) []string {
			return slices.DeleteFunc(slices.Clone(rep.Categories), func(c string) bool { return m.Categories[c].N == 0 })
		},
	}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	return tmpl.Execute(w, newPage(rep, t))
}

func showEstimate(e Estimate, unit Unit) string {
	if unit == Tokens {
		return fmt.Sprintf("%.0f (%.0f–%.0f)", e.Mean, e.Low, e.High)
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
}

func quantileOr0(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return quantile(v, p)
}

func newPage(rep *Report, t Timing) *page {
	p := &page{Report: rep, Timing: t, Budgets: Budgets()}
	p.Tiles = tiles(rep, t)
	for _, name := range []string{At("budget recall", ReferenceBudget), "recall@10", "nDCG@10"} {
		if m, ok := rep.Metric(name); ok {
			p.Bars = append(p.Bars, bars(m, rep.Categories))
		}
	}
	p.Budget, p.Conf, p.Latency = budgetPlot(rep), confidencePlot(rep), latencyPlot(t)
	total := 0
	for _, f := range rep.Fates {
		total += f.Count
	}
	for _, f := range rep.Fates {
		p.FateBars = append(p.FateBars, fateBar{f.Fate, f.Count, float64(f.Count) / float64(total), f.Fate == InBlock || f.Fate == InWindow})
	}
	p.Misses, p.Missed = misses(rep)
	return p
}

func tiles(rep *Report, t Timing) []tile {
	var out []tile
	add := func(label, name string) {
		if m, ok := rep.Metric(name); ok {
			v, note := fmt.Sprintf("%.1f %%", 100*m.Micro.Mean), fmt.Sprintf("%.1f–%.1f", 100*m.Micro.Low, 100*m.Micro.High)
			if m.Unit == Tokens {
				v, note = fmt.Sprintf("%.0f", m.Micro.Mean), fmt.Sprintf("%.0f–%.0f", m.Micro.Low, m.Micro.High)
			}
			out = append(out, tile{label, v, note + fmt.Sprintf(" · n %d", m.Micro.N)})
		}
	}
	add("Recall@10", "recall@10")
	add("nDCG@10", "nDCG@10")
	add("Evidence in a context of 4k", At("budget recall", ReferenceBudget))
	add("Tokens recalled at 4k", At("tokens", ReferenceBudget))
	add("False recall at 4k", At("false recall", ReferenceBudget))
	if s := rep.Separation; s != nil {
		out = append(out, tile{"AUROC of the confidence", fmt.Sprintf("%.3f", s.AUROC), fmt.Sprintf("%.3f–%.3f · %d and %d", s.Low, s.High, s.With, s.Without)})
	}
	if len(t.Rank) > 0 {
		out = append(out, tile{"Search, p95", fmt.Sprintf("%.1f ms", quantile(t.Rank, .95)), fmt.Sprintf("p50 %.1f ms · %d at a time", quantile(t.Rank, .5), t.Parallel)})
	}
	return out
}

func bars(m MetricSummary, categories []string) barChart {
	c := barChart{Name: m.Name, Doc: m.Doc}
	row := func(name string, e Estimate, all bool) {
		if e.N > 0 {
			c.Rows = append(c.Rows, barRow{name, e.N, fmt.Sprintf("%.1f", 100*e.Mean), bar(e), all})
		}
	}
	row("all queries", m.Micro, true)
	if len(categories) > 1 {
		row("mean of categories", m.Macro, true)
		for _, cat := range categories {
			row(cat, m.Categories[cat], false)
		}
	}
	return c
}

// misses are the questions whose evidence is least in the context and lowest in the ranking.
func misses(rep *Report) (out []Outcome, all int) {
	type scored struct {
		o    Outcome
		loss float64
	}
	var list []scored
	for _, o := range rep.Outcomes {
		if !o.evidence() {
			continue
		}
		missing := 0
		for _, g := range o.Gold {
			missing += int(truth(lost([]Gold{g})))
		}
		if missing > 0 {
			list = append(list, scored{o, float64(missing)/float64(len(o.Gold)) + 1 - NDCG(o.Gold, 10)})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].loss > list[j].loss })
	// Round by category: the hardest one must not fill the page.
	by := map[string][]Outcome{}
	for _, s := range list {
		by[s.o.Cat] = append(by[s.o.Cat], s.o)
	}
	for round := 0; len(out) < min(worst, len(list)); round++ {
		for _, c := range rep.Categories {
			if round < len(by[c]) && len(out) < worst {
				out = append(out, by[c][round])
			}
		}
	}
	return out, len(list)
}

// Stage says in a sentence what a trace means.
func (g Gold) Stage() string {
	t := g.Why
	switch {
	case g.Fate == NotIndexed:
		return "It is not in the index: noise to the engine, or never stored."
	case g.Fate == NotSearched:
		return "It is a tool's output, which assemble recalls only with recall.tools."
	case g.Fate == NotRetrieved:
		return "Neither its words nor its vector brought it among the candidates."
	case g.Fate == OutRanked && g.Rank == 0:
		return "It was a candidate, below everything that was returned."
	case g.Fate == OutRanked:
		return fmt.Sprintf("It was hit %d: more likely ones filled the room.", g.Rank)
	case g.Fate == Gated && t != nil:
		return "It was found and held back: " + t.Reason + "."
	case g.Fate == OverBudget && t != nil:
		return "It was found and not shown: " + t.Reason + "."
	}
	return string(g.Fate) + "."
}

// esc escapes text for SVG.
func esc(s string) string { return template.HTMLEscapeString(s) }

func html(b *strings.Builder) template.HTML { return template.HTML(b.String()) } //nolint:gosec // built from numbers and escaped text

// finite keeps a coordinate printable.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
