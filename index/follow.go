package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bleve "github.com/blevesearch/bleve_index_api"

	"hark/index/terms"
)

const (
	followBatch = 512   // rows a batch: measured best between 64 (merges) and 4096 (memory)
	queueMax    = 32768 // analysed rows kept in memory for the lexical index
	bulkLag     = 8192  // rows a bulk import may run ahead of it
	retryAfter  = 2 * time.Second
)

// announce tells of committed rows and changes; the caller holds Store.mu, so that a reader
// of the columns knows of them too.
func (w *words) announce(docs []wordDoc, changes []change) {
	f := &w.follow
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(docs) > 0 {
		f.queue = append(f.queue, docs...)
		f.top = docs[len(docs)-1].seq
	}
	if len(f.queue) > queueMax || f.down {
		f.queue, f.queued = nil, f.top
	}
	for _, c := range changes {
		f.changes = append(f.changes, c)
		f.changed[c.seq] = c.n
	}
}

func (w *words) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// wait holds a bulk import back while the index is far behind it; a rebuild does not count.
func (w *words) wait(ctx context.Context) error {
	return w.until(ctx, func(f *followState) bool { return f.down || f.rebuild || f.lag() < bulkLag })
}

func (w *words) until(ctx context.Context, ok func(*followState) bool) error {
	if w == nil {
		return ErrReadOnly
	}
	f := &w.follow
	for {
		f.mu.Lock()
		if ok(f) {
			f.mu.Unlock()
			return nil
		}
		progress := f.progress
		f.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.s.ctx.Done():
			return ErrClosed
		}
	}
}

// Settle waits until the lexical index has taken in every row and erased what was forgotten,
// and the vectors of the space in use are loaded.
// Searching does not need it. It fails where the index is unavailable.
func (s *Store) Settle(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.words.until(ctx, func(f *followState) bool { return f.down || f.settled() }); err != nil {
		return err
	}
	if err := s.loaded(ctx); err != nil {
		return err
	}
	s.words.follow.mu.Lock()
	defer s.words.follow.mu.Unlock()
	if s.words.follow.down {
		return errors.New("index: the lexical index is unavailable: see Status")
	}
	return nil
}

// run follows the rows until ctx ends.
func (w *words) run(ctx context.Context) {
	for {
		more, err := w.step(ctx)
		if ctx.Err() != nil {
			return
		}
		var retry <-chan time.Time
		if err != nil {
			t := time.NewTimer(retryAfter)
			defer t.Stop()
			retry = t.C
		} else if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
			if err != nil { // an append does not shorten the wait
				select {
				case <-ctx.Done():
					return
				case <-retry:
				}
			}
		case <-retry:
		}
	}
}

// step applies one batch; more says that there may be another.
func (w *words) step(ctx context.Context) (more bool, err error) {
	f := &w.follow
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	if down {
		w.open()
		f.mu.Lock()
		down = f.down
		f.mu.Unlock()
		if down {
			return false, errors.New("unavailable")
		}
	}
	if err := f.takeDamage(); err != nil {
		w.reset(err)
		return true, nil
	}
	b, err := w.next(ctx)
	if err == nil && b == nil {
		return w.finish(ctx)
	}
	if err == nil {
		err = w.apply(b)
	}
	if errors.Is(err, errDamaged) {
		w.reset(err)
		return true, nil
	}
	if err != nil && ctx.Err() == nil {
		w.s.trouble("lexical index does not take in rows; they are matched by scanning", err)
	}
	return err == nil, err
}

// damaged tells the follower what a search found.
func (w *words) damaged(err error) {
	w.follow.mu.Lock()
	w.follow.damage = err
	w.follow.mu.Unlock()
	w.wake()
}

func (f *followState) takeDamage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.damage
	f.damage = nil
	return err
}

// reset replaces a damaged index by an empty one.
func (w *words) reset(cause error) {
	w.s.trouble("lexical index set aside, to be rebuilt from the rows", cause)
	err := w.setAside()
	if err != nil {
		w.s.trouble("lexical index unavailable; words are matched by scanning", err)
		w.follow.unavailable()
		return
	}
	w.open()
}

// wordBatch is what one batch brings into the index.
type wordBatch struct {
	docs []wordDoc
	gone []int64
	to   cursor
}

// next collects a batch: rows first, then changes, so that a change finds its row.
func (w *words) next(ctx context.Context) (*wordBatch, error) {
	f := &w.follow
	f.mu.Lock()
	b := &wordBatch{to: f.done}
	switch {
	case f.done.row < f.queued:
		upTo := f.queued
		f.mu.Unlock()
		return b, w.s.readWords(ctx, b, `seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, b.to.row, upTo, followBatch)
	case len(f.queue) > 0:
		n := min(len(f.queue), followBatch)
		b.docs = f.queue[:n:n]
		b.to.row = b.docs[n-1].seq
		f.mu.Unlock()
		return b, nil
	case len(f.changes) > 0:
		list := f.changes[:min(len(f.changes), followBatch)]
		b.to.change = list[len(list)-1].n
		seqs := make([]int64, 0, len(list))
		for _, c := range list {
			seqs = append(seqs, c.seq)
		}
		f.mu.Unlock()
		return b, w.reread(ctx, b, seqs)
	}
	f.mu.Unlock()
	return nil, nil
}

// reread puts rows as they are now into a batch, and those that are gone as removals.
func (w *words) reread(ctx context.Context, b *wordBatch, seqs []int64) error {
	row := b.to.row
	if err := w.s.readWords(ctx, b, `seq IN (SELECT value FROM json_each(?)) ORDER BY seq`, jsonInts(seqs)); err != nil {
		return err
	}
	b.to.row = row
	have := make(map[int64]bool, len(b.docs))
	for _, d := range b.docs {
		have[d.seq] = recallable(d.kind)
	}
	for _, seq := range seqs {
		if !have[seq] {
			b.gone = append(b.gone, seq)
		}
	}
	return nil
}

// readWords analyses rows of the log again for the lexical index. The terms are those of the
// first analysis: it is deterministic, and the language it assumed is stored. Storing the
// terms themselves would cost more disk than the 30 microseconds a message are worth.
func (s *Store) readWords(ctx context.Context, b *wordBatch, where string, args ...any) error {
	limit := int64(0)
	if len(args) == 3 {
		limit = args[1].(int64)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, body, session, scope, sender, time_ms, text, caption
		FROM messages JOIN docs USING(seq) WHERE `+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var d wordDoc
		var m Message
		var body []byte
		var ms int64
		if err := rows.Scan(&d.seq, &body, &d.session, &d.scope, &m.Sender, &ms, &m.Text, &m.Caption); err != nil {
			return err
		}
		h, _, err := decodeDoc(body)
		if err != nil {
			return fmt.Errorf("row %d: %w", d.seq, err)
		}
		d.kind = h.kind
		if recallable(d.kind) {
			m.Time = time.UnixMilli(ms)
			_, d.keys, _ = s.analyzer.Doc(input(&m, s.langName(h.main)))
		}
		b.docs = append(b.docs, d)
		b.to.row = d.seq
	}
	if len(b.docs) == 0 && limit > 0 {
		b.to.row = limit
	}
	return rows.Err()
}

func (s *Store) langName(id uint32) terms.Lang {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if int(id) >= len(s.cols.names.byID) {
		return ""
	}
	return terms.Lang(s.cols.names.byID[id])
}

// apply writes a batch and moves the cursor.
func (w *words) apply(b *wordBatch) error {
	written, err := w.put(b)
	if err != nil {
		return err
	}
	if w.coming != nil {
		if err := w.coming.also(b); err != nil {
			w.follow.mu.Lock()
			w.follow.erase, w.follow.erasing = true, false // the new one is begun again
			w.follow.mu.Unlock()
			w.s.trouble("erase forgotten words", errors.Join(err, w.abandon()))
		}
	}
	w.follow.applied(b.to, written) // which empties b
	return nil
}

// put writes a batch with its cursor; the channel is closed once it is on disk.
func (w *words) put(b *wordBatch) (chan struct{}, error) {
	batch := bleve.NewBatch()
	for i := range b.docs {
		if d := &b.docs[i]; recallable(d.kind) {
			batch.Update(d.document())
		}
	}
	for _, seq := range b.gone {
		batch.Delete(string(docID(seq)))
	}
	batch.SetInternal(internalRow, binary.BigEndian.AppendUint64(nil, uint64(b.to.row)))
	batch.SetInternal(internalChange, binary.BigEndian.AppendUint64(nil, uint64(b.to.change)))
	written := make(chan struct{})
	batch.SetPersistedCallback(func(error) { close(written) })
	return written, guarded(func() error {
		w.mu.RLock()
		defer w.mu.RUnlock()
		if w.idx == nil {
			return ErrClosed
		}
		return w.idx.Batch(batch)
	})
}

// applied moves the cursor and lets go of what lies behind it.
func (f *followState) applied(to cursor, written chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.written = to, written
	n := 0
	for n < len(f.queue) && f.queue[n].seq <= to.row {
		f.queue[n] = wordDoc{}
		n++
	}
	if f.queue = f.queue[n:]; len(f.queue) == 0 {
		f.queue = nil
	}
	n = 0
	for n < len(f.changes) && f.changes[n].n <= to.change {
		if f.changed[f.changes[n].seq] <= to.change {
			delete(f.changed, f.changes[n].seq)
		}
		n++
	}
	f.changes = f.changes[n:]
	if f.lag() == 0 {
		f.rebuild = false
	}
	f.tick()
}

// finish does what is left when everything was applied: erasing forgotten words from the files,
// by making them anew.
func (w *words) finish(ctx context.Context) (more bool, err error) {
	f := &w.follow
	f.mu.Lock()
	erase := f.erase || f.erasing
	f.mu.Unlock()
	if !erase {
		return false, nil
	}
	if err := w.renew(ctx); err != nil {
		if ctx.Err() == nil {
			w.s.trouble("erase forgotten words", err)
		}
		return false, err
	}
	return true, nil
}
