package index

import (
	"math"
	"slices"
	"time"

	"hark/index/terms"
)

// View is a consistent reading of the columns in memory. It holds a read lock: close it soon,
// and do not call Append, Forget or SetVectors before that. What its methods return stays
// valid after Close. Safe for concurrent use until then.
type View struct {
	s *Store
	c *columns
}

// View opens a reading of the rows in memory; the caller closes it.
func (s *Store) View() *View {
	s.mu.RLock()
	return &View{s, s.cols}
}

// Close ends the reading. The View must not be used afterwards; closing again does nothing.
func (v *View) Close() {
	if v.c == nil {
		return
	}
	v.c = nil
	v.s.mu.RUnlock()
}

// Row returns the columns of a row of any kind.
func (v *View) Row(seq int64) (Row, bool) {
	i, ok := v.c.slot(seq)
	if !ok {
		return Row{}, false
	}
	return v.c.row(&v.c.rows[i]), true
}

// Doc returns the forward document of a row of any kind.
func (v *View) Doc(seq int64) (terms.Doc, bool) {
	i, ok := v.c.slot(seq)
	if !ok {
		return terms.Doc{}, false
	}
	return v.c.doc(&v.c.rows[i]), true
}

// Around returns the recallable messages before and after a recallable row in its episode, at
// most as many as asked for. Both are in order of time, so that the nearest of prev is its
// last and the nearest of next its first. Nil for other rows.
func (v *View) Around(seq int64, before, after int) (prev, next []int64) {
	i, ok := v.c.slot(seq)
	if !ok {
		return nil, nil
	}
	s, at, from, to, ok := v.c.bounds(int32(i))
	if !ok {
		return nil, nil
	}
	return v.seqs(s.talk[max(from, at-before):at]), v.seqs(s.talk[at+1 : min(to, at+1+after)])
}

func (v *View) seqs(slots []int32) []int64 {
	if len(slots) == 0 {
		return nil
	}
	out := make([]int64, len(slots))
	for i, slot := range slots {
		out[i] = v.c.rows[slot].seq
	}
	return out
}

// EpisodeKey names the episode of a recallable row and says where in it the row stands, counted
// from 0; ok is false for other rows.
func (v *View) EpisodeKey(seq int64) (key EpisodeKey, at int, ok bool) {
	i, ok := v.c.slot(seq)
	if !ok {
		return EpisodeKey{}, 0, false
	}
	s, at, from, _, ok := v.c.bounds(int32(i))
	if !ok {
		return EpisodeKey{}, 0, false
	}
	return EpisodeKey{v.c.names.byID[v.c.rows[i].session], v.c.rows[s.talk[from]].seq}, at - from, true
}

// Episode returns the episode of a recallable row, nil for others.
func (v *View) Episode(seq int64) *Episode {
	i, ok := v.c.slot(seq)
	if !ok {
		return nil
	}
	s, _, from, to, ok := v.c.bounds(int32(i))
	if !ok {
		return nil
	}
	return v.c.episode(v.c.rows[i].session, s.talk[from:to])
}

// Count adds how often the terms of a set occur in rows to counts, which has a place for each
// of them. Rows that do not exist count nothing.
func (v *View) Count(seqs []int64, set *terms.Set, counts []int) {
	for _, seq := range seqs {
		if i, ok := v.c.slot(seq); ok {
			set.Count(v.c.arena.bytes(v.c.rows[i].doc), counts)
		}
	}
}

// During lists the recallable rows with a time from from up to, and not including, to, in the
// order in which they were stored: nil where there are more than most.
func (v *View) During(from, to time.Time, most int) []int64 {
	a, b := from.UnixMilli(), to.UnixMilli()
	var out []int64
	for i := range v.c.rows {
		r := &v.c.rows[i]
		if r.time < a || r.time >= b || !r.talk() {
			continue
		}
		if len(out) == most {
			return nil
		}
		out = append(out, r.seq)
	}
	return out
}

// Newest is the time of the newest message that the filter admits, zero where there is none.
func (v *View) Newest(f Filter) time.Time {
	a, newest := v.c.admission(f), int64(math.MinInt64)
	for i := range v.c.rows {
		if r := &v.c.rows[i]; r.time > newest && !a.none && a.admits(r) {
			newest = r.time
		}
	}
	if newest == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMilli(newest)
}

// Stats describes the recallable messages, without computing anything.
func (v *View) Stats() Stats { return v.c.stats() }

// Scopes returns the scopes of the recallable messages, sorted.
func (v *View) Scopes() []string {
	out := make([]string, 0, len(v.c.scopes))
	for id := range v.c.scopes {
		out = append(out, v.c.names.byID[id])
	}
	slices.Sort(out)
	return out
}
