package recall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hark/index"
	"hark/recall"
)

// oracle knows the answer: the gain that a perfect second stage would give.
type oracle struct{ answer string }

func (o oracle) Rerank(_ context.Context, _ string, texts []string) ([]float64, error) {
	out := make([]float64, len(texts))
	for i, t := range texts {
		if strings.Contains(t, o.answer) {
			out[i] = 1
		}
	}
	return out, nil
}

// rerankerFunc is a reranker of one function.
type rerankerFunc func(context.Context, string, []string) ([]float64, error)

func (f rerankerFunc) Rerank(ctx context.Context, q string, texts []string) ([]float64, error) {
	return f(ctx, q, texts)
}

// A second stage reorders the first hits; one that fails, is late, lies or panics changes nothing.
func TestSecondStage(t *testing.T) {
	w := newWorld(t, nil)
	w.say("a", "user:Ann", "which wifi password do the guests have, which wifi password?")
	for range 8 {
		w.say("n", "user:Bob", "the wifi password of the guests was asked for again")
	}
	answer := w.say("b", "user:Ann", "guests type kingfisher42 to get onto our wifi")
	hold := make(chan struct{})
	defer close(hold)
	for name, c := range map[string]struct {
		second recall.Reranker
		first  int64
		reason string
	}{
		"none":   {nil, 0, ""},
		"knows":  {oracle{"kingfisher"}, answer, ""},
		"fails":  {rerankerFunc(func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("503") }), 0, "503"},
		"late":   {rerankerFunc(func(context.Context, string, []string) ([]float64, error) { <-hold; return nil, nil }), 0, "no answer in"},
		"short":  {rerankerFunc(func(context.Context, string, []string) ([]float64, error) { return []float64{1}, nil }), 0, "1 scores"},
		"panics": {rerankerFunc(func(context.Context, string, []string) ([]float64, error) { panic("boom") }), 0, "panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			search := func(second recall.Reranker) *recall.Result {
				res, err := recall.NewSearcher(w.store, nil, &recall.Options{Reranker: second, RerankWait: 30 * time.Millisecond}, nil).Search(t.Context(),
					recall.Request{Question: recall.Ask("what is the wifi password for guests?", ""), Filter: index.Filter{Scopes: []string{"owner"}}})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			plain, got := search(nil), search(c.second)
			want := rows(plain)
			if want[0] == answer {
				t.Fatal("the first stage needs no second")
			}
			if c.first != 0 {
				w.wantFirst(got, c.first)
				for i := range got.Hits {
					if got.Hits[i].Score != plain.Hits[i].Score {
						t.Errorf("score %d: %v, was %v", i, got.Hits[i].Score, plain.Hits[i].Score)
					}
				}
			} else if g := rows(got); len(g) != len(want) || g[0] != want[0] {
				t.Errorf("rows %v, want %v", g, want)
			}
			switch tr := got.Trace.Rerank; {
			case c.second == nil && tr != nil, c.second != nil && tr == nil:
				t.Errorf("trace %+v", tr)
			case c.second != nil && (!strings.Contains(tr.Reason, c.reason) || tr.Ran != (c.reason == "")):
				t.Errorf("trace %+v, want %q", tr, c.reason)
			}
		})
	}
}
