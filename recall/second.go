package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Reranker is an optional second stage: it judges how well texts answer a question. Scores are higher
// for better answers, one a text, on any scale. It is called from one goroutine a search.
type Reranker interface {
	Rerank(ctx context.Context, question string, texts []string) ([]float64, error)
}

// The defaults of the second stage.
const (
	defaultRerankTop  = 20
	defaultRerankWait = 400 * time.Millisecond
)

// rerank puts the first hits into the order of the second stage. The scores stay where they are, so
// that what is decided by them, how far a hit may stand below the best, is decided as before. A second
// stage that fails, is late or panics changes nothing, and the Trace says so.
func (s *Searcher) rerank(ctx context.Context, q Question, res *Result) {
	n := min(s.rerankTop, len(res.Hits))
	if s.second == nil || n < 2 {
		return
	}
	t := &LegTrace{}
	res.Trace.Rerank = t
	started := time.Now()
	defer func() { t.Millis = millis(started) }()
	texts := make([]string, n)
	for i, h := range res.Hits[:n] {
		texts[i] = h.Message.Text
	}
	scores, err := s.judge(ctx, q.Text, texts)
	switch {
	case err != nil:
		t.Reason = "unavailable, the order of the first stage stays: " + err.Error()
		return
	case len(scores) != n:
		t.Reason = fmt.Sprintf("%d scores for %d texts: the order of the first stage stays", len(scores), n)
		return
	}
	t.Ran, t.Hits = true, n
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	hits := make([]Hit, n)
	for place, i := range at {
		hits[place] = res.Hits[i]
		hits[place].Score = res.Hits[place].Score
	}
	copy(res.Hits, hits)
}

// judge asks the second stage, which may ignore its context.
func (s *Searcher) judge(ctx context.Context, question string, texts []string) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.rerankWait)
	defer cancel()
	type answer struct {
		scores []float64
		err    error
	}
	out := make(chan answer, 1)
	go func() {
		a := answer{}
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("reranker panicked", "panic", fmt.Sprint(p))
				a = answer{nil, fmt.Errorf("the reranker panicked")}
			}
			out <- a
		}()
		a.scores, a.err = s.second.Rerank(ctx, question, texts)
	}()
	select {
	case a := <-out:
		return a.scores, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer in %s", s.rerankWait)
	}
}
