package recall

import "math"

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
	a := s.cohesion * s.w.DenseSmooth
	for _, c := range pool {
		e := c.episode
		if e == nil {
			c.Dense = d.mean
			continue
		}
		c.Cosine = e.cos[c.at]
		v, weight := d.of(e, c.at), 1.0
		for _, n := range [...]int{c.at - 1, c.at + 1} {
			if a > 0 && n >= 0 && n < len(e.Seqs) {
				v += a * d.of(e, n)
				weight += a
			}
		}
		c.Dense = v / weight
		if s.stats.Episodes < 2 {
			continue
		}
		if !e.known {
			for at := range e.Seqs {
				e.mean += d.of(e, at)
			}
			e.mean, e.known = e.mean/float64(len(e.Seqs)), true
		}
		c.Dense += s.cohesion * e.mean
	}
}

// fuse adds the legs, each in units of its own spread.
//
// The unit of the words is the spread over a store of the size that the weights were tuned on,
// not over the whole store: a leg that is zero for all but a few hundred messages has a spread
// that shrinks with the root of the store, and would drown the other leg in a large one.
func (s *scorer) fuse(pool []*candidate, d *dense) {
	lex, trust, base, sd := s.units(pool, d)
	for _, c := range pool {
		c.Score = c.Lexical / lex
		if d != nil {
			c.Score += trust * (c.Dense - base) / sd
		}
	}
	order(pool)
}

// units returns what fuse measures the legs in: the spread of the words, and for the vectors
// their weight, the value of a message that has nothing to do with the question, and the spread.
func (s *scorer) units(pool []*candidate, d *dense) (lex, trust, base, sd float64) {
	lex = spread(pool, math.Min(s.n, fuseUniverse), 0, func(c *candidate) float64 { return c.Lexical })
	if lex < 1e-5 {
		lex = 1
	}
	if d == nil {
		return lex, 0, 0, 1
	}
	trust = s.w.Dense * math.Pow(d.coverage, s.w.DenseCov)
	base = d.mean
	if s.stats.Episodes >= 2 {
		base *= 1 + s.cohesion
	}
	sd = math.Max(1e-6, spread(pool, float64(len(pool)), base, func(c *candidate) float64 { return c.Dense }))
	return lex, trust, base, sd
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
