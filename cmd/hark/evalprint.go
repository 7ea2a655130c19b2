package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hark/eval"
)

// cell is a share in percent, or a number of tokens; "" where no query has the metric.
func cell(e eval.Estimate, unit eval.Unit) string {
	switch {
	case e.N == 0:
		return ""
	case unit == eval.Tokens:
		return strconv.Itoa(int(math.Round(e.Mean)))
	}
	return fmt.Sprintf("%.1f", 100*e.Mean)
}

// ranged is a cell with its interval.
func ranged(e eval.Estimate, unit eval.Unit) string {
	switch {
	case e.N == 0:
		return ""
	case unit == eval.Tokens:
		return fmt.Sprintf("%.0f (%.0f–%.0f)", e.Mean, e.Low, e.High)
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", 100*e.Mean, 100*e.Low, 100*e.High)
}

// printReport shows a report: what was asked, the figures with their intervals, and the rest by
// category.
func (a *app) printReport(r *eval.Report, t eval.Timing) {
	how := "each conversation by itself"
	if r.Pooled {
		how = "all conversations pooled"
	}
	a.printf("\n%s\n", a.term.bold(fmt.Sprintf("%s · %s", r.Set, r.System)))
	c := r.Counts
	a.printf("%s in %s (%s, %s); %d queries: %d with evidence, %d without",
		count(c.Documents, "document"), count(c.Conversations, "conversation"), r.Format, how, c.Asked, c.WithEvidence, c.WithoutEvidence)
	if n := len(r.Outcomes) - c.Asked; n > 0 {
		a.printf("; %d of them also put to a wrong conversation", n)
	}
	a.printf("\n")
	if c.SkippedLabels > 0 || c.Unjudged > 0 {
		a.printf("%s\n", a.term.yellow(fmt.Sprintf("%d labels cannot be used and are left out, %d queries with them; %d queries have no labels in this split",
			c.SkippedLabels, c.SkippedQueries, c.Unjudged)))
	}
	a.printf("\n")
	a.printRanking(r)
	a.printContexts(r)
	a.printSpecial(r)
	stored := fmt.Sprintf("%d messages", t.Documents)
	if t.Ingest > 0 {
		stored = fmt.Sprintf("stored %d messages in %s", t.Documents, took(t.Ingest))
	}
	a.printf("%s\n", a.term.dim(fmt.Sprintf("%s; a search p50 %.1f ms, p95 %.1f ms, assemble p50 %.1f ms, p95 %.1f ms (%d at a time); index %s",
		stored, at(t.Rank, .5), at(t.Rank, .95), at(t.Assemble, .5), at(t.Assemble, .95), t.Parallel, bytesOf(t.Bytes))))
}

// at is a quantile of ascending values, 0 of none.
func at(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

func (a *app) printRanking(r *eval.Report) {
	names := []string{"recall@5", "recall@10", "recall@20", "recall@50", "all@10", "MRR@10", "nDCG@10"}
	t := table{header: []string{"ranking, %", "queries", "R@5", "R@10", "R@20", "R@50", "all@10", "MRR@10", "nDCG@10"}, right: map[int]bool{}}
	for i := range names {
		t.right[i+2] = true
	}
	t.right[1] = true
	row := func(name string, pick func(eval.MetricSummary) eval.Estimate) {
		cells := []string{name, ""}
		for _, n := range names {
			m, _ := r.Metric(n)
			e := pick(m)
			if cells[1] == "" && e.N > 0 {
				cells[1] = strconv.Itoa(e.N)
			}
			cells = append(cells, cell(e, m.Unit))
		}
		if cells[1] != "" {
			t.add(cells...)
		}
	}
	row("all queries", func(m eval.MetricSummary) eval.Estimate { return m.Micro })
	if len(r.Categories) > 1 {
		row("mean of categories", func(m eval.MetricSummary) eval.Estimate { return m.Macro })
		for _, c := range r.Categories {
			row("  "+clean(c), func(m eval.MetricSummary) eval.Estimate { return m.Categories[c] })
		}
	}
	t.print(a.out, a.term)
	var parts []string
	for _, n := range []string{"recall@5", "recall@10", "nDCG@10"} {
		if m, ok := r.Metric(n); ok {
			parts = append(parts, n+" "+ranged(m.Micro, m.Unit))
		}
	}
	if len(parts) > 0 {
		a.printf("%s\n", a.term.dim("95 % intervals: "+strings.Join(parts, ", ")))
	}
	a.printf("\n")
}

func (a *app) printContexts(r *eval.Report) {
	t := table{header: []string{"context, by tokens of budget"}, right: map[int]bool{}}
	for i, b := range eval.Budgets() {
		t.header = append(t.header, strings.TrimPrefix(eval.At("", b), " "))
		t.right[i+1] = true
	}
	for _, name := range []string{"budget recall", "window recall", "precision", "tokens", "false recall", "false tokens"} {
		cells, some := []string{name + ", %"}, false
		for _, b := range eval.Budgets() {
			m, ok := r.Metric(eval.At(name, b))
			some = some || ok && (m.Micro.Mean != 0 || name != "window recall")
			if m.Unit == eval.Tokens {
				cells[0] = name
			}
			cells = append(cells, cell(m.Micro, m.Unit))
		}
		if some {
			t.add(cells...)
		}
	}
	if len(t.rows) > 0 {
		t.print(a.out, a.term)
		a.printf("\n")
	}
}

// printSpecial shows what only some sets have: updates, the confidence, sessions, LongMemEval's own.
func (a *app) printSpecial(r *eval.Report) {
	for _, m := range r.Metrics {
		special := strings.HasPrefix(m.Name, "session ") || strings.HasPrefix(m.Name, "turn ") ||
			m.Name == "newer first" || strings.HasPrefix(m.Name, "stale ")
		if special {
			a.printf("%-34s %s  %s\n", m.Name, ranged(m.Micro, m.Unit), a.term.dim("n "+strconv.Itoa(m.Micro.N)))
		}
	}
	if s := r.Separation; s != nil {
		a.printf("%-34s %.3f (%.3f–%.3f)  %s\n", "AUROC of the confidence", s.AUROC, s.Low, s.High, a.term.dim(fmt.Sprintf("%d answerable, %d not", s.With, s.Without)))
	}
	if len(r.Fates) > 0 {
		var parts []string
		for _, f := range r.Fates {
			parts = append(parts, fmt.Sprintf("%d %s", f.Count, f.Fate))
		}
		for i, l := range wrap(fmt.Sprintf("evidence at %d tokens: %s", eval.ReferenceBudget, strings.Join(parts, ", ")), a.term.room(0)) {
			if i > 0 {
				l = "  " + l
			}
			a.printf("%s\n", l)
		}
	}
}

// evalSummary shows one table of all sets, and writes it as summary.md.
func (a *app) evalSummary(reports []*eval.Report, timings []eval.Timing, out string) error {
	text := eval.Summary(reports, timings, cpus())
	a.printf("\n%s", text)
	if out == "" {
		return nil
	}
	path := filepath.Join(out, "summary.md")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	a.printf("\n%s\n", a.term.dim("written to "+path))
	return nil
}
