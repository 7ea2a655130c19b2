package index

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// large runs the benchmarks at 100,000 messages too.
var large = flag.Bool("large", false, "benchmark 100,000 messages too")

func benchSizes(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()
	sizes := []int{10_000}
	if *large {
		sizes = append(sizes, 100_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, n) })
	}
}

// vocabulary spells words whose frequencies fall off as in prose.
func vocabulary(r *rand.Rand, n int) func() string {
	words, spell := make([]string, n), rand.New(rand.NewPCG(9, 9))
	for i := range words {
		var w strings.Builder
		for range 2 + spell.IntN(3) {
			w.WriteByte("bcdfghklmnprstvw"[spell.IntN(16)])
			w.WriteByte("aeiou"[spell.IntN(5)])
		}
		words[i] = w.String()
	}
	z := rand.NewZipf(r, 1.1, 4, uint64(n-1))
	return func() string { return words[z.Uint64()] }
}

func history(n int) []Message {
	r := rand.New(rand.NewPCG(7, 7))
	word := vocabulary(r, 30_000)
	out := make([]Message, n)
	for i := range out {
		var text strings.Builder
		for range 15 + r.IntN(50) {
			text.WriteString(word())
			text.WriteByte(' ')
		}
		out[i] = say(i, fmt.Sprintf("agent:main:session-%d", i/200), text.String())
		if i%2 == 1 {
			out[i].Role, out[i].Sender = "assistant", ""
		}
	}
	return out
}

const benchDim = 256

func clustered(r *rand.Rand, n int) [][]float32 {
	centres := make([][]float32, 200)
	for i := range centres {
		centres[i] = make([]float32, benchDim)
		for k := range centres[i] {
			centres[i][k] = float32(r.NormFloat64())
		}
	}
	out := make([][]float32, n)
	for i := range out {
		c := centres[r.IntN(len(centres))]
		v := make([]float32, benchDim)
		for k := range v {
			v[k] = c[k] + float32(r.NormFloat64())*.7
		}
		out[i], _ = unit(v, benchDim)
	}
	return out
}

// filled builds a store of n messages with vectors.
func filled(b *testing.B, dir string, n int) (*Store, [][]float32) {
	b.Helper()
	ctx := context.Background()
	s, err := Open(ctx, dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	ms := history(n)
	for i := 0; i < n; i += 1000 {
		add(b, s, ms[i:min(n, i+1000)]...)
	}
	vs := clustered(rand.New(rand.NewPCG(1, 1)), n)
	set := make([]Vector, n)
	for i := range vs {
		set[i] = Vector{Seq: int64(i + 1), V: vs[i]}
	}
	if err := s.SetVectors(ctx, benchSpace, set); err != nil {
		b.Fatal(err)
	}
	if err := s.UseSpace(ctx, benchSpace); err != nil {
		b.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil {
		b.Fatal(err)
	}
	return s, vs
}

var benchSpace = Space{"bench", benchDim}

// quantiles reports the median and 95th percentile of timed runs.
func quantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	s := make([]float64, len(took))
	for i, d := range took {
		s[i] = float64(d.Microseconds()) / 1000
	}
	slices.Sort(s)
	b.ReportMetric(s[len(s)/2], "p50-ms")
	b.ReportMetric(s[min(len(s)-1, int(math.Ceil(.95*float64(len(s)))))], "p95-ms")
}

func BenchmarkAppendBulk(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		b.Helper()
		ms := history(n)
		for b.Loop() {
			s, err := Open(context.Background(), b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			for i := 0; i < n; i += 500 {
				add(b, s, ms[i:min(n, i+500)]...)
			}
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "msg/s")
			if err := s.Settle(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "settled-msg/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStore(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		b.Helper()
		dir := b.TempDir()
		s, vs := filled(b, dir, n)
		ctx := context.Background()
		b.Run("append", func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 3))
			word := vocabulary(r, 30_000)
			var took []time.Duration
			at := n
			for b.Loop() {
				var text strings.Builder
				for range 40 {
					text.WriteString(word() + " ")
				}
				at++
				m := say(at, "live", text.String())
				began := time.Now()
				add(b, s, m)
				took = append(took, time.Since(began))
			}
			quantiles(b, took)
			if _, err := s.Forget(ctx, Selection{Session: "live"}); err != nil {
				b.Fatal(err)
			}
			if err := s.Settle(ctx); err != nil {
				b.Fatal(err)
			}
		})
		b.Run("match", func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 3))
			word := vocabulary(r, 30_000)
			var took []time.Duration
			for b.Loop() {
				q := ask(word(), word(), word(), word(), word(), word())
				began := time.Now()
				if _, err := s.Match(ctx, q, Filter{Scopes: []string{"main"}}, 200); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			quantiles(b, took)
		})
		b.Run("nearest", func(b *testing.B) {
			var took []time.Duration
			i := 0
			for b.Loop() {
				i++
				began := time.Now()
				if _, err := s.Nearest(ctx, benchSpace, vs[i*37%n], Filter{Scopes: []string{"main"}}, 200); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			quantiles(b, took)
		})
		b.Run("nearest-in-session", func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				f := Filter{AllScopes: true, Session: "agent:main:session-3"}
				if _, err := s.Nearest(ctx, benchSpace, vs[i*37%n], f, 10); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("cosines-200", func(b *testing.B) {
			seqs := make([]int64, 200)
			for i := range seqs {
				seqs[i] = int64(1 + i*(n/200))
			}
			for b.Loop() {
				if _, err := exactly(ctx, s, benchSpace, vs[0], seqs); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("get-20", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Get(ctx, 1, 50, 99, 150, 199, 250, 299, 350, 399, 450, 499, 550, 599, 650, 699, 750, 799, 850, 899, 950); err != nil {
					b.Fatal(err)
				}
			}
		})
		s.Close()
		b.Run("open", func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				s, err := Open(ctx, dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "open-ms")
				if err := s.UseSpace(ctx, benchSpace); err != nil {
					b.Fatal(err)
				}
				if err := s.loaded(ctx); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "vectors-ms")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
