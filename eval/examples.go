package eval

import (
	"context"
	"fmt"
	"sync"

	"hark/index"
	"hark/recall"
)

// Labelled is a question with its candidates as the second look sees them: what a network for it is
// fitted on.
type Labelled struct {
	Set, Conv, Query string
	Gold             int // documents that answer it, among the candidates or not
	Candidates       []recall.Example
	Answers          []bool // which of Candidates do
}

// Examples collects the candidates of every question of a set that has an answer, in the order of the
// questions.
func Examples(ctx context.Context, set *Set, spec Spec, o Options) ([]Labelled, error) {
	c := &collection{set: set, found: map[string]Labelled{}}
	spec.New = func(l *Library) (System, error) {
		opts := recall.Options{Weights: &spec.Weights, DenseWait: unhurried}
		return &collector{collection: c, lib: l, search: recall.NewSearcher(l.Store, spec.Embedder, &opts, nil)}, nil
	}
	o.Budgets, o.Foreign = []int{}, -1
	if _, err := Run(ctx, set, spec, o); err != nil {
		return nil, err
	}
	var out []Labelled
	for _, q := range set.Queries {
		if l, ok := c.found[q.ID]; ok {
			out = append(out, l)
		}
	}
	return out, nil
}

// collection gathers what the collectors of all stores find.
type collection struct {
	set   *Set
	mu    sync.Mutex
	found map[string]Labelled
}

// collector is a System that keeps the candidates of what it is asked.
type collector struct {
	*collection
	lib    *Library
	search *recall.Searcher
}

func (c *collector) Rank(ctx context.Context, q Query, k int) (Ranked, error) {
	gold := c.set.Qrels[q.ID]
	if len(gold) == 0 {
		return Ranked{}, nil
	}
	r := recall.Request{Question: recall.Question{Text: q.Text}, Filter: index.Filter{AllScopes: true}, K: k, Asked: c.lib.clock(q)}
	examples, err := c.search.Examples(ctx, r)
	if err != nil {
		return Ranked{}, fmt.Errorf("candidates: %w", err)
	}
	l := Labelled{Set: c.set.Name, Conv: q.Conv, Query: q.ID, Gold: len(gold), Candidates: examples}
	for _, e := range examples {
		l.Answers = append(l.Answers, gold[c.lib.doc(e.ID)] > 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[q.ID] = l
	return Ranked{}, nil
}

func (c *collector) Assemble(context.Context, Query, int) (Context, error) { return Context{}, nil }
