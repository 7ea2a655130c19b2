package recall_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hark/index"
	"hark/recall"
)

// The second look reorders what the first found: it adds no message, loses none, and scores still
// fall from hit to hit.
func TestLookReorders(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 150 {
		w.say(fmt.Sprint("s", i%7), "user", fmt.Sprintf("note %d about the harbour: %s", i, strings.Repeat("boats came in ", i%9)))
	}
	ask := func(change func(*recall.Weights)) *recall.Result {
		weights := recall.DefaultWeights()
		change(&weights)
		s := recall.NewSearcher(w.store, w.emb, &recall.Options{Weights: &weights}, nil)
		res, err := s.Search(context.Background(), recall.Request{Question: recall.Question{Text: "what did we note about the harbour?"}, Filter: index.Filter{AllScopes: true}, K: 500})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(res.Hits); i++ {
			if res.Hits[i].Score > res.Hits[i-1].Score {
				t.Fatalf("hit %d scores %v after %v", i, res.Hits[i].Score, res.Hits[i-1].Score)
			}
		}
		return res
	}
	once, twice := ask(func(w *recall.Weights) { w.Look = 0 }), ask(func(*recall.Weights) {})
	a, b := rows(once), rows(twice)
	if slices.Equal(a, b) {
		t.Error("the second look changes nothing")
	}
	if len(a) <= 100 || once.Confidence != twice.Confidence {
		t.Errorf("%d hits, confidence %v and %v", len(a), once.Confidence, twice.Confidence)
	}
	if !slices.Equal(a[100:], b[100:]) {
		t.Error("what was not looked at twice moved")
	}
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		t.Error("the second look found or lost messages")
	}
}

// What a network is fitted on is what it will be asked about.
func TestExamplesAreWhatIsLookedAt(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 20 {
		w.say("s", "user", fmt.Sprintf("the ferry of day %d left late", i))
	}
	r := recall.Request{Question: recall.Question{Text: "when did the ferry leave?"}, Filter: index.Filter{AllScopes: true}}
	k := len(recall.FeatureNames())
	net := &recall.Net{Features: recall.FeatureNames(), Mean: make([]float32, k), SD: slices.Repeat([]float32{.5}, k), Linear: slices.Repeat([]float32{.1}, k)}
	s := recall.NewSearcher(w.store, w.emb, &recall.Options{Net: net}, nil)
	ex, err := s.Examples(context.Background(), r)
	if err != nil || len(ex) != 20 {
		t.Fatal(len(ex), err)
	}
	res, err := s.Search(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(ex, func(a, b recall.Example) int {
		x, y := a.Score+recall.DefaultWeights().Look*net.Score(a.Features), b.Score+recall.DefaultWeights().Look*net.Score(b.Features)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return int(a.Seq - b.Seq)
	})
	for i, h := range res.Hits {
		if len(ex[i].Features) != len(recall.FeatureNames()) || ex[i].Seq != h.Message.Seq || ex[i].ID != h.Message.ID {
			t.Fatalf("hit %d is row %d, by the examples %d", i, h.Message.Seq, ex[i].Seq)
		}
	}
}
