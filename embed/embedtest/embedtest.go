// Package embedtest checks embedders against the contract of embed.Embedder, and has small ones, named by behaviour,
// for the tests of packages that use embedders.
package embedtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"hark/embed"
)

// Run checks that what open returns keeps the contract. It embeds plain English, so every embedder should know some of
// the words. Embedders that can reject a text are also checked by RunPoison.
func Run(t *testing.T, open func(t *testing.T) embed.Embedder) {
	t.Helper()
	for _, c := range []struct {
		name  string
		check func(suite)
	}{
		{"order", suite.order},
		{"sizes", suite.sizes},
		{"blank", suite.blank},
		{"odd input", suite.oddInput},
		{"stable", suite.stable},
		{"cancelled", suite.cancelled},
		{"concurrent", suite.concurrent},
		{"model", suite.model},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(suite{t, open(t)}) })
	}
}

// suite is one check under way.
type suite struct {
	*testing.T
	e embed.Embedder
}

// sentences returns n different texts.
func sentences(n int) []string {
	words := strings.Fields("river mountain bread doctor winter guitar market window garden captain")
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("the %s and the %s near the %s", words[i%10], words[i/10%10], words[(i/100+3)%10])
	}
	return out
}

func (s suite) embed(kind embed.Kind, texts ...string) [][]float32 {
	s.Helper()
	vectors, err := s.e.Embed(s.Context(), kind, texts)
	if err != nil {
		s.Fatalf("embed %d texts: %v", len(texts), err)
	}
	if len(vectors) != len(texts) {
		s.Fatalf("%d vectors for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		if v != nil {
			s.checkUnit(i, v)
		}
	}
	return vectors
}

func (s suite) checkUnit(i int, v []float32) {
	s.Helper()
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(math.Abs(square-1) < 1e-4) { // also NaN
		s.Fatalf("vector %d has squared length %g, want 1", i, square)
	}
	if want := s.e.Model().Dim; len(v) != want {
		s.Fatalf("vector %d has %d dimensions, the model says %d", i, len(v), want)
	}
}

func cosine(a, b []float32) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return math.NaN()
	}
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// order: vector i belongs to text i, whatever else is in the call.
func (s suite) order() {
	texts := sentences(10)
	together := s.embed(embed.Passage, texts...)
	for i, text := range texts {
		alone := s.embed(embed.Passage, text)[0]
		if c := cosine(alone, together[i]); !(c > 0.9999) {
			s.Errorf("text %d alone and in company: cosine %g", i, c)
		}
		if i > 0 {
			if c := cosine(together[i], together[i-1]); !(c < 0.9999) {
				s.Errorf("different texts %d and %d: cosine %g", i-1, i, c)
			}
		}
	}
}

// sizes: no number of texts is special.
func (s suite) sizes() {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 63, 64, 65, 130, 300} {
		for i, v := range s.embed(embed.Passage, sentences(n)...) {
			if v == nil {
				s.Fatalf("%d texts: text %d has no vector", n, i)
			}
		}
	}
	if got, err := s.e.Embed(s.Context(), embed.Query, nil); err != nil || len(got) != 0 {
		s.Errorf("no texts: %d vectors, error %v", len(got), err)
	}
}

// blank: a text that shows nothing gives nil and disturbs no other.
func (s suite) blank() {
	texts := []string{"", "the river", " \t\r\n", "\u200b\u200d\ufeff", "the mountain", "\x00"}
	for _, kind := range []embed.Kind{embed.Passage, embed.Query} {
		for i, v := range s.embed(kind, texts...) {
			if want := i == 1 || i == 4; (v != nil) != want {
				s.Errorf("%s %d: vector %t, want %t", kind, i, v != nil, want)
			}
		}
	}
	if v := s.embed(embed.Query, " ")[0]; v != nil {
		s.Error("a blank query has a vector")
	}
}

// oddInput: whatever a transcript holds is embedded or nil, never an error.
func (s suite) oddInput() {
	s.embed(embed.Passage,
		"bread \xff\xfe broken", "lone \xed\xa0\x80 surrogate", "nul \x00 inside", "👍", "。、「」", "日本語の文章",
		strings.Repeat("x", 5000), strings.Repeat("the river runs by the market ", 2000))
}

// stable: the same text gives the same vector again, also after a caller overwrote the first.
func (s suite) stable() {
	for _, kind := range []embed.Kind{embed.Passage, embed.Query} {
		first := s.embed(kind, "the doctor plays guitar")[0]
		kept := append([]float32(nil), first...)
		clear(first)
		if c := cosine(kept, s.embed(kind, "the doctor plays guitar")[0]); !(c > 0.99999) {
			s.Errorf("%s asked twice: cosine %g", kind, c)
		}
	}
}

func (s suite) cancelled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for _, kind := range []embed.Kind{embed.Passage, embed.Query} {
		for _, n := range []int{1, 100} {
			if _, err := s.e.Embed(ctx, kind, sentences(n)); !errors.Is(err, context.Canceled) {
				s.Errorf("%s, %d texts, cancelled: error %v", kind, n, err)
			}
		}
	}
}

func (s suite) concurrent() {
	texts := sentences(40)
	want := s.embed(embed.Passage, texts...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := s.e.Embed(s.Context(), embed.Passage, texts)
			if err != nil || len(got) != len(want) {
				s.Errorf("concurrent: %d vectors, error %v", len(got), err)
				return
			}
			for i := range got {
				if c := cosine(got[i], want[i]); !(c > 0.9999) {
					s.Errorf("concurrent, text %d: cosine %g", i, c)
				}
			}
		})
	}
	wg.Wait()
}

// model: the identity is complete once something was embedded, and stays.
func (s suite) model() {
	before := s.e.Model()
	s.embed(embed.Passage, "the window")
	after := s.e.Model()
	if after.Provider == "" || after.Name == "" || after.Dim <= 0 {
		s.Errorf("incomplete model %+v", after)
	}
	if before.Dim == 0 {
		before.Dim = after.Dim
	}
	if before != after {
		s.Errorf("model changed from %v to %v", before, after)
	}
}

// RunPoison checks that a text the embedder is sure to reject fails alone, wherever it stands in a call.
func RunPoison(t *testing.T, open func(t *testing.T) embed.Embedder, poison string) {
	t.Helper()
	for _, n := range []int{1, 2, 7, 70} {
		for _, at := range []int{0, n / 2, n - 1} {
			e := open(t)
			texts := sentences(n)
			texts[at] = poison
			vectors, err := e.Embed(t.Context(), embed.Passage, texts)
			partial, ok := errors.AsType[*embed.PartialError](err)
			if !ok || len(partial.Failed) != 1 || partial.Failed[0].Index != at || !errors.Is(err, embed.ErrRejected) {
				t.Fatalf("%d texts, poison at %d: error %v", n, at, err)
			}
			if len(vectors) != n {
				t.Fatalf("%d texts, poison at %d: %d vectors", n, at, len(vectors))
			}
			for i, v := range vectors {
				if (v == nil) != (i == at) {
					t.Errorf("%d texts, poison at %d: text %d has a vector: %t", n, at, i, v != nil)
				}
			}
		}
	}
}
