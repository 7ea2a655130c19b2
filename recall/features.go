package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"hark/index/terms"
)

// The features that the second look is at. All are free of the store's size and of the unit of
// the scores: shares, logarithms, ranks, and values in units of their spread in the pool.
var featureNames = [...]string{
	// The first look, and its parts in the unit of the words' spread.
	"score", "text", "context", "session", "dense", "cosine", "trusted dense",
	// What of the question is in the message.
	"matched", "bound", "word share", "words", "rarest", "identifiers", "any identifier", "phrases", "phrase weight", "grams",
	"best passage", "passages", "sender",
	// What of it is around the message.
	"with neighbours", "from neighbours", "in episode",
	"text before", "text after", "cosine before", "cosine after", "score before", "score after", "score around",
	// What kind of message it is.
	"length", "relative length", "person", "person before assistant", "asks", "after a question", "before a question",
	// How it stands among the candidates.
	"text rank", "dense rank", "words rank", "share of best words", "share of best score", "behind episode", "episode rank", "near the time",
	// What kind of question, in what kind of store.
	"question length", "question asks", "coverage", "cohesion", "assistant store", "store length",
}

// Example is a candidate as the second look sees it.
type Example struct {
	Seq      int64
	ID       string
	Score    float64 // fused, before the second look
	Features []float32
}

// Examples returns the candidates that the second look is given, best first by their fused score.
// It is what a network is fitted on. A question that asks nothing has none.
func (s *Searcher) Examples(ctx context.Context, r Request) ([]Example, error) {
	if r.Question.Text == "" {
		return nil, nil
	}
	first := *s
	first.w.Look = 0
	t := &Trace{}
	q, when := first.ask(r)
	l, err := first.retrieve(ctx, when.meant(r), q, t)
	if err != nil {
		return nil, err
	}
	pool, sc := first.rank(ctx, r, q, when, l, t)
	v := s.store.View()
	sc.src = v
	x := sc.features(pool, &l.meaning)
	v.Close()
	seqs := make([]int64, len(x))
	for i, c := range pool[:len(x)] {
		seqs[i] = c.seq
	}
	rows, err := s.store.Get(ctx, seqs...)
	if err != nil {
		return nil, fmt.Errorf("read candidates: %w", err)
	}
	out := make([]Example, len(x))
	for i, c := range pool[:len(x)] {
		out[i] = Example{Seq: c.seq, ID: rows[i].ID, Score: c.Score, Features: x[i]}
	}
	return out, nil
}

// features describes the first candidates of an ordered pool, in the order of featureNames.
func (s *scorer) features(pool []*candidate, l *meaning) [][]float32 {
	p := s.describe(pool, l)
	out := make([][]float32, min(looks, len(pool)))
	for i := range out {
		out[i] = p.of(pool[i])
	}
	return out
}

// pooled is what the features of one candidate need to know of the others.
type pooled struct {
	*scorer
	lex, sd, base, trust           float64 // the units of fuse
	bound                          float64 // the most that the question's words could score
	bestLex, best                  float64
	textRank, denseRank, wordsRank map[int64]int
	score                          map[int64]float64
	text                           map[int64]float64 // of candidates and their neighbours
	lead                           map[*episode]float64
	order                          map[*episode]int // of episodes by their best candidate
	mean, spread                   float64          // of the cosines of the store
	asks                           float64
	rarest                         int     // the term with the greatest weight, -1 for none
	question                       float64 // words of the question
}

func (s *scorer) describe(pool []*candidate, l *meaning) *pooled {
	p := &pooled{scorer: s, spread: 1, rarest: -1,
		score: map[int64]float64{}, text: map[int64]float64{}, lead: map[*episode]float64{}, order: map[*episode]int{}}
	p.lex, p.trust, p.base, p.sd = s.units(pool, s.dense)
	if s.dense != nil && l != nil && l.near.SD > 1e-6 {
		p.mean, p.spread = l.near.Mean, l.near.SD
	}
	if s.asks {
		p.asks = 1
	}
	heaviest := 0.0
	for i := range s.terms {
		t := &s.terms[i]
		p.bound += t.weight * (s.w.K1 + 1)
		if t.Class == terms.Word || t.Class == terms.HanPair {
			p.question++
			if t.weight > heaviest {
				heaviest, p.rarest = t.weight, i
			}
		}
	}
	for _, c := range pool {
		p.score[c.seq], p.text[c.seq] = c.Score, c.Text
		p.bestLex, p.best = math.Max(p.bestLex, c.Lexical), math.Max(p.best, c.Score)
		if c.episode == nil {
			continue
		}
		if _, ok := p.order[c.episode]; !ok {
			p.order[c.episode] = len(p.order)
			p.lead[c.episode] = c.Score
		}
	}
	p.textRank = ranks(pool, func(c *candidate) float64 { return c.Text })
	p.denseRank = ranks(pool, func(c *candidate) float64 { return c.Dense })
	p.wordsRank = ranks(pool, func(c *candidate) float64 { return c.Lexical })
	return p
}

// ranks numbers the candidates by a value, greatest first, from 0.
func ranks(pool []*candidate, value func(*candidate) float64) map[int64]int {
	order := slices.Clone(pool)
	slices.SortStableFunc(order, func(a, b *candidate) int { return cmp.Compare(value(b), value(a)) })
	out := make(map[int64]int, len(order))
	for i, c := range order {
		out[c.seq] = i
	}
	return out
}

// of returns the features of a candidate.
func (p *pooled) of(c *candidate) []float32 {
	x := make([]float32, 0, len(featureNames))
	put := func(vs ...float64) {
		for _, v := range vs {
			x = append(x, float32(v))
		}
	}
	z := 0.0
	if p.dense != nil {
		z = (c.Dense - p.base) / p.sd
	}
	put(c.Score, c.Text/p.lex, c.Context/p.lex, c.Session/p.lex, z, p.cosine(c, 0), p.trust*z)
	m := p.match(c)
	put(c.Matched, share(c.Text, p.bound), share(m.words, p.question), m.words, m.rarest, share(m.ident, m.allIdent), flag(m.ident > 0),
		share(m.phrase, m.allPhrase), m.phrase/p.lex, share(m.gram, m.allGram), m.passage, math.Log1p(float64(len(c.tf.passages))), flag(c.tf.sender))
	union := share(m.union, m.mass)
	put(union, union-c.Matched, share(m.episode, m.mass))
	put(p.textOf(c, -1)/p.lex, p.textOf(c, 1)/p.lex, p.cosine(c, -1), p.cosine(c, 1))
	before, after := p.scoreOf(c, -1), p.scoreOf(c, 1)
	put(before, after, (before+after+p.scoreOf(c, -2)+p.scoreOf(c, 2)+p.scoreOf(c, -3)+p.scoreOf(c, 3))/6)
	user := c.row.Role == "user"
	put(math.Log1p(c.tf.words), math.Log((c.tf.words+5)/(p.stats.AvgWords+5)), flag(user), flag(user && p.roles), flag(c.row.Question),
		flag(p.asked(c, -1)), flag(p.asked(c, 1)))
	put(nth(p.textRank[c.seq]), nth(p.denseRank[c.seq]), nth(p.wordsRank[c.seq]), share(c.Lexical, p.bestLex), share(c.Score, p.best))
	if c.episode != nil {
		put(p.lead[c.episode]-c.Score, 1/float64(p.order[c.episode]+2))
	} else {
		put(0, 0)
	}
	put(c.Near)
	cover := 0.0
	if p.dense != nil {
		cover = p.dense.coverage
	}
	put(math.Log1p(p.question), p.asks, cover, p.cohesion, flag(p.roles), math.Log1p(p.stats.AvgWords))
	return x
}

// matches is what of the question is in a message and around it.
type matches struct {
	words, rarest, passage                            float64
	ident, allIdent, phrase, allPhrase, gram, allGram float64
	mass, union, episode                              float64 // idf: of the question, in message or neighbours, in the episode
}

func (p *pooled) match(c *candidate) matches {
	var m matches
	var around []*termFreqs
	for _, k := range [...]int{-2, -1, 1, 2} {
		if seq, ok := p.neighbour(c, k); ok {
			around = append(around, p.freq(seq))
		}
	}
	if c.episode != nil && c.episode.tf == nil {
		p.count(c.episode)
	}
	for i := range p.terms {
		t, has := &p.terms[i], c.tf.all[i] > 0
		switch t.Class {
		case terms.Word, terms.HanPair:
			mass := p.idf(t.df)
			m.mass += mass
			if has {
				m.words++
			}
			if has || slices.ContainsFunc(around, func(f *termFreqs) bool { return f.all[i] > 0 }) {
				m.union += mass
			}
			if c.episode != nil && c.episode.tf[i] > 0 {
				m.episode += mass
			}
		case terms.Ident:
			m.allIdent += t.weight
			if has {
				m.ident += t.weight
			}
		case terms.Phrase:
			m.allPhrase += t.weight
			if has {
				m.phrase += t.weight
			}
		case terms.Gram:
			m.allGram += t.weight
			if has {
				m.gram += t.weight
			}
		}
	}
	if p.rarest >= 0 && c.tf.all[p.rarest] > 0 {
		m.rarest = 1
	}
	for _, passage := range c.tf.passages {
		n := 0.0
		for _, tf := range passage.tf {
			if tf > 0 {
				n++
			}
		}
		m.passage = math.Max(m.passage, n/float64(len(p.terms)))
	}
	return m
}

// neighbour returns the message k places after a candidate in its episode.
func (p *pooled) neighbour(c *candidate, k int) (seq int64, ok bool) {
	if c.episode == nil || c.at+k < 0 || c.at+k >= len(c.episode.Seqs) {
		return 0, false
	}
	return c.episode.Seqs[c.at+k], true
}

// textOf scores a neighbour's own words.
func (p *pooled) textOf(c *candidate, k int) float64 {
	seq, ok := p.neighbour(c, k)
	if !ok {
		return 0
	}
	if v, ok := p.text[seq]; ok {
		return v
	}
	n := &candidate{seq: seq, tf: p.freq(seq)}
	n.row, _ = p.src.Row(seq)
	p.scorer.text(n)
	p.text[seq] = n.Text
	return n.Text
}

// scoreOf is the fused score of a neighbour, 0 if it is no candidate.
func (p *pooled) scoreOf(c *candidate, k int) float64 {
	seq, ok := p.neighbour(c, k)
	if !ok {
		return 0
	}
	return p.score[seq]
}

// asked reports whether a neighbour only asks.
func (p *pooled) asked(c *candidate, k int) bool {
	seq, ok := p.neighbour(c, k)
	if !ok {
		return false
	}
	r, ok := p.src.Row(seq)
	return ok && r.Question
}

// cosine is how far a message's cosine stands above the store's, in its spread; 0 without one.
func (p *pooled) cosine(c *candidate, k int) float64 {
	if p.dense == nil || c.episode == nil || c.episode.cos == nil {
		return 0
	}
	if _, ok := p.neighbour(c, k); !ok {
		return 0
	}
	return (p.dense.of(c.episode, c.at+k) - p.mean) / p.spread
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// nth falls with a rank, slowly at first.
func nth(rank int) float64 { return 1 / float64(rank+5) }
