package index

import (
	"context"
	"math/bits"
)

// The signs of a vector's components are a thirty-second of its float32 and an eighth of what flat
// scans. The number of signs in which a question and a vector differ ranks like their cosine, only
// coarsely: it chooses an eighth of the vectors, which are then scored as in a full scan. Whether
// that loses neighbours depends on the model: with vectors of words it does not, with uniformly
// random ones it does. So it is measured on the user's own vectors, and used where it keeps recall.
const (
	signsFrom   = 200_000 // admitted slots below which a full scan is about as fast, and sure
	signsShare  = 8       // one in how many is scored
	signsRecall = .99     // share of the ten nearest that have to be found
	signsAsked  = 48      // stored vectors that are asked for their neighbours to measure it
	signsLock   = 1 << 15 // slots looked at under one read lock meanwhile
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

// differing counts the signs in which two vectors differ.
func differing(a, b []uint64) (n int) {
	if len(a) == 4 && len(b) == 4 { // 256 dimensions, the built-in model
		return bits.OnesCount64(a[0]^b[0]) + bits.OnesCount64(a[1]^b[1]) + bits.OnesCount64(a[2]^b[2]) + bits.OnesCount64(a[3]^b[3])
	}
	for i, x := range a {
		n += bits.OnesCount64(x ^ b[i])
	}
	return n
}

// closest is the least number of differing signs over the parts of a slot.
func (f *flat) closest(q []uint64, p place) int {
	least := f.dim
	for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
		least = min(least, differing(q, f.sign(i)))
	}
	return least
}

// signCounts says how many slots differ in how many signs.
type signCounts []int

// limit is the number of differing signs up to which there are at least n slots.
func (c signCounts) limit(n int) int {
	sum := 0
	for d, k := range c {
		if sum += k; sum >= n {
			return d
		}
	}
	return len(c)
}

func (c signCounts) total() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// scanBySigns fills in the scans in two passes: all signs, then the vectors whose signs are close.
// The moments are those of a sample, for as many as there are.
func (f *flat) scanBySigns(ctx context.Context, scans []flatScan, n int) {
	q := appendSigns(nil, scans[0].q)
	differs := make([][]uint16, len(scans))
	counts := make([]signCounts, len(scans))
	inParallel(scans, func(w int, s *flatScan) {
		counts[w] = make(signCounts, f.dim+1)
		differs[w] = make([]uint16, 0, 64*(s.to-s.from))
		s.each(ctx, func(slot int, p place) {
			d := f.closest(q, p)
			counts[w][d]++
			differs[w] = append(differs[w], uint16(d))
			if uint32(slot)*0x9E3779B1>>26 == 0 { // one in 64, scattered
				s.moments.add(s.score(p))
			}
		})
	})
	if ctx.Err() != nil {
		return
	}
	all := make(signCounts, f.dim+1)
	for _, c := range counts {
		for d, k := range c {
			all[d] += k
		}
	}
	limit := all.limit(max(4*n, all.total()/f.signsShare))
	inParallel(scans, func(w int, s *flatScan) {
		at := 0
		s.each(ctx, func(slot int, p place) {
			if int(differs[w][at]) <= limit {
				s.best.add(hit{slot, s.score(p)})
			}
			at++
		})
		s.stretch(counts[w].total())
	})
}

// stretch makes the moments of a sample those of n.
func (m *moments) stretch(n int) {
	if m.n > 0 {
		by := float64(n) / float64(m.n)
		m.sum, m.sqr = m.sum*by, m.sqr*by
	}
	m.n = n
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
	for slot, left := 0, step; left > 0 && ctx.Err() == nil; {
		f.mu.RLock()
		end := min(slot+signsLock, len(f.places))
		for ; slot < end && left > 0; slot++ {
			if p := f.places[slot]; p.parts > 0 {
				left--
				for i := range asked {
					asked[i].look(slot, p)
				}
			}
		}
		done := slot >= len(f.places)
		f.mu.RUnlock()
		if done {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	found, of := 0, 0
	for i := range asked {
		a := &asked[i]
		limit := a.counts.limit(a.counts.total() / f.signsShare)
		for _, h := range a.heap {
			of++
			if a.differs[h.slot] <= limit {
				found++
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.measured, f.bySigns = step, of > 0 && float64(found) >= signsRecall*float64(of)
}

// signsQuestion is a stored vector that is asked for its neighbours.
type signsQuestion struct {
	flatScan
	self    int
	signs   []uint64
	counts  signCounts
	differs map[int]int // of the slots that were among the ten best when they were looked at
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
				signs: appendSigns(nil, v), counts: make(signCounts, f.dim+1), differs: map[int]int{},
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
	d := a.f.closest(a.signs, p)
	a.counts[d]++
	h := hit{slot, a.score(p)}
	if len(a.heap) < a.best.n || h.compare(a.heap[0]) < 0 {
		a.differs[slot] = d
		a.best.add(h)
	}
}
