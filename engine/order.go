package engine

import "strings"

// missingResult opens the result that hosts make up for a call without one.
const missingResult = "missing tool result"

// isMadeUp reports such a result by its text.
func isMadeUp(text string) bool {
	text = strings.TrimPrefix(strings.TrimSpace(text), "[openclaw] ")
	return strings.HasPrefix(text, missingResult)
}

// arrange lists the messages in the order they are returned. That is the host's order, with two
// exceptions in which the host's own pairing would lose a real result: one that was stored before its
// call goes after it, and one that arrived after a made-up result takes that result's place. Nothing
// else is moved, nothing is made up. The result is nil where the order is the host's.
func arrange(ms []*measure) []int {
	type call struct {
		at      int
		results []int
	}
	var calls []*call
	open := map[string]*call{}
	early := map[string][]int{}
	for i, m := range ms {
		for _, id := range m.calls {
			c := &call{at: i}
			if len(early[id]) > 0 {
				c.results, early[id] = early[id][:1:1], early[id][1:]
			}
			open[id] = c
			calls = append(calls, c)
		}
		if m.result == "" {
			continue
		}
		if c := open[m.result]; c != nil {
			c.results = append(c.results, i)
		} else {
			early[m.result] = append(early[m.result], i)
		}
	}
	after := map[int][]int{}
	gone := map[int]bool{}
	for _, c := range calls {
		if len(c.results) == 0 {
			continue
		}
		first := c.results[0]
		if len(c.results) == 1 && first > c.at {
			continue
		}
		best := first
		for _, r := range c.results {
			if ms[best].madeUp && !ms[r].madeUp {
				best = r
			}
		}
		if best == first && first > c.at {
			continue
		}
		gone[best] = true
		after[c.at] = append(after[c.at], best)
		for _, r := range c.results {
			gone[r] = gone[r] || ms[r].madeUp
		}
	}
	if len(gone) == 0 {
		return nil
	}
	order := make([]int, 0, len(ms))
	for i := range ms {
		if !gone[i] {
			order = append(order, i)
		}
		order = append(order, after[i]...)
	}
	return order
}
