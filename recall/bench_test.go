package recall_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hark/embed"
	"hark/index"
	"hark/recall"
)

// BenchmarkSearch asks a store of sessions of forty messages, with the built-in embedder and without.
func BenchmarkSearch(b *testing.B) {
	emb, err := embed.NewBuiltin()
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields("boiler lease deposit train ticket invoice garden balcony doctor server backup router " +
		"recipe piano budget meeting passport bridge library cinema battery charger window cellar harbour museum")
	r := rand.New(rand.NewPCG(1, 2))
	prose := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[min(r.IntN(len(words)), r.IntN(len(words)))]
		}
		return strings.Join(out, " ")
	}
	for _, n := range []int{1000, 10_000} {
		s, err := index.Open(b.Context(), b.TempDir(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		m := emb.Model()
		space := index.Space{ID: m.String(), Dim: m.Dim}
		for from := 0; from < n; from += 500 {
			var batch index.Batch
			var texts []string
			for i := from; i < from+500; i++ {
				batch.Messages = append(batch.Messages, index.Message{
					Keys: []string{fmt.Sprint("k", i)}, Session: fmt.Sprint("s", i/40), Scope: "owner", Role: "user",
					Time: time.Date(2026, 1, 5, 9, i, 0, 0, time.UTC), Text: prose(5 + r.IntN(30)),
				})
				texts = append(texts, batch.Messages[len(batch.Messages)-1].Text)
			}
			done, err := s.Append(b.Context(), batch)
			if err != nil {
				b.Fatal(err)
			}
			vs, err := emb.Embed(b.Context(), embed.Passage, texts)
			if err != nil {
				b.Fatal(err)
			}
			var set []index.Vector
			for i, v := range vs {
				set = append(set, index.Vector{Seq: done.Seqs[i], V: v})
			}
			if err := s.SetVectors(b.Context(), space, set); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.UseSpace(b.Context(), space); err != nil {
			b.Fatal(err)
		}
		if err := s.Settle(b.Context()); err != nil {
			b.Fatal(err)
		}
		for name, with := range map[string]embed.Embedder{"words": nil, "words and meaning": emb} {
			b.Run(fmt.Sprint(name, "-", n), func(b *testing.B) {
				b.ReportAllocs()
				search := recall.NewSearcher(s, with, nil, nil)
				for b.Loop() {
					_, err := search.Search(b.Context(), recall.Request{
						Question: recall.Question{Text: "when did we " + prose(4) + "?"}, Filter: index.Filter{AllScopes: true}, K: 10,
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
