package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// maxDim bounds the dimension of a space.
const maxDim = 1 << 16

// space is one vector space: which rows have vectors, and the leg where it is in use.
// Guarded by Store.mu.
type space struct {
	Space
	n      int64 // number in the tables
	ready  bool  // has and failed are read
	has    bitset
	failed map[int]int  // slot → tries
	low    atomic.Int64 // no pending row before this slot; lowered under Lock only

	leg     leg           // nil where not in use
	loading chan struct{} // closed when leg holds everything
	touched map[int]bool  // rows changed while loading: what the loader reads of them is old
	cancel  context.CancelFunc
}

// vectorKey is the row of the tables vectors and floats. Rows of a space lie together, in
// order of storage.
func vectorKey(space, seq int64) int64 { return space<<40 | seq }

const seqMask = 1<<40 - 1

func (s *Store) loadSpaces(ctx context.Context) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT n, id, dim FROM spaces`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		sp := &space{}
		if err := rows.Scan(&sp.n, &sp.ID, &sp.Dim); err != nil {
			return err
		}
		s.spaces[sp.Space] = sp
	}
	return rows.Err()
}

func (s *Store) spaceNumbers() []int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []int64
	for _, sp := range s.spaces {
		out = append(out, sp.n)
	}
	slices.Sort(out)
	return out
}

// space returns a space with its rows known, and makes it where it is new. Where the turn to
// write is not held yet, it is taken while the rows are read.
func (s *Store) space(ctx context.Context, want Space, turn bool) (*space, error) {
	if want.ID == "" || want.Dim <= 0 || want.Dim > maxDim {
		return nil, fmt.Errorf("space %q with %d dimensions: %w", want.ID, want.Dim, ErrSpace)
	}
	s.mu.RLock()
	sp := s.spaces[want]
	ready := sp != nil && sp.ready
	s.mu.RUnlock()
	if ready {
		return sp, nil
	}
	if !turn {
		select {
		case s.writing <- struct{}{}:
			defer func() { <-s.writing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.RLock()
	sp = s.spaces[want]
	s.mu.RUnlock()
	if sp == nil {
		sp = &space{Space: want}
		if !s.opts.ReadOnly {
			res, err := execute(ctx, s.durable, `INSERT INTO spaces(id, dim) VALUES(?, ?)`, want.ID, want.Dim)
			if err != nil {
				return nil, err
			}
			if sp.n, err = res.LastInsertId(); err != nil {
				return nil, err
			}
		}
	}
	return sp, s.readSpace(ctx, sp)
}

// readSpace learns which rows have vectors; the caller has the turn to write.
func (s *Store) readSpace(ctx context.Context, sp *space) error {
	has, failed := bitset{}, map[int]int{}
	rows, err := s.reads.QueryContext(ctx, `SELECT key, 0 FROM vectors WHERE key >= ? AND key < ?
		UNION ALL SELECT seq, tries FROM failures WHERE space=?`, vectorKey(sp.n, 0), vectorKey(sp.n+1, 0), sp.n)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for rows.Next() {
		var key int64
		var tries int
		if err := rows.Scan(&key, &tries); err != nil {
			return err
		}
		if slot, ok := s.cols.slot(key & seqMask); ok && tries == 0 {
			has.add(slot)
		} else if ok {
			failed[slot] = tries
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	sp.has, sp.failed, sp.ready = has, failed, true
	s.spaces[sp.Space] = sp
	return nil
}

// Pending returns recallable messages without vectors in a space, at most limit (0: all): in
// order of rows, those that failed before after all others. Only Seq, Role, Sender, Time, Text
// and Caption are set.
func (s *Store) Pending(ctx context.Context, want Space, limit int) ([]Message, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	sp, err := s.space(ctx, want, false)
	if err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	seqs := s.pendingSeqs(sp, limit)
	if len(seqs) == 0 {
		return nil, nil
	}
	out, err := s.texts(ctx, seqs)
	if err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	return out, nil
}

func (s *Store) pendingSeqs(sp *space, limit int) []int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.cols
	low := int(sp.low.Load())
	for low < len(c.rows) && (!c.rows[low].talk() || sp.has.has(low)) {
		low++
	}
	sp.low.Store(int64(low))
	var out []int64
	var failed []int
	for i := low; i < len(c.rows) && (limit <= 0 || len(out) < limit); i++ {
		switch {
		case !c.rows[i].talk() || sp.has.has(i):
		case sp.failed[i] > 0:
			failed = append(failed, i)
		default:
			out = append(out, c.rows[i].seq)
		}
	}
	slices.SortStableFunc(failed, func(a, b int) int { return cmp.Compare(sp.failed[a], sp.failed[b]) })
	for _, i := range failed {
		if limit > 0 && len(out) >= limit {
			break
		}
		out = append(out, c.rows[i].seq)
	}
	return out
}

func (s *Store) texts(ctx context.Context, seqs []int64) ([]Message, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT m.seq, m.role, m.sender, m.time_ms, m.text, m.caption
		FROM json_each(?) j JOIN messages m ON m.seq=j.value ORDER BY j.key`, jsonInts(seqs))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make([]Message, 0, len(seqs))
	for rows.Next() {
		var m Message
		var ms int64
		if err := rows.Scan(&m.Seq, &m.Role, &m.Sender, &ms, &m.Text, &m.Caption); err != nil {
			return nil, err
		}
		m.Time = unixMilli(ms)
		out = append(out, m)
	}
	return out, rows.Err()
}

// PendingCount is how many messages Pending would return without a limit.
func (s *Store) PendingCount(ctx context.Context, want Space) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	sp, err := s.space(ctx, want, false)
	if err != nil {
		return 0, fmt.Errorf("pending: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cols.pending(sp), nil
}

func (c *columns) pending(sp *space) int {
	n := 0
	for i := int(sp.low.Load()); i < len(c.rows); i++ {
		if c.rows[i].talk() && !sp.has.has(i) {
			n++
		}
	}
	return n
}

// vectorTurn is how many messages SetVectors stores before it lets others write.
const vectorTurn = 256

// SetVectors stores vectors, replacing parts that are there; the parts of one message belong
// in one call, because a message with any vector is no longer pending. Rows that are gone are
// ignored. Vectors of a foreign dimension, with NaN or Inf, or of length zero are left out and
// named in the error, which wraps ErrSpace; the others are stored all the same. The commit is
// not synced: after a power cut the last vectors may be pending again.
func (s *Store) SetVectors(ctx context.Context, want Space, vs []Vector) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	jobs, bad := vectorJobs(want, vs)
	for chunk := range slices.Chunk(jobs, vectorTurn) {
		if err := s.setVectors(ctx, want, chunk); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
	}
	return bad
}

// vectorJob is what is to be stored of one message.
type vectorJob struct {
	seq    int64
	parts  []part
	failed string
}

func vectorJobs(want Space, vs []Vector) (jobs []vectorJob, bad error) {
	place := map[int64]int{}
	var errs []error
	for i := range vs {
		v := &vs[i]
		at, ok := place[v.Seq]
		if !ok {
			at = len(jobs)
			place[v.Seq] = at
			jobs = append(jobs, vectorJob{seq: v.Seq})
		}
		j := &jobs[at]
		switch {
		case v.Failed != "":
			j.failed = v.Failed
		case v.V == nil:
		case v.Part < 0 || v.Part > math.MaxUint16:
			errs = append(errs, fmt.Errorf("row %d: part %d: %w", v.Seq, v.Part, ErrSpace))
			j.failed = "part out of range"
		default:
			u, err := unit(v.V, want.Dim)
			if err != nil {
				errs = append(errs, fmt.Errorf("row %d: %w", v.Seq, err))
				j.failed = err.Error()
				continue
			}
			j.parts = append(j.parts, part{v.Part, u})
		}
	}
	return jobs, errors.Join(errs...)
}

func (s *Store) setVectors(ctx context.Context, want Space, jobs []vectorJob) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	sp, err := s.space(ctx, want, true)
	if err != nil {
		return err
	}
	s.mu.RLock()
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j vectorJob) bool {
		slot, ok := s.cols.slot(j.seq)
		return !ok || !s.cols.rows[slot].talk()
	})
	s.mu.RUnlock()
	stored, err := s.writeVectors(ctx, sp, jobs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for i, j := range jobs {
		slot, ok := s.cols.slot(j.seq)
		if !ok {
			continue
		}
		if j.failed != "" {
			sp.failed[slot]++
			continue
		}
		sp.has.add(slot)
		delete(sp.failed, slot)
		sp.put(slot, stored[i])
	}
	l := sp.leg
	s.mu.Unlock()
	s.measure(l)
	return s.outgrow(ctx, sp)
}

// bodies are the stored forms of a message's vectors.
type bodies struct{ quantised, floats []byte }

// writeVectors stores jobs in one transaction. A message with a failure is left as it is.
func (s *Store) writeVectors(ctx context.Context, sp *space, jobs []vectorJob) ([]bodies, error) {
	tx, err := begin(ctx, s.bulk)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	defer tx.Rollback()
	out := make([]bodies, len(jobs))
	for i, j := range jobs {
		if j.failed != "" {
			if _, err := tx.ExecContext(ctx, `INSERT INTO failures VALUES(?, ?, ?, 1)
				ON CONFLICT(space, seq) DO UPDATE SET reason=excluded.reason, tries=tries+1`, sp.n, j.seq, j.failed); err != nil {
				return nil, err
			}
			continue
		}
		if out[i], err = s.writeVector(ctx, tx, sp, j); err != nil {
			return nil, err
		}
	}
	return out, tx.Commit()
}

func (s *Store) writeVector(ctx context.Context, tx *sql.Tx, sp *space, j vectorJob) (b bodies, err error) {
	key := vectorKey(sp.n, j.seq)
	s.mu.RLock()
	slot, ok := s.cols.slot(j.seq)
	known, failed := ok && sp.has.has(slot), ok && sp.failed[slot] > 0
	s.mu.RUnlock()
	parts := j.parts
	if known {
		var old []byte
		err := tx.QueryRowContext(ctx, `SELECT body FROM floats WHERE key=?`, key).Scan(&old)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return b, err
		}
		before, err := decodeFloats(old, sp.Dim)
		if err == nil { // what cannot be read is replaced
			parts = overlay(before, parts)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.n, b.n) })
	b.floats = encodeFloats(parts)
	stored, err := decodeFloats(b.floats, sp.Dim) // both forms are of the same numbers
	if err != nil {
		return b, err
	}
	b.quantised = encodeQuantised(stored)
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vectors VALUES(?, ?)`, key, b.quantised); err != nil {
		return b, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO floats VALUES(?, ?)`, key, b.floats); err != nil {
		return b, err
	}
	if failed {
		_, err = tx.ExecContext(ctx, `DELETE FROM failures WHERE space=? AND seq=?`, sp.n, j.seq)
	}
	return b, err
}

// overlay puts new parts over old ones.
func overlay(old, fresh []part) []part {
	out := slices.Clone(fresh)
	for _, p := range old {
		if !slices.ContainsFunc(fresh, func(q part) bool { return q.n == p.n }) {
			out = append(out, p)
		}
	}
	return out
}

// dropVectors deletes the vectors of a row in all spaces.
func dropVectors(ctx context.Context, tx *sql.Tx, spaces []int64, seq int64) error {
	for _, n := range spaces {
		for _, table := range []string{"vectors", "floats"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE key=?`, vectorKey(n, seq)); err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM failures WHERE seq=?`, seq)
	return err
}

// dropInMemory forgets the vectors of a slot in all spaces; the caller holds Store.mu.
func (s *Store) dropInMemory(slot int) {
	for _, sp := range s.spaces {
		sp.has.drop(slot)
		delete(sp.failed, slot)
		sp.low.Store(min(sp.low.Load(), int64(slot)))
		if sp.leg != nil {
			sp.touch(slot)
			sp.leg.drop(slot)
		}
	}
}

func (sp *space) touch(slot int) {
	if sp.touched != nil {
		sp.touched[slot] = true
	}
}

// put gives the leg the vectors of a slot; the caller holds Store.mu.
func (sp *space) put(slot int, b bodies) {
	if sp.leg == nil {
		return
	}
	sp.touch(slot)
	body := b.quantised
	if sp.leg.table() == "floats" {
		body = b.floats
	}
	if err := sp.leg.put(slot, body); err != nil {
		panic("index: vectors just encoded do not decode: " + err.Error())
	}
}
