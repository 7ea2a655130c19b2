package recall

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sort"
	"time"

	"hark/embed"
	"hark/index"
	"hark/index/terms"
)

// Options are the tunables of a Searcher; nil and zero fields mean the defaults.
type Options struct {
	Weights *Weights // nil means DefaultWeights
	Net     *Net     // what looks at the best candidates again; nil means the one that ships
	// DenseWait is how long a search waits for the embedding of its question after the words
	// have answered; default 700 ms. The words answer alone when it passes.
	DenseWait time.Duration
	// Candidates bounds the candidates that a Trace lists; default 30.
	Candidates int
	// Reranker is an optional second stage over the first RerankTop hits, 20 by default, for which a
	// search waits RerankWait, 400 ms by default. Nil: there is none.
	Reranker   Reranker
	RerankTop  int
	RerankWait time.Duration
}

// Searcher searches one store. It is safe for concurrent use.
type Searcher struct {
	store    *index.Store
	emb      embed.Embedder // nil: words only
	w        Weights
	wait     time.Duration
	listed   int
	analyzer *terms.Analyzer
	net      *Net
	log      *slog.Logger

	second     Reranker // nil: one stage
	rerankTop  int
	rerankWait time.Duration
}

// NewSearcher returns a Searcher over a store. emb may be nil (words only), opts and log too.
func NewSearcher(store *index.Store, emb embed.Embedder, opts *Options, log *slog.Logger) *Searcher {
	s := &Searcher{store: store, emb: emb, w: DefaultWeights(), wait: 700 * time.Millisecond, listed: 30, analyzer: terms.New(), net: defaultNet(), log: log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if opts == nil {
		return s
	}
	s.second, s.rerankTop, s.rerankWait = opts.Reranker, defaultRerankTop, defaultRerankWait
	if opts.RerankTop > 0 {
		s.rerankTop = opts.RerankTop
	}
	if opts.RerankWait > 0 {
		s.rerankWait = opts.RerankWait
	}
	if opts.Weights != nil {
		s.w = *opts.Weights
	}
	if opts.Net != nil {
		s.net = opts.Net
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
	q, when := s.ask(r)
	if len(q) == 0 && s.emb == nil && !when.only {
		t.Asked = "only stop words"
		return res, nil
	}
	legs, err := s.retrieve(ctx, when.meant(r), q, t)
	if err != nil {
		return nil, err
	}
	ranked, sc := s.rank(ctx, r, q, when, legs, t)
	if err := s.finish(ctx, r, ranked, sc, &legs.meaning, res); err != nil {
		return nil, err
	}
	if !r.WordsOnly {
		s.rerank(ctx, r.Question, res)
	}
	return res, nil
}

// ask finds the words to search for and the times that a question speaks of.
func (s *Searcher) ask(r Request) ([]terms.QueryTerm, times) {
	q := s.question(r.Question)
	when := s.timesOf(r, q)
	return when.asked(q), when
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
	for _, t := range out {
		have[t.Term] = true
	}
	for _, t := range s.analyzer.Query(q.Context, mains) {
		if have[t.Term] {
			continue
		}
		t.Instruction = true
		out = append(out, t)
	}
	return out
}

// rank scores the union of both legs and the neighbours of the lexical hits.
func (s *Searcher) rank(ctx context.Context, r Request, q []terms.QueryTerm, when times, l *legs, t *Trace) ([]*candidate, *scorer) {
	v := s.store.View()
	pool := s.pool(v, r, q, l, when)
	around := episodes(v, pool)
	v.Close() // the vectors have a lock of their own, which is not to be waited for under this one
	var d *dense
	var watched []float64
	if l.vector != nil && len(r.Watch) > 0 {
		watched, _ = s.store.Closeness(ctx, l.space, l.vector, r.Watch) // without it a trace says less
	}
	if l.vector != nil {
		d = s.dense(ctx, around, l)
	}
	v = s.store.View()
	defer v.Close()
	sc := newScorer(&s.w, v, q, l.words.DF)
	sc.dense, sc.asks = d, asks(r.Question.Text)
	sc.score(pool, d)
	when.prefer(pool)
	t.time(when)
	if r.Once {
		sc.once(unseen(pool, r.Exclude))
	}
	s.watch(r, pool, sc, watched, t)
	t.Pool, t.Cohesion, t.Confidence = len(pool), round(sc.cohesion), round(sc.confidence(unseen(pool, r.Exclude), r.Question))
	if when.told(unseen(pool, r.Exclude)) {
		t.Confidence = max(t.Confidence, sureOfTime)
	}
	sc.look(pool, &l.meaning, s.net)
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

// finish drops what is on screen, loads the rows and writes the trace.
func (s *Searcher) finish(ctx context.Context, r Request, ranked []*candidate, sc *scorer, l *meaning, res *Result) error {
	t := res.Trace
	res.Confidence = t.Confidence
	var keep []*candidate
	fate := map[int64]string{}
	for _, c := range ranked {
		switch {
		case c.copied:
			fate[c.seq] = NearCopy
		case r.Exclude[c.seq]:
			fate[c.seq] = OnScreen
		case len(keep) == r.K || c.fused <= 0:
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
	best := 0.0
	for _, c := range ranked {
		best = math.Max(best, c.fused)
	}
	said := make([]statement, len(keep))
	for i, c := range keep {
		said[i] = statement{c.row, rows[i].Text, s.analyzer.Matches(rows[i].Text, c.row.Lang, want)}
		h := hitOf(rows[i], c, sc, said[i].matches)
		h.Likely, h.Words = sc.likely(c, best, t.Confidence, l, s.emb), math.Sqrt(sc.share(c))
		res.Hits = append(res.Hits, h)
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
	newer := map[int64]int64{}
	for _, h := range res.Hits {
		newer[h.Message.Seq] = h.Newer
	}
	for i, c := range ranked {
		e := c.explain(i+1, fate[c.seq])
		e.ID, e.Newer = ids[c.seq], newer[c.seq]
		if i < s.listed {
			t.Candidates = append(t.Candidates, e)
		}
		if slices.Contains(r.Watch, c.seq) {
			t.Watched = append(t.Watched, e)
		}
	}
	return nil
}

// hitOf makes a candidate presentable: which words matched and where.
func hitOf(m index.Message, c *candidate, sc *scorer, matches []terms.Match) Hit {
	h := Hit{Message: m, Score: c.Score, Fused: c.fused, Lexical: c.Lexical}
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
