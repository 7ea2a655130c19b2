package recall

import (
	"context"
	"fmt"
	"time"

	"hark/embed"
	"hark/index"
	"hark/index/terms"
)

// legs are the answers of both legs.
type legs struct {
	words index.Matches
	meaning
}

// retrieve asks both legs at once.
func (s *Searcher) retrieve(ctx context.Context, r Request, q []terms.QueryTerm, t *Trace) (*legs, error) {
	l := &legs{}
	late := s.meaning(ctx, r)
	if err := s.match(ctx, r, q, l, &t.Lexical); err != nil {
		return nil, err
	}
	wait := s.waits(r)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case m := <-late:
		l.meaning, t.Dense = m, m.trace
	case <-timer.C:
		t.Dense.Reason = "unavailable: no answer in " + wait.String()
	case <-ctx.Done():
	}
	return l, ctx.Err()
}

// waits is how long a search waits for the meaning.
func (s *Searcher) waits(r Request) time.Duration {
	if r.Wait > 0 {
		return r.Wait
	}
	return s.wait
}

// match asks the lexical leg.
func (s *Searcher) match(ctx context.Context, r Request, q []terms.QueryTerm, l *legs, t *LegTrace) error {
	start := time.Now()
	defer func() { t.Millis = millis(start) }()
	var wt []index.WeightedTerm
	for _, x := range q {
		if x.Keyed() {
			w := s.w.class(uint8(x.Class))
			if x.Instruction {
				w *= s.w.Instruction
			}
			wt = append(wt, index.WeightedTerm{Term: x.Term, Weight: w})
		}
	}
	if len(wt) == 0 {
		t.Reason = "no words to search for"
		return nil
	}
	var m index.Matches
	hits, err := s.wide(r, s.w.LexicalPool, func(k int) ([]index.Scored, error) {
		var err error
		m, err = s.store.Match(ctx, wt, r.Filter, k)
		return m.Hits, err
	})
	m.Hits = hits
	if err != nil {
		return fmt.Errorf("match words: %w", err)
	}
	l.words = spreadDF(q, m)
	t.Ran, t.Hits = true, len(m.Hits)
	return nil
}

// meaning is what the vector leg answered.
type meaning struct {
	vector []float32 // of the question; nil when the leg did not run
	near   index.Neighbours
	space  index.Space
	cover  float64
	trace  LegTrace
}

// meaning asks the vector leg. The answer is awaited for a while only, for an embedder may
// ignore its context; one that panics costs the meaning too, and no more.
func (s *Searcher) meaning(ctx context.Context, r Request) <-chan meaning {
	out := make(chan meaning, 1)
	go func() {
		start, m := time.Now(), meaning{}
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("embedder panicked", "panic", fmt.Sprint(p))
				m = meaning{trace: LegTrace{Reason: "unavailable: the embedder panicked"}}
			}
			m.trace.Millis = millis(start)
			out <- m
		}()
		if m.trace.Reason = s.nearest(ctx, r, &m); m.trace.Reason != "" {
			return
		}
		m.trace.Ran, m.trace.Hits = true, len(m.near.Hits)
		if m.near.Partial {
			m.trace.Reason = "vectors are still being loaded"
		}
	}()
	return out
}

// spreadDF puts the document frequencies of the searched terms back in the order of q.
func spreadDF(q []terms.QueryTerm, m index.Matches) index.Matches {
	df, used := make([]int, len(q)), make([]bool, len(q))
	k := 0
	for i, x := range q {
		if !x.Keyed() {
			continue
		}
		if k < len(m.DF) {
			df[i] = m.DF[k]
		}
		if k < len(m.Used) {
			used[i] = m.Used[k]
		}
		k++
	}
	m.DF, m.Used = df, used
	return m
}

// nearest embeds the question and asks the vector leg; it returns why it could not.
func (s *Searcher) nearest(ctx context.Context, r Request, l *meaning) string {
	switch {
	case r.WordsOnly:
		return "not asked"
	case s.emb == nil:
		return "no embedder"
	}
	ctx, cancel := context.WithTimeout(ctx, s.waits(r))
	defer cancel()
	vs, err := s.emb.Embed(ctx, embed.Query, []string{r.Question.Text})
	switch {
	case err != nil:
		return "unavailable: " + err.Error()
	case len(vs) != 1 || vs[0] == nil:
		return "no word of the question has a vector"
	}
	m := s.emb.Model()
	m.Dim = len(vs[0])
	l.space = index.Space{ID: m.String(), Dim: len(vs[0])}
	var near index.Neighbours
	hits, err := s.wide(r, s.w.DensePool, func(k int) ([]index.Scored, error) {
		var err error
		near, err = s.store.Nearest(ctx, l.space, vs[0], r.Filter, k)
		return near.Hits, err
	})
	near.Hits = hits
	if err != nil {
		return "unavailable: " + err.Error()
	}
	l.cover = 1
	if c, ok := s.emb.(embed.Coverer); ok {
		l.cover = c.Coverage(r.Question.Text)
	}
	l.vector, l.near = vs[0], near
	return ""
}
