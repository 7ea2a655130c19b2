package embed

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// backend is one provider's wire.
type backend interface {
	// send embeds non-blank, valid texts in one request. It returns one raw vector per text in order, or a *fault. A
	// nil or unusable vector is the caller's to find.
	send(ctx context.Context, texts []string) ([][]float32, error)
	// maxBatch bounds the texts of one send.
	maxBatch() int
}

// Bounds on what a Passage call does before it hands the problem back.
const (
	patience    = time.Minute // it waits this long for a cooldown to end
	maxAttempts = 4           // and sends one request this often
	// batchTokens keeps a request under what servers take at once (OpenAI: 300,000 tokens).
	batchTokens = 100_000
)

// Remote embeds through a server. Blank texts are never sent; texts over the model's limit are embedded in parts; a
// text the server refuses is isolated and fails alone (ErrRejected); every vector is checked and normalised.
//
// A Passage call retries and waits for cooldowns within bounds, so give it a context that may take minutes. A Query
// call sends at most once and never waits for a cooldown: it fails at once with ErrUnavailable. Safe for concurrent use.
type Remote struct {
	backend  backend
	cfg      Config
	provider string
	gate     *gate
	cache    *cache // nil keeps none
	passages *semaphore.Weighted
	queries  *semaphore.Weighted
	dim      atomic.Int64 // 0 until the first answer
}

func newRemote(provider string, b backend, cfg Config, log *slog.Logger) *Remote {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("provider", provider, "model", cfg.Model)
	r := &Remote{
		backend:  b,
		cfg:      cfg,
		provider: provider,
		gate:     newGate(log, cfg.Rand),
		passages: semaphore.NewWeighted(int64(cfg.Concurrency)),
		queries:  semaphore.NewWeighted(int64(cfg.Concurrency)),
	}
	if cfg.CacheBytes > 0 {
		r.cache = newCache(cfg.CacheBytes)
	}
	r.dim.Store(int64(cfg.Dim))
	return r
}

// Model implements Embedder. Dim is 0 until it is configured or the server first answered.
func (r *Remote) Model() Model {
	return Model{Provider: r.provider, Name: r.cfg.Model, Dim: int(r.dim.Load()), Instruction: r.cfg.instruction(), Server: serverOf(r.cfg.BaseURL)}
}

// Unavailable implements Reporter. It asks nothing.
func (r *Remote) Unavailable() *UnavailableError {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if r.gate.last == nil {
		return nil
	}
	return r.gate.unavailable(time.Until(r.gate.until))
}

// Embed implements Embedder.
func (r *Remote) Embed(ctx context.Context, kind Kind, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := r.newCall(kind, len(texts))
	var items []item
	for i, text := range texts {
		if text = clean(text); text != "" {
			items = append(items, item{i, c.prefix() + text})
		}
	}
	if kind == Query && len(items) == 1 && r.cache != nil {
		return c.cached(ctx, items[0])
	}
	c.run(ctx, items)
	return c.result(ctx, items)
}

// call is one Embed under way. Each index of out and errs is written by one goroutine.
type call struct {
	remote *Remote
	kind   Kind
	out    [][]float32
	errs   []error
}

func (r *Remote) newCall(kind Kind, n int) *call {
	return &call{remote: r, kind: kind, out: make([][]float32, n), errs: make([]error, n)}
}

// item is a text to send, prefix included, and where its vector goes.
type item struct {
	index int
	text  string
}

func (c *call) prefix() string {
	if c.kind == Query {
		return c.remote.cfg.QueryPrefix
	}
	return c.remote.cfg.PassagePrefix
}

// cached answers a single query from memory, or asks once for all callers with the same question.
func (c *call) cached(ctx context.Context, it item) ([][]float32, error) {
	c.out[it.index], c.errs[it.index] = c.remote.cache.get(ctx, it.text, func() ([]float32, error) {
		// A call of its own: this one may leave while the request is still under way.
		asked := c.remote.newCall(c.kind, 1)
		asked.run(ctx, []item{{0, it.text}})
		return asked.out[0], asked.errs[0]
	})
	return c.result(ctx, []item{it})
}

// run embeds the items in batches, some at a time.
func (c *call) run(ctx context.Context, items []item) {
	var g errgroup.Group
	g.SetLimit(c.remote.cfg.Concurrency)
	limit := min(c.remote.cfg.Batch, c.remote.backend.maxBatch())
	for len(items) > 0 {
		n, tokens := 0, 0
		for n < len(items) && n < limit && (n == 0 || tokens < batchTokens) {
			tokens += tokensOf(items[n].text)
			n++
		}
		batch := items[:n]
		items = items[n:]
		g.Go(func() error {
			c.batch(ctx, batch)
			return nil
		})
	}
	_ = g.Wait() // errors are per text, in errs
}

// batch embeds items in one request, or, when the server objects to one of them, in halves until that one is alone.
func (c *call) batch(ctx context.Context, items []item) {
	var short []item
	for _, it := range items {
		if pieces := parts(it.text, c.remote.cfg.MaxTokens); len(pieces) > 1 {
			c.out[it.index], c.errs[it.index] = c.long(ctx, pieces)
		} else {
			short = append(short, it)
		}
	}
	c.isolate(ctx, short)
}

func (c *call) isolate(ctx context.Context, items []item) {
	if len(items) == 0 {
		return
	}
	texts := make([]string, len(items))
	for i, it := range items {
		texts[i] = it.text
	}
	vectors, err := c.remote.send(ctx, c.kind, texts)
	if err == nil {
		for i, it := range items {
			c.out[it.index] = vectors[i]
		}
		return
	}
	if f, ok := errors.AsType[*fault](err); ok && f.aboutTexts() {
		if len(items) > 1 {
			c.isolate(ctx, items[:len(items)/2])
			c.isolate(ctx, items[len(items)/2:])
			return
		}
		c.out[items[0].index], c.errs[items[0].index] = c.alone(ctx, items[0].text, f)
		return
	}
	for _, it := range items {
		c.errs[it.index] = err
	}
}

// alone deals with a text the server refused by itself: too long is embedded in halves, anything else is rejected.
func (c *call) alone(ctx context.Context, text string, f *fault) ([]float32, error) {
	if f.kind == tooLong {
		if a, b := halve(text); clean(a) != "" && clean(b) != "" {
			return c.long(ctx, []string{a, b})
		}
	}
	if err := c.remote.gate.refusal(f); err != nil {
		return nil, err
	}
	return nil, rejected{f}
}

// rejected is a fault as callers see it.
type rejected struct{ fault *fault }

func (e rejected) Error() string        { return ErrRejected.Error() + ": " + e.fault.Error() }
func (e rejected) Is(target error) bool { return target == ErrRejected }

// long embeds the pieces of one text and returns the direction of their average, weighted by length.
func (c *call) long(ctx context.Context, pieces []string) ([]float32, error) {
	inner := c.remote.newCall(c.kind, len(pieces))
	var items []item
	for i, piece := range pieces {
		if clean(piece) != "" {
			items = append(items, item{i, piece})
		}
	}
	inner.run(ctx, items)
	var mean []float32
	for _, it := range items {
		if err := inner.errs[it.index]; err != nil {
			return nil, err
		}
		if mean == nil {
			mean = make([]float32, len(inner.out[it.index]))
		}
		share := float32(len(it.text)) / float32(len(pieces[0]))
		for i, x := range inner.out[it.index] {
			mean[i] += x * share
		}
	}
	if err := normalise(mean); err != nil {
		return nil, rejected{&fault{kind: refused, reason: "its parts cancel out", err: err}}
	}
	return mean, nil
}

// result gathers what became of the items.
func (c *call) result(ctx context.Context, items []item) ([][]float32, error) {
	var partial PartialError
	useful := false // some text has its vector, or its verdict
	for _, it := range items {
		if err := c.errs[it.index]; err != nil {
			partial.Failed = append(partial.Failed, TextError{it.index, err})
			useful = useful || errors.Is(err, ErrRejected)
		} else {
			useful = true
		}
	}
	switch {
	case len(partial.Failed) == 0:
		return c.out, nil
	case useful:
		return c.out, &partial
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, partial.Failed[0].Err
}

// send makes one request, again after passing faults as often as kind allows, and returns checked unit vectors. Its
// error is a *fault about the texts, an *UnavailableError, or ctx's.
func (r *Remote) send(ctx context.Context, kind Kind, texts []string) ([][]float32, error) {
	slots, wait, attempts := r.passages, patience, maxAttempts
	if kind == Query {
		slots, wait, attempts = r.queries, 0, 1
	}
	if err := slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer slots.Release(1)
	for {
		epoch, err := r.gate.enter(ctx, wait)
		if err != nil {
			return nil, err
		}
		vectors, err := r.once(ctx, texts)
		if err == nil {
			r.gate.report(epoch, nil)
			return vectors, nil
		}
		if ctx.Err() != nil {
			r.gate.report(epoch, abandoned)
			return nil, ctx.Err()
		}
		f := asFault(err)
		r.gate.report(epoch, f)
		if f.aboutTexts() {
			return nil, f
		}
		if attempts--; attempts == 0 || f.kind == exhausted || f.kind == misconfigured {
			return nil, &UnavailableError{Reason: f.reason, After: r.gate.wait(), Err: f.err}
		}
	}
}

// once makes one request and checks the answer.
func (r *Remote) once(ctx context.Context, texts []string) ([][]float32, error) {
	timed, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	vectors, err := r.backend.send(timed, texts)
	if err != nil {
		if timed.Err() != nil && ctx.Err() == nil {
			return nil, &fault{kind: transient, reason: "no answer within " + r.cfg.Timeout.String(), err: err}
		}
		return nil, err
	}
	return vectors, r.check(vectors, len(texts))
}
