package recall

import (
	"cmp"
	"context"
	"math"
	"slices"

	"hark/index"
	"hark/index/terms"
)

// episode is an episode with candidates in it.
type episode struct {
	*index.Episode
	cos   []float64 // of each message with the question: best of message and passages, NaN without a vector
	tf    []float64 // per term of the question, over the whole episode
	score float64
	mean  float64 // of cos
	known bool    // mean is set
}

// episodes finds the episode of every candidate, in the order of the pool.
func episodes(v *index.View, pool []*candidate) []*episode {
	var out []*episode
	byKey := map[index.EpisodeKey]*episode{}
	for _, c := range pool {
		key, at, ok := v.EpisodeKey(c.seq)
		if !ok {
			continue
		}
		e := byKey[key]
		if e == nil {
			e = &episode{Episode: v.Episode(c.seq)}
			byKey[key] = e
			out = append(out, e)
		}
		c.episode, c.at = e, at
	}
	return out
}

// dense is what the vector leg knows about the messages around the pool.
type dense struct {
	mean     float64 // over all messages the filter admits
	coverage float64 // share of the question's words the model knows
}

// of returns the cosine of a message of an episode, the store's mean where it has no vector.
func (d *dense) of(e *episode, at int) float64 {
	if v := e.cos[at]; !math.IsNaN(v) {
		return v
	}
	return d.mean
}

// dense reads the cosines of the episodes.
func (s *Searcher) dense(ctx context.Context, around []*episode, l *legs) *dense {
	var seqs []int64
	for _, e := range around {
		seqs = append(seqs, e.Seqs...)
	}
	cos, err := s.store.Closeness(ctx, l.space, l.vector, seqs)
	if err != nil { // what the leg itself returned is enough to go on
		cos = found(l.near.Hits, seqs)
	}
	for _, e := range around {
		e.cos, cos = cos[:len(e.Seqs)], cos[len(e.Seqs):]
	}
	return &dense{mean: l.near.Mean, coverage: l.cover}
}

// found returns the score that each row has among hits, NaN for the others.
func found(hits []index.Scored, seqs []int64) []float64 {
	hits = slices.SortedFunc(slices.Values(hits), func(a, b index.Scored) int { return cmp.Compare(a.Seq, b.Seq) })
	out := make([]float64, len(seqs))
	for i, seq := range seqs {
		out[i] = math.NaN()
		if at, ok := slices.BinarySearchFunc(hits, seq, func(h index.Scored, seq int64) int { return cmp.Compare(h.Seq, seq) }); ok {
			out[i] = hits[at].Score
		}
	}
	return out
}

// count sets the frequencies of the question's terms in an episode. A term counts up to 255, and
// 4-grams not at all.
func (s *scorer) count(e *episode) {
	counts := make([]int, len(s.terms))
	s.src.Count(e.Seqs, s.set, counts)
	e.tf = make([]float64, len(s.terms))
	for i, n := range counts {
		if s.terms[i].Class != terms.Gram {
			e.tf[i] = float64(min(n, 255))
		}
	}
}
