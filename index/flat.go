package index

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	flatChunk    = 2048 // vectors a chunk: growing never copies what is there
	flatParallel = 8192 // admitted slots above which a second goroutine pays
	flatWaste    = 4096 // dropped vectors below which nothing is compacted
	flatPoll     = 64   // words of the bitset between looks at the context
)

// flat scans vectors of one signed byte a component. Its scores are approximate, within about
// a hundredth; the caller rescores the best exactly. Where very many vectors are to be scanned and
// it was measured to find the same, their signs are looked at first: see flatbits.go.
type flat struct {
	dim   int
	words int // of 64 signs a vector

	mu     sync.RWMutex
	chunks [][]int8
	signs  [][]uint64 // chunks alike
	scales []float32
	places []place // by slot
	slots  int     // with vectors
	waste  int     // vectors that no slot refers to

	signsFrom              int  // admitted slots from which signs may be looked at first
	signsShare, signsFinal int  // one in how many of them is chosen, and scored
	measured               int  // slots with vectors when that was measured, 0: never
	bySigns                bool // what was measured: the signs keep the recall
	measuring              atomic.Bool
	spare                  sync.Pool // of *signScan
}

// place is where the vectors of a slot lie: parts consecutive vectors.
type place struct {
	first uint32
	parts uint16
	set   bool // also where there is nothing to embed
}

func newFlat(dim int) *flat {
	return &flat{dim: dim, words: (dim + 63) / 64, signsFrom: signsFrom, signsShare: signsShare, signsFinal: signsFinal}
}

func (f *flat) name() string  { return "flat" }
func (f *flat) table() string { return "vectors" }

func (f *flat) count() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.slots
}

func (f *flat) put(slot int, body []byte) error {
	size := 6 + f.dim
	if len(body)%size != 0 || len(body)/size > math.MaxUint16 {
		return errBody
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(slot)
	for slot >= len(f.places) {
		f.places = append(f.places, place{})
	}
	f.places[slot] = place{uint32(len(f.scales)), uint16(len(body) / size), true}
	f.slots++
	for ; len(body) > 0; body = body[size:] {
		f.push(math.Float32frombits(binary.LittleEndian.Uint32(body[2:])), body[6:size])
	}
	return nil
}

func (f *flat) push(scale float32, v []byte) {
	n := len(f.scales)
	f.room(n)
	c, signs := &f.chunks[n/flatChunk], &f.signs[n/flatChunk]
	at := len(*c)
	for _, x := range v {
		*c = append(*c, int8(x))
	}
	*signs = appendSigns(*signs, (*c)[at:])
	f.scales = append(f.scales, scale)
}

// room begins new chunks where vector n is the first of them.
func (f *flat) room(n int) {
	if n%flatChunk == 0 {
		f.chunks = append(f.chunks, make([]int8, 0, flatChunk*f.dim))
		f.signs = append(f.signs, make([]uint64, 0, flatChunk*f.words))
	}
}

func (f *flat) vector(i int) []int8 {
	at := i % flatChunk * f.dim
	return f.chunks[i/flatChunk][at : at+f.dim]
}

func (f *flat) sign(i int) []uint64 {
	at := i % flatChunk * f.words
	return f.signs[i/flatChunk][at : at+f.words]
}

func (f *flat) drop(slot int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(slot)
	if f.waste > flatWaste && f.waste > len(f.scales)/3 {
		f.compact()
	}
}

func (f *flat) remove(slot int) {
	if slot >= len(f.places) || !f.places[slot].set {
		return
	}
	f.waste += int(f.places[slot].parts)
	f.places[slot] = place{}
	f.slots--
}

// compact moves the vectors together, in order of slots.
func (f *flat) compact() {
	old := flat{dim: f.dim, words: f.words, chunks: f.chunks, signs: f.signs, scales: f.scales}
	f.chunks, f.signs, f.scales, f.waste = nil, nil, nil, 0
	for slot := range f.places {
		p := &f.places[slot]
		if !p.set {
			continue
		}
		first := int(p.first)
		p.first = uint32(len(f.scales))
		for i := first; i < first+int(p.parts); i++ {
			n := len(f.scales)
			f.room(n)
			c, signs := &f.chunks[n/flatChunk], &f.signs[n/flatChunk]
			*c = append(*c, old.vector(i)...)
			*signs = append(*signs, old.sign(i)...)
			f.scales = append(f.scales, old.scales[i])
		}
	}
}

func (f *flat) nearest(ctx context.Context, q []float32, admit bitset, n int) (found, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if last := (len(f.places) + 63) / 64; len(admit) > last {
		admit = admit[:last]
	}
	admitted, workers := admit.count(), 1
	if admitted > flatParallel {
		workers = min(2, runtime.GOMAXPROCS(0))
	}
	q8, scale := quantise(q)
	scans := make([]flatScan, workers)
	for w := range scans {
		scans[w] = flatScan{
			f: f, q: q8, scale: float64(scale), best: best{n: n},
			admit: admit, from: w * len(admit) / workers, to: (w + 1) * len(admit) / workers,
		}
	}
	if f.bySigns && admitted >= f.signsFrom {
		f.scanBySigns(ctx, scans, n)
	} else {
		inParallel(scans, func(_ int, s *flatScan) { s.run(ctx) })
	}
	out := found{}
	all := best{n: n}
	for i := range scans {
		out.merge(scans[i].moments)
		for _, h := range scans[i].heap {
			all.add(h)
		}
	}
	for i := range all.heap {
		all.heap[i].score = f.refine(q, all.heap[i].slot)
	}
	out.hits = all.sorted()
	return out, ctx.Err()
}

// flatScan is one worker's share of a scan.
type flatScan struct {
	f     *flat
	q     []int8
	scale float64
	best
	moments

	admit    bitset
	from, to int // words of admit
}

// inParallel runs a step of every worker; the last works here.
func inParallel(scans []flatScan, step func(w int, s *flatScan)) {
	var wg sync.WaitGroup
	last := len(scans) - 1
	for w := range last {
		wg.Go(func() { step(w, &scans[w]) })
	}
	step(last, &scans[last])
	wg.Wait()
}

// each visits the admitted slots that have vectors, in order, until the context ends.
func (s *flatScan) each(ctx context.Context, visit func(slot int, p place)) {
	for w := s.from; w < s.to; w++ {
		if w%flatPoll == 0 && ctx.Err() != nil {
			return
		}
		for word := s.admit[w]; word != 0; word &= word - 1 {
			slot := w<<6 | bits.TrailingZeros64(word)
			if slot >= len(s.f.places) {
				return
			}
			if p := s.f.places[slot]; p.parts > 0 {
				visit(slot, p)
			}
		}
	}
}

func (s *flatScan) run(ctx context.Context) {
	s.each(ctx, func(slot int, p place) {
		top := s.score(p)
		s.moments.add(top)
		s.best.add(hit{slot, top})
	})
}

// score is that of the best part.
func (s *flatScan) score(p place) float64 {
	top := math.Inf(-1)
	for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
		top = max(top, float64(dotInt8(s.q, s.f.vector(i)))*float64(s.f.scales[i]))
	}
	return top * s.scale
}

// refine scores a slot with the question unquantised, which halves the error.
func (f *flat) refine(q []float32, slot int) float64 {
	p, top := f.places[slot], math.Inf(-1)
	for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
		sum := float32(0)
		for k, x := range f.vector(i) {
			sum += q[k] * float32(x)
		}
		top = max(top, float64(sum)*float64(f.scales[i]))
	}
	return top
}
