package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestAdmitted compares the sets that filters admit with a look at every row.
func TestAdmitted(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r := rand.New(rand.NewPCG(5, 5))
	var ms []Message
	for i := range 700 {
		m := say(i, fmt.Sprint("s", r.IntN(20)), fmt.Sprint("word", i))
		m.Scope, m.Kind = fmt.Sprint("scope", i/90%4, r.IntN(2)), Kind(r.IntN(int(Noise)+1))
		ms = append(ms, m)
	}
	seqs := add(t, s, ms...)
	if _, err := s.Forget(t.Context(), Selection{Seqs: seqs[100:180]}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetKind(t.Context(), Tool, seqs[200:260]...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetKind(t.Context(), Noise, seqs[300:330]...); err != nil {
		t.Fatal(err)
	}
	filters := []Filter{
		{AllScopes: true}, {Scopes: []string{"scope00"}}, {Scopes: []string{"scope11", "scope30", "none"}},
		{AllScopes: true, Session: "s3"}, {Scopes: []string{"scope00"}, Session: "s4"}, {AllScopes: true, Session: "none"},
		{AllScopes: true, Kinds: []Kind{Tool}}, {Scopes: []string{"scope20"}, Kinds: []Kind{Said}}, {AllScopes: true, Kinds: []Kind{Noise}}, {},
	}
	for _, f := range filters {
		got := s.cols.admitted(f)
		a := s.cols.admission(f)
		n := 0
		for slot := range s.cols.rows {
			want := !a.none && a.admits(&s.cols.rows[slot])
			if got.has(slot) != want {
				t.Fatalf("%+v: row %d is admitted: %v, want %v", f, s.cols.rows[slot].seq, got.has(slot), want)
			}
			if want {
				n++
			}
		}
		if got.count() != n {
			t.Errorf("%+v: %d rows, want %d", f, got.count(), n)
		}
	}
}

func TestRangesOfBits(t *testing.T) {
	for from := range 140 {
		for to := from; to < 140; to++ {
			var b bitset
			b.addRange(from, to)
			if b.count() != to-from || to > from && (!b.has(from) || !b.has(to-1)) || b.has(to) || from > 0 && b.has(from-1) {
				t.Fatalf("%d to %d: %b", from, to, b)
			}
		}
	}
}
