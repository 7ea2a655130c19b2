package index

import (
	"context"
	"testing"
	"time"
)

// A row that becomes noise is in no index any more, and is again when it is made what it was.
func TestSetKind(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := open(t, dir, nil)
	seqs := add(t, s, say(1, "a", "the quick zebra"), say(2, "a", "the slow zebra"), say(3, "b", "nothing"))
	space := Space{"m", 2}
	if err := s.UseSpace(ctx, space); err != nil {
		t.Fatal(err)
	}
	if err := s.SetVectors(ctx, space, []Vector{{Seq: seqs[0], V: []float32{1, 0}}, {Seq: seqs[1], V: []float32{0, 1}}, {Seq: seqs[2], V: []float32{1, 1}}}); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		kind Kind
		n    int
		want int // zebras found
	}{{Noise, 1, 1}, {Noise, 0, 1}, {Said, 1, 2}}
	for _, step := range steps {
		n, err := s.SetKind(ctx, step.kind, seqs[0], 999)
		if err != nil || n != step.n {
			t.Fatalf("%d changed: %v", n, err)
		}
		for range 2 { // at once, and when the lexical index has followed
			if got := matched(t, s, all, "zebra"); len(got) != step.want {
				t.Errorf("kind %d: %v", step.kind, got)
			}
			if err := s.Settle(ctx); err != nil {
				t.Fatal(err)
			}
		}
		near, err := s.Nearest(ctx, space, []float32{1, 0}, all, 5)
		if err != nil || near.N != 2 { // the vector of a changed row is pending
			t.Errorf("kind %d: %+v %v", step.kind, near, err)
		}
		check(t, s)
	}
	if n, err := s.PendingCount(ctx, space); err != nil || n != 1 {
		t.Errorf("%d pending: %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, nil)
	if got := matched(t, s, all, "zebra"); len(got) != 2 {
		t.Error(got)
	}
}

// Short entry ids are made afresh for each transcript of a session: the same one with another text and
// time in another transcript is another message; in the same one it is an edit.
func TestReusedEntryID(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	m := func(transcript, text string, second int64, keys ...string) Message {
		return Message{Keys: keys, Session: "a", SessionID: transcript, Scope: "a", Role: "user", Text: text, Time: time.Unix(second, 0)}
	}
	first := add(t, s, m("t1", "the first", 10, "entry:a/77", "text:1"))
	other := add(t, s, m("t2", "quite another", 20, "entry:a/77", "text:2"))
	again := add(t, s, m("t2", "quite another", 20, "entry:a/77", "text:2"))
	if other[0] == first[0] || again[0] != other[0] {
		t.Errorf("rows %v, %v, %v", first, other, again)
	}
	edited := add(t, s, m("t1", "the first, edited", 10, "entry:a/77", "text:3"))
	rows, err := s.Get(context.Background(), first[0])
	if err != nil || edited[0] != first[0] || rows[0].Text != "the first, edited" {
		t.Errorf("%v %+v %v", edited, rows, err)
	}
	check(t, s)
}
