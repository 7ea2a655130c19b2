package engine

import (
	"context"

	"hark/index"
)

// screen is what the kept messages show already.
type screen struct {
	rows    map[int64]bool
	texts   map[string]bool
	session string
	times   map[int64]bool // of the kept messages that people and the model wrote, Unix milliseconds
}

// onScreen finds the rows that the kept messages are. A host shows messages in a changed form, so
// three things count: the identity, the same text, and the same moment of the same session. The first
// two are known before the search, so that what is on screen takes no place among its results.
func (e *Engine) onScreen(ctx context.Context, c recallCall) screen {
	s := screen{rows: map[int64]bool{}, texts: map[string]bool{}, session: c.scope.Session, times: map[int64]bool{}}
	shown := make([]bool, len(c.messages))
	for _, i := range c.window.kept(len(c.messages)) {
		shown[i] = true
	}
	number := map[string]int{}
	var keys, texts []string // the text is "" where nobody wrote it
	for i, m := range c.messages {
		base := contentKey(s.session, m.role, m.print, m.ms, 1)
		number[base]++
		if !shown[i] {
			continue
		}
		keys = append(keys, contentKey(s.session, m.role, m.print, m.ms, number[base]))
		if m.role == "user" || m.role == "assistant" && len(m.calls) == 0 {
			texts = append(texts, m.text)
		} else {
			texts = append(texts, "")
		}
		s.texts[m.text] = true
		if m.ms > 0 && (m.role == "user" || m.role == "assistant") {
			s.times[m.ms] = true
		}
	}
	for _, k := range c.kept {
		for _, p := range k.parts {
			s.rows[p.Row] = true
		}
	}
	if unknown := e.lookUp(ctx, s, keys, texts); len(unknown) > 0 {
		e.saidAlike(ctx, s, unknown)
	}
	return s
}

// lookUp adds the rows of the keys and returns the texts of those that have none.
func (e *Engine) lookUp(ctx context.Context, s screen, keys, texts []string) (unknown []string) {
	var missing, theirs []string
	e.mu.Lock()
	for i, key := range keys {
		if seq := e.stored[key]; seq > 0 {
			s.rows[seq] = true
		} else {
			missing, theirs = append(missing, key), append(theirs, texts[i])
		}
	}
	e.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	seqs, err := e.store.Lookup(ctx, missing...)
	if err != nil {
		e.log.Warn("kept messages not looked up", "error", err)
		return theirs
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.stored)+len(seqs) > maxMeasures {
		clear(e.stored)
	}
	for i, seq := range seqs {
		if seq > 0 {
			s.rows[seq] = true
			e.stored[missing[i]] = seq
		} else if theirs[i] != "" {
			unknown = append(unknown, theirs[i])
		}
	}
	return unknown
}

// alike are the rows of one session by the print of their text, as far as they were read.
type alike struct {
	last int64 // row that was read last, in the order of the session
	rows map[string][]int64
}

// maxAlike bounds the rows that are kept so, of all sessions.
const maxAlike = 200_000

// saidAlike adds the rows of the session that say what a kept message says to which no key leads: of
// a host without timestamps, or one that writes others. What cannot be read in a quarter of the
// deadline is read in the session's next turns.
func (e *Engine) saidAlike(ctx context.Context, s screen, texts []string) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Deadline/4)
	defer cancel()
	e.alikes.Lock()
	defer e.alikes.Unlock()
	a := e.alike[s.session]
	if a == nil {
		a = &alike{rows: map[string][]int64{}}
		e.alike[s.session] = a
	}
	for {
		rows, err := e.store.Session(ctx, s.session, a.last, selectChunk)
		if err != nil {
			e.log.Debug("kept messages not all compared with what is stored", "error", err)
			break
		}
		for _, m := range rows {
			a.last = m.Seq
			if m.Text != "" {
				text := textPrint(m.Text)
				a.rows[text] = append(a.rows[text], m.Seq)
			}
		}
		if e.alikeRows += len(rows); len(rows) < selectChunk {
			break
		}
	}
	for _, text := range texts {
		for _, row := range a.rows[text] {
			s.rows[row] = true
		}
	}
	if e.alikeRows > maxAlike {
		clear(e.alike)
		e.alikeRows = 0
	}
}

// shows reports that a stored message need not be recalled.
func (s screen) shows(m index.Message) bool {
	if s.rows[m.Seq] || s.texts[textPrint(m.Text)] {
		return true
	}
	return m.Session == s.session && m.TimeSource != index.FromIngest && s.times[m.Time.UnixMilli()]
}
