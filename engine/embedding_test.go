package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// shy is a remote embedder: it tells its dimension with its first answer, and gives none while
// it is down.
type shy struct {
	inner embed.Embedder
	met   atomic.Bool
	down  atomic.Bool
	calls atomic.Int64
}

func (s *shy) Model() embed.Model {
	m := s.inner.Model()
	m.Provider = "shy"
	if !s.met.Load() {
		m.Dim = 0
	}
	return m
}

func (s *shy) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	s.calls.Add(1)
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	s.met.Store(true)
	return s.inner.Embed(ctx, kind, texts)
}

// A model that has not told its dimension yet is asked for it, and its vectors follow.
func TestVectorsOfAModelOfUnknownDimension(t *testing.T) {
	emb := &shy{inner: embedtest.Hashed(32)}
	emb.down.Store(true)
	e := open(t, emb, nil)
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day), assistant("noted", day+1)))
	if err := e.Embed(t.Context(), nil); err == nil {
		t.Fatal("no error while the embedder is down")
	}
	emb.down.Store(false)
	var done int
	if err := e.Embed(t.Context(), func(n, _ int) { done = n }); err != nil {
		t.Fatal(err)
	}
	space := index.Space{ID: emb.Model().String(), Dim: 32}
	if n, err := e.store.PendingCount(t.Context(), space); err != nil || n != 0 || done == 0 {
		t.Errorf("%d pending, %d done, %v", n, done, err)
	}
	// The next process knows the dimension before the model answers.
	again := &shy{inner: embedtest.Hashed(32)}
	w := &worker{store: e.store, emb: again}
	if dim := w.knownDim(t.Context()); dim != 32 || again.calls.Load() != 0 {
		t.Errorf("dimension %d known after %d calls", dim, again.calls.Load())
	}
}
