package recall

import (
	"math"

	"hark/index/terms"
)

// likely estimates how likely a candidate answers the question: a number that, unlike Score, means the
// same for every question and every store.
//
// It is a logistic model over three features that do not depend on the size of the store: the
// candidate's own words against the most they could score (text), the share of the question's idf mass
// that it holds (matched), and how far its cosine stands above what the store's messages have on
// average, in standard deviations (z). The words' part and the meaning's part alone are the same model
// with the other one's features at zero.
func (s *scorer) likely(c *candidate, l *meaning) (all, words, near float64) {
	bound := 0.0
	for i := range s.terms {
		bound += s.terms[i].weight * (s.w.K1 + 1)
	}
	text := 0.0
	if bound > 0 {
		text = clamp(c.Text/bound, 0)
	}
	matched := s.mass(c)
	z := 0.0
	if l != nil && l.vector != nil && !math.IsNaN(c.Cosine) && l.near.SD > 1e-6 {
		z = math.Max(0, math.Min(6, (c.Cosine-l.near.Mean)/l.near.SD))
	}
	w := likelyWords*text + likelyMatched*matched
	m := likelyNear * z
	at := func(x float64) float64 { return 1 / (1 + math.Exp(-(likelyBase + x))) }
	floor := at(0)
	share := func(x float64) float64 { return clamp((at(x)-floor)/(1-floor), 0) }
	return share(w + m), share(w), share(m)
}

// LikelyVersion names the model behind Hit.Likely; it changes with its coefficients.
const LikelyVersion = 1

const (
	likelyBase    = -4.0
	likelyWords   = 4.0
	likelyMatched = 3.0
	likelyNear    = 0.45
)

// mass is the share of the question's idf that a candidate holds, identifiers included. Words that
// nothing in the store holds count like the rarest.
func (s *scorer) mass(c *candidate) float64 {
	have, total := 0.0, 0.0
	for i := range s.terms {
		t := &s.terms[i]
		if t.Instruction || t.Class != terms.Word && t.Class != terms.HanPair && t.Class != terms.Ident {
			continue
		}
		m := s.idf(t.df)
		total += m
		if c.tf.all[i] > 0 {
			have += m
		}
	}
	if total == 0 {
		return 0
	}
	return have / total
}
