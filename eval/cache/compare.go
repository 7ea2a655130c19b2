package cache

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/legacy"
)

// Comparison is one session served by several engines. The first run is the legacy engine's.
type Comparison struct {
	Session string  `json:"session"`
	Turns   int     `json:"turns"`
	Budget  int     `json:"budget"`
	Prices  Prices  `json:"prices"`
	Runs    []*Run  `json:"runs"`
	Totals  []Total `json:"totals"`
}

// Total is what a run came to.
type Total struct {
	Engine   string  `json:"engine"`
	Requests int     `json:"requests"`
	Tokens   int     `json:"tokens"`
	Same     float64 `json:"same"` // share of tokens in the common beginnings
	Full     int     `json:"full"` // tokens billed in full
	Blocks   int     `json:"blocks"`
	Recall   int     `json:"recall"` // tokens of recall blocks, in every request that has them
	Cuts     int     `json:"cuts"`
	Early    int     `json:"early"` // requests that differ from the one before ahead of its recall block
	Cost     float64 `json:"cost"`
	Added    float64 `json:"added"`   // cost above legacy's, as a share of it
	OfInput  float64 `json:"ofInput"` // the same in tokens at the full price, as a share of legacy's input tokens
}

// Lab is where engines are made: in new stores under Dir, which is not removed.
type Lab struct {
	Dir      string
	Embedder embed.Embedder // nil: words only
	Options  engine.Options // of every Hark engine; KeepBlocks and Runtime are set for each
	Log      *slog.Logger
}

// Compare plays the session by the legacy engine and by Hark in both of its ways. Where a token from the
// cache costs what any other does, the provider's bills in the history say that it has none.
func (l Lab) Compare(ctx context.Context, s *Session, prices Prices) (*Comparison, error) {
	if prices.Cached >= prices.Input {
		s = s.uncached()
	}
	base, err := Play(ctx, s, "legacy", legacy.Engine{Runtime: Compactor{}})
	if err != nil {
		return nil, err
	}
	c := &Comparison{Session: s.Name, Turns: len(s.Turns), Budget: s.Budget, Prices: prices, Runs: []*Run{base}}
	for _, way := range []struct {
		name string
		keep bool
	}{{"hark", false}, {"hark, all stay", true}} {
		run, err := l.play(ctx, s, way.name, way.keep)
		if err != nil {
			return nil, err
		}
		c.Runs = append(c.Runs, run)
	}
	c.Price(prices)
	return c, nil
}

// Price computes the totals at other prices.
func (c *Comparison) Price(prices Prices) {
	c.Prices, c.Totals = prices, nil
	for _, run := range c.Runs {
		c.Totals = append(c.Totals, total(run, c.Runs[0], prices))
	}
}

func (l Lab) play(ctx context.Context, s *Session, name string, keep bool) (run *Run, err error) {
	dir, err := os.MkdirTemp(l.Dir, "cache-")
	if err != nil {
		return nil, err
	}
	store, err := index.Open(ctx, filepath.Join(dir, "store"), nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := store.Close(); err == nil {
			err = cerr
		}
	}()
	o := l.Options
	o.KeepBlocks, o.Runtime = keep, Compactor{}
	e, err := engine.New(store, l.Embedder, &o, l.Log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	for _, m := range s.Memory {
		if _, err := e.IngestBatch(ctx, m); err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
	}
	return Play(ctx, s, name, e)
}

func total(run, base *Run, prices Prices) Total {
	t := Total{Engine: run.Engine, Requests: len(run.Requests), Tokens: run.Tokens(), Blocks: run.Blocks, Cuts: run.Cuts, Cost: run.Cost(prices)}
	same := 0
	for _, r := range run.Requests {
		same += r.Same
		t.Recall += r.Recall
		if r.Early {
			t.Early++
		}
	}
	t.Full = t.Tokens - same
	if t.Tokens > 0 {
		t.Same = float64(same) / float64(t.Tokens)
	}
	if tokens := base.Tokens(); tokens > 0 {
		t.Added = Added(run, base, prices)
		t.OfInput = (t.Cost - base.Cost(prices)) / (prices.Input * float64(tokens))
	}
	return t
}
