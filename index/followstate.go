package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// change says that a row was replaced or removed after it was stored.
type change struct{ n, seq int64 }

// followState is how far the lexical index has come and what lies ahead of it.
type followState struct {
	mu       sync.Mutex
	done     cursor          // applied
	top      int64           // last row announced
	queue    []wordDoc       // rows after queued, analysed
	queued   int64           // rows up to this one must be read from the log
	changes  []change        // ascending by n
	changed  map[int64]int64 // row → its last change that is not applied
	rebuild  bool            // started from nothing with rows waiting
	down     bool            // no index
	erase    bool            // forgotten words are still in its files
	erasing  bool            // they are being erased
	damage   error           // found by a search
	written  chan struct{}   // closed when the last batch is in the files
	progress chan struct{}   // closed and replaced whenever something was applied
}

func (f *followState) init() {
	f.changed = map[int64]int64{}
	f.progress = make(chan struct{})
}

// load reads what the log holds beyond any index.
func (f *followState) load(ctx context.Context, s *Store) error {
	if n := len(s.cols.rows); n > 0 {
		f.top = s.cols.rows[n-1].seq
	}
	f.queued = f.top
	rows, err := s.reads.QueryContext(ctx, `SELECT n, seq FROM changes ORDER BY n`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c change
		if err := rows.Scan(&c.n, &c.seq); err != nil {
			return err
		}
		f.changes = append(f.changes, c)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var one int
	err = s.reads.QueryRowContext(ctx, `SELECT 1 FROM state WHERE bucket='store' AND key='erase'`).Scan(&one)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	f.erase = err == nil
	return nil
}

// plausible compares a cursor and a number of documents with the rows.
func (f *followState) plausible(s *Store, cur cursor, have int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	c := s.cols
	for _, ch := range f.changes {
		if ch.n > cur.change {
			return nil // counts differ until these are applied
		}
	}
	want := 0
	for i := range c.rows {
		if c.rows[i].seq <= cur.row && c.rows[i].talk() {
			want++
		}
	}
	if want != have {
		return fmt.Errorf("it holds %d messages where the rows have %d", have, want)
	}
	return nil
}

// start begins to follow from a cursor.
func (f *followState) start(cur cursor, fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.down = cur, false
	f.rebuild = fresh && f.top > 0
	f.queue, f.queued = nil, f.top
	f.changed = map[int64]int64{}
	var open []change
	for _, c := range f.changes {
		if c.n > cur.change {
			open = append(open, c)
			f.changed[c.seq] = c.n
		}
	}
	f.changes = open
}

func (f *followState) unavailable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
	f.done = cursor{}
	f.queue, f.queued = nil, f.top
	f.tick()
}

// tick wakes those who wait for progress; the caller holds mu.
func (f *followState) tick() {
	close(f.progress)
	f.progress = make(chan struct{})
}

// onDisk returns a channel that is closed once the last batch is in the files.
func (f *followState) onDisk() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written == nil || f.down {
		done := make(chan struct{})
		close(done)
		return done
	}
	return f.written
}

func (f *followState) lag() int64 { return max(0, f.top-f.done.row) }

func (f *followState) settled() bool {
	return f.lag() == 0 && len(f.changes) == 0 && !f.erase && !f.erasing
}

func (f *followState) state() string {
	switch {
	case f.down:
		return "unavailable"
	case f.rebuild:
		return "rebuilding"
	case f.lag() > 0 || len(f.changes) > 0:
		return "catching up"
	case f.erase || f.erasing:
		return "erasing"
	}
	return "ready"
}
