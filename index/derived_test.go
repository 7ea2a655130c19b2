package index

import (
	"context"
	"testing"
)

// Rows that are discarded leave no hits, and the same content may come back; forgotten rows do not.
func TestDiscard(t *testing.T) {
	for _, erase := range []bool{false, true} {
		dir := t.TempDir()
		s := open(t, dir, nil)
		keep := add(t, s, say(1, "s", "the harbour is closed in winter"))
		gone := add(t, s, say(2, "s", "the zeppelin lands at noon"))
		if n, err := s.Discard(t.Context(), gone, erase); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if got := matched(t, s, Filter{AllScopes: true}, "zeppelin"); len(got) != 0 {
			t.Errorf("erase %v: found %v", erase, got)
		}
		again := add(t, s, say(2, "s", "the zeppelin lands at noon"))
		if len(again) != 1 || again[0] == 0 || again[0] == gone[0] {
			t.Errorf("erase %v: the same again is row %v", erase, again)
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := matched(t, s, Filter{AllScopes: true}, "zeppelin"); len(got) != 1 {
			t.Errorf("erase %v: found %v", erase, got)
		}
		if got := matched(t, s, Filter{AllScopes: true}, "harbour"); len(got) != 1 || got[0] != keep[0] {
			t.Errorf("erase %v: found %v", erase, got)
		}
		if st, err := s.Status(t.Context()); err != nil || st.Forgotten != 0 || st.Rows != 2 {
			t.Errorf("erase %v: %+v %v", erase, st, err)
		}
	}
}

func TestSetStates(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	for _, values := range []map[string][]byte{{"a": []byte("1"), "b": []byte("2")}, {"a": nil, "c": []byte("3")}, nil} {
		if err := s.SetStates(ctx, "files", values); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.States(ctx, "files")
	if err != nil || len(got) != 2 || string(got["b"]) != "2" || string(got["c"]) != "3" {
		t.Errorf("%q %v", got, err)
	}
	if err := s.SetStates(ctx, "store", map[string][]byte{"id": nil}); err == nil {
		t.Error("the store's own bucket was written")
	}
}
