package index

import (
	"fmt"
	"path/filepath"
	"strings"
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

// The old index answers until the new one has taken in every row, and what happens meanwhile is in it.
func TestErasingGoesOnBesideTheTurns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	var ms []Message
	for i := range 4000 {
		ms = append(ms, say(i, fmt.Sprint("s", i%40), fmt.Sprintf("the boiler of flat %d needs qzx%dj", i, i)))
	}
	seqs := add(t, s, ms...)
	ctx := t.Context()
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if _, err := s.Forget(ctx, Selection{Session: fmt.Sprint("s", round)}); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			n := 5000 + 100*round + i
			add(t, s, say(n, "late", fmt.Sprintf("the late lantern %d", n)))
			if _, err := s.Forget(ctx, Selection{Seqs: seqs[1000*round+30*i+20 : 1000*round+30*i+21]}); err != nil {
				t.Fatal(err)
			}
			got, err := s.Match(ctx, ask("lantern"), Filter{AllScopes: true}, 1000)
			if err != nil || len(got.Hits) != 10*round+i+1 {
				t.Fatalf("%d messages with a lantern, want %d: %v", len(got.Hits), 10*round+i+1, err)
			}
		}
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, d := range dictionary(t, s) {
		if _, word, ok := strings.Cut(d, "qzx"); ok {
			there[word] = true
		}
	}
	for n, want := range map[int]bool{0: false, 1: false, 42: false, 20: false, 1020: false, 2290: false, 3: true, 3999: true} {
		if there[fmt.Sprint(n, "j")] != want {
			t.Errorf("the word of message %d is in the dictionary: %v, want %v", n, !want, want)
		}
	}
	r, err := s.Check(ctx)
	if err != nil || !r.OK() || r.Words != r.Recallable {
		t.Errorf("check: %+v %v", r, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "words.*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
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
