package recall

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sort"
	"time"

	"golang.org/x/sync/errgroup"

	"hark/embed"
	"hark/index"
	"hark/index/terms"
)

// Options are the tunables of a Searcher; nil and zero fields mean the defaults.
type Options struct {
	Weights *Weights // nil means DefaultWeights
	// DenseWait is how long a search waits for the embedding of its question after the words
	// have answered; default 700 ms. The words answer alone when it passes.
	DenseWait time.Duration
	// Candidates bounds the candidates that a Trace lists; default 30.
	Candidates int
}

// Searcher searches one store. It is safe for concurrent use.
type Searcher struct {
	store    *index.Store
	emb      embed.Embedder // nil: words only
	w        Weights
	wait     time.Duration
	listed   int
	analyzer *terms.Analyzer
	log      *slog.Logger
}

// NewSearcher returns a Searcher over a store. emb may be nil (words only), opts and log too.
func NewSearcher(store *index.Store, emb embed.Embedder, opts *Options, log *slog.Logger) *Searcher {
	s := &Searcher{store: store, emb: emb, w: DefaultWeights(), wait: 700 * time.Millisecond, listed: 30, analyzer: terms.New(), log: log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if opts == nil {
		return s
	}
	if opts.Weights != nil {
		s.w = *opts.Weights
	}
	if opts.DenseWait > 0 {
		s.wait = opts.DenseWait
	}
	if opts.Candidates > 0 {
		s.listed = opts.Candidates
	}
	return s
}

// Search returns the messages that answer a question, best first. An embedder or vector leg
// that fails or is late costs the meaning, never the search: the Trace says so. The error is
// the store's or the context's.
func (s *Searcher) Search(ctx context.Context, r Request) (*Result, error) {
	t := &Trace{Asked: r.Question.Reason}
	res := &Result{Trace: t}
	if r.Question.Text == "" {
		return res, nil
	}
	if r.K <= 0 {
		r.K = 50
	}
	q := s.question(r.Question)
	if len(q) == 0 && s.emb == nil {
		t.Asked = "only stop words"
		return res, nil
	}
	legs, err := s.retrieve(ctx, r, q, t)
	if err != nil {
		return nil, err
	}
	ranked, sc := s.rank(ctx, r, q, legs, t)
	if err := s.finish(ctx, r, ranked, sc, res); err != nil {
		return nil, err
	}
	return res, nil
}

// question analyses the words of a question in the languages of the store. The words before a
// follow-up count like instructions do: they tell the topic, not the ask.
func (s *Searcher) question(q Question) []terms.QueryTerm {
	v := s.store.View()
	stats := v.Stats()
	v.Close()
	var mains []terms.Lang
	for _, l := range stats.Langs {
		if l.Share >= 0.1 {
			mains = append(mains, l.Lang)
		}
	}
	out := s.analyzer.Query(q.Text, mains)
	if q.Context == "" {
		return out
	}
	have := map[terms.Term]bool{}
	words := 0
	for _, t := range out {
		have[t.Term] = true
		words = max(words, t.Word+1)
	}
	for _, t := range s.analyzer.Query(q.Context, mains) {
		if have[t.Term] {
			continue
		}
		t.Instruction, t.Word = true, t.Word+words
		out = append(out, t)
	}
	return out
}

// legs are the answers of both legs.
type legs struct {
	words index.Matches
	meaning
}

// retrieve asks both legs at once.
func (s *Searcher) retrieve(ctx context.Context, r Request, q []terms.QueryTerm, t *Trace) (*legs, error) {
	l := &legs{}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		start := time.Now()
		defer func() { t.Lexical.Millis = millis(start) }()
		var wt []index.WeightedTerm
		for _, x := range q {
			if x.Keyed() {
				w := s.w.class(uint8(x.Class))
				if x.Instruction {
					w *= s.w.Instruction
				}
				wt = append(wt, index.WeightedTerm{Term: x.Term, Weight: w})
			}
		}
		if len(wt) == 0 {
			t.Lexical.Reason = "no words to search for"
			return nil
		}
		m, err := s.store.Match(gctx, wt, r.Filter, s.w.LexicalPool)
		if err != nil {
			return fmt.Errorf("match words: %w", err)
		}
		l.words = spreadDF(q, m)
		t.Lexical.Ran, t.Lexical.Hits = true, len(m.Hits)
		return nil
	})
	late := s.meaning(ctx, r)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case m := <-late:
		l.meaning, t.Dense = m, m.trace
	case <-timer.C:
		t.Dense.Reason = "unavailable: no answer in " + s.wait.String()
	case <-ctx.Done():
	}
	return l, ctx.Err()
}

// meaning is what the vector leg answered.
type meaning struct {
	vector []float32 // of the question; nil when the leg did not run
	near   index.Neighbours
	space  index.Space
	cover  float64
	trace  LegTrace
}

// meaning asks the vector leg. The answer is awaited for a while only, for an embedder may
// ignore its context; one that panics costs the meaning too, and no more.
func (s *Searcher) meaning(ctx context.Context, r Request) <-chan meaning {
	out := make(chan meaning, 1)
	go func() {
		start, m := time.Now(), meaning{}
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("embedder panicked", "panic", fmt.Sprint(p))
				m = meaning{trace: LegTrace{Reason: "unavailable: the embedder panicked"}}
			}
			m.trace.Millis = millis(start)
			out <- m
		}()
		if m.trace.Reason = s.nearest(ctx, r, &m); m.trace.Reason != "" {
			return
		}
		m.trace.Ran, m.trace.Hits = true, len(m.near.Hits)
		if m.near.Partial {
			m.trace.Reason = "vectors are still being loaded"
		}
	}()
	return out
}

// spreadDF puts the document frequencies of the searched terms back in the order of q.
func spreadDF(q []terms.QueryTerm, m index.Matches) index.Matches {
	df, used := make([]int, len(q)), make([]bool, len(q))
	k := 0
	for i, x := range q {
		if !x.Keyed() {
			continue
		}
		if k < len(m.DF) {
			df[i] = m.DF[k]
		}
		if k < len(m.Used) {
			used[i] = m.Used[k]
		}
		k++
	}
	m.DF, m.Used = df, used
	return m
}

// nearest embeds the question and asks the vector leg; it returns why it could not.
func (s *Searcher) nearest(ctx context.Context, r Request, l *meaning) string {
	if s.emb == nil {
		return "no embedder"
	}
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	vs, err := s.emb.Embed(ctx, embed.Query, []string{r.Question.Text})
	switch {
	case err != nil:
		return "unavailable: " + err.Error()
	case len(vs) != 1 || vs[0] == nil:
		return "no word of the question has a vector"
	}
	m := s.emb.Model()
	m.Dim = len(vs[0])
	l.space = index.Space{ID: m.String(), Dim: len(vs[0])}
	near, err := s.store.Nearest(ctx, l.space, vs[0], r.Filter, s.w.DensePool)
	if err != nil {
		return "unavailable: " + err.Error()
	}
	l.cover = 1
	if c, ok := s.emb.(embed.Coverer); ok {
		l.cover = c.Coverage(r.Question.Text)
	}
	l.vector, l.near = vs[0], near
	return ""
}

// rank scores the union of both legs and the neighbours of the lexical hits.
func (s *Searcher) rank(ctx context.Context, r Request, q []terms.QueryTerm, l *legs, t *Trace) ([]*candidate, *scorer) {
	v := s.store.View()
	pool := s.pool(v, r, l)
	var around []int64
	if l.vector != nil {
		around = surroundings(v, pool)
	}
	v.Close() // the vectors have a lock of their own, which is not to be waited for under this one
	var d *dense
	if l.vector != nil {
		d = s.dense(ctx, around, l)
	}
	v = s.store.View()
	defer v.Close()
	sc := newScorer(&s.w, v, q, l.words.DF)
	sc.score(pool, d)
	t.Pool, t.Cohesion, t.Confidence = len(pool), round(sc.cohesion), round(sc.confidence(unseen(pool, r.Exclude), r.Question))
	for i, x := range sc.terms {
		if x.Class == terms.Gram {
			continue
		}
		// A trace tells only of what the question may see: the frequency in the whole store
		// would tell a group that its owner spoke of something.
		seen := 0
		for _, c := range pool {
			if c.tf.all[i] > 0 {
				seen++
			}
		}
		tt := TermTrace{Term: x.Key(), Candidates: seen}
		if seen > 0 {
			tt.Weight, tt.Used = round(x.weight), i < len(l.words.Used) && l.words.Used[i]
		}
		t.Terms = append(t.Terms, tt)
	}
	return pool, sc
}

// unseen leaves out what is on screen: the confidence is about what recall could add to that.
func unseen(pool []*candidate, shown map[int64]bool) []*candidate {
	if len(shown) == 0 {
		return pool
	}
	return slices.DeleteFunc(slices.Clone(pool), func(c *candidate) bool { return shown[c.seq] })
}

// pool is the union of the hits of both legs, the neighbours of the lexical ones (a short
// answer may hold no word of its question) and the rows to explain.
func (s *Searcher) pool(v *index.View, r Request, l *legs) []*candidate {
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
	for i := 0; i < len(pool) && len(pool) < smallPool; i++ {
		if e := v.Episode(pool[i].seq); e != nil {
			for _, n := range e.Seqs {
				add(n)
			}
		}
	}
	for _, seq := range r.Explain {
		add(seq)
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

// surroundings lists the rows whose vectors smoothing needs, ascending: the pool, its
// neighbours and its episodes.
func surroundings(src source, pool []*candidate) []int64 {
	var seqs []int64
	episodes := src.Stats().Episodes >= 2
	seen := map[index.EpisodeKey]bool{}
	for _, c := range pool {
		if episodes {
			if e := src.Episode(c.seq); e != nil {
				if !seen[e.Key] {
					seen[e.Key] = true
					seqs = append(seqs, e.Seqs...)
				}
				continue // neighbours are of the same episode
			}
		}
		prev, next := src.Around(c.seq, 1, 1)
		seqs = append(append(append(seqs, c.seq), prev...), next...)
	}
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

// dense reads the cosines of the given rows, ascending.
func (s *Searcher) dense(ctx context.Context, seqs []int64, l *legs) *dense {
	d := &dense{mean: l.near.Mean, coverage: l.cover, seqs: seqs}
	cos, err := s.store.Closeness(ctx, l.space, l.vector, seqs)
	if err == nil {
		d.cos = cos
		return d
	}
	// What the leg itself returned is enough to go on.
	hits := slices.SortedFunc(slices.Values(l.near.Hits), func(a, b index.Scored) int { return cmp.Compare(a.Seq, b.Seq) })
	d.seqs, d.cos = make([]int64, len(hits)), make([]float64, len(hits))
	for i, h := range hits {
		d.seqs[i], d.cos[i] = h.Seq, h.Score
	}
	return d
}

// finish drops what is on screen, loads the rows and writes the trace.
func (s *Searcher) finish(ctx context.Context, r Request, ranked []*candidate, sc *scorer, res *Result) error {
	t := res.Trace
	res.Confidence = t.Confidence
	var keep []*candidate
	fate := map[int64]string{}
	for _, c := range ranked {
		switch {
		case r.Exclude[c.seq]:
			fate[c.seq] = OnScreen
		case len(keep) == r.K || c.Score <= 0:
			fate[c.seq] = OutRanked
		default:
			fate[c.seq] = Returned
			keep = append(keep, c)
		}
	}
	seqs := make([]int64, len(keep))
	for i, c := range keep {
		seqs[i] = c.seq
	}
	rows, err := s.store.Get(ctx, seqs...)
	if err != nil {
		return fmt.Errorf("read hits: %w", err)
	}
	want := map[uint32]bool{}
	for _, x := range sc.terms {
		if x.Class != terms.Phrase && x.Class != terms.Gram {
			want[x.hash] = true
		}
	}
	said := make([]statement, len(keep))
	for i, c := range keep {
		said[i] = statement{c.row, rows[i].Text, s.analyzer.Matches(rows[i].Text, c.row.Lang, want)}
		res.Hits = append(res.Hits, hitOf(rows[i], c, sc, said[i].matches))
	}
	for older, newer := range supersede(said, sc.masses()) {
		if newer >= 0 {
			res.Hits[older].Newer = keep[newer].seq
		}
	}
	ids := map[int64]string{}
	for _, m := range rows {
		ids[m.Seq] = m.ID
	}
	explain := map[int64]bool{}
	for _, seq := range r.Explain {
		explain[seq] = true
	}
	for i, c := range ranked {
		if i < s.listed || explain[c.seq] {
			e := c.explain(i+1, fate[c.seq])
			e.ID = ids[c.seq]
			t.Candidates = append(t.Candidates, e)
			delete(explain, c.seq)
		}
	}
	missing := make([]int64, 0, len(explain))
	for seq := range explain {
		missing = append(missing, seq)
	}
	slices.Sort(missing)
	v := s.store.View()
	defer v.Close()
	for _, seq := range missing {
		f := OutOfScope
		if _, ok := v.Row(seq); !ok {
			f = NotStored
		}
		t.Candidates = append(t.Candidates, Explanation{Seq: seq, Fate: f})
	}
	return nil
}

// hitOf makes a candidate presentable: which words matched and where.
func hitOf(m index.Message, c *candidate, sc *scorer, matches []terms.Match) Hit {
	h := Hit{Message: m, Score: c.Score, Lexical: c.Lexical}
	if !math.IsNaN(c.Cosine) {
		h.Dense = c.Cosine
	}
	for _, x := range matches {
		h.Matched = append(h.Matched, Span{x.Start, x.End})
	}
	h.Why = sc.why(c)
	return h
}

// why names what made a candidate rank, for a reader.
func (s *scorer) why(c *candidate) []string {
	var out []string
	type hitTerm struct {
		text   string
		weight float64
	}
	var matched []hitTerm
	for i, x := range s.terms {
		if c.tf.all[i] > 0 && (x.Class == terms.Word || x.Class == terms.Ident || x.Class == terms.HanPair) {
			matched = append(matched, hitTerm{x.Text, x.weight})
		}
	}
	sort.SliceStable(matched, func(i, j int) bool { return matched[i].weight > matched[j].weight })
	for i, m := range matched {
		if i == 4 {
			break
		}
		out = append(out, m.text)
	}
	if c.Context > c.Text {
		out = append(out, "by its neighbours")
	}
	if c.denseRnk > 0 && c.denseRnk <= 10 {
		out = append(out, "near in meaning")
	}
	return out
}

func millis(start time.Time) float64 { return round(float64(time.Since(start).Microseconds()) / 1000) }

// round keeps three decimals: a trace is read by people and compared by tests.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
