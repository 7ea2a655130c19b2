package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A renewal makes the lexical index anew beside the old one, which goes on answering: the words of
// what was forgotten stay in the dictionary of an index until its files are written again. Merging
// segments is not enough: a single one is never merged with itself, and a merge keeps words of the
// documents that were removed just before it. Only the follower uses it.
type renewal struct {
	words
	row int64 // rows up to this one are in
	to  cursor
}

// renew takes a step of making the index anew.
func (w *words) renew(ctx context.Context) error {
	err := w.renewStep(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := &w.follow
	f.mu.Lock()
	f.erase, f.erasing = true, false // to be tried again
	f.mu.Unlock()
	return errors.Join(err, w.abandon())
}

func (w *words) renewStep(ctx context.Context) error {
	f := &w.follow
	f.mu.Lock()
	done := f.done
	if w.coming == nil {
		f.erase, f.erasing = false, true // what is forgotten from now on asks for another one
	}
	f.mu.Unlock()
	if w.coming == nil {
		return w.beginRenewal(done)
	}
	if w.coming.row >= done.row {
		return w.swap(ctx)
	}
	b := &wordBatch{}
	if err := w.s.readWords(ctx, b, `seq > ? AND seq <= ? ORDER BY seq LIMIT ?`, w.coming.row, done.row, followBatch); err != nil {
		return err
	}
	w.coming.row = b.to.row
	b.to.change = done.change
	return w.coming.write(b)
}

// beginRenewal starts an empty index.
func (w *words) beginRenewal(done cursor) error {
	next := &renewal{words: words{s: w.s, path: w.path + ".next", owner: w.owner}}
	if err := os.RemoveAll(next.path); err != nil { // of a process that was ended
		return fmt.Errorf("remove %s: %w", next.path, err)
	}
	if _, _, err := next.attach(); err != nil {
		return err
	}
	next.to.change = done.change
	w.coming = next
	return nil
}

// also brings what was applied to the old index into the new one, as far as it has come.
func (r *renewal) also(b *wordBatch) error {
	part := &wordBatch{gone: b.gone, to: cursor{r.row, b.to.change}}
	for _, d := range b.docs {
		if d.seq <= r.row {
			part.docs = append(part.docs, d)
		}
	}
	if part.to.change == r.to.change && len(part.docs) == 0 && len(part.gone) == 0 {
		return nil
	}
	return r.write(part)
}

func (r *renewal) write(b *wordBatch) error {
	b.to.row = r.row
	written, err := r.put(b)
	if err == nil {
		r.to = b.to
		r.follow.written = written
	}
	return err
}

// swap puts the new index in the place of the old one, whose files are removed, those that were set
// aside too. Questions wait meanwhile.
func (w *words) swap(ctx context.Context) error {
	select {
	case <-w.coming.follow.onDisk(): // closing would let go of what is not
	case <-ctx.Done():
		return ctx.Err()
	}
	old, err := filepath.Glob(w.path + ".broken-*")
	if err != nil {
		return err
	}
	w.coming.detach()
	w.mu.Lock()
	err = w.replaceFiles(append(old, w.path))
	w.mu.Unlock()
	w.coming = nil
	if err != nil {
		// Whatever is left is opened, or made anew from the rows.
		w.s.trouble("replace the lexical index", err)
		w.open()
	}
	f := &w.follow
	f.mu.Lock()
	f.erasing = false
	f.tick()
	f.mu.Unlock()
	return w.s.eraseDone(ctx)
}

// replaceFiles removes folders, moves the new index to its place and opens it; the caller holds mu.
func (w *words) replaceFiles(old []string) error {
	idx, queue := w.idx, w.queue
	w.idx, w.queue = nil, nil
	if idx != nil {
		if err := guarded(idx.Close); err != nil {
			w.s.errors.add("close lexical index", err)
		}
		queue.Close()
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	if err := os.Rename(w.coming.path, w.path); err != nil {
		return err
	}
	idx, queue, err := openScorch(w.path)
	if err != nil {
		return err
	}
	var cur cursor
	err = guarded(func() error {
		r, err := idx.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		cur, err = cursorOf(r)
		return err
	})
	if err == nil && cur != w.follow.reached() {
		err = fmt.Errorf("it has come to row %d, change %d", cur.row, cur.change)
	}
	if err != nil {
		queue.Close()
		return errors.Join(err, guarded(idx.Close))
	}
	w.idx, w.queue = idx, queue
	return nil
}

func (f *followState) reached() cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// abandon removes a renewal that is under way.
func (w *words) abandon() error {
	if w.coming == nil {
		return nil
	}
	w.coming.detach()
	path := w.coming.path
	w.coming = nil
	return os.RemoveAll(path)
}

// eraseSoon asks the follower to erase forgotten words from the files of the index.
func (w *words) eraseSoon() {
	w.follow.mu.Lock()
	defer w.follow.mu.Unlock()
	w.follow.erase = true
}

// eraseDone notes that nothing is left to erase, unless more was forgotten meanwhile.
func (s *Store) eraseDone(ctx context.Context) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.words.follow.mu.Lock()
	again := s.words.follow.erase
	s.words.follow.mu.Unlock()
	if again {
		return nil
	}
	_, err = execute(ctx, s.durable, `DELETE FROM state WHERE bucket='store' AND key='erase'`)
	return err
}
