package engine

import (
	"context"

	"hark/index"
)

// repetitions numbers the messages of one delivery that their time does not tell from others, where the
// delivery comes without the history before it: the pages of a long import, and turns. What is said
// again is stored under the next number that no other event has.
type repetitions struct {
	e       *Engine
	session string
	taken   map[string]int // by content: numbers up to this one are other events'
}

// repeated is what is remembered between the pages of one session's import, so that a page does not
// look up what the page before did. Only messages that have an entry are counted: their numbers are
// other events' for every entry that is not stored yet.
type repeated struct {
	session string
	taken   map[string]int
}

const (
	maxRepeated    = 1 << 14 // contents remembered of a session
	lookedUpAtOnce = 64
)

// keys finds the keys of one message: those of its content are of the first number that is free, or
// that a message has which does not contradict it. The caller holds Engine.ingest.
func (r *repetitions) keys(ctx context.Context, m *message, mark string, at place, nth int, keys []string) []string {
	own := keys[:len(keys)-1]
	if m.role == "summary" {
		return keys
	}
	if at.entryID != "" && len(own) > 0 {
		if rows, err := r.e.store.Known(ctx, own...); err == nil && storedAs(rows) {
			return own // it is known by its place, and its content has its number
		}
	}
	base := contentKey(r.session, m.role, mark, m.millis(), 1)
	lasting := at.entryID != "" && m.at.IsZero()
	from := max(nth, r.taken[base]+1)
	if lasting {
		from = max(from, r.e.repeats.of(r.session, base)+1)
	}
	n := r.free(ctx, m, mark, at, from)
	r.taken[base] = n
	if lasting {
		r.e.repeats.note(r.session, base, n)
	}
	return identify(r.session, m, mark, at, n)
}

func storedAs(rows []int64) bool {
	for _, seq := range rows {
		if seq != index.Unknown {
			return true
		}
	}
	return false
}

// free is the first number from n that the message may have.
func (r *repetitions) free(ctx context.Context, m *message, mark string, at place, n int) int {
	mine := identify(r.session, m, mark, at, 1)
	for ; ; n += lookedUpAtOnce {
		contents := make([]string, lookedUpAtOnce)
		for i := range contents {
			contents[i] = contentKey(r.session, m.role, mark, m.millis(), n+i)
		}
		rows, err := r.e.store.Lookup(ctx, contents...)
		if err != nil {
			return n
		}
		stored := rows
		for i, seq := range rows {
			if seq == 0 {
				stored = rows[:i]
				break
			}
		}
		found, err := r.e.store.Get(ctx, stored...)
		if err != nil {
			return n
		}
		for i := range found {
			if !contradicts(found[i].Keys, mine, m.at.IsZero()) {
				return n + i
			}
		}
		if len(stored) < len(rows) {
			return n + len(stored)
		}
	}
}

func (r *repeated) of(session, content string) int {
	if r.session != session {
		return 0
	}
	return r.taken[content]
}

func (r *repeated) note(session, content string, n int) {
	if r.session != session || len(r.taken) >= maxRepeated {
		r.session, r.taken = session, map[string]int{}
	}
	r.taken[content] = n
}
