package index

import (
	"context"
	"math"
)

// exactly returns the exact cosines that the legs are held against. The space need not be in use.
func exactly(ctx context.Context, s *Store, want Space, v []float32, seqs []int64) ([]float64, error) {
	q, err := unit(v, want.Dim)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	sp := s.spaces[want]
	s.mu.RUnlock()
	if sp == nil {
		out := make([]float64, len(seqs))
		for i := range out {
			out[i] = math.NaN()
		}
		return out, nil
	}
	return s.cosines(ctx, sp.n, q, seqs)
}
