package index

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hark/index/terms"
)

// TestLegs is the conformance suite of the vector legs.
func TestLegs(t *testing.T) {
	const dim = 24
	legs := map[string]func() leg{
		"exact": func() leg {
			e, err := newExact(dim)
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		"flat": func() leg { return newFlat(dim) },
		// Random vectors of few dimensions are what signs tell least about: all are chosen.
		"flat by signs": func() leg {
			f := newFlat(dim)
			f.signsFrom, f.bySigns, f.signsShare, f.signsFinal = 10, true, 1, 1
			return f
		},
	}
	for name, fresh := range legs {
		t.Run(name, func(t *testing.T) {
			l, ref := fresh(), map[int][]part{}
			r := rand.New(rand.NewPCG(11, 12))
			for round := range 6 {
				for range 2000 {
					slot := r.IntN(1500)
					if r.IntN(4) == 0 {
						l.drop(slot)
						delete(ref, slot)
						continue
					}
					ref[slot] = randomParts(r, dim)
					putParts(t, l, slot, ref[slot])
				}
				if l.count() != len(ref) {
					t.Fatalf("round %d: %d slots, want %d", round, l.count(), len(ref))
				}
				compareLeg(t, l, ref, r, dim)
			}
			if err := l.put(0, make([]byte, 13)); err == nil {
				t.Error("took a body of a foreign dimension")
			}
			l.drop(99999)
			empty := fresh()
			if got, err := empty.nearest(context.Background(), make([]float32, dim), bitset{1}, 3); err != nil || len(got.hits) > 0 {
				t.Errorf("an empty leg: %+v %v", got, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := l.nearest(ctx, randomParts(r, dim)[0].v, bitset{math.MaxUint64}, 3); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func randomParts(r *rand.Rand, dim int) []part {
	out := make([]part, 1+r.IntN(3))
	for i := range out {
		v := make([]float32, dim)
		for k := range v {
			v[k] = float32(r.NormFloat64())
		}
		u, _ := unit(v, dim)
		out[i] = part{i, u}
	}
	return out
}

func putParts(t *testing.T, l leg, slot int, parts []part) {
	t.Helper()
	body := encodeQuantised(parts)
	if l.table() == "floats" {
		body = encodeFloats(parts)
	}
	if err := l.put(slot, body); err != nil {
		t.Fatal(err)
	}
}

// compareLeg compares a leg with brute force under a random filter.
func compareLeg(t *testing.T, l leg, ref map[int][]part, r *rand.Rand, dim int) {
	t.Helper()
	q := randomParts(r, dim)[0].v
	var admit bitset
	var want []hit
	var m moments
	for slot := range 1500 {
		if r.IntN(3) == 0 {
			continue
		}
		admit.add(slot)
		if parts := ref[slot]; parts != nil {
			top := math.Inf(-1)
			for _, p := range parts {
				sum := 0.0
				for k := range q {
					sum += float64(q[k]) * float64(p.v[k])
				}
				top = max(top, sum)
			}
			want = append(want, hit{slot, top})
			m.add(top)
		}
	}
	slices.SortFunc(want, hit.compare)
	got, err := l.nearest(context.Background(), q, admit, 60)
	if err != nil {
		t.Fatal(err)
	}
	exactly := .002
	if f, ok := l.(*flat); ok && f.bySigns {
		exactly = 1 // of a sample of four
	}
	if got.n != m.n || math.Abs(got.mean()-m.mean()) > exactly || math.Abs(got.sd()-m.sd()) > exactly {
		t.Errorf("moments %d %.4f %.4f, want %d %.4f %.4f", got.n, got.mean(), got.sd(), m.n, m.mean(), m.sd())
	}
	if !slices.IsSortedFunc(got.hits, hit.compare) || len(got.hits) != min(60, len(want)) {
		t.Errorf("%d hits, sorted %v", len(got.hits), slices.IsSortedFunc(got.hits, hit.compare))
	}
	exact := map[int]float64{}
	for _, h := range want {
		exact[h.slot] = h.score
	}
	have := map[int]bool{}
	for _, h := range got.hits {
		have[h.slot] = true
		if math.Abs(h.score-exact[h.slot]) > .01 {
			t.Errorf("slot %d scores %.4f, want %.4f", h.slot, h.score, exact[h.slot])
		}
	}
	for _, h := range want[:10] {
		if !have[h.slot] {
			t.Errorf("slot %d of the first ten is missing", h.slot)
		}
	}
}

func TestBadVectorsAreNamedAndLeftOut(t *testing.T) {
	for _, legs := range []string{"exact", "flat"} {
		t.Run(legs, func(t *testing.T) {
			s := open(t, t.TempDir(), &Options{Vectors: legs})
			ctx := context.Background()
			space := Space{"m", 3}
			if err := s.UseSpace(ctx, space); err != nil {
				t.Fatal(err)
			}
			seqs := add(t, s, numbered(6)...)
			nan, inf := float32(math.NaN()), float32(math.Inf(1))
			err := s.SetVectors(ctx, space, []Vector{
				{Seq: seqs[0], V: []float32{1, 2, 3}},
				{Seq: seqs[1], V: []float32{nan, 0, 1}},
				{Seq: seqs[2], V: []float32{0, 0, 0}},
				{Seq: seqs[3], V: []float32{1, 2}},
				{Seq: seqs[4], V: []float32{inf, 0, 1}},
				{Seq: 777, V: []float32{1, 2, 3}},
			})
			if !errors.Is(err, ErrSpace) {
				t.Fatalf("error %v", err)
			}
			n, err := s.Nearest(ctx, space, []float32{1, 2, 3}, all, 5)
			if err != nil || !cmp.Equal(rowsOf(n.Hits), seqs[:1]) || math.Abs(n.Hits[0].Score-1) > 1e-6 {
				t.Errorf("nearest %+v %v", n, err)
			}
			p, err := s.Pending(ctx, space, 0)
			if err != nil || len(p) != 5 || p[0].Seq != seqs[5] {
				t.Errorf("pending %v %v", p, err)
			}
			for _, q := range [][]float32{{nan, 0, 0}, {0, 0, 0}, {1, 2}} {
				if _, err := s.Nearest(ctx, space, q, all, 5); !errors.Is(err, ErrSpace) {
					t.Errorf("question %v: %v", q, err)
				}
			}
			cos, err := exactly(ctx, s, space, []float32{1, 2, 3}, []int64{seqs[1], seqs[0], seqs[0]})
			if err != nil || !math.IsNaN(cos[0]) || math.Abs(cos[1]-1) > 1e-6 || cos[1] != cos[2] {
				t.Errorf("cosines %v %v", cos, err)
			}
		})
	}
}

func TestAutoOutgrowsExact(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	space := Space{"m", 8}
	if err := s.UseSpace(ctx, space); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(2, 2))
	var vs []Vector
	for _, seq := range add(t, s, numbered(exactBelow+100)...) {
		for _, p := range randomParts(r, 8) {
			vs = append(vs, Vector{Seq: seq, Part: p.n, V: p.v})
		}
	}
	half := len(vs) / 2
	for half > 0 && vs[half].Seq == vs[half-1].Seq {
		half++
	}
	var before, after Neighbours
	var err error
	q := randomParts(r, 8)[0].v
	if err := s.SetVectors(ctx, space, vs[:half]); err != nil {
		t.Fatal(err)
	}
	f := Filter{AllScopes: true, Session: "s1"}
	if before, err = s.Nearest(ctx, space, q, f, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.SetVectors(ctx, space, vs[half:]); err != nil {
		t.Fatal(err)
	}
	if after, err = s.Nearest(ctx, space, q, f, 1); err != nil {
		t.Fatal(err)
	}
	if after.Hits[0].Score < before.Hits[0].Score-1e-6 || after.N <= before.N {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if st, err := s.Status(ctx); err != nil || st.Spaces[0].Leg != "flat" || st.Spaces[0].Loaded != exactBelow+100 {
		t.Errorf("status %+v %v", st.Spaces, err)
	}
}

var emptyDoc terms.Doc

func FuzzBodies(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	f.Add(encodeFloats(randomParts(r, 3)))
	f.Add(encodeQuantised(randomParts(r, 3)))
	f.Add(floats32(randomParts(r, 3)))
	f.Add([]byte{docLayout, 0, 1, 1, 2, 3, 4, 5, 6, 7, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if parts, err := decodeFloats(b, 3); err == nil {
			again, err := decodeFloats(encodeFloats(parts), 3)
			if err != nil || len(again) != len(parts) {
				t.Fatalf("%d parts become %d: %v", len(parts), len(again), err)
			}
			for i, p := range parts {
				for k, x := range p.v {
					top := float64(largest(p.v))
					if d := math.Abs(float64(x) - float64(again[i].v[k])); top > 1e-20 && top < 1e20 && d > top/(1<<22) {
						t.Errorf("%g becomes %g beside %g", x, again[i].v[k], top)
					}
				}
			}
		}
		_ = newFlat(3).put(0, b)
		_, _ = bestCosine(b, []float32{1, 0, 0})
		if h, rest, err := decodeDoc(b); err == nil {
			h2, rest2, err := decodeDoc(append(encodeDoc(h, emptyDoc), rest...))
			if err != nil || h2 != h || string(rest2) != string(rest) {
				t.Error("columns do not round-trip")
			}
		}
	})
}

// floats32 is the body of floats as older stores have it.
func floats32(parts []part) []byte {
	b := []byte{}
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint16(b, uint16(p.n))
		for _, x := range p.v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// TestFloatsAreExact: the stored form of a vector loses nothing that a product of float32 keeps, and
// what older stores hold is read.
func TestFloatsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, dim := range []int{1, 3, 24, 255, 256, 384} {
		for range 20 {
			parts, q := randomParts(r, dim), randomParts(r, dim)[0].v
			want := math.Inf(-1)
			for _, p := range parts {
				sum := 0.0
				for k := range q {
					sum += float64(q[k]) * float64(p.v[k])
				}
				want = max(want, sum)
			}
			for name, body := range map[string][]byte{"compact": encodeFloats(parts), "float32": floats32(parts)} {
				got, err := bestCosine(body, q)
				if err != nil || math.Abs(got-want) > 3e-7 {
					t.Errorf("%d dimensions, %s: %.9f, want %.9f, %v", dim, name, got, want, err)
				}
				back, err := decodeFloats(body, dim)
				if err != nil || len(back) != len(parts) || back[len(back)-1].n != parts[len(parts)-1].n {
					t.Errorf("%d dimensions, %s: %d parts, %v", dim, name, len(back), err)
				}
			}
		}
	}
	if n := len(encodeFloats([]part{{0, make([]float32, 256)}})); n > 800 {
		t.Errorf("a vector of 256 takes %d bytes", n)
	}
}
