package engine

import (
	"context"
	"slices"

	"hark/index"
)

// maxLookups bounds how many of the kept messages are looked up in one call, newest first; found
// ones are remembered, so that only the first call of a long session meets the bound.
const maxLookups = 512

// screen is what the kept messages show already.
type screen struct {
	rows    map[int64]bool
	texts   map[string]bool
	session string
	from    int64 // times of the first and last kept message, Unix milliseconds
	to      int64
}

// onScreen finds the rows that the kept messages are. A host shows messages in a changed form, so
// three things count: the identity, the same text, and the same session within the window's times.
func (e *Engine) onScreen(ctx context.Context, c recallCall) screen {
	s := screen{rows: map[int64]bool{}, texts: map[string]bool{}, session: c.scope.Session}
	number := map[string]int{}
	keys := make([]string, 0, len(c.messages)-c.start)
	for i, m := range c.messages {
		base := contentKey(s.session, m.role, m.print, m.ms, 1)
		number[base]++
		if i < c.start {
			continue
		}
		keys = append(keys, contentKey(s.session, m.role, m.print, m.ms, number[base]))
		s.texts[m.text] = true
		if m.ms > 0 && (m.role == "user" || m.role == "assistant") {
			if s.from == 0 || m.ms < s.from {
				s.from = m.ms
			}
			s.to = max(s.to, m.ms)
		}
	}
	for _, k := range c.kept {
		for _, p := range k.parts {
			s.rows[p.Row] = true
		}
	}
	var missing []string
	e.mu.Lock()
	for _, key := range slices.Backward(keys) {
		if seq := e.stored[key]; seq > 0 {
			s.rows[seq] = true
		} else if len(missing) < maxLookups {
			missing = append(missing, key)
		}
	}
	e.mu.Unlock()
	if len(missing) == 0 {
		return s
	}
	seqs, err := e.store.Lookup(ctx, missing...)
	if err != nil {
		e.log.Warn("kept messages not looked up", "error", err)
		return s
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
		}
	}
	return s
}

// shows reports that a stored message need not be recalled.
func (s screen) shows(m index.Message) bool {
	if s.rows[m.Seq] || s.texts[textPrint(m.Text)] {
		return true
	}
	if m.Session != s.session || s.to == 0 || m.TimeSource == index.FromIngest {
		return false
	}
	at := m.Time.UnixMilli()
	return at >= s.from && at <= s.to
}
