package engine

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hark/engine/mask"
	"hark/index"
)

// A long history that is handed over at once is not stored while the host waits: it is written down as
// it came but for its secrets, in one durable step, and its rows follow in the background, in the order of arrival. What
// was accepted survives a crash: the next engine over the store goes on with it.

// Limits of the journal.
const (
	journalFrom    = 1000    // new entries from which a history is stored in the background; they take about 0.2 s
	journalBytes   = 4 << 20 // bytes of their messages from which it is too
	journalBatch   = 100     // rows a transaction: a turn that is committed meanwhile waits for one of them
	journalChunk   = 100     // entries that are looked up and stored at a time: what else is stored meanwhile waits for them
	journalRetry   = 2 * time.Second
	journalLongest = time.Minute // between two tries
)

// The buckets of histories that were accepted and that could not be read again.
const (
	journalBucket = "journal"
	journalLost   = "journal-unreadable"
)

// accepted is a history in the journal: the layout of its value, which is a compressed gob, so that
// the bytes of messages stay what they were.
type accepted struct {
	Key, SessionID string
	Session        string
	From           int // entries before this one are stored already
	Complete       bool
	History        []HistoryEntry
}

// queued is what is known of a history in the journal without reading it.
type queued struct {
	name    string // its key in the journal
	session string // "" after a restart
	ends    bool   // nothing was said in its session since it was accepted
	entries int    // 0 after a restart
}

// journal stores accepted histories in the background. Safe for concurrent use.
type journal struct {
	e      *Engine
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{}
	group  sync.WaitGroup

	mu       sync.Mutex
	started  bool
	queue    []queued
	next     int
	progress chan struct{} // closed and replaced whenever a history was tried
	err      error         // of the last try
}

// startJournal goes on with what an earlier engine accepted.
func startJournal(ctx context.Context, e *Engine) (*journal, error) {
	names, err := e.store.StateKeys(ctx, journalBucket)
	if err != nil {
		return nil, err
	}
	j := &journal{e: e, log: e.log, kick: make(chan struct{}, 1), progress: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "%d", &n); err == nil {
			j.next = max(j.next, n+1)
		}
		j.queue = append(j.queue, queued{name: name})
	}
	if len(j.queue) > 0 {
		j.wake()
	}
	return j, nil
}

// wake starts the background where it does not run, and makes it look.
func (j *journal) wake() {
	j.mu.Lock()
	if !j.started && j.ctx.Err() == nil {
		j.started = true
		j.group.Go(j.run)
	}
	j.mu.Unlock()
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// close ends the background work, within ten seconds; what is left stays accepted.
func (j *journal) close() error {
	j.mu.Lock()
	j.cancel()
	j.mu.Unlock()
	done := make(chan struct{})
	go func() { j.group.Wait(); close(done) }()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errors.New("the storing of an accepted history did not stop within ten seconds")
	}
}

// long says whether a history is stored in the background: it is long, or one of its session waits.
func (j *journal) long(session string, h []HistoryEntry) bool {
	size := 0
	for i := range h {
		size += len(h[i].Message)
	}
	if len(h) >= journalFrom || size >= journalBytes {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.queue {
		if w.session == session {
			return true
		}
	}
	return false
}

// accept writes a history down. It is durable when accept returns.
func (j *journal) accept(ctx context.Context, a accepted) error {
	if !j.e.opts.KeepSecrets {
		a.History = slices.Clone(a.History)
		for i := range a.History {
			a.History[i].Message, _ = mask.JSON(a.History[i].Message)
		}
	}
	value, err := pack(a)
	if err != nil {
		return err
	}
	j.mu.Lock()
	name := fmt.Sprintf("%012d", j.next)
	j.next++
	j.mu.Unlock()
	if err := j.e.store.SetState(ctx, journalBucket, name, value); err != nil {
		return err
	}
	j.mu.Lock()
	j.queue = append(j.queue, queued{name, a.Session, a.Complete, len(a.History) - a.From})
	j.mu.Unlock()
	j.wake()
	return nil
}

// said notes that something else was stored in a session: a history of it that waits does not tell
// any more where the session ends.
func (j *journal) said(session string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.queue {
		if j.queue[i].session == session {
			j.queue[i].ends = false
		}
	}
}

// left counts the histories that wait and their entries as far as known, with what keeps them.
func (j *journal) left() (histories, entries int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.queue {
		entries += w.entries
	}
	return len(j.queue), entries, j.err
}

// wait returns when nothing waits any more, or with what keeps it from being stored.
func (j *journal) wait(ctx context.Context) error {
	for {
		j.mu.Lock()
		left, err, progress := len(j.queue), j.err, j.progress
		j.mu.Unlock()
		if left == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a history that was accepted is not stored yet: %w", err)
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.ctx.Done():
			return index.ErrClosed
		}
	}
}

func (j *journal) run() {
	for {
		select {
		case <-j.ctx.Done():
			return
		case <-j.kick:
		}
		for pause := journalRetry; ; {
			w, ok := j.first()
			if !ok {
				break
			}
			err := j.store(w)
			if j.ctx.Err() != nil {
				return
			}
			if errors.Is(err, index.ErrReadOnly) { // whoever may write stores it
				j.drop()
				return
			}
			j.settled(err)
			if err == nil {
				pause = journalRetry
				continue
			}
			j.log.Warn("an accepted history is not stored yet", "error", err, "retry", pause)
			timer := time.NewTimer(pause)
			select {
			case <-j.ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			pause = min(2*pause, journalLongest)
		}
	}
}

func (j *journal) first() (queued, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		return queued{}, false
	}
	return j.queue[0], true
}

// settled takes the first history off the queue, unless it failed.
func (j *journal) settled(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err = err; err == nil {
		j.queue = j.queue[1:]
	}
	close(j.progress)
	j.progress = make(chan struct{})
}

func (j *journal) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = nil
	close(j.progress)
	j.progress = make(chan struct{})
}

// store makes rows of a history and takes it out of the journal. Doing it again changes nothing.
func (j *journal) store(w queued) error {
	value, err := j.e.store.State(j.ctx, journalBucket, w.name)
	if err != nil {
		return err
	}
	var a accepted
	if len(value) > 0 {
		if a, err = unpack(value); err != nil {
			j.log.Error("an accepted history cannot be read and is kept aside", "name", w.name, "error", err)
			if err := j.e.store.SetState(j.ctx, journalLost, w.name, value); err != nil {
				return err
			}
			a = accepted{}
		}
	}
	if len(a.History) > 0 {
		done, err := j.e.saveHistory(j.ctx, a, func() bool { return j.ends(w.name) }, journalBatch)
		if err != nil {
			return err
		}
		j.log.Info("history stored", "entries", len(a.History), "new", done.New, "duplicate", done.Duplicate)
		if err := j.e.noteEntries(j.ctx, a.Session, a.SessionID, a.History); err != nil {
			j.log.Warn("stored pages not noted", "error", err)
		}
	}
	return j.e.store.SetState(j.ctx, journalBucket, w.name, nil)
}

func (j *journal) ends(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) > 0 && j.queue[0].name == name && j.queue[0].ends
}

// saveHistory stores a page of a transcript. ends is asked when its last entry is there; batch is how
// many rows go into a transaction.
func (e *Engine) saveHistory(ctx context.Context, a accepted, ends func() bool, batch int) (saved, error) {
	from := max(0, a.From-1) // the last one that is stored tells where the new ones follow
	step := len(a.History) - from
	if batch == journalBatch {
		step = journalChunk
	}
	var total saved
	for {
		partial := a.History[0].Seq > 1 || from > 0
		end := turnEnd(a.History, from+step)
		d := delivery{key: a.Key, sessionID: a.SessionID, partial: partial, page: true, batch: batch, ends: end == len(a.History) && ends()}
		for _, h := range a.History[from:end] {
			d.items = append(d.items, item{
				raw:     h.Message,
				seq:     h.Seq,
				created: parseTime(quoted(h.CreatedAt)),
				place:   place{entryID: h.EntryID, parent: h.ParentID, idem: h.IdempotencyKey},
			})
		}
		done, err := e.save(ctx, d)
		total.New += done.New
		total.Duplicate += done.Duplicate
		total.Updated += done.Updated
		total.skipped += done.skipped
		if err != nil || end == len(a.History) {
			return total, err
		}
		from = end - 1 // neighbours tell of the branch
	}
}

// turnEnd is a place near end where no turn is cut in two, as far as the entries tell.
func turnEnd(h []HistoryEntry, end int) int {
	for n := min(len(h), end); n < min(len(h), end+journalChunk); n++ {
		if h[n].Role == "user" {
			return n
		}
	}
	return min(len(h), end)
}

// unknown counts the entries of a history that are not known by their ids.
func (e *Engine) unknown(ctx context.Context, session string, h []HistoryEntry) (int, error) {
	n := 0
	var keys []string
	for i := range h {
		if h[i].EntryID == "" {
			n++
			continue
		}
		keys = append(keys, entryKey(session, h[i].EntryID))
	}
	rows, err := e.store.Known(ctx, keys...)
	for _, seq := range rows {
		if seq == index.Unknown {
			n++
		}
	}
	return n, err
}

// Settle waits until every accepted history is stored. Turns do not need it.
func (e *Engine) Settle(ctx context.Context) error { return e.journal.wait(ctx) }

func pack(a accepted) ([]byte, error) {
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gob.NewEncoder(w).Encode(a), w.Close()); err != nil {
		return nil, fmt.Errorf("write a history down: %w", err)
	}
	return buf.Bytes(), nil
}

func unpack(value []byte) (a accepted, err error) {
	r := flate.NewReader(bytes.NewReader(value))
	defer r.Close()
	err = gob.NewDecoder(r).Decode(&a)
	return a, err
}
