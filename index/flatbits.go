package index

import (
	"context"
	"math"
	"math/bits"
)

// The signs of a vector's components are a thirty-second of its float32 and an eighth of what flat
// scans. The number of signs in which a question and a vector differ ranks like their cosine, only
// coarsely; the product of the question in four bits and the signs ranks better and takes longer.
// The first chooses a sixteenth of the vectors, the second a quarter of those, and what is left is scored
// as in a full scan. Whether that loses neighbours depends on the model: with vectors of words it does
// not, with uniformly random ones it does. So it is measured on the user's own vectors, and used where
// it keeps recall.
const (
	signsFrom   = 200_000 // admitted slots below which a full scan is about as fast, and sure
	signsShare  = 16      // one in how many is chosen by the first
	signsFinal  = 64      // one in how many is scored
	signsRecall = .985    // share of the ten nearest of a stored vector, crowded as they are, that have to be found
	signsAsked  = 48      // stored vectors that are asked for their neighbours to measure it
	signsLock   = 1 << 14 // slots looked at under one read lock meanwhile
)

func appendSigns(dst []uint64, v []int8) []uint64 {
	for len(v) > 0 {
		n, word := min(64, len(v)), uint64(0)
		for i, x := range v[:n] {
			word |= uint64(uint8(-x)>>7) << i // of a component above zero; -128 does not occur
		}
		dst, v = append(dst, word), v[n:]
	}
	return dst
}

// signQuery is a question as signs, and as numbers of four bits cut into planes of one.
type signQuery struct {
	dim    int
	signs  []uint64
	planes [][4]uint64 // of 64 numbers each
	sum    int         // of the numbers
}

const signOffset = 8 // makes the numbers -7 to 7 positive

func newSignQuery(q []int8) signQuery {
	s := signQuery{dim: len(q), signs: appendSigns(nil, q)}
	top := 1.0
	for _, x := range q {
		top = max(top, math.Abs(float64(x)))
	}
	s.planes = make([][4]uint64, len(s.signs))
	for i, x := range q {
		n := signOffset + int(math.RoundToEven(float64(x)*7/top))
		s.sum += n
		for p := range 4 {
			s.planes[i/64][p] |= uint64(n>>p&1) << (i % 64)
		}
	}
	return s
}

// differing counts the signs in which the question and a vector differ.
func (s *signQuery) differing(v []uint64) (n int) {
	q := s.signs
	if len(q) == 4 && len(v) == 4 { // 256 dimensions, the built-in model
		return bits.OnesCount64(q[0]^v[0]) + bits.OnesCount64(q[1]^v[1]) + bits.OnesCount64(q[2]^v[2]) + bits.OnesCount64(q[3]^v[3])
	}
	for i, x := range v {
		n += bits.OnesCount64(x ^ q[i])
	}
	return n
}

// product multiplies the question's numbers with the signs of a vector, 1 or -1: at most 7 a
// dimension.
func (s *signQuery) product(v []uint64) int {
	above, set := 0, 0
	planes := s.planes[:len(v)]
	for i, x := range v {
		p := &planes[i]
		set += bits.OnesCount64(x)
		above += bits.OnesCount64(x&p[0]) + 2*bits.OnesCount64(x&p[1]) + 4*bits.OnesCount64(x&p[2]) + 8*bits.OnesCount64(x&p[3])
	}
	return 2*above - s.sum - signOffset*(2*set-s.dim)
}

// closest is the least number of differing signs over the parts of a slot.
func (f *flat) closest(q *signQuery, p place) int {
	least := f.dim
	for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
		least = min(least, q.differing(f.sign(i)))
	}
	return least
}

// farness is the product of the best part of a slot, turned round so that less is better and
// nothing is below 0.
func (f *flat) farness(q *signQuery, p place) int {
	top := math.MinInt
	for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
		top = max(top, q.product(f.sign(i)))
	}
	return max(0, 7*f.dim-top)
}

// counts says how many slots have which value.
type counts []int

// limit is the value up to which there are at least n slots.
func (c counts) limit(n int) int {
	sum := 0
	for v, k := range c {
		if sum += k; sum >= n {
			return v
		}
	}
	return len(c)
}

func (c counts) add(o counts) {
	for v, k := range o {
		c[v] += k
	}
}

func (c counts) total() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// signScan is one worker's share of the choice by signs.
type signScan struct {
	differs []uint16 // of each slot with vectors, in order
	counts  counts
	chosen  []int32 // slots
	far     []int32 // of each of them
	farther counts
}

// scanBySigns fills in the scans: all signs, then the numbers against the signs that are close, then
// the vectors of those. The moments are those of a sample, for as many as there are.
func (f *flat) scanBySigns(ctx context.Context, scans []flatScan, n int) {
	q := newSignQuery(scans[0].q)
	work := make([]signScan, len(scans))
	inParallel(scans, func(w int, s *flatScan) {
		work[w] = f.scratch()
		s.each(ctx, func(slot int, p place) {
			d := f.closest(&q, p)
			work[w].counts[d]++
			work[w].differs = append(work[w].differs, uint16(d))
			if uint32(slot)*0x9E3779B1>>24 == 0 { // one in 256, scattered
				s.moments.add(s.score(p))
			}
		})
		s.stretch(len(work[w].differs))
	})
	if ctx.Err() != nil {
		return
	}
	all := make(counts, f.dim+1)
	for w := range work {
		all.add(work[w].counts)
	}
	total := all.total()
	limit := all.limit(max(4*n, total/f.signsShare))
	inParallel(scans, func(w int, s *flatScan) {
		m, at := &work[w], 0
		s.each(ctx, func(slot int, p place) {
			if int(m.differs[at]) <= limit {
				far := f.farness(&q, p)
				m.chosen, m.far = append(m.chosen, int32(slot)), append(m.far, int32(far))
				m.farther[far]++
			}
			at++
		})
	})
	far := make(counts, 14*f.dim+1)
	for w := range work {
		far.add(work[w].farther)
	}
	limit = far.limit(max(2*n, total/f.signsFinal))
	inParallel(scans, func(w int, s *flatScan) {
		for i, slot := range work[w].chosen {
			if int(work[w].far[i]) <= limit {
				s.best.add(hit{int(slot), s.score(f.places[slot])})
			}
		}
	})
	for w := range work {
		f.spare.Put(&work[w])
	}
}

// scratch takes room of an earlier scan, which is megabytes.
func (f *flat) scratch() signScan {
	m := signScan{counts: make(counts, f.dim+1), farther: make(counts, 14*f.dim+1)}
	if old, ok := f.spare.Get().(*signScan); ok {
		m.differs, m.chosen, m.far = old.differs[:0], old.chosen[:0], old.far[:0]
	}
	return m
}

// stretch makes the moments of a sample those of n.
func (m *moments) stretch(n int) {
	if m.n > 0 {
		by := float64(n) / float64(m.n)
		m.sum, m.sqr, m.n = m.sum*by, m.sqr*by, n
	}
}

// signsStep is the number of slots at which it is measured whether signs keep the recall: it grows by
// half, so that the outcome depends on what is stored and not on when the store was opened.
func signsStep(slots, from int) int {
	step := from
	if slots < step {
		return 0
	}
	for step+step/2 <= slots {
		step += step / 2
	}
	return step
}

// measureDue says whether the signs are to be measured again.
func (f *flat) measureDue() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	step := signsStep(f.slots, f.signsFrom)
	return step > 0 && step != f.measured
}

// measure asks some of the stored vectors for their ten nearest, and whether their signs would have
// found them.
func (f *flat) measure(ctx context.Context) {
	f.mu.RLock()
	step := signsStep(f.slots, f.signsFrom)
	asked := f.askSome(step)
	f.mu.RUnlock()
	slot, left, more := 0, step, true
	for more && left > 0 && ctx.Err() == nil {
		f.mu.RLock()
		for end := min(slot+signsLock, len(f.places)); slot < end && left > 0; slot++ {
			if p := f.places[slot]; p.parts > 0 {
				left--
				for i := range asked {
					asked[i].look(slot, p)
				}
			}
		}
		more = slot < len(f.places)
		f.mu.RUnlock()
	}
	if ctx.Err() != nil {
		return
	}
	found, of := 0, 0
	for i := range asked {
		n, all := asked[i].found()
		found, of = found+n, of+all
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.measured, f.bySigns = step, of > 0 && float64(found) >= signsRecall*float64(of)
}

// signsQuestion is a stored vector that is asked for its neighbours.
type signsQuestion struct {
	flatScan
	self   int
	query  signQuery
	counts counts
	far    counts
	values map[int][2]int // differing signs and farness of the slots that were among the ten best when they were looked at
}

// askSome takes stored vectors at even distances from the first step slots; the caller holds mu.
func (f *flat) askSome(step int) []signsQuestion {
	var out []signsQuestion
	seen := 0
	for slot, p := range f.places {
		if p.parts == 0 {
			continue
		}
		if seen++; seen > step {
			break
		}
		if seen*signsAsked/step > len(out) {
			v := append([]int8(nil), f.vector(int(p.first))...)
			out = append(out, signsQuestion{
				flatScan: flatScan{f: f, q: v, scale: 1, best: best{n: 10}}, self: slot,
				query: newSignQuery(v), counts: make(counts, f.dim+1), far: make(counts, 14*f.dim+1), values: map[int][2]int{},
			})
		}
	}
	return out
}

// look takes a slot into account; the caller holds mu.
func (a *signsQuestion) look(slot int, p place) {
	if slot == a.self {
		return
	}
	d, far := a.f.closest(&a.query, p), a.f.farness(&a.query, p)
	a.counts[d]++
	a.far[far]++
	h := hit{slot, a.score(p)}
	if len(a.heap) < a.best.n || h.compare(a.heap[0]) < 0 {
		a.values[slot] = [2]int{d, far}
		a.best.add(h)
	}
}

// found returns how many of how many neighbours the signs would have chosen.
func (a *signsQuestion) found() (n, of int) {
	total := a.counts.total()
	differs, far := a.counts.limit(total/a.f.signsShare), a.far.limit(total/a.f.signsFinal)
	for _, h := range a.heap {
		if v := a.values[h.slot]; v[0] <= differs && v[1] <= far {
			n++
		}
	}
	return n, len(a.heap)
}
