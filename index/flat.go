package index

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"sync"
)

const (
	flatChunk    = 2048 // vectors a chunk: growing never copies what is there
	flatParallel = 8192 // admitted slots above which a second goroutine pays
	flatWaste    = 4096 // dropped vectors below which nothing is compacted
	flatPoll     = 64   // words of the bitset between looks at the context
)

// flat scans vectors of one signed byte a component. Its scores are approximate, within about
// a hundredth; the caller rescores the best exactly.
type flat struct {
	dim int

	mu     sync.RWMutex
	chunks [][]int8
	scales []float32
	places []place // by slot
	slots  int     // with vectors
	waste  int     // vectors that no slot refers to
}

// place is where the vectors of a slot lie: parts consecutive vectors.
type place struct {
	first uint32
	parts uint16
	set   bool // also where there is nothing to embed
}

func newFlat(dim int) *flat { return &flat{dim: dim} }

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
	if n%flatChunk == 0 {
		f.chunks = append(f.chunks, make([]int8, 0, flatChunk*f.dim))
	}
	c := &f.chunks[n/flatChunk]
	for _, x := range v {
		*c = append(*c, int8(x))
	}
	f.scales = append(f.scales, scale)
}

func (f *flat) vector(i int) []int8 {
	at := i % flatChunk * f.dim
	return f.chunks[i/flatChunk][at : at+f.dim]
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
	old := flat{dim: f.dim, chunks: f.chunks, scales: f.scales}
	f.chunks, f.scales, f.waste = nil, nil, 0
	for slot := range f.places {
		p := &f.places[slot]
		if !p.set {
			continue
		}
		first := int(p.first)
		p.first = uint32(len(f.scales))
		for i := first; i < first+int(p.parts); i++ {
			n := len(f.scales)
			if n%flatChunk == 0 {
				f.chunks = append(f.chunks, make([]int8, 0, flatChunk*f.dim))
			}
			c := &f.chunks[n/flatChunk]
			*c = append(*c, old.vector(i)...)
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
	workers := 1
	if admit.count() > flatParallel {
		workers = min(2, runtime.GOMAXPROCS(0))
	}
	q8, scale := quantise(q)
	scans := make([]flatScan, workers)
	var wg sync.WaitGroup
	for w := range scans {
		scans[w] = flatScan{f: f, q: q8, scale: float64(scale), best: best{n: n}}
		from, to := w*len(admit)/workers, (w+1)*len(admit)/workers
		if w == workers-1 {
			scans[w].run(ctx, admit, from, to)
			break
		}
		wg.Go(func() { scans[w].run(ctx, admit, from, to) })
	}
	wg.Wait()
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
}

func (s *flatScan) run(ctx context.Context, admit bitset, from, to int) {
	for w := from; w < to; w++ {
		if w%flatPoll == 0 && ctx.Err() != nil {
			return
		}
		for word := admit[w]; word != 0; word &= word - 1 {
			slot := w<<6 | bits.TrailingZeros64(word)
			if slot >= len(s.f.places) {
				return
			}
			p := s.f.places[slot]
			if p.parts == 0 {
				continue
			}
			top := math.Inf(-1)
			for i := int(p.first); i < int(p.first)+int(p.parts); i++ {
				top = max(top, float64(dotInt8(s.q, s.f.vector(i)))*float64(s.f.scales[i]))
			}
			top *= s.scale
			s.moments.add(top)
			s.best.add(hit{slot, top})
		}
	}
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
