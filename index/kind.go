package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SetKind changes what rows are, in one transaction, and returns how many it changed. Rows that become
// Noise or Summary are not matched any more; the vectors of the others are pending again. Rows that do
// not exist are left out.
func (s *Store) SetKind(ctx context.Context, kind Kind, seqs ...int64) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if kind > Noise {
		return 0, fmt.Errorf("set kind: unknown kind %d", kind)
	}
	done, err := s.write(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	n, err := s.setKind(ctx, kind, seqs)
	if err != nil {
		return 0, fmt.Errorf("set kind: %w", err)
	}
	return n, nil
}

func (s *Store) setKind(ctx context.Context, kind Kind, seqs []int64) (n int, err error) {
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx)
	defer tx.Rollback()
	a := &appending{analyser: newAnalyser(s.analyzer, s.cols), s: s, tx: tx, place: map[int64]int{}}
	a.analyser.addName = a.addName
	for _, seq := range seqs {
		row, err := scanMessage(a.tx.StmtContext(ctx, s.stmts.whole).QueryRowContext(ctx, seq))
		if errors.Is(err, sql.ErrNoRows) || err == nil && row.Kind == kind {
			continue
		}
		if err != nil {
			return 0, err
		}
		row.Kind = kind
		if err := a.replace(ctx, &row); err != nil {
			return 0, err
		}
		n++
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	a.publish()
	return n, nil
}
