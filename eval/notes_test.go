package eval

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tool memory_search finds in files and in messages what hark search finds, in the same order, and
// the project's own set of notes is of the size and the kinds it has to be.
func TestMemorySearchIsNoWorse(t *testing.T) {
	if testing.Short() {
		t.Skip("asks 280 questions")
	}
	for _, name := range []string{"notes", "agent"} {
		set, err := Load(filepath.Join("..", "testdata", "eval", name), readChat)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range set.Problems {
			t.Errorf("label: %s", p)
		}
		if c := set.Counts(); name == "notes" && (c.WithEvidence < 40 || len(set.Categories()) < 8) {
			t.Errorf("%d questions with evidence of %d kinds", c.WithEvidence, len(set.Categories()))
		}
		figures := map[string]map[string]float64{}
		for _, system := range []string{Hark, Memory} {
			spec := hark(t)
			spec.Name, spec.Engine.Policy = system, "agent"
			res, err := Run(t.Context(), set, spec, Options{Dir: t.TempDir(), Budgets: []int{1000}})
			if err != nil {
				t.Fatal(err)
			}
			figures[system] = map[string]float64{}
			for _, m := range Metrics(set.Format) {
				sum := 0.0
				for i := range res.Outcomes {
					if v, ok := m.Value(&res.Outcomes[i]); ok {
						sum += v
					}
				}
				figures[system][m.Name] = round(sum, 6)
			}
		}
		for _, m := range []string{"recall@5", "recall@10", "MRR@10", "nDCG@10"} {
			if figures[Memory][m] < figures[Hark][m] {
				t.Errorf("%s: %s of memory_search is worse: %v", name, m, cmp.Diff(figures[Hark], figures[Memory]))
			}
		}
		t.Logf("%s: recall@5 sums to %v by hark search and %v by memory_search", name, figures[Hark]["recall@5"], figures[Memory]["recall@5"])
	}
}
