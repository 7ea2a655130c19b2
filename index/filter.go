package index

import (
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

// admitted lists the slots that a filter admits, without looking at the rows that it does not; the
// caller holds Store.mu.
func (c *columns) admitted(f Filter) bitset {
	a := c.admission(f)
	if a.none {
		return nil
	}
	if a.lineage != "" {
		set := make(bitset, (len(c.rows)+63)/64)
		if ses := c.sessions[a.session]; ses != nil {
			for _, slot := range ses.talk {
				if a.admits(&c.rows[slot]) {
					set.add(int(slot))
				}
			}
		}
		return set
	}
	set := c.ofKinds(a.kinds)
	if a.any || len(a.scopes) == len(c.scopes) {
		return set
	}
	within := make(bitset, len(set))
	for _, id := range a.scopes {
		for _, r := range c.runs[id] {
			within.addRange(int(r.from), int(r.to))
		}
	}
	for i, word := range within {
		set[i] &= word
	}
	return set
}

// ofKinds lists the rows of recallable kinds, in a set of its own.
func (c *columns) ofKinds(want [Noise + 1]bool) bitset {
	set := make(bitset, (len(c.rows)+63)/64)
	for _, k := range [...]Kind{Said, Tool} {
		if want[k] {
			for i, word := range c.talk[k] {
				set[i] |= word
			}
		}
	}
	return set
}

// run is a range of slots.
type run struct{ from, to int32 }

// mark notes where a row can be found by filters, or not any more.
func (c *columns) mark(slot int, on bool) {
	r := &c.rows[slot]
	if !recallable(r.kind) {
		return
	}
	if on {
		c.talk[r.kind].add(slot)
	} else {
		c.talk[r.kind].drop(slot)
	}
}

// enrol adds a new row to the runs of its scope.
func (c *columns) enrol(slot int) {
	id := c.rows[slot].scope
	runs := c.runs[id]
	if n := len(runs); n > 0 && int(runs[n-1].to) == slot {
		runs[n-1].to++
		return
	}
	c.runs[id] = append(runs, run{int32(slot), int32(slot + 1)})
}
