package engine

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Tokenizers differ: what o200k counts as 100 tokens another family of models may bill as 85 or as
// 150. A host's assistant messages carry what their provider counted, so the factor of a family is
// learned from the history itself: two requests of one tool loop differ by what lies between them,
// whatever the system prompt and the tools take.
const (
	leastFactor = 0.85
	mostFactor  = 1.60
	factorStep  = 0.03 // a smaller difference from the factor in use changes nothing

	loopEvidence = 2000 // tokens between requests of tool loops from which they are believed
	turnEvidence = 8000 // the same between requests of different turns, where a recall block may have come or gone
)

// family names the tokenizer a model has: the host's word for it, else the name of the model up to
// its version.
func family(s *RuntimeSettings, model string) string {
	if s != nil && s.Model.Family != nil && *s.Model.Family != "" {
		return plainLine(strings.ToLower(*s.Model.Family))
	}
	if s != nil && s.Model.Resolved != nil && *s.Model.Resolved != "" {
		model = *s.Model.Resolved
	}
	return familyOf(model)
}

func familyOf(model string) string {
	model = plainLine(strings.ToLower(model))
	model = model[strings.LastIndexByte(model, '/')+1:]
	if i := strings.IndexAny(model, "-_:. 0123456789"); i > 0 {
		model = model[:i]
	}
	return model
}

// observed returns how many tokens the provider counts for one of ours, by the messages of the
// model in the history; ok is false where there is too little to tell.
func observed(ms []*measure, model string) (factor float64, ok bool) {
	var loop, turns struct{ ours, theirs float64 }
	last, since := 0, 0 // of the previous answer: what was billed, and our tokens from it on
	turn, usable := false, false
	for _, m := range ms {
		if m.billed > 0 && m.role == "assistant" {
			theirs, ours := float64(m.billed-last), float64(since)
			if usable && ours > 0 && theirs > ours/3 && theirs < ours*3 && familyOf(m.model) == model {
				if !turn {
					loop.ours += ours
					loop.theirs += theirs
				}
				turns.ours += ours
				turns.theirs += theirs
			}
			last, since, turn, usable = m.billed, 0, false, familyOf(m.model) == model
		}
		since += m.tokens
		turn = turn || m.isUser()
		if m.picture || m.role == "summary" {
			usable = false
		}
	}
	switch {
	case loop.ours >= loopEvidence:
		return loop.theirs / loop.ours, true
	case turns.ours >= turnEvidence:
		return turns.theirs / turns.ours, true
	}
	return 1, false
}

// factor returns the factor of a model's family, learned from the history where it can tell, else
// from earlier ones. It changes seldom, and a change is stored, unless it is only inspected.
func (e *Engine) factor(ctx context.Context, name, model string, ms []*measure, inspect bool) float64 {
	if name == "" {
		return 1
	}
	e.mu.Lock()
	known, ok := e.factors[name]
	e.mu.Unlock()
	if !ok {
		known = 1
		if value, err := e.states.get(ctx, "tokens", name); err == nil && len(value) > 0 {
			if f, err := strconv.ParseFloat(string(value), 64); err == nil && f >= leastFactor && f <= mostFactor {
				known = f
			}
		}
	}
	now := known
	if f, told := observed(ms, model); told {
		f = math.Round(min(max(f, leastFactor), mostFactor)*100) / 100
		if math.Abs(f-known) >= factorStep {
			now = f
		}
	}
	if ok && now == known || inspect {
		return now
	}
	if now != known {
		e.states.set("tokens", name, fmt.Append(nil, now))
	}
	e.mu.Lock()
	if len(e.factors) >= maxRemembered {
		clear(e.factors)
	}
	e.factors[name] = now
	e.mu.Unlock()
	return now
}
