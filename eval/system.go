package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/legacy"
	"hark/recall"
)

// A System answers the queries of one Library. It is used by one goroutine.
type System interface {
	// Rank returns at most k documents, best first.
	Rank(ctx context.Context, q Query, k int) (Ranked, error)
	// Assemble returns what a model would get for the query within a budget of tokens.
	Assemble(ctx context.Context, q Query, budget int) (Context, error)
}

// Ranked is a ranking of documents.
type Ranked struct {
	Docs       []string
	Scores     []float64
	Confidence float64
	// Pool tells of a document that was scored what decided its place. Nil where the system does
	// not say.
	Pool func(doc string) (recall.Explanation, bool)
	Took time.Duration
}

// Context is what a model would get, beside the query itself.
type Context struct {
	Recalled     []string // documents in the recalled block
	Window       []string // documents in the recent window
	Tokens       int      // of the recalled block
	WindowTokens int
	Undated      []string          // of Recalled, those shown without the date they were said
	Dropped      map[string]string // documents that were found and not shown, and why
	Silent       string            // why nothing was recalled
	Took         time.Duration
}

// The systems by name.
const (
	Hark   = "hark" // and Memory
	Legacy = "legacy"
	BM25   = "bm25"
	Dense  = "dense"
)

// Spec says what is tested. The zero value is not usable: see NewSpec.
type Spec struct {
	Name     string
	Without  []string // ablations
	Embedder embed.Embedder
	Engine   engine.Options
	Weights  recall.Weights
	Net      *recall.Net // nil means the one that ships
	// Same asks every query in the conversation's last session, after its messages, instead of in
	// a new session.
	Same bool

	// New builds a system of another kind, for tests.
	New func(*Library) (System, error)
}

// NewSpec returns the system of that name. emb and opts are Hark's embedder and configuration;
// without lists ablations by name.
func NewSpec(name string, emb embed.Embedder, opts engine.Options, without []string) (Spec, error) {
	s := Spec{Name: name, Embedder: emb, Engine: opts, Weights: recall.DefaultWeights(), Without: slices.Clone(without)}
	if opts.Recall != nil && opts.Recall.Weights != nil {
		s.Weights = *opts.Recall.Weights
	}
	switch name {
	case Hark, Memory:
	case Legacy:
		s.Embedder = nil
	case BM25:
		s.Embedder, s.Weights = nil, textbook(s.Weights)
	case Dense:
		if emb == nil {
			return s, errors.New("the system dense needs an embedder")
		}
	default:
		return s, fmt.Errorf("unknown system %q: use %s, %s, %s, %s or %s", name, Hark, Memory, Legacy, BM25, Dense)
	}
	if len(without) > 0 && name != Hark {
		return s, fmt.Errorf("--without takes parts off hark; %s has none of them", name)
	}
	slices.Sort(s.Without)
	for _, part := range s.Without {
		if err := s.take(part); err != nil {
			return s, err
		}
	}
	return s, nil
}

// String names the system with its ablations.
func (s Spec) String() string {
	if len(s.Without) == 0 {
		return s.Name
	}
	return s.Name + " without " + strings.Join(s.Without, ", ")
}

// build makes the system over a library.
func (s Spec) build(l *Library) (System, func() error, error) {
	none := func() error { return nil }
	switch {
	case s.New != nil:
		sys, err := s.New(l)
		return sys, none, err
	case s.Name == Legacy:
		return &recent{lib: l, tokens: map[string]int{}}, none, nil
	}
	h := &harkSystem{lib: l, spec: s}
	opts := s.Engine
	opts.AgentID = l.Agent
	opts.Clock = func() time.Time { return h.now }
	// Deadlines are for people who wait; an evaluation that falls back to words alone because the
	// machine was busy would measure the machine.
	opts.Deadline = unhurried
	asked := opts.Recall
	opts.Recall = &recall.Options{Weights: &s.Weights, Net: s.Net, DenseWait: unhurried, RerankWait: unhurried}
	if asked != nil {
		opts.Recall.Reranker, opts.Recall.RerankTop = asked.Reranker, asked.RerankTop
	}
	if s.Name == Dense {
		w := onlyMeaning(s.Weights)
		opts.Recall.Weights = &w
	}
	var err error
	if h.engine, err = engine.New(l.Store, s.Embedder, &opts, nil); err != nil {
		return nil, nil, err
	}
	listed := *opts.Recall
	listed.Candidates = math.MaxInt // so that the fate of every candidate is told
	h.search = recall.NewSearcher(l.Store, s.Embedder, &listed, nil)
	if s.Name != Memory {
		return h, h.engine.Close, nil
	}
	t, err := newTool(h, opts.Recall)
	return t, func() error { return errors.Join(t.memory.Close(), h.engine.Close()) }, err
}

const unhurried = time.Hour

// harkSystem is Hark itself: the search of "hark search" and the engine's Assemble. The baselines
// bm25 and dense are the same with other weights.
type harkSystem struct {
	lib    *Library
	spec   Spec
	search *recall.Searcher
	engine *engine.Engine
	now    time.Time
}

func (h *harkSystem) Rank(ctx context.Context, q Query, k int) (Ranked, error) {
	if h.spec.Name == Dense {
		return h.nearest(ctx, q, k)
	}
	started := time.Now()
	res, err := h.search.Search(ctx, recall.Request{
		Question: recall.Question{Text: q.Text}, Filter: index.Filter{AllScopes: true}, K: k, Asked: h.lib.clock(q),
	})
	if err != nil {
		return Ranked{}, fmt.Errorf("search: %w", err)
	}
	r := Ranked{Confidence: res.Confidence, Took: time.Since(started)}
	for _, hit := range res.Hits {
		doc := h.lib.doc(hit.Message.ID)
		if doc == "" {
			return r, fmt.Errorf("the search returned row %s, which no document of the conversation became", hit.Message.ID)
		}
		r.Docs, r.Scores = append(r.Docs, doc), append(r.Scores, hit.Score)
	}
	r.Pool = func(doc string) (recall.Explanation, bool) {
		row, ok := h.lib.rows[doc]
		i := slices.IndexFunc(res.Trace.Candidates, func(c recall.Explanation) bool { return c.Seq == row.seq })
		if !ok || i < 0 {
			return recall.Explanation{}, false
		}
		return res.Trace.Candidates[i], true
	}
	return r, nil
}

// nearest ranks by the cosine of the vectors alone.
func (h *harkSystem) nearest(ctx context.Context, q Query, k int) (Ranked, error) {
	started := time.Now()
	vs, err := h.spec.Embedder.Embed(ctx, embed.Query, []string{q.Text})
	if err != nil {
		return Ranked{}, fmt.Errorf("embed the query: %w", err)
	}
	r := Ranked{}
	if len(vs) != 1 || vs[0] == nil {
		r.Took = time.Since(started)
		return r, nil
	}
	space := index.Space{ID: h.spec.Embedder.Model().String(), Dim: len(vs[0])}
	near, err := h.lib.Store.Nearest(ctx, space, vs[0], index.Filter{AllScopes: true}, k)
	if err != nil {
		return r, fmt.Errorf("nearest vectors: %w", err)
	}
	r.Took = time.Since(started)
	seqs := make([]int64, len(near.Hits))
	for i, hit := range near.Hits {
		seqs[i] = hit.Seq
	}
	rows, err := h.lib.Store.Get(ctx, seqs...)
	if err != nil {
		return r, fmt.Errorf("read hits: %w", err)
	}
	for i, m := range rows {
		r.Docs, r.Scores = append(r.Docs, h.lib.doc(m.ID)), append(r.Scores, near.Hits[i].Score)
	}
	if len(near.Hits) > 0 {
		r.Confidence = near.Hits[0].Score
	}
	return r, nil
}

func (h *harkSystem) Assemble(ctx context.Context, q Query, budget int) (Context, error) {
	owner := true
	h.now = h.lib.clock(q)
	// A session of its own a call: the engine keeps the block of a running turn, and would give the
	// one of the smaller budget again.
	p := engine.AssembleParams{
		SessionKey: fmt.Sprintf("agent:%s:explicit:eval-%s-%d", h.lib.Agent, q.ID, budget), Messages: []json.RawMessage{},
		TokenBudget: engine.Tokens(budget), Prompt: q.Text, SenderIsOwner: &owner,
	}
	var said []string
	if h.spec.Same {
		p.SessionKey, p.Messages, said = lastSession(h.lib, q)
	}
	started := time.Now()
	res, err := h.engine.Assemble(ctx, p)
	if err != nil {
		return Context{}, fmt.Errorf("assemble: %w", err)
	}
	t := res.Trace
	c := Context{
		Tokens: t.Budget.Recall, WindowTokens: t.Budget.History, Dropped: map[string]string{}, Took: time.Since(started),
	}
	if len(t.Recall.Items) == 0 {
		c.Silent = t.Recall.Reason
	}
	var block strings.Builder
	for _, in := range res.Insert {
		block.WriteString(messageText(in.Message))
	}
	for _, it := range t.Recall.Items {
		doc := h.lib.doc(it.ID)
		if doc == "" {
			return c, fmt.Errorf("the context shows row %s, which no document of the conversation became", it.ID)
		}
		c.Recalled = append(c.Recalled, doc)
		if !dated(block.String(), it.ID, it.Time) {
			c.Undated = append(c.Undated, doc)
		}
	}
	for _, d := range t.Recall.Dropped {
		if doc := h.lib.doc(d.ID); doc != "" {
			c.Dropped[doc] = d.Reason
		}
	}
	for _, i := range res.Kept {
		if i < len(said) {
			c.Window = append(c.Window, said[i])
		}
	}
	return c, nil
}

// dated says whether the head of a record in the block carries the day on which it was said.
func dated(block, id string, at time.Time) bool {
	for line := range strings.SplitSeq(block, "\n") {
		if strings.HasPrefix(line, "[") && strings.Contains(line, "id "+id) {
			return strings.Contains(line, at.Format("2006-01-02")) && !strings.Contains(line, "date of storing") ||
				strings.Contains(line, at.AddDate(0, 0, 1).Format("2006-01-02")) || strings.Contains(line, at.AddDate(0, 0, -1).Format("2006-01-02"))
		}
	}
	return false
}

// lastSession returns the last session of a query's conversation as a host sends it.
func lastSession(l *Library, q Query) (key string, messages []json.RawMessage, docs []string) {
	messages = []json.RawMessage{}
	last := -1
	for i, d := range l.Docs {
		if d.Conv == q.Conv {
			last = i
		}
	}
	if last < 0 {
		return fmt.Sprintf("agent:%s:explicit:eval-%s", l.Agent, q.ID), messages, nil
	}
	end := l.Docs[last]
	for _, d := range l.Docs {
		if d.Conv != end.Conv || d.Sess != end.Sess {
			continue
		}
		m := l.message(d)
		role := m.Role
		if role != "assistant" {
			role = "user" // a tool's output alone would be an answer without its call
		}
		raw, err := json.Marshal(map[string]any{"role": role, "content": m.Text, "timestamp": m.Time.UnixMilli()})
		if err != nil {
			continue // a string and a number always encode
		}
		messages, docs = append(messages, raw), append(docs, d.ID)
	}
	return sessionKey(end.Conv, end.Sess), messages, docs
}

// recent is the host without a memory: all it has is the end of the conversation. As a ranking
// that is the newest first. Its context is what legacy.Engine returns for the last messages that
// fit the budget, for the host cuts before it calls.
type recent struct {
	lib    *Library
	tokens map[string]int // of a document's message
}

func (r *recent) Rank(_ context.Context, q Query, k int) (Ranked, error) {
	started := time.Now()
	var out Ranked
	for _, d := range slices.Backward(r.lib.Docs) {
		if len(out.Docs) == k {
			break
		}
		if d.Conv == q.Conv {
			out.Docs, out.Scores = append(out.Docs, d.ID), append(out.Scores, -float64(len(out.Docs)))
		}
	}
	out.Took = time.Since(started)
	return out, nil
}

func (r *recent) Assemble(ctx context.Context, q Query, budget int) (Context, error) {
	started := time.Now()
	var messages []json.RawMessage
	var c Context
	left := budget
	for _, d := range slices.Backward(r.lib.Docs) {
		if d.Conv != q.Conv {
			continue
		}
		raw, err := json.Marshal(map[string]string{"role": "user", "content": d.Text})
		if err != nil {
			return c, fmt.Errorf("encode a message: %w", err)
		}
		cost, ok := r.tokens[d.ID]
		if !ok {
			cost = engine.Estimate([]json.RawMessage{raw})
			r.tokens[d.ID] = cost
		}
		if left -= cost; left < 0 {
			break
		}
		messages, c.Window = append(messages, raw), append(c.Window, d.ID)
	}
	slices.Reverse(messages)
	res, err := legacy.Engine{}.Assemble(ctx, engine.AssembleParams{Messages: messages, Prompt: q.Text, TokenBudget: engine.Tokens(budget)})
	if err != nil {
		return c, fmt.Errorf("assemble: %w", err)
	}
	c.WindowTokens, c.Silent, c.Took = res.EstimatedTokens, "no memory", time.Since(started)
	return c, nil
}
