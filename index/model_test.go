package index

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is the store as a map and brute force.
type model struct {
	rows   map[int64]*Message
	keys   map[string]int64 // 0: forgotten
	vecs   map[int64][]float32
	next   int64
	serial int
}

var modelWords = strings.Fields("amber birch cedar dune elm fern grove heath iris juniper kelp larch moss nettle oak pine quartz reed sage thorn")

func (m *model) message(r *rand.Rand) Message {
	m.serial++
	var text []string
	for range 1 + r.IntN(6) {
		text = append(text, modelWords[r.IntN(len(modelWords))])
	}
	msg := say(m.serial, fmt.Sprint("s", r.IntN(4)), strings.Join(text, " "))
	msg.Scope = []string{"main", "group"}[r.IntN(2)]
	msg.Kind = Kind(r.IntN(4))
	msg.Time = start.Add(time.Duration(r.IntN(40000)) * time.Second)
	msg.Raw = nil
	return msg
}

func (m *model) append(msg Message) {
	for _, k := range msg.Keys {
		if row, ok := m.keys[k]; ok {
			if old := m.rows[row]; row > 0 && k == msg.Keys[0] && old.Text != msg.Text {
				old.Text, old.Caption, old.Kind, old.Raw = msg.Text, msg.Caption, msg.Kind, msg.Raw
				delete(m.vecs, row)
			}
			for _, k := range msg.Keys {
				if _, ok := m.keys[k]; !ok {
					m.keys[k] = row
				}
			}
			return
		}
	}
	m.next++
	msg.Seq = m.next
	m.rows[m.next] = &msg
	for _, k := range msg.Keys {
		m.keys[k] = m.next
	}
}

// seqs are the rows that pass, ascending.
func (m *model) seqs(pass func(*Message) bool) []int64 {
	var out []int64
	for seq, msg := range m.rows {
		if pass(msg) {
			out = append(out, seq)
		}
	}
	slices.Sort(out)
	return out
}

// TestModel does random things to a store and to a model of it, and compares what they answer.
func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runModel(t, seed) })
	}
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(seed, 99))
	opts := &Options{Vectors: []string{"exact", "flat", "auto"}[seed%3]}
	s := open(t, dir, opts)
	space := Space{"m", 8}
	m := &model{rows: map[int64]*Message{}, keys: map[string]int64{}, vecs: map[int64][]float32{}}
	if err := s.UseSpace(ctx, space); err != nil {
		t.Fatal(err)
	}
	var sent []Message
	for step := range 150 {
		switch op := r.IntN(20); {
		case op < 8:
			var b Batch
			for range 1 + r.IntN(12) {
				msg := m.message(r)
				if len(sent) > 0 && r.IntN(4) == 0 {
					old := sent[r.IntN(len(sent))]
					if r.IntN(2) == 0 {
						old.Text += " " + modelWords[r.IntN(len(modelWords))]
						old.Kind = msg.Kind
					}
					msg = old
				}
				sent = append(sent, msg)
				b.Messages = append(b.Messages, msg)
				m.append(msg)
			}
			if _, err := s.Append(ctx, b); err != nil {
				t.Fatal(err)
			}
		case op < 11:
			pending, err := s.Pending(ctx, space, 1+r.IntN(20))
			if err != nil {
				t.Fatal(err)
			}
			var vs []Vector
			for _, p := range pending {
				v := randomParts(r, 8)[0].v
				vs = append(vs, Vector{Seq: p.Seq, V: v})
				m.vecs[p.Seq] = v
			}
			if err := s.SetVectors(ctx, space, vs); err != nil {
				t.Fatal(err)
			}
		case op < 12 && len(m.rows) > 0:
			gone := m.seqs(func(*Message) bool { return r.IntN(15) == 0 })
			n, err := s.Forget(ctx, Selection{Seqs: gone})
			if err != nil || n != len(gone) {
				t.Fatalf("step %d: forgot %d of %d: %v", step, n, len(gone), err)
			}
			for _, seq := range gone {
				delete(m.rows, seq)
				delete(m.vecs, seq)
				for k, row := range m.keys {
					if row == seq {
						m.keys[k] = 0
					}
				}
			}
		case op < 13:
			if r.IntN(2) == 0 {
				settled(t, s)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, opts)
			if err := s.UseSpace(ctx, space); err != nil {
				t.Fatal(err)
			}
		default:
			m.compare(t, s, space, r)
		}
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, step)
		}
	}
	settled(t, s)
	m.compare(t, s, space, r)
}

func (m *model) compare(t *testing.T, s *Store, space Space, r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	f := Filter{Scopes: []string{"main"}}
	if r.IntN(3) == 0 {
		f = Filter{AllScopes: true, Session: fmt.Sprint("s", r.IntN(4))}
	}
	pass := func(msg *Message) bool {
		return recallable(msg.Kind) && (f.AllScopes || msg.Scope == "main") && (f.Session == "" || msg.Session == f.Session)
	}
	words := []string{modelWords[r.IntN(len(modelWords))], modelWords[r.IntN(len(modelWords))]}
	has := func(msg *Message) bool {
		for _, w := range words {
			if slices.Contains(strings.Fields(msg.Text), w) {
				return true
			}
		}
		return false
	}
	got, err := s.Match(ctx, ask(words...), f, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(got.Hits)
	slices.Sort(rows)
	if d := cmp.Diff(m.seqs(func(msg *Message) bool { return pass(msg) && has(msg) }), rows); d != "" {
		t.Errorf("%v under %+v: %s", words, f, d)
	}
	q := randomParts(r, 8)[0].v
	near, err := s.Nearest(ctx, space, q, f, 5)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m.nearest(q, pass, 5), near.Hits, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-5 })); d != "" {
		t.Errorf("nearest: %s", d)
	}
	live := m.seqs(func(*Message) bool { return true })
	msgs, err := s.Get(ctx, live...)
	if err != nil {
		t.Fatal(err)
	}
	for i, msg := range msgs {
		want := *m.rows[live[i]]
		want.ID, want.Raw, msg.Raw = msg.ID, nil, nil
		if d := cmp.Diff(want, msg); d != "" {
			t.Error(d)
		}
	}
	n, err := s.PendingCount(ctx, space)
	if want := len(m.seqs(func(msg *Message) bool { return recallable(msg.Kind) && m.vecs[msg.Seq] == nil })); err != nil || n != want {
		t.Errorf("pending %d, want %d: %v", n, want, err)
	}
}

func (m *model) nearest(q []float32, pass func(*Message) bool, k int) []Scored {
	var out []Scored
	for seq, v := range m.vecs {
		if msg := m.rows[seq]; msg != nil && pass(msg) {
			sum := 0.0
			for i := range q {
				sum += float64(q[i]) * float64(v[i])
			}
			out = append(out, Scored{seq, sum})
		}
	}
	slices.SortFunc(out, byScore)
	return out[:min(k, len(out))]
}

// TestBusy has many sessions append at once beside readers and forgetting.
func TestBusy(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	space := Space{"m", 4}
	if err := s.UseSpace(ctx, space); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for g := range 32 {
		go func() {
			for i := range 10 {
				a, err := s.Append(ctx, Batch{Messages: []Message{say(i, fmt.Sprint("session", g), "willow tree")}})
				if err == nil {
					err = s.SetVectors(ctx, space, []Vector{{Seq: a.Seqs[0], V: []float32{1, float32(i), 0, 0}}})
				}
				if err == nil {
					_, err = s.Match(ctx, ask("willow"), all, 5)
				}
				if err == nil {
					_, err = s.Nearest(ctx, space, []float32{1, 2, 0, 0}, all, 5)
				}
				if err == nil && i == 5 && g%8 == 0 {
					_, err = s.Forget(ctx, Selection{Seqs: a.Seqs})
				}
				v := s.View()
				v.Episode(a.Seqs[0])
				v.Stats()
				v.Close()
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 32 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Match(ctx, ask("willow"), all, 1000); err != nil || len(got.Hits) != 316 {
		t.Errorf("%d of 316 found: %v", len(got.Hits), err)
	}
}
