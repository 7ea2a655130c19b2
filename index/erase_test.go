package index

import (
	"fmt"
	"testing"
)

// Forgotten words are in no dictionary of the lexical index: its files share prefixes between
// words, so that looking for the bytes proves nothing.
func TestForgottenWordsLeaveTheDictionary(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	for i := range 300 {
		add(t, s, say(i, "s", fmt.Sprintf("the boiler of flat %d needs water", i)))
	}
	for round, word := range []string{"zyxqvorpstone", "gnarlwickhall"} {
		m := say(1000+round, "s", "grandma hides "+word+" beneath the floorboards")
		m.Sender = "Vexomir"
		seq := add(t, s, m)[0]
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Forget(t.Context(), Selection{Seqs: []int64{seq}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range dictionary(t, s) {
			switch w {
			case "w" + word, "wzyxqvorpston", "wvexomir", "wgrandma":
				t.Errorf("%s is in the dictionary", w)
			}
		}
		if got := matched(t, s, Filter{AllScopes: true}, "boiler"); len(got) == 0 {
			t.Error("what was kept is not found")
		}
	}
}

func dictionary(t *testing.T, s *Store) (out []string) {
	t.Helper()
	s.words.mu.RLock()
	defer s.words.mu.RUnlock()
	r, err := s.words.idx.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, err := r.FieldDict(fieldTerms)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for {
		e, err := d.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out
		}
		out = append(out, e.Term)
	}
}
