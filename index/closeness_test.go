package index

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Closeness agrees with the exact cosines, in both legs, and knows what has no vector.
func TestClosenessAgreesWithCosines(t *testing.T) {
	for _, leg := range []string{"exact", "flat"} {
		t.Run(leg, func(t *testing.T) {
			s, err := Open(t.Context(), t.TempDir(), &Options{Vectors: leg})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			space := Space{ID: "test", Dim: 64}
			if err := s.UseSpace(t.Context(), space); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			unitVector := func() []float32 {
				v, sum := make([]float32, space.Dim), 0.0
				for i := range v {
					v[i] = float32(r.NormFloat64())
					sum += float64(v[i]) * float64(v[i])
				}
				for i := range v {
					v[i] /= float32(math.Sqrt(sum))
				}
				return v
			}
			var seqs []int64
			for i := range 40 {
				a, err := s.Append(t.Context(), Batch{Messages: []Message{{Keys: []string{fmt.Sprint("entry:", i)}, Session: "s", Scope: "owner", Role: "user", Time: unixMilli(int64(i)), Text: "x"}}})
				if err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, a.Seqs...)
				if i%5 == 4 {
					continue
				}
				vs := []Vector{{Seq: a.Seqs[0], V: unitVector()}}
				if i%3 == 0 {
					vs = append(vs, Vector{Seq: a.Seqs[0], Part: 1, V: unitVector()})
				}
				if err := s.SetVectors(t.Context(), space, vs); err != nil {
					t.Fatal(err)
				}
			}
			q := unitVector()
			seqs = append(seqs, 9999)
			want, err := exactly(t.Context(), s, space, q, seqs)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Closeness(t.Context(), space, q, seqs)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(want[i]-got[i]) > .01 {
					t.Errorf("row %d: %v, exactly %v", seqs[i], got[i], want[i])
				}
			}
		})
	}
}
