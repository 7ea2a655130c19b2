package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hark/eval"
)

func newEvalCompare(a *app) *cobra.Command {
	var metric, out string
	var show int
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Say what differs between two runs, and whether it is chance",
		Long: `Compares two reports on the same set, query by query. For every metric and category
it gives the difference with its 95 % interval (paired bootstrap) and the p-value of
a randomisation test, adjusted for the number of tests (Holm). Where that is 0.05 or
more it says "no significant difference". Then it lists the queries that B answers
better and worse, with what became of their evidence in each.

A and B are the folders that "hark eval run --out" wrote, or their report.json.`,
		Example: "  hark eval compare /tmp/before /tmp/after",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errNoReport}
			}
			if show < 0 {
				return usage("--show has to be 0 or more, not %d", show)
			}
			x, err := eval.ReadReport(args[0])
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errNoReport)
			}
			y, err := eval.ReadReport(args[1])
			if err != nil {
				return fmt.Errorf("%w\n%w", err, errNoReport)
			}
			c, err := eval.Compare(x, y, metric)
			if err != nil {
				return err
			}
			if out != "" {
				data, err := json.MarshalIndent(c, "", " ")
				if err == nil {
					err = os.WriteFile(out, append(data, '\n'), 0o644)
				}
				if err != nil {
					return fmt.Errorf("write the comparison: %w", err)
				}
			}
			if a.json {
				return a.printJSON(c)
			}
			a.printComparison(c, show)
			return nil
		},
	}
	cmd.Flags().StringVar(&metric, "metric", "nDCG@10", "by which queries count as won and lost")
	cmd.Flags().IntVar(&show, "show", 10, "queries won and lost to list")
	cmd.Flags().StringVar(&out, "out", "", "write the comparison as JSON into this file")
	return cmd
}

func (a *app) printComparison(c *eval.Comparison, show int) {
	named := func(name, commit string) string {
		if commit == "" {
			return name
		}
		return name + " at " + commit
	}
	a.printf("%s\nA  %s\nB  %s\n%d queries in both", a.term.bold(c.Set), named(c.A, c.CommitA), named(c.B, c.CommitB), c.Queries)
	if c.OnlyA+c.OnlyB > 0 {
		a.printf("; %d only in A, %d only in B", c.OnlyA, c.OnlyB)
	}
	a.printf("\n\n")
	t := table{header: []string{"metric", "n", "A", "B", "B−A", "95 %", "p adj", "B is"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true, 6: true}}
	var cats []string
	for _, r := range c.Rows {
		switch {
		case r.Category == "":
			t.add(a.differenceCells(r, r.Metric)...)
		case r.Verdict != eval.Same:
			cats = append(cats, r.Metric)
		}
	}
	t.print(a.out, a.term)
	a.printf("\n")
	var same []string
	for _, r := range c.Rows {
		if r.Category == "" && r.Verdict == eval.Same {
			same = append(same, r.Metric)
		}
	}
	switch {
	case !c.Significant():
		a.printf("%s\n\n", a.term.bold("No significant difference, in any metric or category."))
	case len(same) > 0:
		for _, l := range wrap("No significant difference over all queries in "+strings.Join(same, ", ")+".", a.term.room(0)) {
			a.printf("%s\n", l)
		}
		a.printf("\n")
	}
	if len(cats) > 0 {
		a.printf("by category, where it differs:\n")
		t := table{header: t.header, right: t.right}
		last := ""
		for _, r := range c.Rows {
			if r.Category == "" || r.Verdict == eval.Same {
				continue
			}
			if r.Metric != last {
				last = r.Metric
				t.add(r.Metric)
			}
			t.add(a.differenceCells(r, "  "+clean(r.Category))...)
		}
		t.print(a.out, a.term)
		a.printf("\n")
	} else if c.Significant() {
		a.printf("by category: no significant difference\n\n")
	}
	a.printMoves("won by B", c.Won, c.Metric, show)
	a.printMoves("lost by B", c.Lost, c.Metric, show)
}

func (a *app) differenceCells(r eval.Difference, name string) []string {
	scale, digits := 100.0, "%.1f"
	if r.Unit == eval.Tokens {
		scale, digits = 1, "%.0f"
	}
	f := func(v float64) string { return fmt.Sprintf(digits, scale*v) }
	p := fmt.Sprintf("%.3f", r.Adjusted)
	if r.Adjusted < 0.001 {
		p = "<.001"
	}
	verdict := strings.TrimPrefix(strings.TrimPrefix(string(r.Verdict), "B is "), "B has ")
	switch r.Verdict {
	case eval.Better:
		verdict = a.term.green(verdict)
	case eval.Worse:
		verdict = a.term.red(verdict)
	case eval.Same:
		verdict = "no sig. diff."
	}
	return []string{name, fmt.Sprint(r.N), f(r.A), f(r.B), fmt.Sprintf("%+"+digits[1:], scale*(r.B-r.A)), f(r.Low) + "…" + f(r.High), p, verdict}
}

// printMoves lists queries with what became of their evidence in both.
func (a *app) printMoves(what string, moves []eval.Move, metric string, show int) {
	a.printf("%s\n", a.term.bold(fmt.Sprintf("%d %s (%s)", len(moves), what, metric)))
	for i, m := range moves {
		if i == show {
			a.printf("  %s\n\n", a.term.dim(fmt.Sprintf("and %d more; --show lists them, --json has all", len(moves)-show)))
			return
		}
		for j, l := range wrap(fmt.Sprintf("%+.2f  %s", m.Gain, clean(m.A.Text)), a.term.room(4)) {
			if j > 0 {
				l = "       " + l
			}
			a.printf("  %s\n", l)
		}
		a.printf("       %s\n", a.term.dim(m.A.ID+" · "+clean(m.A.Cat)))
		for _, g := range m.A.Gold {
			for _, h := range m.B.Gold {
				if h.Doc == g.Doc && (h.Rank != g.Rank || h.Fate != g.Fate) {
					a.printf("       %s: %s → %s\n", clean(g.Doc), goldText(g), goldText(h))
					a.printf("         %s\n", a.term.dim(cut(clean(g.Text), a.term.room(10))))
				}
			}
		}
	}
	a.printf("\n")
}

func goldText(g eval.Gold) string {
	parts := []string{fmt.Sprintf("rank %d", g.Rank)}
	if g.Rank == 0 {
		parts[0] = "no rank"
	}
	if g.Why != nil {
		if g.Why.Words > 0 {
			parts = append(parts, fmt.Sprintf("words %d", g.Why.Words))
		}
		if g.Why.Meaning > 0 {
			parts = append(parts, fmt.Sprintf("meaning %d", g.Why.Meaning))
		}
		if g.Why.Reason != "" && g.Why.Reason != string(g.Fate) {
			parts = append(parts, g.Why.Reason)
		}
	}
	return strings.Join(parts, ", ") + " (" + string(g.Fate) + ")"
}
