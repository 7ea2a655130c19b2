package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/collector"
	"github.com/blevesearch/bleve/v2/search/query"
	bleve "github.com/blevesearch/bleve_index_api"

	"hark/index/terms"
)

const (
	maxTerms   = 16   // searched terms of one question
	frequent   = .3   // share of messages above which a term is dropped when rarer ones exist
	frequentIn = 2000 // messages below which frequent terms cost nothing
	spare      = 64   // candidates asked beyond k, so that ties are cut by row, not by segment
	scanChunk  = 4096 // rows scanned under one read lock
)

// Match finds the messages that hold any of the terms, best first: at most k, of those the
// filter admits. The score is that of the lexical index (tf-idf with coordination), good for
// choosing candidates only. Frequent terms and all but the 16 rarest are not searched. Terms that are
// not Keyed are not in the lexical index: they are never searched, and their DF is 0.
func (s *Store) Match(ctx context.Context, q []WeightedTerm, f Filter, k int) (Matches, error) {
	if err := s.enter(); err != nil {
		return Matches{}, err
	}
	defer s.leave()
	m, err := s.match(ctx, q, f, k)
	if errors.Is(err, errDamaged) {
		// The follower will rebuild the index; this question is answered from the rows.
		s.words.damaged(err)
		m, err = s.matchWith(ctx, nil, q, f, k)
	}
	if err != nil {
		return Matches{}, fmt.Errorf("match: %w", err)
	}
	return m, nil
}

func (s *Store) match(ctx context.Context, q []WeightedTerm, f Filter, k int) (m Matches, err error) {
	if s.words == nil {
		return s.matchWith(ctx, nil, q, f, k)
	}
	w := s.words
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.idx == nil {
		return s.matchWith(ctx, nil, q, f, k)
	}
	err = guarded(func() error {
		m, err = s.matchWith(ctx, w.idx, q, f, k)
		return err
	})
	return m, err
}

// matching is one question against one state of the index and the rows it lacks.
type matching struct {
	s       *Store
	terms   []searchTerm // in order of the question
	used    []int        // which are searched
	admit   admission
	r       bleve.IndexReader // nil: everything is scanned
	cur     cursor
	changed map[int64]bool // rows that the index holds in an older form
	docs    float64        // messages in index and scanned rows, each once
	indexed float64        // messages in the index, in whatever form
	most    int            // recallable messages when the question came: no term is in more
	fresh   []int          // slots that were not in the index
	buf     []terms.Posting
}

type searchTerm struct {
	term  terms.Term
	hash  uint32
	boost float64 // the caller's weight
	df    int
	held  int // messages of the index that hold it, in whatever form
	idf   float64
	worth float64 // boost·idf² over the norm of the question
}

func (s *Store) matchWith(ctx context.Context, idx bleve.Index, q []WeightedTerm, f Filter, k int) (Matches, error) {
	m := &matching{s: s, terms: make([]searchTerm, len(q))}
	out := Matches{DF: make([]int, len(q)), Used: make([]bool, len(q))}
	for i, t := range q {
		w := t.Weight
		if w <= 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			w = 1
		}
		m.terms[i] = searchTerm{term: t.Term, hash: t.Term.Hash(), boost: w}
	}
	// What changed is noted before the index is read: what is applied in between is then
	// looked at twice, never missed.
	s.mu.RLock()
	m.admit = s.cols.admission(f)
	end := len(s.cols.rows)
	m.most = s.cols.talks()
	if s.words != nil {
		m.changed = s.words.follow.open()
	}
	s.mu.RUnlock()
	if idx != nil {
		var err error
		if m.r, err = idx.Reader(); err != nil {
			return out, err
		}
		defer m.r.Close()
		if m.cur, err = cursorOf(m.r); err != nil {
			return out, err
		}
	}
	if err := m.count(ctx, end); err != nil {
		return out, err
	}
	for i := range m.terms {
		m.terms[i].df = min(m.terms[i].df, m.most)
		out.DF[i] = m.terms[i].df
	}
	m.choose()
	for _, i := range m.used {
		out.Used[i] = true
	}
	if len(m.used) == 0 || k <= 0 || m.admit.none {
		return out, ctx.Err()
	}
	hits, err := m.search(ctx, k)
	if err != nil {
		return out, err
	}
	fresh, err := m.scan(ctx)
	if err != nil {
		return out, err
	}
	hits = append(hits, fresh...)
	slices.SortFunc(hits, byScore)
	out.Hits = hits[:min(k, len(hits))]
	return out, nil
}

func byScore(a, b Scored) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Seq, b.Seq))
}

// count finds the document frequency of every term: in the index, and in the rows before end
// that the index lacks. Rows that it holds in an older form are counted as they are now, so that the
// numbers are the same however far the index has followed.
func (m *matching) count(ctx context.Context, end int) error {
	if m.r != nil {
		n, err := m.r.DocCount()
		if err != nil {
			return err
		}
		older, err := m.older()
		if err != nil {
			return err
		}
		m.indexed, m.docs = float64(n), float64(n)-float64(len(older))
		for i := range m.terms {
			t := &m.terms[i]
			if !t.term.Keyed() {
				continue
			}
			tr, err := m.r.TermFieldReader(ctx, []byte(t.term.Key()), fieldTerms, false, false, false)
			if err != nil {
				return err
			}
			t.held = int(tr.Count())
			stale, err := among(tr, older)
			if err := errors.Join(err, tr.Close()); err != nil {
				return err
			}
			t.df = t.held - stale
		}
	}
	c := m.s.cols
	m.s.mu.RLock()
	for seq := range m.changed {
		if slot, ok := c.slot(seq); ok && seq <= m.cur.row {
			m.fresh = append(m.fresh, slot)
		}
	}
	slices.Sort(m.fresh)
	from := c.after(m.cur.row)
	m.s.mu.RUnlock()
	for _, slot := range m.fresh {
		m.countSlots(slot, slot+1)
	}
	for ; from < end; from += scanChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.fresh = append(m.fresh, m.countSlots(from, min(end, from+scanChunk))...)
	}
	return nil
}

// older lists the documents of the index that changed since, ascending.
func (m *matching) older() ([]bleve.IndexInternalID, error) {
	var out []bleve.IndexInternalID
	for seq := range m.changed {
		id, err := m.r.InternalID(string(docID(seq)))
		if err != nil {
			return nil, err
		}
		if id != nil {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b bleve.IndexInternalID) int { return a.Compare(b) })
	return out, nil
}

// among counts the documents of ids, which ascend, that hold the term of a reader.
func among(tr bleve.TermFieldReader, ids []bleve.IndexInternalID) (n int, err error) {
	var at *bleve.TermFieldDoc
	for _, id := range ids {
		if at == nil || at.ID.Compare(id) < 0 {
			if at, err = tr.Advance(id, nil); err != nil || at == nil {
				return n, err
			}
		}
		if at.ID.Equals(id) {
			n++
		}
	}
	return n, nil
}

// countSlots adds rows to the document frequencies and returns those that hold any term.
func (m *matching) countSlots(from, to int) (matched []int) {
	c := m.s.cols
	m.s.mu.RLock()
	defer m.s.mu.RUnlock()
	for slot := from; slot < to; slot++ {
		r := &c.rows[slot]
		if !r.talk() {
			continue
		}
		m.docs++
		d, holds := c.doc(r), false
		for i := range m.terms {
			t := &m.terms[i]
			if !t.term.Keyed() {
				continue
			}
			if m.buf = d.Lookup(t.hash, m.buf[:0]); len(m.buf) > 0 {
				t.df++
				holds = true
			}
		}
		if holds {
			matched = append(matched, slot)
		}
	}
	return matched
}

// share is what a term takes of maxTerms. A question of one word length in Chinese has several
// pairs for it: with 16 pairs the second subject of a comparison was cut off (short Chinese
// notes, R@10 89.4; 96.3 with all).
func share(c terms.Class) float64 {
	switch c {
	case terms.Han, terms.HanPair, terms.Gram:
		return 1. / 3
	}
	return 1
}

// choose picks the terms to search: the 16 rarest that occur (more of characters and 4-grams,
// see share), without the frequent ones where a rarer one exists.
func (m *matching) choose() {
	m.used = m.used[:0]
	for i := range m.terms {
		if m.terms[i].term.Keyed() && m.terms[i].df > 0 {
			m.used = append(m.used, i)
		}
	}
	slices.SortStableFunc(m.used, func(a, b int) int { return cmp.Compare(m.terms[a].df, m.terms[b].df) })
	left := float64(maxTerms)
	m.used = slices.DeleteFunc(m.used, func(i int) bool {
		left -= share(m.terms[i].term.Class)
		return left < 0
	})
	for n := len(m.used); n > 1 && m.docs > frequentIn && float64(m.terms[m.used[n-1]].df) > frequent*m.docs; n-- {
		m.used = m.used[:n-1]
	}
	norm := 0.0
	for _, i := range m.used {
		t := &m.terms[i]
		t.idf = 1 + math.Log(m.docs/float64(t.df+1))
		norm += t.boost * t.idf * t.boost * t.idf
	}
	for _, i := range m.used {
		t := &m.terms[i]
		t.worth = t.boost * t.idf * t.idf / math.Sqrt(norm)
	}
}

// search asks the index for its best and scores them from their forward documents, as the
// scanned rows are: the index's own scores depend on the shape of the query. Where equal
// scores reach across the cut it asks for more, because the index orders them by segment,
// which merges change, and the store by row.
func (m *matching) search(ctx context.Context, k int) ([]Scored, error) {
	if m.r == nil {
		return nil, nil
	}
	q := m.query()
	for n := k + spare + len(m.changed); ; n *= 8 {
		hits, err := m.collect(ctx, q, n)
		if err != nil {
			return nil, err
		}
		if len(hits) == n && n < maxTied && hits[n-1].Score >= hits[k-1].Score*(1-tied) {
			continue
		}
		return m.rescore(hits), nil
	}
}

const (
	tied    = 1e-5  // relative difference of equal scores: the index keeps norms as float32
	maxTied = 20000 // candidates beyond which equal scores are cut as they come
)

func (m *matching) query() query.Query {
	asked := make([]query.Query, 0, len(m.used))
	for _, i := range m.used {
		t := query.NewTermQuery(m.terms[i].term.Key())
		t.SetField(fieldTerms)
		// The index weighs a term by its own numbers, which lack the rows it has yet to take in.
		own := m.terms[i].idf / (1 + math.Log(m.indexed/float64(m.terms[i].held+1)))
		t.SetBoost(m.terms[i].boost * own * own)
		asked = append(asked, t)
	}
	var q query.Query = query.NewDisjunctionQuery(asked)
	if f := m.admit.query(); f != nil {
		b := query.NewBooleanQuery([]query.Query{q}, nil, nil)
		b.AddFilter(f)
		q = b
	}
	return q
}

func (m *matching) collect(ctx context.Context, q query.Query, n int) (search.DocumentMatchCollection, error) {
	sr, err := q.Searcher(ctx, m.r, mapping.NewIndexMapping(), search.SearcherOptions{})
	if err != nil {
		return nil, err
	}
	defer sr.Close()
	coll := collector.NewTopNCollector(n, 0, search.SortOrder{&search.SortScore{Desc: true}})
	if err := coll.Collect(ctx, sr, m.r); err != nil {
		return nil, err
	}
	return coll.Results(), nil
}

func (m *matching) rescore(hits search.DocumentMatchCollection) []Scored {
	var out []Scored
	m.s.mu.RLock()
	defer m.s.mu.RUnlock()
	for _, hit := range hits {
		seq := seqOf(hit.ID)
		slot, ok := m.s.cols.slot(seq)
		if !ok || m.changed[seq] || !m.admit.admits(&m.s.cols.rows[slot]) {
			continue
		}
		if score := m.score(slot); score > 0 {
			out = append(out, Scored{seq, score})
		}
	}
	return out
}

// scan scores the rows that were not in the index.
func (m *matching) scan(ctx context.Context) ([]Scored, error) {
	var out []Scored
	for chunk := range slices.Chunk(m.fresh, scanChunk) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.s.mu.RLock()
		for _, slot := range chunk {
			r := &m.s.cols.rows[slot]
			if !m.admit.admits(r) {
				continue
			}
			if score := m.score(slot); score > 0 {
				out = append(out, Scored{r.seq, score})
			}
		}
		m.s.mu.RUnlock()
	}
	return out, nil
}

// score is the lexical index's formula for a message: the sum of boost·idf² over the terms it
// holds, over the square root of its number of distinct terms (4-grams not counted), times the share of the terms it
// holds. The caller holds Store.mu.
func (m *matching) score(slot int) float64 {
	d := m.s.cols.doc(&m.s.cols.rows[slot])
	sum, held := 0.0, 0
	for _, i := range m.used {
		if m.buf = d.Lookup(m.terms[i].hash, m.buf[:0]); len(m.buf) > 0 {
			sum += m.terms[i].worth
			held++
		}
	}
	if held == 0 {
		return 0
	}
	distinct, prev := 0, uint32(math.MaxUint32)
	for i := range d.Len() {
		if h, _ := d.At(i); h != prev {
			prev = h
			switch terms.HashClass(h) {
			case terms.Phrase, terms.Gram: // 4-grams would only punish languages that have them
			default:
				distinct++
			}
		}
	}
	return sum / math.Sqrt(float64(distinct)) * float64(held) / float64(len(m.used))
}

// open lists the rows whose changes are not applied.
func (f *followState) open() map[int64]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.changed) == 0 {
		return nil
	}
	out := make(map[int64]bool, len(f.changed))
	for seq := range f.changed {
		out[seq] = true
	}
	return out
}
