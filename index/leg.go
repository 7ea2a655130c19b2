package index

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// leg finds the nearest vectors of one space in memory. Implementations are safe for
// concurrent use.
type leg interface {
	name() string
	// table is the table whose bodies put takes.
	table() string
	// put replaces the vectors of a slot.
	put(slot int, body []byte) error
	// drop removes them; a slot without vectors is no error.
	drop(slot int)
	// nearest returns the n best slots of admit by their best part, best first, ties by slot,
	// and the moments of that score over all of admit that have vectors. q has length 1.
	nearest(ctx context.Context, q []float32, admit bitset, n int) (found, error)
	// scores is what nearest would give each slot, NaN without vectors, as closely as memory
	// tells.
	scores(ctx context.Context, q []float32, slots []int) ([]float64, error)
	// count is the number of slots that have vectors.
	count() int
}

// found is the answer of a leg.
type found struct {
	hits []hit
	moments
}

type hit struct {
	slot  int
	score float64
}

// moments adds up scores.
type moments struct {
	n        int
	sum, sqr float64
}

func (m *moments) add(x float64) {
	m.n++
	m.sum += x
	m.sqr += x * x
}

func (m *moments) merge(o moments) {
	m.n += o.n
	m.sum += o.sum
	m.sqr += o.sqr
}

func (m *moments) mean() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

func (m *moments) sd() float64 {
	if m.n == 0 {
		return 0
	}
	mean := m.mean()
	return math.Sqrt(max(0, m.sqr/float64(m.n)-mean*mean))
}

func (a hit) compare(b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.slot, b.slot))
}

// best keeps the n best hits in a heap with the worst on top.
type best struct {
	n    int
	heap []hit
}

func (b *best) add(h hit) {
	if len(b.heap) < b.n {
		b.heap = append(b.heap, h)
		for i := len(b.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if b.heap[i].compare(b.heap[up]) <= 0 {
				break
			}
			b.heap[i], b.heap[up] = b.heap[up], b.heap[i]
			i = up
		}
		return
	}
	if b.n == 0 || h.compare(b.heap[0]) >= 0 {
		return
	}
	b.heap[0] = h
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(b.heap); c++ {
			if b.heap[c].compare(b.heap[worst]) > 0 {
				worst = c
			}
		}
		if worst == i {
			return
		}
		b.heap[i], b.heap[worst] = b.heap[worst], b.heap[i]
		i = worst
	}
}

func (b *best) sorted() []hit {
	slices.SortFunc(b.heap, hit.compare)
	return b.heap
}
