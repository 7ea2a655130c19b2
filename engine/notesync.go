package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"hark/engine/mask"
	"hark/index"
	"hark/memorybridge"
)

const (
	// syncBatch is how many chunks go into one transaction.
	syncBatch = 500
	// racy is how old a file's time has to be when it is read for a change after it to be certain to
	// show in time or size: file systems keep times to two seconds at worst.
	racy = 2 * time.Second
)

// syncing is one sync and who waits for it.
type syncing struct {
	force bool
	done  chan struct{}
	out   MemorySynced // when done
	err   error
}

// start begins a sync, or returns the one that will begin after this call when one runs already.
// Syncs outlive their callers: what a caller gave up waiting for is there for the next.
func (nb *notebook) start(reason string, force bool) *syncing {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	if nb.closed {
		s := &syncing{done: make(chan struct{}), err: index.ErrClosed}
		close(s.done)
		return s
	}
	if nb.running != nil {
		if nb.next == nil {
			nb.next = &syncing{done: make(chan struct{})}
		}
		nb.next.force = nb.next.force || force
		return nb.next
	}
	s := &syncing{force: force, done: make(chan struct{})}
	nb.running = s
	nb.tasks.Go(func() { nb.syncLoop(reason) })
	return s
}

// syncLoop runs the sync that is due, and those that were asked for meanwhile.
func (nb *notebook) syncLoop(reason string) {
	for {
		nb.mu.Lock()
		s := nb.running
		nb.mu.Unlock()
		started := nb.now()
		s.out, s.err = nb.sync(nb.ctx, s.force)
		s.out.Ms = nb.now().Sub(started).Milliseconds()
		if s.err != nil && nb.ctx.Err() == nil {
			nb.log.Warn("memory files not read", "reason", reason, "error", s.err)
		} else if s.out.Added+s.out.Changed+s.out.Removed > 0 {
			nb.log.Debug("memory files read", "reason", reason, "files", s.out.Files, "added", s.out.Added, "changed", s.out.Changed, "removed", s.out.Removed, "ms", s.out.Ms)
		}
		close(s.done)
		nb.mu.Lock()
		nb.running, nb.next = nb.next, nil
		more := nb.running != nil
		nb.mu.Unlock()
		if !more {
			return
		}
	}
}

// wait waits for a sync as long as ctx allows and no longer than limit (0: as ctx allows). done is
// false where it goes on.
func (s *syncing) wait(ctx context.Context, limit time.Duration) (done bool, err error) {
	if limit <= 0 {
		select {
		case <-s.done:
			return true, s.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
		return true, s.err
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// sync brings the index to what the files say now.
func (nb *notebook) sync(ctx context.Context, force bool) (MemorySynced, error) {
	nb.mu.Lock()
	ws := nb.ws
	nb.dirty = false
	nb.mu.Unlock()
	var out MemorySynced
	var err error
	if force {
		err = nb.clear(ctx)
	}
	if err == nil {
		out, err = nb.compare(ctx, ws)
	}
	nb.mu.Lock()
	defer nb.mu.Unlock()
	if err != nil {
		nb.dirty = true
		return out, err
	}
	for _, path := range nb.sortedPaths() {
		if p := nb.files[path].Problem; p != "" {
			out.Problems = append(out.Problems, p)
		}
	}
	nb.problems = out.Problems
	nb.synced = nb.now()
	out.Files, out.Chunks = len(nb.files), len(nb.chunks)
	return out, nil
}

// clear removes all chunks, and their words from the files of the index.
func (nb *notebook) clear(ctx context.Context) error {
	b := &syncBatching{nb: nb, ctx: ctx}
	nb.mu.Lock()
	paths := nb.sortedPaths()
	nb.mu.Unlock()
	for _, path := range paths {
		b.gone(path)
	}
	return b.flush()
}

// compare goes through the files.
func (nb *notebook) compare(ctx context.Context, ws memorybridge.Workspace) (out MemorySynced, err error) {
	files, problems, err := ws.Files(ctx)
	if err != nil {
		return out, err
	}
	for _, p := range problems {
		out.Problems = append(out.Problems, problem(p.Path, p.Err))
	}
	b := &syncBatching{nb: nb, ctx: ctx, out: &out}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Path] = true
		if err := b.file(ws, f); err != nil {
			return out, err
		}
	}
	if err := b.flush(); err != nil {
		return out, err
	}
	nb.mu.Lock()
	paths := nb.sortedPaths()
	nb.mu.Unlock()
	for _, path := range paths {
		if !there[path] || b.unreadable[path] {
			b.gone(path)
			out.Removed++
		}
	}
	return out, b.flush()
}

// problem words a file that could not be read. The error's own path is left out: it is absolute.
func problem(path string, err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return path + ": " + err.Error()
}

// syncBatching collects the changes of files into transactions.
type syncBatching struct {
	nb         *notebook
	ctx        context.Context
	out        *MemorySynced
	unreadable map[string]bool

	rows  []index.Message
	files map[string]*noted // nil: gone
	old   []string          // keys that are no longer
	erase bool
}

// file takes in one file if it has changed.
func (b *syncBatching) file(ws memorybridge.Workspace, f memorybridge.File) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	b.nb.mu.Lock()
	was := b.nb.files[f.Path]
	b.nb.mu.Unlock()
	if was != nil && was.Size == f.Size && was.ModMs == f.ModTime.UnixMilli() && was.Class == f.Class &&
		was.Read-was.ModMs > racy.Milliseconds() {
		return nil
	}
	now := b.nb.now()
	f, data, err := ws.Read(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went meanwhile; the next sync sees it gone
	}
	if err != nil {
		if b.unreadable == nil {
			b.unreadable = map[string]bool{}
		}
		b.unreadable[f.Path] = true
		b.out.Problems = append(b.out.Problems, problem(f.Path, err))
		return nil
	}
	sum := sha256.Sum256(data)
	next := &noted{Size: f.Size, ModMs: f.ModTime.UnixMilli(), Hash: hex.EncodeToString(sum[:12]), Read: now.UnixMilli(), Class: f.Class}
	if was != nil && was.Hash == next.Hash && was.Class == next.Class {
		if was.Size == next.Size && was.ModMs == next.ModMs && next.Read-next.ModMs <= racy.Milliseconds() {
			return nil // it is read again as long as it is young; that needs no writing down
		}
		next.Private, next.Title, next.Problem, next.Chunks = was.Private, was.Title, was.Problem, was.Chunks
		b.put(f.Path, next)
		return nil
	}
	text, ok := memorybridge.Decode(data)
	if !ok {
		next.Problem = f.Path + ": this is no text"
	}
	doc := memorybridge.Parse(f.Path, text)
	rows, list, private := chunkRows(f.Path, f.Class, doc)
	if !b.nb.keepSecrets { // by chunk: the line numbers are the file's
		for i := range rows {
			rows[i].Text, _ = mask.Text(rows[i].Text)
		}
		doc.Title, _ = mask.Text(doc.Title)
	}
	next.Private, next.Title, next.Chunks = private, doc.Title, list
	b.change(f.Path, was, next, rows)
	if was == nil {
		b.out.Added++
	} else {
		b.out.Changed++
	}
	if len(b.rows) >= syncBatch {
		return b.flush()
	}
	return nil
}

// change takes in what is new of a file, and marks what is no longer.
func (b *syncBatching) change(path string, was, next *noted, rows []index.Message) {
	had, has := map[string]bool{}, map[string]bool{}
	if was != nil {
		for _, c := range was.Chunks {
			had[c.Key] = true
		}
	}
	for i, c := range next.Chunks {
		has[c.Key] = true
		if !had[c.Key] {
			b.rows = append(b.rows, rows[i])
		}
	}
	for key := range had {
		if !has[key] {
			b.old = append(b.old, key)
		}
	}
	b.put(path, next)
}

func (b *syncBatching) put(path string, f *noted) {
	if b.files == nil {
		b.files = map[string]*noted{}
	}
	b.files[path] = f
}

// gone removes a file. Its words are erased: a file that is deleted is meant to be gone.
func (b *syncBatching) gone(path string) {
	b.nb.mu.Lock()
	was := b.nb.files[path]
	b.nb.mu.Unlock()
	if was == nil {
		return
	}
	for _, c := range was.Chunks {
		b.old = append(b.old, c.Key)
	}
	b.erase = b.erase || len(was.Chunks) > 0
	b.put(path, nil)
}

// flush stores what was collected: the new rows, the manifest, and then the end of the old rows. A
// crash between these leaves rows that are not noted, which the next open notices.
func (b *syncBatching) flush() error {
	nb := b.nb
	for from := 0; from < len(b.rows); from += syncBatch {
		page := b.rows[from:min(from+syncBatch, len(b.rows))]
		done, err := nb.store.Append(b.ctx, index.Batch{Messages: page})
		if err != nil {
			return fmt.Errorf("store chunks: %w", err)
		}
		if nb.worker != nil {
			nb.worker.follow(b.ctx, page, done.Seqs)
		}
	}
	if len(b.files) == 0 {
		return nil
	}
	values := map[string][]byte{}
	for path, f := range b.files {
		values[path] = nil
		if f != nil {
			value, err := json.Marshal(f)
			if err != nil {
				return err
			}
			values[path] = value
		}
	}
	if err := nb.store.SetStates(b.ctx, "files", values); err != nil {
		return err
	}
	nb.mu.Lock()
	for path, f := range b.files {
		nb.note(path, f)
	}
	nb.mu.Unlock()
	keys := make([]string, len(b.old))
	for i, key := range b.old {
		keys[i] = "chunk:" + key
	}
	seqs, err := nb.store.Lookup(b.ctx, keys...)
	if err != nil {
		return err
	}
	there := seqs[:0]
	for _, seq := range seqs {
		if seq > 0 {
			there = append(there, seq)
		}
	}
	if _, err := nb.store.Discard(b.ctx, there, b.erase); err != nil {
		return fmt.Errorf("remove chunks: %w", err)
	}
	b.rows, b.files, b.old, b.erase = nil, nil, nil, false
	return nil
}
