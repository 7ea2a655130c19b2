package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Retention bounds what is kept. Zero fields are no bound.
type Retention struct {
	Age   time.Duration // older messages are forgotten
	Bytes int64         // of a store's files; the oldest messages are forgotten first
}

// retainEvery is how often Maintain applies the retention.
const retainEvery = 24 * time.Hour

// Retain applies the retention now and returns how many messages it forgot.
func (e *Engine) Retain(ctx context.Context) (forgotten int, err error) {
	if e.opts.Retention == (Retention{}) {
		return 0, nil
	}
	shrink := false
	for range 8 { // each round measures again what the last one freed
		rows, bySize, err := e.due(ctx)
		if err != nil {
			return forgotten, fmt.Errorf("retention: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		n, err := e.Forget(ctx, Forgetting{Rows: rows})
		forgotten += n
		if err != nil {
			return forgotten, fmt.Errorf("retention: %w", err)
		}
		if shrink = shrink || bySize; e.opts.Retention.Bytes <= 0 {
			break
		}
	}
	if shrink {
		if err := e.store.Shrink(ctx); err != nil {
			return forgotten, fmt.Errorf("retention by size: %w", err)
		}
	}
	return forgotten, nil
}

// due lists the rows that the retention removes next, oldest first: those that are too old, or, where the
// others are still too much, as many of the oldest as are too much by the average size of a row.
func (e *Engine) due(ctx context.Context) (rows []int64, bySize bool, err error) {
	keep := e.opts.Retention
	status, err := e.store.Status(ctx)
	if err != nil || status.Rows == 0 {
		return nil, false, err
	}
	if keep.Age > 0 {
		rows = e.olderThan(e.opts.Clock().Add(-keep.Age), status.Rows)
	}
	if keep.Bytes <= 0 {
		return rows, false, nil
	}
	used, err := e.store.Used(ctx)
	if err != nil || used <= keep.Bytes {
		return rows, false, err
	}
	share := 1 - float64(keep.Bytes)/float64(used)
	if n := min(status.Rows, int(share*float64(status.Rows))+1); n > len(rows) {
		return e.store.Oldest(n), true, nil
	}
	return rows, false, nil
}

func (e *Engine) olderThan(bound time.Time, most int) []int64 {
	rows := e.store.Oldest(most)
	view := e.store.View()
	defer view.Close()
	n := slices.IndexFunc(rows, func(seq int64) bool {
		row, ok := view.Row(seq)
		return ok && !row.Time.Before(bound)
	})
	if n < 0 {
		return rows
	}
	return rows[:n]
}

// Due tells what the retention removes next.
type Due struct {
	Messages int       `json:"messages"`
	Newest   time.Time `json:"newest,omitzero"` // of the messages that go
}

// Due looks what the retention would remove now. It is the dry run of Retain: of messages that are too
// old it is exact, of a store that is too large it is the first step, after which it is measured again.
func (e *Engine) Due(ctx context.Context) (Due, error) {
	if e.opts.Retention == (Retention{}) {
		return Due{}, nil
	}
	rows, _, err := e.due(ctx)
	if err != nil || len(rows) == 0 {
		return Due{}, err
	}
	newest, err := e.store.Get(ctx, rows[len(rows)-1])
	if err != nil {
		return Due{}, err
	}
	return Due{len(rows), newest[0].Time}, nil
}

// retainDue applies the retention if that was a day ago.
func (e *Engine) retainDue(ctx context.Context) {
	if e.opts.Retention == (Retention{}) {
		return
	}
	now := e.opts.Clock()
	e.mu.Lock()
	due := now.Sub(e.retained) >= retainEvery
	if due {
		e.retained = now
	}
	e.mu.Unlock()
	if !due {
		return
	}
	n, err := e.Retain(ctx)
	if err != nil {
		e.log.Warn("retention not applied", "error", err)
	} else if n > 0 {
		e.log.Info("retention applied", "forgotten", n)
	}
}
