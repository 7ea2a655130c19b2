package recall

import (
	"math"
	"slices"
	"sort"

	"hark/index"
)

// dense is what the vector leg knows about the messages around the pool.
type dense struct {
	seqs     []int64   // ascending
	cos      []float64 // of each: best of message and passages; NaN without a vector
	mean     float64   // over all messages the filter admits
	coverage float64   // share of the question's words the model knows
}

// of returns the cosine of a row, the store's mean where it has no vector.
func (d *dense) of(seq int64) (cos float64, known bool) {
	if i, ok := slices.BinarySearch(d.seqs, seq); ok && !math.IsNaN(d.cos[i]) {
		return d.cos[i], true
	}
	return d.mean, false
}

// score computes all features and orders the pool, best first. d is nil without vectors.
func (s *scorer) score(pool []*candidate, d *dense) {
	s.lexical(pool)
	for _, c := range pool {
		c.Cosine = math.NaN()
	}
	if d != nil {
		s.denseScores(pool, d)
	}
	s.fuse(pool, d)
}

// denseScores smooths each candidate's cosine over its neighbours and adds the mean of its
// episode: what a conversation was about tells about each of its messages. A message without
// a vector counts as an average one.
func (s *scorer) denseScores(pool []*candidate, d *dense) {
	at := func(seq int64) float64 {
		v, _ := d.of(seq)
		return v
	}
	a := s.cohesion * s.w.DenseSmooth
	smooth := func(seq int64) float64 {
		v, weight := at(seq), 1.0
		if a > 0 {
			prev, next := s.src.Around(seq, 1, 1)
			for _, n := range append(prev, next...) {
				v += a * at(n)
				weight += a
			}
		}
		return v / weight
	}
	episodes := map[index.EpisodeKey]float64{}
	for _, c := range pool {
		if v, ok := d.of(c.seq); ok {
			c.Cosine = v
		}
		c.Dense = smooth(c.seq)
		if s.stats.Episodes < 2 {
			continue
		}
		e := s.src.Episode(c.seq)
		if e == nil || len(e.Seqs) == 0 {
			continue
		}
		m, ok := episodes[e.Key]
		if !ok {
			for _, q := range e.Seqs {
				m += at(q)
			}
			m /= float64(len(e.Seqs))
			episodes[e.Key] = m
		}
		c.Dense += s.cohesion * m
	}
}

// fuse adds the legs, each in units of its own spread.
//
// The unit of the words is the spread over a store of the size that the weights were tuned on,
// not over the whole store: a leg that is zero for all but a few hundred messages has a spread
// that shrinks with the root of the store, and would drown the other leg in a large one.
func (s *scorer) fuse(pool []*candidate, d *dense) {
	lex := spread(pool, math.Min(s.n, fuseUniverse), 0, func(c *candidate) float64 { return c.Lexical })
	if lex < 1e-5 {
		lex = 1
	}
	weight, base, sd := 0.0, 0.0, 1.0
	if d != nil {
		weight = s.w.Dense * math.Pow(d.coverage, s.w.DenseCov)
		base = d.mean // of a message that has nothing to do with the question
		if s.stats.Episodes >= 2 {
			base *= 1 + s.cohesion
		}
		sd = math.Max(1e-6, spread(pool, float64(len(pool)), base, func(c *candidate) float64 { return c.Dense }))
	}
	for _, c := range pool {
		c.Score = c.Lexical / lex
		if d != nil {
			c.Score += weight * (c.Dense - base) / sd
		}
	}
	sort.Slice(pool, func(i, j int) bool {
		if pool[i].Score != pool[j].Score {
			return pool[i].Score > pool[j].Score
		}
		return pool[i].seq < pool[j].seq
	})
}

// fuseUniverse is the number of messages over which the spread of the words is taken: about
// the size of the conversations that the fusion weight was tuned on.
const fuseUniverse = 600

// spread is the standard deviation of a feature over n messages of which those not in the
// pool have the value rest.
func spread(pool []*candidate, n, rest float64, f func(*candidate) float64) float64 {
	n = math.Max(n, float64(len(pool)))
	sum, sq := 0.0, 0.0
	for _, c := range pool {
		v := f(c) - rest
		sum += v
		sq += v * v
	}
	m := sum / n
	return math.Sqrt(math.Max(0, sq/n-m*m))
}
