package cache

import (
	"testing"
)

func TestTable(t *testing.T) {
	for _, p := range Plans(200, 1) {
		s := Synthetic(p)
		for _, cached := range []float64{0.1, 1} {
			c, err := Lab{Dir: t.TempDir()}.Compare(t.Context(), s, Prices{1, cached})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range c.Totals {
				t.Logf("%-16s %.1f %-18s req %d tokens %d same %.3f full %d blocks %d recall %d cuts %d early %d cost %.0f added %+.4f ofinput %+.4f", s.Name, cached, x.Engine, x.Requests, x.Tokens, x.Same, x.Full, x.Blocks, x.Recall, x.Cuts, x.Early, x.Cost, x.Added, x.OfInput)
			}
			if cached == 0.1 {
				why := map[string]int{}
				for _, r := range c.Runs[1].Requests {
					why[r.Break]++
				}
				t.Log(why, c.Runs[1].Took, c.Runs[2].Took)
			}
		}
	}
}
