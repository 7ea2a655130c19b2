package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// shapes are kinds of vectors a model may make.
func shapes(r *rand.Rand, n, dim int) map[string][][]float32 {
	uniform := make([][]float32, n)
	for i := range uniform {
		uniform[i] = randomParts(r, dim)[0].v
	}
	centres, near := uniform[:50], make([][]float32, n)
	for i := range near {
		v := make([]float32, dim)
		for k := range v {
			v[k] = centres[i%50][k] + float32(r.NormFloat64())*.7/float32(math.Sqrt(float64(dim)))
		}
		near[i], _ = unit(v, dim)
	}
	return map[string][][]float32{"uniform": uniform, "clustered": near}
}

// recallOf is the share of the ten nearest that a leg finds, compared with all vectors exactly.
func recallOf(t *testing.T, l leg, vs [][]float32, ask [][]float32) float64 {
	t.Helper()
	var admit bitset
	admit.addRange(0, len(vs))
	found := 0
	for _, q := range ask {
		want := best{n: 10}
		for slot, v := range vs {
			sum := 0.0
			for k := range q {
				sum += float64(q[k]) * float64(v[k])
			}
			want.add(hit{slot, sum})
		}
		got, err := l.nearest(context.Background(), q, admit, 10+rescored)
		if err != nil {
			t.Fatal(err)
		}
		have := map[int]bool{}
		for _, h := range got.hits {
			have[h.slot] = true
		}
		for _, h := range want.heap {
			if have[h.slot] {
				found++
			}
		}
	}
	return float64(found) / float64(10*len(ask))
}

// TestRecallOfFlat: what the quantised scan offers for rescoring holds the ten nearest, whatever the
// vectors are like.
func TestRecallOfFlat(t *testing.T) {
	const n, dim = 10_000, 64
	r := rand.New(rand.NewPCG(21, 22))
	for name, vs := range shapes(r, n, dim) {
		t.Run(name, func(t *testing.T) {
			f := newFlat(dim)
			for slot, v := range vs {
				putParts(t, f, slot, []part{{0, v}})
			}
			var ask [][]float32
			for i := range 30 {
				v := make([]float32, dim)
				for k := range v {
					v[k] = vs[i*331][k] + .5*vs[i*97+5][k]
				}
				u, _ := unit(v, dim)
				ask = append(ask, u)
			}
			if got := recallOf(t, f, vs, ask); got < 1 {
				t.Errorf("recall@10 %.3f of a full scan", got)
			}
			// Whether signs may choose is measured: they do where they find the same.
			f.signsFrom = 2000
			if !f.measureDue() {
				t.Fatal("no measurement is due")
			}
			f.measure(t.Context())
			if f.measureDue() {
				t.Error("a measurement is due again")
			}
			if want := name == "clustered"; f.bySigns != want {
				t.Errorf("signs are used: %v, want %v", f.bySigns, want)
			}
			if got := recallOf(t, f, vs, ask); got < .99 {
				t.Errorf("recall@10 %.3f after measuring", got)
			}
		})
	}
}

func TestSignsStepGrowsByHalf(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {99, 0}, {100, 100}, {149, 100}, {150, 150}, {224, 150}, {225, 225}} {
		if got := signsStep(c[0], 100); got != c[1] {
			t.Errorf("%d slots: step %d, want %d", c[0], got, c[1])
		}
	}
}

func TestSigns(t *testing.T) {
	a := []int8{1, -1, 0, 127, -127}
	if got := appendSigns(nil, a); len(got) != 1 || got[0] != 0b01001 {
		t.Errorf("signs %b", got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, dim := range []int{1, 63, 64, 65, 256, 384} {
		q, v := make([]int8, dim), bytesOf(r, dim)
		q[0] = 7 // so that the numbers of four bits are the question itself
		for i := 1; i < dim; i++ {
			q[i] = int8(r.IntN(15) - 7)
		}
		differs, product := 0, 0
		for i := range q {
			if (q[i] > 0) != (v[i] > 0) {
				differs++
			}
			if v[i] > 0 {
				product += int(q[i])
			} else {
				product -= int(q[i])
			}
		}
		s, signs := newSignQuery(q), appendSigns(nil, v)
		if got := s.differing(signs); got != differs {
			t.Errorf("%d dimensions: %d signs differ, want %d", dim, got, differs)
		}
		if got := s.product(signs); got != product {
			t.Errorf("%d dimensions: product %d, want %d", dim, got, product)
		}
	}
}

func BenchmarkSigns(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	q, v := newSignQuery(bytesOf(r, benchDim)), appendSigns(nil, bytesOf(r, benchDim))
	b.Run("differing-256", func(b *testing.B) {
		for b.Loop() {
			q.differing(v)
		}
	})
	b.Run("product-256", func(b *testing.B) {
		for b.Loop() {
			q.product(v)
		}
	})
}

// BenchmarkFlat scans by all vectors and by signs; "read" sums up as many bytes as a full scan reads,
// which is what the machine's memory allows.
func BenchmarkFlat(b *testing.B) {
	sizes := []int{100_000}
	if *large {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		r := rand.New(rand.NewPCG(3, 4))
		f := newFlat(benchDim)
		raw := make([]byte, benchDim)
		for slot := range n {
			for k := 0; k < benchDim; k += 8 {
				binary.LittleEndian.PutUint64(raw[k:], r.Uint64()&^0x8080808080808080)
			}
			f.places = append(f.places, place{uint32(slot), 1, true})
			f.slots++
			f.push(.01, raw)
		}
		q := randomParts(r, benchDim)[0].v
		var admit bitset
		admit.addRange(0, n)
		scan := func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.nearest(b.Context(), q, admit, 150); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprint("read-", n), func(b *testing.B) {
			b.SetBytes(int64(n * benchDim))
			sum := int64(0)
			for b.Loop() {
				for _, c := range f.chunks {
					for i := 0; i+64 <= len(c); i += 64 { // a cache line
						sum += int64(c[i])
					}
				}
			}
			_ = sum
		})
		b.Run(fmt.Sprint("full-", n), func(b *testing.B) {
			b.SetBytes(int64(n * benchDim))
			scan(b)
		})
		f.bySigns, f.signsFrom = true, 1
		b.Run(fmt.Sprint("signs-", n), scan)
	}
}
