package recall

import (
	"math"

	"hark/embed"
	"hark/index/terms"
)

// LikelyVersion names the model behind Hit.Likely; it changes with its coefficients.
const LikelyVersion = 1

// likely estimates how likely a candidate answers the question: a number that, unlike Score, means the
// same for every question and every store. It is the root of a probability,
//
//	p = 1 / (1 + exp(-(-6.493 + 1.078 matched + 2.408 √text + 3.034 relative + 1.617 confidence)))
//
// of the share of the question's idf mass that the candidate holds (matched), its own words' score
// against the most they could have (text), its fused score against the best one's (relative), and the
// confidence that the store answers at all. The coefficients were fitted on the first ten hits of
// 2,950 questions to eleven sets (chats, assistant logs, meetings, articles, an agent's work, notes;
// four languages), every set weighing the same; a quarter of the questions had no answer.
//
// The root spreads the lower end, where most hits are, over more of the scale: .35, which hosts use as
// a threshold, keeps 74 to 98 of 100 relevant hits (meetings 44, one-line diaries 47) and 5 to 35 of
// 100 others. The first hit of a question without an answer is above .35 in seven of ten cases, above
// .6 in one of ten.
func (s *scorer) likely(c *candidate, best, confidence float64, l *meaning, emb embed.Embedder) float64 {
	relative := 0.0
	if best > 0 {
		relative = clamp(c.fused/best, 0)
	}
	x := -6.493 + 1.078*s.mass(c) + 2.408*math.Sqrt(s.share(c)) + 3.034*relative + 1.617*confidence
	return math.Sqrt(1 / (1 + math.Exp(-x-trained(c, l, emb))))
}

// trained is what the meaning alone tells, with a model that reads texts: the table of words that is
// built in tells nothing here that the words do not (its coefficient was not different from zero). A
// text that stands six standard deviations above the store's others is as likely without a common word
// as one that has half of them. Set by hand: no server's model could be measured.
func trained(c *candidate, l *meaning, emb embed.Embedder) float64 {
	if _, table := emb.(embed.Coverer); table || emb == nil || l.vector == nil || math.IsNaN(c.Cosine) || l.near.SD < 1e-6 {
		return 0
	}
	z := (c.Cosine - l.near.Mean) / l.near.SD
	return 0.9 * math.Max(0, math.Min(4, z-2))
}

// share is what a candidate's own words score against the most they could.
func (s *scorer) share(c *candidate) float64 {
	bound := 0.0
	for i := range s.terms {
		bound += s.terms[i].weight * (s.w.K1 + 1)
	}
	if bound == 0 {
		return 0
	}
	return clamp(c.Text/bound, 0)
}

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
