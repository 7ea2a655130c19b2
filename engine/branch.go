package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"hark/index"
)

// A host's transcript is a tree, and a conversation one way from its root to a leaf. When the person
// goes back and says something else, what followed before is cut off: it happened, so its rows stay,
// but it is nobody's memory any more. Hark learns of that from the entry that a message follows, and
// from pages of the transcript, which hold neighbours of the way that counts.

// cutRow is a row on a branch that was cut, with the kind it has otherwise.
type cutRow struct {
	Row  int64      `json:"row"`
	Kind index.Kind `json:"kind"`
}

// branching is what a delivery tells about the tree: its rows follow each other on the active branch.
type branching struct {
	session, sessionID string
	parent             string  // entry that the first row follows, "" where unknown
	rows               []int64 // in order
	page               bool    // of the transcript: every row has its entry
	ends               bool    // the branch ends with the last row
}

// follow brings the rows off the active branch, and back onto it, up to date.
func (e *Engine) follow(ctx context.Context, b branching) error {
	b.rows = slices.DeleteFunc(slices.Clone(b.rows), func(seq int64) bool { return seq <= 0 })
	if len(b.rows) == 0 {
		return nil
	}
	e.branches.Lock()
	defer e.branches.Unlock()
	cut, err := e.cutRows(ctx, b.session)
	if err != nil {
		return err
	}
	back := slices.DeleteFunc(slices.Clone(cut), func(c cutRow) bool { return !slices.Contains(b.rows, c.Row) })
	off, err := e.offBranch(ctx, b)
	if err != nil || len(back) == 0 && len(off) == 0 {
		return err
	}
	for _, c := range back {
		if _, err := e.store.SetKind(ctx, c.Kind, c.Row); err != nil {
			return err
		}
	}
	cut = slices.DeleteFunc(cut, func(c cutRow) bool { return slices.Contains(b.rows, c.Row) })
	var gone []int64
	for _, m := range off {
		cut, gone = append(cut, cutRow{m.Seq, m.Kind}), append(gone, m.Seq)
	}
	value, err := json.Marshal(cut)
	if err != nil {
		return err
	}
	if len(cut) == 0 {
		value = nil
	}
	// The kinds are noted before they are lost.
	if err := e.store.SetState(ctx, "cut", b.session, value); err != nil {
		return err
	}
	if _, err := e.store.SetKind(ctx, index.Noise, gone...); err != nil {
		return err
	}
	if len(back) > 0 && e.worker != nil {
		e.worker.wake()
	}
	e.log.Debug("branch of a transcript changed", "cut", len(gone), "restored", len(back))
	return nil
}

func (e *Engine) cutRows(ctx context.Context, session string) (cut []cutRow, err error) {
	value, err := e.store.State(ctx, "cut", session)
	if err != nil || len(value) == 0 {
		return nil, err
	}
	if err := json.Unmarshal(value, &cut); err != nil {
		e.log.Warn("record of cut branches was unreadable and is dropped", "error", err)
		return nil, nil
	}
	return cut, nil
}

// offBranch lists the memory that lies between rows of the active branch, in time and in order of
// storage, without being on it. Rows of another transcript of the session, and such that never had
// an entry, are left alone.
func (e *Engine) offBranch(ctx context.Context, b branching) ([]index.Message, error) {
	const chunk = 256
	first, last, err := e.ends(ctx, &b)
	if err != nil || first.Seq == 0 {
		return nil, err
	}
	var off []index.Message
	follows := false // the row before was cut off too
	for after := first.Seq; ; {
		rows, err := e.store.Session(ctx, b.session, after, chunk)
		if err != nil {
			return nil, err
		}
		for _, m := range rows {
			after = m.Seq
			if m.SessionID != hideInID(b.sessionID) || slices.Contains(b.rows, m.Seq) {
				follows = false
				continue
			}
			if !b.ends && !m.Time.Before(last.Time) {
				return off, nil
			}
			inside := m.Seq > first.Seq && (b.ends || m.Seq < last.Seq)
			known := keyOf(m.Keys, "entry:") != "" || (follows || !b.page) && keyOf(m.Keys, "pos:") != ""
			if inside && known && (m.Kind == index.Said || m.Kind == index.Tool) {
				off, follows = append(off, m), true
			}
		}
		if len(rows) < chunk {
			return off, nil
		}
	}
}

// ends finds the rows between which to look: the parent or the first row, and the last one. Of a
// turn whose parent is not stored nothing can be told.
func (e *Engine) ends(ctx context.Context, b *branching) (first, last index.Message, err error) {
	from := int64(0)
	if b.parent != "" {
		seqs, err := e.store.Lookup(ctx, "entry:"+oneLine(b.session)+"/"+oneLine(b.parent))
		if err != nil {
			return first, last, err
		}
		from = seqs[0]
	}
	if from == 0 && b.page {
		from = b.rows[0]
	}
	to := b.rows[len(b.rows)-1]
	if !b.page {
		to = b.rows[0] // within a turn nothing is off the branch
	}
	if from == 0 {
		return first, last, nil
	}
	rows, err := e.store.Get(ctx, from, to)
	if err != nil {
		return first, last, err
	}
	return rows[0], rows[1], nil
}

// branch reads out of a delivery what it tells about the tree; ok is false where that is nothing.
func (d delivery) branch(session string, rows []int64) (b branching, ok bool) {
	if len(d.items) == 0 || d.items[0].place.entryID == "" || len(rows) == 0 {
		return b, false
	}
	b = branching{session: session, sessionID: d.sessionID, parent: strings.TrimSpace(d.items[0].place.parent), rows: rows, page: d.page, ends: d.ends}
	return b, b.page || b.parent != ""
}

// abortBefore makes noise of the user message that a page's first messages answer, where they come to
// nothing: the page before ended within the turn and could not tell.
func (e *Engine) abortBefore(ctx context.Context, d delivery, session string, msgs []message) error {
	head := msgs
	if i := slices.IndexFunc(msgs, func(m message) bool { return m.role == "user" }); i >= 0 {
		head = msgs[:i]
	}
	if !d.page || !isFailedTurn(head) || d.items[0].place.parent == "" {
		return nil
	}
	seqs, err := e.store.Lookup(ctx, "entry:"+oneLine(session)+"/"+oneLine(d.items[0].place.parent))
	if err != nil || seqs[0] == 0 {
		return err
	}
	rows, err := e.store.Get(ctx, seqs[0])
	if err != nil || rows[0].Role != "user" || rows[0].Kind != index.Said {
		return err
	}
	_, err = e.store.SetKind(ctx, index.Noise, seqs[0])
	return err
}
