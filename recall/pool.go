package recall

import (
	"cmp"
	"slices"

	"hark/index"
	"hark/index/terms"
)

// unseen leaves out what is on screen: the confidence is about what recall could add to that.
func unseen(pool []*candidate, shown map[int64]bool) []*candidate {
	if len(shown) == 0 {
		return pool
	}
	return slices.DeleteFunc(slices.Clone(pool), func(c *candidate) bool { return shown[c.seq] })
}

// order sorts candidates, best first; equal ones by row.
func order(pool []*candidate) {
	slices.SortFunc(pool, func(a, b *candidate) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.seq, b.seq)) })
}

// pool is the union of the hits of both legs, the neighbours of the lexical ones (a short
// answer may hold no word of its question).
func (s *Searcher) pool(v *index.View, r Request, q []terms.QueryTerm, l *legs, t times) []*candidate {
	var pool []*candidate
	at := map[int64]*candidate{}
	add := func(seq int64) *candidate {
		if c, ok := at[seq]; ok {
			return c
		}
		row, ok := v.Row(seq)
		if !ok || !admits(r.Filter, row) {
			return nil
		}
		c := &candidate{seq: seq, row: row}
		at[seq] = c
		pool = append(pool, c)
		return c
	}
	for i, h := range l.words.Hits {
		if c := add(h.Seq); c != nil {
			c.lexRank = i + 1
		}
	}
	for i, h := range l.near.Hits {
		if c := add(h.Seq); c != nil {
			c.denseRnk = i + 1
		}
	}
	for _, h := range l.words.Hits[:min(s.w.NeighbourPool, len(l.words.Hits))] {
		prev, next := v.Around(h.Seq, 1, 1)
		for _, n := range append(prev, next...) {
			add(n)
		}
	}
	s.during(v, r, t, q, add)
	for i := 0; i < len(pool) && len(pool) < smallPool; i++ {
		if e := v.Episode(pool[i].seq); e != nil {
			for _, n := range e.Seqs {
				add(n)
			}
		}
	}
	return pool
}

// smallPool is the number of candidates up to which the episodes of the hits are looked at
// whole: few hits mean few shared words, and the answer may stand next to them.
const smallPool = 100

// admits repeats the filter of the legs for rows that came by another way.
func admits(f index.Filter, row index.Row) bool {
	if f.Session != "" && row.Session != f.Session {
		return false
	}
	kind := len(f.Kinds) == 0 && (row.Kind == index.Said || row.Kind == index.Tool)
	for _, k := range f.Kinds {
		kind = kind || row.Kind == k
	}
	if !kind || f.AllScopes {
		return kind
	}
	return slices.Contains(f.Scopes, row.Scope)
}
