package cache

import "fmt"

// The bounds that a run is held to.
const (
	MaxAddedRecalling = 0.03  // cost above legacy's, in full tokens, by legacy's input tokens
	MaxAddedIdle      = 0.005 // the same where nothing was recalled
	TurnsPerCut       = 20
)

// Check is one thing a run is held to.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Got  string `json:"got"`
}

// gap is how many turns lie between two cuts at a steady state, on average; 0 where there are no two.
func (r *Run) gap() float64 {
	first, last, n := 0, 0, 0
	for _, q := range r.Requests {
		if !q.Cut || q.Compact {
			continue
		}
		if n++; n == 1 {
			first = q.Turn
		}
		last = q.Turn
	}
	if n < 2 {
		return 0
	}
	return float64(last-first) / float64(n-1)
}

// Checks holds the i-th run of a comparison to its bounds.
func (c *Comparison) Checks(i int) []Check {
	t := c.Totals[i]
	bound := MaxAddedRecalling
	if t.Blocks == 0 {
		bound = MaxAddedIdle
	}
	added := fmt.Sprintf("%+.2f %% (%+.2f %% of legacy's cost)", 100*t.OfInput, 100*t.Added)
	short := c.Turns < TurnsPerCut // the first request, which no cache holds, would decide
	if short {
		added += ", of too few turns to be held to it"
	}
	gap, apart := c.Runs[i].gap(), ""
	if gap > 0 {
		apart = fmt.Sprintf(", %.1f turns apart", gap)
	}
	return []Check{
		{
			What: "outside cuts and compactions nothing ahead of the previous turn's block differs",
			OK:   t.Early == 0, Got: fmt.Sprintf("%d of %d requests", t.Early, t.Requests),
		},
		{
			What: fmt.Sprintf("fewer than one cut of the window in %d turns", TurnsPerCut),
			OK:   gap == 0 || gap > TurnsPerCut, Got: fmt.Sprintf("%d in %d turns%s", t.Cuts, c.Turns, apart),
		},
		{
			What: fmt.Sprintf("added cost under %g %% of input tokens", 100*bound),
			OK:   short || t.OfInput < bound, Got: added,
		},
	}
}
