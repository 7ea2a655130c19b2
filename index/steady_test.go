package index

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a question finds, and how often its words occur, does not depend on how far the lexical index
// has followed the rows, while they are added, edited and forgotten.
func TestMatchIsTheSameHoweverFarTheIndexIs(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir(), nil)
	q := ask("heron", "marsh", "garden", "number", "rose")
	compare := func(when string) {
		t.Helper()
		want, err := s.matchWith(ctx, nil, q, all, 30)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Match(ctx, q, all, 30)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: scan and index differ:\n%s", when, d)
		}
		v := s.View()
		n := v.Stats().Messages
		v.Close()
		for i, df := range got.DF {
			if df > n {
				t.Fatalf("%s: term %d is in %d of %d messages", when, i, df, n)
			}
		}
	}
	text := func(i int) string {
		out := fmt.Sprintf("number %d garden", i)
		if i%7 == 0 {
			out += " heron"
		}
		if i%31 == 0 {
			out += " marsh reeds"
		}
		if i%501 == 0 {
			out += " rose"
		}
		return out
	}
	const step = 600
	for from := 0; from < 6000; from += step {
		var ms []Message
		for i := from; i < from+step; i++ {
			ms = append(ms, say(i, "a", text(i)))
		}
		seqs := add(t, s, ms...)
		compare("added")
		ms = ms[:0]
		for i := from; i < from+step; i += 5 {
			ms = append(ms, say(i, "a", text(i+1)+" heron"))
		}
		add(t, s, ms...)
		compare("edited")
		if _, err := s.Forget(ctx, Selection{Seqs: seqs[:40]}); err != nil {
			t.Fatal(err)
		}
		compare("forgotten")
	}
	settled(t, s)
	compare("settled")
}

// Edits of one entry never make a word more frequent than there are messages.
func TestEditsDoNotInflateFrequencies(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	add(t, s, say(1, "a", "the heron stands"))
	settled(t, s)
	for i := range 50 {
		add(t, s, say(1, "a", fmt.Sprintf("the heron stands, edition %d", i)))
		m, err := s.Match(t.Context(), ask("heron"), all, 5)
		if err != nil || m.DF[0] != 1 || len(m.Hits) != 1 {
			t.Fatalf("edit %d: %+v %v", i, m, err)
		}
	}
}
