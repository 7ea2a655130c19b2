package index

import (
	"context"
	"fmt"
)

// Discard removes rows whose truth is elsewhere, in files that can be read again, and returns how many
// there were. Unlike Forget it keeps no tombstones: the same content may be appended again. Where
// erase is set, the words are erased from the lexical index too, in the background, as Forget does;
// otherwise they leave its files when those are merged.
func (s *Store) Discard(ctx context.Context, seqs []int64, erase bool) (int, error) {
	if len(seqs) == 0 {
		return 0, nil
	}
	return s.remove(ctx, Selection{Seqs: seqs}, removal{erase: erase})
}

// SetStates stores small values of one bucket in one transaction; nil values are deleted. The bucket
// "store" is taken.
func (s *Store) SetStates(ctx context.Context, bucket string, values map[string][]byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if bucket == ownBucket {
		return fmt.Errorf("index: state bucket %q is the store's own", bucket)
	}
	if len(values) == 0 {
		return nil
	}
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.setStates(ctx, bucket, values); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func (s *Store) setStates(ctx context.Context, bucket string, values map[string][]byte) error {
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	set, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO state VALUES(?, ?, ?)`)
	if err != nil {
		return err
	}
	defer set.Close()
	for key, value := range values {
		if value == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM state WHERE bucket=? AND key=?`, bucket, key)
		} else {
			_, err = set.ExecContext(ctx, bucket, key, value)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}
