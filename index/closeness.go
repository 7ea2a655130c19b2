package index

import (
	"context"
	"fmt"
	"math"
)

// Closeness returns the best-of-parts cosine of many rows with v: from memory, in the space in
// use, within about 0.005 of the exact one. Rows without a vector, or whose vector is not loaded yet, are NaN.
func (s *Store) Closeness(ctx context.Context, want Space, v []float32, seqs []int64) ([]float64, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	q, err := unit(v, want.Dim)
	if err != nil {
		return nil, fmt.Errorf("closeness: %w", err)
	}
	slots := make([]int, len(seqs))
	s.mu.RLock()
	sp := s.use
	if sp == nil || sp.Space != want {
		s.mu.RUnlock()
		return nil, fmt.Errorf("closeness: space %s is not in use: %w", want.ID, ErrSpace)
	}
	l := sp.leg
	for i, seq := range seqs {
		slot, ok := s.cols.slot(seq)
		if !ok {
			slot = -1
		}
		slots[i] = slot
	}
	s.mu.RUnlock()
	out, err := l.scores(ctx, q, slots)
	if err != nil {
		return nil, fmt.Errorf("closeness: %w", err)
	}
	return out, nil
}

func (f *flat) scores(ctx context.Context, q []float32, slots []int) ([]float64, error) {
	q8, scale := quantise(q)
	out := make([]float64, len(slots))
	f.mu.RLock()
	defer f.mu.RUnlock()
	for i, slot := range slots {
		out[i] = math.NaN()
		if slot < 0 || slot >= len(f.places) || f.places[slot].parts == 0 {
			continue
		}
		p, top := f.places[slot], math.Inf(-1)
		for k := int(p.first); k < int(p.first)+int(p.parts); k++ {
			top = max(top, float64(dotInt8(q8, f.vector(k)))*float64(f.scales[k]))
		}
		out[i] = top * float64(scale)
	}
	return out, ctx.Err()
}

func (e *exact) scores(ctx context.Context, q []float32, slots []int) ([]float64, error) {
	out := make([]float64, len(slots))
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i, slot := range slots {
		out[i] = math.NaN()
		top := math.Inf(-1)
		for _, n := range e.parts[slot] {
			doc, err := e.coll.GetByID(ctx, exactID(slot, n))
			if err != nil {
				return nil, err
			}
			sum := float32(0)
			for k, x := range doc.Embedding {
				sum += q[k] * x
			}
			top = max(top, float64(sum))
		}
		if !math.IsInf(top, -1) {
			out[i] = top
		}
	}
	return out, nil
}
