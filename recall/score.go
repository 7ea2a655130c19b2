package recall

import (
	"math"
	"slices"

	"hark/index"
	"hark/index/terms"
)

// source is what scoring reads of the store: one consistent view of its columns.
type source interface {
	Row(seq int64) (index.Row, bool)
	Doc(seq int64) (terms.Doc, bool)
	Around(seq int64, before, after int) (prev, next []int64)
	Count(seqs []int64, set *terms.Set, counts []int)
	Stats() index.Stats
}

// term is a question's term with its weight in the store.
type term struct {
	terms.QueryTerm
	hash   uint32
	df     float64 // messages that contain it
	class  float64 // class weight, instruction factor included
	weight float64 // class × idf^IdfPow
}

// Features are the parts of one candidate's score.
type Features struct {
	Text    float64 // BM25 of message and best passage, priors included
	Context float64 // borrowed from the neighbours
	Session float64 // owed to the episode
	Lexical float64 // the three together, role prior included
	Cosine  float64 // best of message and passages; NaN without a vector
	Dense   float64 // cosine smoothed over neighbours and episode
	Matched float64 // share of the question's idf mass in this message
	Near    float64 // 0..1: how near it was said to the time that the question speaks of
	Look    float64 // what the second look added to the fused score
	Score   float64 // fused, and looked at again
}

// candidate is a message under consideration.
type candidate struct {
	seq      int64
	row      index.Row
	tf       *termFreqs
	episode  *episode // nil where there is none
	at       int      // its place there
	fused    float64  // Score before the second look
	lexRank  int      // 1-based rank in the lexical leg, 0 if it did not return it
	denseRnk int
	copied   bool // a better candidate has the same words of the same speaker
	Features
}

// termFreqs are the frequencies of the question's terms in one message.
type termFreqs struct {
	words, grams float64
	all          []float64   // per term: weighted sum over fields; shared where none occurs
	sender       bool        // some term stands in the sender's name
	passages     []passageTF // only passages that hold a term
	any          bool
}

type passageTF struct {
	words float64
	tf    []float64
}

// scorer computes the features of candidates for one question.
type scorer struct {
	w        *Weights
	src      source
	stats    index.Stats
	terms    []term
	set      *terms.Set // of the terms' hashes
	none     []float64  // a zero for every term
	n        float64    // messages
	cohesion float64    // 0..1: how much neighbours tell about a message here
	roles    bool       // the assistant writes much longer than people
	asks     bool       // the question asks for something to be told
	dense    *dense     // nil without vectors
	freqs    map[int64]*termFreqs
}

func newScorer(w *Weights, src source, q []terms.QueryTerm, df []int) *scorer {
	s := &scorer{w: w, src: src, stats: src.Stats(), freqs: map[int64]*termFreqs{}}
	s.n = math.Max(1, float64(s.stats.Messages))
	s.cohesion = 1
	if s.stats.Lift > 0 {
		s.cohesion = clamp((math.Log(s.stats.Lift)-w.CohesionNone)/w.CohesionFull, 0)
	}
	s.roles = s.stats.MedianUserWords > 0 && s.stats.MedianAssistantWords > 2*s.stats.MedianUserWords
	for i, qt := range q {
		t := term{QueryTerm: qt, hash: qt.Hash(), class: w.class(uint8(qt.Class))}
		if qt.Instruction {
			t.class *= w.Instruction
		}
		if i < len(df) {
			t.df = float64(df[i])
		}
		s.terms = append(s.terms, t)
	}
	hashes := make([]uint32, len(s.terms))
	for i := range s.terms {
		hashes[i] = s.terms[i].hash
	}
	s.set, s.none = terms.NewSet(hashes), make([]float64, len(hashes))
	return s
}

// idf is BM25's, never negative: a frequency above the number of messages, which a store in
// the middle of an update may report, counts as all of them.
func (s *scorer) idf(df float64) float64 {
	df = math.Min(df, s.n)
	return math.Log(1 + (s.n-df+0.5)/(df+0.5))
}

// weigh sets the term weights. Phrases and 4-grams are not in the lexical index, so their
// document frequency is counted in the pool: messages that hold a rare phrase hold its words
// and are in the pool, and a phrase common enough to be cut off weighs little anyway.
func (s *scorer) weigh(pool []*candidate) {
	for i := range s.terms {
		t := &s.terms[i]
		if t.Class == terms.Phrase || t.Class == terms.Gram {
			t.df = 0
			for _, c := range pool {
				if c.tf.all[i] > 0 {
					t.df++
				}
			}
		}
		t.weight = 0
		if t.df > 0 {
			t.weight = t.class * math.Pow(s.idf(t.df), s.w.IdfPow)
		}
	}
}

// freq reads the question's terms out of a message's forward document.
func (s *scorer) freq(seq int64) *termFreqs {
	if f, ok := s.freqs[seq]; ok {
		return f
	}
	f := &termFreqs{all: s.none}
	s.freqs[seq] = f
	d, ok := s.src.Doc(seq)
	if !ok {
		return f
	}
	f.words, f.grams = float64(d.Words()), float64(d.Grams())
	var at []int // passage number to index in f.passages, plus one
	s.set.Visit(d, func(i int, p terms.Posting) {
		v, passage := float64(p.TF), int(p.Part)
		switch p.Part {
		case terms.PartCaption:
			v, passage = v*s.w.Caption, 0
		case terms.PartSender:
			v, passage = v*s.w.Sender, 0
			f.sender = true
		case terms.PartDate:
			v, passage = v*s.w.Date, 0
		}
		if !f.any {
			f.any, f.all = true, make([]float64, len(s.terms))
		}
		f.all[i] += v
		if passage >= d.Passages() {
			return
		}
		if at == nil {
			at = make([]int, d.Passages())
		}
		if at[passage] == 0 {
			f.passages = append(f.passages, passageTF{float64(d.PassageWords(passage)), make([]float64, len(s.terms))})
			at[passage] = len(f.passages)
		}
		f.passages[at[passage]-1].tf[i] += v
	})
	return f
}

// saturate is BM25's term-frequency part for a relative length l.
func (s *scorer) saturate(f, b, l float64) float64 {
	return f * (s.w.K1 + 1) / (f + s.w.K1*(1-b+b*l))
}

// masses returns the idf of each term that a statement can hold.
func (s *scorer) masses() map[uint32]float64 {
	m := map[uint32]float64{}
	for i := range s.terms {
		switch t := &s.terms[i]; t.Class {
		case terms.Word, terms.Ident, terms.HanPair:
			if !t.Instruction {
				m[t.hash] = s.idf(t.df)
			}
		}
	}
	return m
}

// text scores the message's own words: its best passage and the whole.
func (s *scorer) text(c *candidate) {
	w, f := s.w, c.tf
	if !f.any {
		return
	}
	whole, grams, mass, total := 0.0, 0.0, 0.0, 0.0
	l := (f.words + w.Pad) / (s.stats.AvgWords + w.Pad)
	lg := f.grams / math.Max(1, s.stats.AvgGrams)
	for i := range s.terms {
		t := &s.terms[i]
		if t.Class == terms.Word || t.Class == terms.HanPair {
			m := s.idf(t.df)
			total += m
			if f.all[i] > 0 {
				mass += m
			}
		}
		switch {
		case f.all[i] == 0:
		case t.Class == terms.Gram:
			grams += t.weight * s.saturate(f.all[i], w.B, lg)
		default:
			whole += t.weight * s.saturate(f.all[i], w.B, l)
		}
	}
	best := 0.0
	for _, p := range f.passages {
		sum, l := 0.0, (p.words+w.Pad)/(s.stats.AvgPassageWords+w.Pad)
		for i, v := range p.tf {
			if v > 0 && s.terms[i].Class != terms.Gram {
				sum += s.terms[i].weight * s.saturate(v, w.PassB, l)
			}
		}
		best = math.Max(best, sum)
	}
	c.Text = w.Pass*best + (1-w.Pass)*whole + grams
	if total > 0 {
		c.Matched = mass / total
	}
	if c.row.Question && !s.roles {
		c.Text *= 1 - w.Question
	}
	if f.sender {
		c.Text *= 1 + w.NamedSender
	}
}

// context scores what the neighbours say: short messages borrow from it, long ones do not.
func (s *scorer) context(c *candidate) {
	w := s.w
	if w.Context == 0 || s.cohesion == 0 {
		return
	}
	prev, next := s.src.Around(c.seq, w.ContextReach, w.ContextReach)
	tf := make([]float64, len(s.terms))
	words, told := 0.0, false
	add := func(seq int64, dec, factor float64) {
		f := s.freq(seq)
		words += dec * f.words
		if !f.any {
			return
		}
		for i, v := range f.all {
			if v > 0 && s.terms[i].Class != terms.Gram {
				tf[i] += dec * factor * v
				told = true
			}
		}
	}
	for k, seq := range slices.Backward(prev) {
		dist, factor := len(prev)-1-k, 1.0
		if dist == 0 && !s.roles {
			if r, ok := s.src.Row(seq); ok && r.Question {
				factor = 1 + w.AfterQuestion
			}
		}
		add(seq, math.Pow(w.ContextDecay, float64(dist)), factor)
	}
	for k, seq := range next {
		add(seq, math.Pow(w.ContextDecay, float64(k)), 1)
	}
	if !told {
		return
	}
	full := 0.0
	for k := range w.ContextReach {
		full += 2 * math.Pow(w.ContextDecay, float64(k))
	}
	l, sum := words/(math.Max(1, s.stats.AvgWords)*full), 0.0
	for i, v := range tf {
		if v > 0 {
			sum += s.terms[i].weight * s.saturate(v, w.ContextB, l)
		}
	}
	c.Context = s.cohesion * w.Context * w.ContextLen / (w.ContextLen + c.tf.words) * sum
}

// session scores the episodes of the pool as documents and hands each candidate its share.
func (s *scorer) session(pool []*candidate) {
	w := s.w
	if w.Session == 0 || s.cohesion == 0 || s.stats.Episodes < 2 {
		return
	}
	var order []*episode
	for _, c := range pool {
		if e := c.episode; e != nil && e.tf == nil {
			s.count(e)
			order = append(order, e)
		}
	}
	n := float64(s.stats.Episodes)
	avg := math.Max(1, s.stats.AvgEpisodeWords)
	for i := range s.terms {
		t := &s.terms[i]
		// Episodes with the term: seen in the pool, or as many as its messages fill when
		// scattered, whichever is more.
		ds := 0.0
		for _, ep := range order {
			if ep.tf[i] > 0 {
				ds++
			}
		}
		if scattered := n * (1 - math.Pow(1-1/n, t.df)); len(order) < s.stats.Episodes {
			ds = math.Max(ds, math.Min(n, scattered))
		}
		idf := t.class * math.Log(1+(n-ds+0.5)/(ds+0.5))
		for _, ep := range order {
			if ep.tf[i] > 0 {
				ep.score += idf * s.saturate(ep.tf[i], w.SessionB, float64(ep.Words)/avg)
			}
		}
	}
	for _, c := range pool {
		if c.episode != nil {
			c.Session = s.cohesion * w.Session * c.episode.score
		}
	}
}

// lexical computes the lexical features of every candidate.
func (s *scorer) lexical(pool []*candidate) {
	for _, c := range pool {
		c.tf = s.freq(c.seq)
	}
	s.weigh(pool)
	for _, c := range pool {
		s.text(c)
		s.context(c)
	}
	s.session(pool)
	for _, c := range pool {
		c.Lexical = c.Text + c.Context + c.Session
		if s.roles && c.row.Role == "user" {
			c.Lexical *= 1 + s.w.Role
		}
	}
}

// clamp bounds x to lo..1.
func clamp(x, lo float64) float64 { return math.Max(lo, math.Min(1, x)) }
