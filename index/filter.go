package index

import (
	"math/bits"
	"slices"

	"github.com/blevesearch/bleve/v2/search/query"
)

// admission is a Filter resolved against the columns.
type admission struct {
	none    bool     // admits nothing
	any     bool     // of the scopes
	scopes  []uint32 // ascending, unless any
	names   []string // of scopes
	session uint32
	lineage string // "" : any
	kinds   [Noise + 1]bool
	narrow  bool // kinds leave out Said or Tool
}

// admission resolves a filter; the caller holds Store.mu. A filter that names every scope
// there is costs nothing.
func (c *columns) admission(f Filter) admission {
	a := admission{lineage: f.Session}
	if len(f.Kinds) == 0 {
		a.kinds[Said], a.kinds[Tool] = true, true
	}
	for _, k := range f.Kinds {
		if recallable(k) {
			a.kinds[k] = true
		}
	}
	a.narrow = !a.kinds[Said] && c.kinds[Said] > 0 || !a.kinds[Tool] && c.kinds[Tool] > 0
	a.none = !a.kinds[Said] && !a.kinds[Tool]
	if f.Session != "" {
		id, ok := c.names.ids[f.Session]
		a.session = id
		a.none = a.none || !ok
	}
	if a.any = f.AllScopes; a.any {
		return a
	}
	for _, s := range f.Scopes {
		if id, ok := c.names.ids[s]; ok && c.scopes[id] > 0 && !slices.Contains(a.scopes, id) {
			a.scopes = append(a.scopes, id)
			a.names = append(a.names, s)
		}
	}
	slices.Sort(a.scopes)
	a.none = a.none || len(a.scopes) == 0
	if len(a.scopes) == len(c.scopes) {
		a.names = nil // scopes stays: a new scope may appear meanwhile
	}
	return a
}

func (a *admission) admits(r *rec) bool {
	return r.talk() && a.kinds[r.kind] && (a.any || a.hasScope(r.scope)) && (a.lineage == "" || r.session == a.session)
}

func (a *admission) hasScope(id uint32) bool {
	if len(a.scopes) == 1 { // the common case, asked once a row
		return a.scopes[0] == id
	}
	_, ok := slices.BinarySearch(a.scopes, id)
	return ok
}

// query is the filter for the lexical index, nil where every message passes.
func (a *admission) query() query.Query {
	var all []query.Query
	term := func(field, value string) query.Query {
		q := query.NewTermQuery(value)
		q.SetField(field)
		return q
	}
	if len(a.names) > 0 {
		var scopes []query.Query
		for _, s := range a.names {
			scopes = append(scopes, term(fieldScope, s))
		}
		all = append(all, query.NewDisjunctionQuery(scopes))
	}
	if a.lineage != "" {
		all = append(all, term(fieldSession, a.lineage))
	}
	if a.narrow {
		for k := Said; k <= Tool; k++ {
			if a.kinds[k] {
				all = append(all, term(fieldKind, kindTerm(k)))
			}
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return query.NewConjunctionQuery(all)
}

// bitset is a set of slots.
type bitset []uint64

func (b *bitset) add(i int) {
	for i>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b bitset) drop(i int) {
	if i>>6 < len(b) {
		b[i>>6] &^= 1 << (i & 63)
	}
}

func (b bitset) has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 == 1 }

func (b bitset) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// admitted lists the slots that a filter admits; the caller holds Store.mu.
func (c *columns) admitted(f Filter) bitset {
	a := c.admission(f)
	if a.none {
		return nil
	}
	set := make(bitset, (len(c.rows)+63)/64)
	if a.lineage != "" {
		if ses := c.sessions[a.session]; ses != nil {
			for _, slot := range ses.talk {
				if a.admits(&c.rows[slot]) {
					set.add(int(slot))
				}
			}
		}
		return set
	}
	for i := range c.rows {
		if a.admits(&c.rows[i]) {
			set.add(i)
		}
	}
	return set
}
