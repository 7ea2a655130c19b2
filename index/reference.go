package index

import (
	"context"
	"database/sql"
	"fmt"
)

// NearestExactly is Nearest for many questions by comparing each with every stored vector as it
// was stored, in one reading of the log: the reference that the legs are measured against, and
// much too slow for anything else. Equal scores are in order of rows.
func (s *Store) NearestExactly(ctx context.Context, want Space, vs [][]float32, f Filter, k int) ([][]Scored, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	out, err := s.nearestExactly(ctx, want, vs, f, k)
	if err != nil {
		return nil, fmt.Errorf("nearest exactly: %w", err)
	}
	return out, nil
}

func (s *Store) nearestExactly(ctx context.Context, want Space, vs [][]float32, f Filter, k int) ([][]Scored, error) {
	questions := make([][]float32, len(vs))
	for i, v := range vs {
		var err error
		if questions[i], err = unit(v, want.Dim); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	sp := s.spaces[want]
	admit := s.cols.admitted(f)
	s.mu.RUnlock()
	if sp == nil {
		return nil, fmt.Errorf("space %s holds nothing: %w", want.ID, ErrSpace)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT key, body FROM floats WHERE key >= ? AND key < ? ORDER BY key`,
		vectorKey(sp.n, 0), vectorKey(sp.n+1, 0))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make([]best, len(questions))
	for i := range found {
		found[i].n = k
	}
	var key int64
	var body sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&key, &body); err != nil {
			return nil, err
		}
		s.mu.RLock()
		slot, ok := s.cols.slot(key & seqMask)
		s.mu.RUnlock()
		if !ok || !admit.has(slot) || len(body) == 0 {
			continue
		}
		for i, q := range questions {
			cos, err := bestCosine(body, q)
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", key&seqMask, err)
			}
			found[i].add(hit{slot, cos})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := make([][]Scored, len(found))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range found {
		for _, h := range found[i].sorted() {
			out[i] = append(out[i], Scored{s.cols.rows[h.slot].seq, h.score})
		}
	}
	return out, nil
}
