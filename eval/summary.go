package eval

import (
	"fmt"
	"strings"
	"time"
)

// Summary is one Markdown table of several reports, with the commit they came from.
func Summary(reports []*Report, timings []Timing, machine string) string {
	var b strings.Builder
	var wall time.Duration
	for _, t := range timings {
		wall += t.Wall
	}
	if len(reports) == 0 {
		return ""
	}
	first := reports[0]
	commit := first.Commit
	if commit == "" {
		commit = "unknown"
	}
	how := "each conversation by itself"
	if first.Pooled {
		how = "all conversations of a set pooled"
	}
	_, _ = fmt.Fprintf(&b, "%s at commit %s, %s, embedder %s; %s, %s in all. Percent; every query the same weight.\n\n", first.System, commit, how, first.Embedder, machine, wall.Round(time.Second)) // a Builder does not fail
	b.WriteString("| set | queries | R@5 | R@10 | R@20 | nDCG@10 | MRR@10 | in 1k tokens | in 4k | precision 4k | tokens 4k | false recall 4k | AUROC | search p95 |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for i, r := range reports {
		show := func(name string) string {
			m, ok := r.Metric(name)
			switch {
			case !ok:
				return "–"
			case m.Unit == Tokens:
				return fmt.Sprintf("%.0f", m.Micro.Mean)
			}
			return fmt.Sprintf("%.1f", 100*m.Micro.Mean)
		}
		cells := []string{r.Set, fmt.Sprint(r.Counts.Asked)}
		for _, name := range []string{
			"recall@5", "recall@10", "recall@20", "nDCG@10", "MRR@10", At("budget recall", 1000), At("budget recall", 4000),
			At("precision", 4000), At("tokens", 4000), At("false recall", 4000),
		} {
			cells = append(cells, show(name))
		}
		auroc := "–"
		if r.Separation != nil {
			auroc = fmt.Sprintf("%.3f", r.Separation.AUROC)
		}
		cells = append(cells, auroc, fmt.Sprintf("%.1f ms", quantile(timings[i].Rank, .95)))
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}
