package embedtest

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"hark/embed"
	"hark/embed/static"
)

// Hashed returns an in-process embedder without a table: every word has a fixed random direction, so texts are as near
// as the share of words they have in common. Deterministic.
func Hashed(dim int) embed.Embedder { return hashed{dim} }

type hashed struct{ dim int }

func (h hashed) Model() embed.Model {
	return embed.Model{Provider: "embedtest", Name: "hashed", Dim: h.dim}
}

func (h hashed) InProcess() bool { return true }

func (h hashed) Embed(ctx context.Context, _ embed.Kind, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = h.vector(text)
	}
	return out, nil
}

func (h hashed) vector(text string) []float32 {
	sum := make([]float64, h.dim)
	for w := range static.Words(text) {
		hash := fnv.New64a()
		hash.Write([]byte(w))
		r := rand.New(rand.NewPCG(hash.Sum64(), 1))
		for i := range sum {
			sum[i] += r.NormFloat64()
		}
	}
	square := 0.0
	for _, x := range sum {
		square += x * x
	}
	if square == 0 {
		return nil
	}
	out := make([]float32, h.dim)
	for i, x := range sum {
		out[i] = float32(x / math.Sqrt(square))
	}
	return out
}

// Slow returns e answering after delay, or ending with ctx if that is sooner. It is not in-process. Works under synctest.
func Slow(e embed.Embedder, delay time.Duration) embed.Embedder { return slow{e, delay} }

type slow struct {
	inner embed.Embedder
	delay time.Duration
}

func (s slow) Model() embed.Model { return s.inner.Model() }

func (s slow) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return s.inner.Embed(ctx, kind, texts)
	}
}

// Broken returns an embedder of e's model that always fails with err; nil means an *embed.UnavailableError.
func Broken(e embed.Embedder, err error) embed.Embedder {
	if err == nil {
		err = &embed.UnavailableError{Reason: "broken on purpose"}
	}
	return broken{e.Model(), err}
}

type broken struct {
	model embed.Model
	err   error
}

func (b broken) Model() embed.Model { return b.model }

func (b broken) Embed(context.Context, embed.Kind, []string) ([][]float32, error) {
	return nil, b.err
}

// Half returns e failing every second text of a call, the first one included, with embed.ErrRejected.
func Half(e embed.Embedder) embed.Embedder { return half{e} }

type half struct{ inner embed.Embedder }

func (h half) Model() embed.Model { return h.inner.Model() }

func (h half) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	out, err := h.inner.Embed(ctx, kind, texts)
	if err != nil || len(texts) == 0 {
		return out, err
	}
	var partial embed.PartialError
	for i := 0; i < len(texts); i += 2 {
		out[i] = nil
		partial.Failed = append(partial.Failed, embed.TextError{Index: i, Err: embed.ErrRejected})
	}
	return out, &partial
}
