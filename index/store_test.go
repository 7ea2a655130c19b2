package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hark/index/terms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)

// open opens a store that is checked and closed at the end of the test.
func open(t testing.TB, dir string, opts *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.closed.Load() {
			check(t, s)
		}
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

func check(t testing.TB, s *Store) {
	t.Helper()
	r, err := s.Check(context.Background())
	if err != nil {
		t.Error("check:", err)
	}
	if !r.OK() {
		t.Errorf("check: %d differences:\n%s", r.Problems, strings.Join(r.Differences, "\n"))
	}
}

func say(n int, session, text string) Message {
	return Message{
		Keys: []string{fmt.Sprintf("entry:%s/%d", session, n), fmt.Sprintf("idem:%s/%d", session, n)}, Session: session, SessionID: "id-" + session,
		Scope: "main", Role: "user", Sender: "Ada", Time: start.Add(time.Duration(n) * time.Minute), Text: text,
		Raw: []byte(`{"role":"user"}`),
	}
}

func add(t testing.TB, s *Store, ms ...Message) []int64 {
	t.Helper()
	a, err := s.Append(context.Background(), Batch{Messages: ms})
	if err != nil {
		t.Fatal(err)
	}
	return a.Seqs
}

func ask(words ...string) []WeightedTerm {
	var q []WeightedTerm
	for _, qt := range terms.New().Query(strings.Join(words, " "), []terms.Lang{terms.English}) {
		q = append(q, WeightedTerm{Term: qt.Term, Weight: 1})
	}
	return q
}

func matched(t testing.TB, s *Store, f Filter, words ...string) []int64 {
	t.Helper()
	m, err := s.Match(context.Background(), ask(words...), f, 10)
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(m.Hits)
}

func rowsOf(hits []Scored) []int64 {
	var out []int64
	for _, h := range hits {
		out = append(out, h.Seq)
	}
	return out
}

var all = Filter{AllScopes: true}

func TestAppendIsFoundByWordsAtOnce(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	seqs := add(t, s, say(1, "a", "The heron stood in the marsh"), say(2, "a", "Buy oat milk and bread"))
	if got := matched(t, s, all, "heron"); !cmp.Equal(got, seqs[:1]) {
		t.Errorf("heron: rows %v", got)
	}
	if got := matched(t, s, Filter{}, "heron"); got != nil {
		t.Errorf("the zero filter found %v", got)
	}
	got, err := s.Get(context.Background(), seqs[1], seqs[0])
	if err != nil {
		t.Fatal(err)
	}
	want := []Message{say(2, "a", "Buy oat milk and bread"), say(1, "a", "The heron stood in the marsh")}
	for i := range want {
		want[i].Seq, want[i].ID = got[i].Seq, got[i].ID
		if len(got[i].ID) != idLength {
			t.Errorf("id %q", got[i].ID)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := s.Get(context.Background(), 99); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "99") {
		t.Errorf("row 99: %v", err)
	}
	byID, err := s.Find(context.Background(), got[0].ID)
	if err != nil || byID[0].Seq != seqs[1] {
		t.Errorf("find %s: %v %v", got[0].ID, byID, err)
	}
}

func TestReimportAddsNothing(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	first := add(t, s, say(1, "a", "alpha"), say(2, "a", "beta"))
	again, err := s.Append(ctx, Batch{Messages: []Message{say(1, "a", "alpha"), say(2, "a", "beta"), say(3, "a", "gamma")}})
	if err != nil {
		t.Fatal(err)
	}
	want := Appended{New: 1, Duplicate: 2, Seqs: []int64{first[0], first[1], first[1] + 1}}
	if d := cmp.Diff(want, again); d != "" {
		t.Error(d)
	}
	m := say(1, "a", "alpha")
	m.Keys = []string{"entry:new-name", "idem:a/1"}
	add(t, s, m)
	if rows, err := s.Lookup(ctx, "entry:new-name", "idem:a/2", "nobody"); err != nil || !cmp.Equal(rows, []int64{first[0], first[1], 0}) {
		t.Errorf("lookup: %v %v", rows, err)
	}
}

func TestReceipts(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	b := Batch{Messages: []Message{say(1, "a", "alpha")}, Receipt: &Receipt{Key: "turn 1", Digest: [32]byte{1}}}
	if _, err := s.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Append(ctx, b); err != nil || !a.Replayed || a.Seqs != nil {
		t.Errorf("again: %+v %v", a, err)
	}
	b.Receipt = &Receipt{Key: "turn 1", Digest: [32]byte{2}}
	b.Messages = []Message{say(2, "a", "beta")}
	if _, err := s.Append(ctx, b); !errors.Is(err, ErrConflict) {
		t.Errorf("other content: %v", err)
	}
	if got := matched(t, s, all, "beta"); got != nil {
		t.Errorf("a refused batch was stored: %v", got)
	}
	bad := Batch{Messages: []Message{say(3, "a", "gamma"), {Text: "no key"}}, Receipt: &Receipt{Key: "turn 2"}}
	if _, err := s.Append(ctx, bad); err == nil {
		t.Error("a message without a key was stored")
	}
	if got := matched(t, s, all, "gamma"); got != nil {
		t.Errorf("half a batch was stored: %v", got)
	}
}

func TestEntryIsUpdated(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	seqs := add(t, s, say(1, "a", "half an ans"), say(2, "a", "other"))
	space := Space{"m", 4}
	if err := s.SetVectors(ctx, space, []Vector{{Seq: seqs[0], V: []float32{1, 0, 0, 0}}, {Seq: seqs[1], V: []float32{0, 1, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	a, err := s.Append(ctx, Batch{Messages: []Message{say(1, "a", "whole giraffe answer")}})
	if err != nil || a.Updated != 1 || a.Seqs[0] != seqs[0] {
		t.Fatalf("%+v %v", a, err)
	}
	for range 2 {
		if got := matched(t, s, all, "giraffe"); !cmp.Equal(got, seqs[:1]) {
			t.Errorf("new text: %v", got)
		}
		if got := matched(t, s, all, "half"); got != nil {
			t.Errorf("old text: %v", got)
		}
		if err := s.Settle(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pending, err := s.Pending(ctx, space, 0)
	if err != nil || len(pending) != 1 || pending[0].Text != "whole giraffe answer" {
		t.Errorf("pending: %v %v", pending, err)
	}
}

func TestFilterComesBeforeTopK(t *testing.T) {
	for _, legs := range []string{"exact", "flat"} {
		t.Run(legs, func(t *testing.T) {
			s := open(t, t.TempDir(), &Options{Vectors: legs})
			ctx := context.Background()
			space := Space{"m", 4}
			if err := s.UseSpace(ctx, space); err != nil {
				t.Fatal(err)
			}
			var foreign []Message
			for i := range 1000 {
				m := say(i, "group", "zebra zebra zebra")
				m.Scope, m.Kind = "group", Tool
				foreign = append(foreign, m)
			}
			var vs []Vector
			for _, seq := range add(t, s, foreign...) {
				vs = append(vs, Vector{Seq: seq, V: []float32{1, 0, 0, 0}})
			}
			mine := add(t, s, say(1, "dm", "we once saw a zebra at the zoo near the old harbour wall"))
			vs = append(vs, Vector{Seq: mine[0], V: []float32{1, 1, 0, 0}})
			if err := s.SetVectors(ctx, space, vs); err != nil {
				t.Fatal(err)
			}
			for range 2 { // from the rows, then from the index
				for _, f := range []Filter{{Scopes: []string{"main", "nowhere"}}, {AllScopes: true, Session: "dm"}, {AllScopes: true, Kinds: []Kind{Said}}} {
					if got := matched(t, s, f, "zebra"); !cmp.Equal(got, mine) {
						t.Errorf("%+v: words found %v", f, got)
					}
					n, err := s.Nearest(ctx, space, []float32{1, 0, 0, 0}, f, 5)
					if err != nil || !cmp.Equal(rowsOf(n.Hits), mine) || n.N != 1 {
						t.Errorf("%+v: vectors found %+v %v", f, n, err)
					}
				}
				if err := s.Settle(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := s.Nearest(ctx, space, []float32{1, 0, 0, 0}, Filter{}, 5); err != nil || len(n.Hits) > 0 {
				t.Errorf("the zero filter found %+v %v", n, err)
			}
		})
	}
}

func TestNoiseIsKeptAndNotMatched(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	m := say(1, "a", "heartbeat xylophone")
	m.Kind = Noise
	seqs := add(t, s, m, say(2, "a", "hello"))
	if got := matched(t, s, Filter{AllScopes: true, Kinds: []Kind{Noise}}, "xylophone"); got != nil {
		t.Errorf("noise was matched: %v", got)
	}
	rows, err := s.Session(context.Background(), "a", 0, 0)
	if err != nil || len(rows) != 2 || rows[0].Seq != seqs[0] {
		t.Errorf("session: %v %v", rows, err)
	}
	if n, err := s.PendingCount(context.Background(), Space{"m", 2}); err != nil || n != 1 {
		t.Errorf("pending: %d %v", n, err)
	}
}

func TestForgetLeavesNothingAndStays(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := open(t, dir, nil)
	var ms []Message
	for i := range 50 {
		m := say(i, "private:Zaphod", fmt.Sprintf("the password is quetzalcoatl%d", i))
		m.Sender = "Beeblebrox"
		ms = append(ms, m, say(i, "work", fmt.Sprintf("ordinary words number %d", i)))
	}
	seqs := add(t, s, ms...)
	space := Space{"m", 4}
	if err := s.UseSpace(ctx, space); err != nil {
		t.Fatal(err)
	}
	if err := s.SetVectors(ctx, space, []Vector{{Seq: seqs[0], V: []float32{1, 2, 3, 4}}, {Seq: seqs[1], V: []float32{1, 2, 3, 5}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	n, err := s.Forget(ctx, Selection{Session: "private:Zaphod"})
	if err != nil || n != 50 {
		t.Fatalf("forgot %d: %v", n, err)
	}
	if got := matched(t, s, all, "password"); got != nil {
		t.Errorf("still matched: %v", got)
	}
	near, err := s.Nearest(ctx, space, []float32{1, 2, 3, 4}, all, 5)
	if err != nil || !cmp.Equal(rowsOf(near.Hits), seqs[1:2]) {
		t.Errorf("still near: %+v %v", near, err)
	}
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := s.Append(ctx, Batch{Messages: ms[:2]})
	if err != nil || again.New != 0 || again.Seqs[0] != 0 || again.Seqs[1] != seqs[1] {
		t.Errorf("a second import: %+v %v", again, err)
	}
	check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	grep(t, dir, "quetzalcoatl", "Beeblebrox", "Zaphod")
	s = open(t, dir, nil)
	if again, err := s.Append(ctx, Batch{Messages: ms[:1]}); err != nil || again.New != 0 {
		t.Errorf("an import after reopening: %+v %v", again, err)
	}
}

// grep fails the test where a file below dir holds one of the words, in any case.
func grep(t *testing.T, dir string, words ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, w := range words {
			if strings.Contains(strings.ToLower(string(b)), strings.ToLower(w)) {
				t.Errorf("%s holds %q", path, w)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEpisodes(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var ms []Message
	at := func(d time.Duration, text string, k Kind) {
		m := say(len(ms), "a", text)
		m.Time, m.Kind = start.Add(d), k
		ms = append(ms, m)
	}
	at(0, "apples", Said)
	at(time.Minute, "beat", Noise)
	at(2*time.Minute, "apples and pears", Said)
	at(6*time.Hour+2*time.Minute, "still the same run", Said)
	at(13*time.Hour, "a new day", Said)
	seqs := add(t, s, ms...)
	late := say(99, "a", "apples arrived late")
	late.Time = start.Add(90 * time.Second)
	l := add(t, s, late)[0]
	v := s.View()
	defer v.Close()
	e := v.Episode(seqs[2])
	if want := []int64{seqs[0], l, seqs[2], seqs[3]}; !cmp.Equal(e.Seqs, want) {
		t.Errorf("episode %v, want %v", e.Seqs, want)
	}
	apple := terms.Term{Class: terms.Word, Text: "appl"}
	counts := []int{0}
	if v.Count(append(e.Seqs, 999), terms.NewSet([]uint32{apple.Hash()}), counts); counts[0] != 3 {
		t.Errorf("apples in the episode: %v", counts)
	}
	if key, at, ok := v.EpisodeKey(l); !ok || key != e.Key || at != 1 {
		t.Errorf("the late one: %v %d %v", key, at, ok)
	}
	if v.Episode(seqs[1]) != nil {
		t.Error("noise has an episode")
	}
	prev, next := v.Around(seqs[2], 5, 5)
	if !cmp.Equal(prev, []int64{seqs[0], l}) || !cmp.Equal(next, []int64{seqs[3]}) {
		t.Errorf("around: %v %v", prev, next)
	}
	if prev, next := v.Around(seqs[4], 5, 5); prev != nil || next != nil {
		t.Errorf("around the last: %v %v", prev, next)
	}
	if st := v.Stats(); st.Messages != 5 || st.Episodes != 2 {
		t.Errorf("stats %+v", st)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := open(t, dir, nil)
	r := rand.New(rand.NewPCG(1, 2))
	var ms []Message
	for i := range 700 {
		m := say(i, fmt.Sprint("s", i%7), fmt.Sprintf("word%d and word%d again", r.IntN(40), r.IntN(40)))
		if i%5 == 0 {
			m.Text, m.Role = "Wie geht es dir heute und was ist mit dem Haus?", "assistant"
		}
		ms = append(ms, m)
	}
	add(t, s, ms...)
	if err := s.SetState(ctx, "window", "a", []byte("anchor")); err != nil {
		t.Fatal(err)
	}
	space := Space{"m", 4}
	if err := s.SetVectors(ctx, space, []Vector{{Seq: 3, V: []float32{0, 0, 2, 0}}, {Seq: 4}, {Seq: 5, Failed: "too long"}}); err != nil {
		t.Fatal(err)
	}
	before := observe(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, Batch{}); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	s = open(t, dir, nil)
	if d := cmp.Diff(before, observe(t, s)); d != "" {
		t.Error("reopening changed:", d)
	}
	if v, err := s.State(ctx, "window", "a"); err != nil || string(v) != "anchor" {
		t.Errorf("state: %q %v", v, err)
	}
	pending, err := s.Pending(ctx, space, 0)
	if err != nil || len(pending) != 698 || pending[697].Seq != 5 {
		t.Errorf("pending: %d, last %v, %v", len(pending), pending[len(pending)-1], err)
	}
}

// observe collects what a user of the store sees.
func observe(t *testing.T, s *Store) map[string]any {
	t.Helper()
	ctx := context.Background()
	sessions, err := s.Sessions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{"sessions": sessions}
	for _, w := range []string{"word1", "word2 word3", "haus", "again"} {
		m, err := s.Match(ctx, ask(w), all, 20)
		if err != nil {
			t.Fatal(err)
		}
		out[w] = m
	}
	v := s.View()
	defer v.Close()
	out["stats"] = v.Stats()
	row, _ := v.Row(6)
	out["row"] = row
	out["episode"] = v.Episode(6).Seqs
	return out
}

func TestGermanCompoundIsFoundByItsParts(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	seqs := add(t, s, say(1, "a", "Wir haben gestern über die Krankenversicherung und den Vertrag gesprochen."), say(2, "a", "Das ist eine ganz andere Sache, und die Katze schläft."))
	var q []WeightedTerm
	for _, qt := range terms.New().Query("Versicherung", []terms.Lang{"de"}) {
		q = append(q, WeightedTerm{Term: qt.Term, Weight: 1})
	}
	for range 2 {
		m, err := s.Match(context.Background(), q, all, 5)
		if err != nil || !cmp.Equal(rowsOf(m.Hits), seqs[:1]) {
			t.Errorf("found %+v: %v", m, err)
		}
		settled(t, s)
	}
}
