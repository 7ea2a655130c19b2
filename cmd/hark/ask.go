package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hark/engine"
	"hark/engine/wire"
	"hark/index"
	"hark/recall"
)

// daemonWait is how long a command waits for a daemon that is there to say hello.
const daemonWait = time.Second

// askWait is how long a daemon may take for an answer: a check reads every row.
const askWait = 10 * time.Minute

// daemon finds the daemon that serves the data folder, nil where none answers. One that refuses is an
// error: it holds the stores.
func (a *app) daemon(ctx context.Context) (*wire.Client, error) {
	if err := a.folder(); err != nil {
		return nil, err
	}
	c, _, err := wire.Find(ctx, a.set.Data, daemonWait)
	if err == nil {
		a.closers = append(a.closers, func() error { c.Close(); return nil })
		return c, nil
	}
	if refused, ok := errors.AsType[*wire.Error](err); ok && refused.Code != wire.CodeShuttingDown {
		return nil, err
	}
	// None runs, or it is ending, or hangs: the store's own lock says whether it is still held.
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		a.lockWait = -1 // one that does not answer does not let go either
		who := "the daemon"
		if rec, err := wire.ReadRecord(a.set.Data); err == nil && rec.PID > 0 {
			who = fmt.Sprintf("the daemon (process %d)", rec.PID)
		}
		a.note("%s does not answer: it hangs or was stopped. OpenClaw's plugin replaces it; by hand: end it, or run \"hark serve\"", who)
	}
	return nil, ctx.Err()
}

// question is something asked about an agent's store: a name on the wire, and how it is answered by
// whoever has the store open.
type question[Q, A any] struct {
	name   string
	answer func(ctx context.Context, a *app, m *memory, q Q) (A, error)
}

// ask puts the question to the daemon where one serves the data folder, and to the store otherwise.
func (ask question[Q, A]) ask(ctx context.Context, a *app, q Q) (A, error) {
	return asked(ctx, a, ask.name, q, reading, func(m *memory) (A, error) { return ask.answer(ctx, a, m, q) })
}

// asked puts a question to the daemon by its name on the wire, or, where none serves the data folder, to
// the store, which is opened as the answer needs it.
func asked[Q, A any](ctx context.Context, a *app, name string, q Q, as access, answer func(*memory) (A, error)) (A, error) {
	var out A
	c, err := a.daemon(ctx)
	if err != nil {
		return out, err
	}
	if c != nil {
		ctx, cancel := context.WithTimeout(ctx, askWait)
		defer cancel()
		err = c.Call(ctx, a.set.Agent, name, q, &out)
		if !errors.Is(err, wire.ErrNotRunning) {
			return out, err
		}
	}
	if a.opened == nil {
		if a.opened, err = a.openAgent(ctx, as); err != nil {
			return out, err
		}
	}
	return answer(a.opened)
}

// method answers the question for a daemon that has the store open.
func (ask question[Q, A]) method(a *app, m *memory) wire.Method {
	return func(ctx context.Context, body json.RawMessage) (any, error) {
		var q Q
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields() // a misspelt condition must not make forget forget more
		if err := dec.Decode(&q); err != nil {
			return nil, &wire.Error{Code: wire.CodeBadRequest, Message: "the body is not what " + ask.name + " takes: " + err.Error()}
		}
		return ask.answer(ctx, a, m, q)
	}
}

// methods are what a daemon answers beside the lifecycle.
func (a *app) methods(m *memory) map[string]wire.Method {
	return map[string]wire.Method{
		"search":   searching().method(a, m),
		"explain":  explaining().method(a, m),
		"status":   describing().method(a, m),
		"check":    checking().method(a, m),
		"sessions": listing().method(a, m),
		"forget":   forgetting().method(a, m),
		"selected": selecting().method(a, m),
		"export":   exporting().method(a, m),
		"restore":  restoring().method(a, m),
		"marks":    marking().method(a, m),
		"remark":   remarking().method(a, m),
	}
}

// nothing is the question that needs no words.
type nothing struct{}

// searchQuery is what a search is asked with. Session is a whole session key, "" for all.
type searchQuery struct {
	Query   string `json:"query"`
	K       int    `json:"k,omitempty"` // default 10, at most 1,000
	Session string `json:"session,omitempty"`
	Trace   bool   `json:"trace,omitempty"`
}

// found is the answer to a search.
type found struct {
	Hits   []foundHit    `json:"hits"`
	TookMS float64       `json:"took_ms"`
	Words  string        `json:"words_only,omitempty"` // why the meaning was not searched
	Trace  *recall.Trace `json:"trace,omitempty"`
}

// foundHit is a hit with what a reader is shown of it.
type foundHit struct {
	searchHit
	Why     []string `json:"why"`
	Matched [][2]int `json:"matched"` // half-open byte ranges of the text
}

func searching() question[searchQuery, found] {
	return question[searchQuery, found]{"search", func(ctx context.Context, a *app, m *memory, q searchQuery) (found, error) {
		start := time.Now()
		switch {
		case q.Query == "":
			return found{}, &wire.Error{Code: wire.CodeBadRequest, Message: "the query is empty"}
		case q.K <= 0:
			q.K = 10
		}
		// Who asks by hand wants the whole answer: right after opening, vectors are still being read.
		if err := m.store.Loaded(ctx); err != nil {
			return found{}, fmt.Errorf("search: %w", err)
		}
		res, err := m.searcher.Search(ctx, recall.Request{
			Question: recall.Question{Text: q.Query},
			Filter:   index.Filter{AllScopes: true, Session: q.Session},
			K:        min(q.K, 1000),
			Asked:    time.Now().In(a.set.location()),
		})
		if err != nil {
			return found{}, fmt.Errorf("search: %w", err)
		}
		out := found{Hits: []foundHit{}, TookMS: millis(time.Since(start))}
		for _, h := range res.Hits {
			hit := foundHit{searchHit: searchHit{
				ID: h.Message.ID, Score: h.Score, Lexical: h.Lexical, Dense: h.Dense, Session: h.Message.Session,
				Role: h.Message.Role, Sender: h.Message.Sender, Time: h.Message.Time, Text: h.Message.Text,
			}, Why: h.Why, Matched: [][2]int{}}
			for _, span := range h.Matched {
				hit.Matched = append(hit.Matched, [2]int{span.Start, span.End})
			}
			out.Hits = append(out.Hits, hit)
		}
		if !res.Trace.Dense.Ran {
			out.Words = res.Trace.Dense.Reason
		}
		if q.Trace {
			out.Trace = res.Trace
		}
		return out, nil
	}}
}

// hit is the search's own form of a hit.
func (h foundHit) hit() recall.Hit {
	out := recall.Hit{
		Message: index.Message{ID: h.ID, Session: h.Session, Role: h.Role, Sender: h.Sender, Time: h.Time, Text: h.Text},
		Score:   h.Score, Lexical: h.Lexical, Dense: h.Dense, Why: h.Why,
	}
	for _, span := range h.Matched {
		out.Matched = append(out.Matched, recall.Span{Start: span[0], End: span[1]})
	}
	return out
}

func describing() question[nothing, statusJSON] {
	return question[nothing, statusJSON]{"status", func(ctx context.Context, a *app, m *memory, _ nothing) (statusJSON, error) {
		out := a.noStatus()
		st, err := m.store.Status(ctx)
		if err != nil {
			return out, fmt.Errorf("read the status: %w", err)
		}
		if m.emb != nil {
			out.Embedder = m.emb.Model().String()
		}
		out.fill(st)
		account, err := m.engine.Account(ctx)
		if err != nil {
			return out, fmt.Errorf("read the status: %w", err)
		}
		out.account(account)
		out.RecallOff = out.recallOff(a.set.Recall.MaxTokens)
		if a.set.retention() != (engine.Retention{}) {
			ctx, cancel := context.WithTimeout(ctx, dueWait)
			defer cancel()
			if due, err := m.engine.Due(ctx); err == nil { // a store whose words are being erased is measured later
				out.Retention = &due
			}
		}
		return out, nil
	}}
}

// dueWait is how long a status waits to measure what the retention removes.
const dueWait = 2 * time.Second

func checking() question[nothing, checked] {
	return question[nothing, checked]{"check", func(ctx context.Context, _ *app, m *memory, _ nothing) (checked, error) {
		if m.inUse {
			st, err := m.store.Status(ctx)
			if err != nil {
				return checked{}, fmt.Errorf("check the store: %w", err)
			}
			return checked{InUse: true, Rows: st.Rows, Recallable: st.Recallable, Differences: []string{}}, nil
		}
		r, err := m.store.Check(ctx)
		if err != nil {
			return checked{}, fmt.Errorf("check the store: %w", err)
		}
		return checked{r.OK(), false, r.Rows, r.Recallable, r.Words, r.Vectors, r.Problems, append([]string{}, r.Differences...)}, nil
	}}
}

func listing() question[nothing, sessionList] {
	return question[nothing, sessionList]{"sessions", func(ctx context.Context, _ *app, m *memory, _ nothing) (sessionList, error) {
		out := sessionList{Sessions: []sessionLine{}}
		list, err := m.store.Sessions(ctx)
		if err != nil {
			return out, fmt.Errorf("list sessions: %w", err)
		}
		for _, s := range list {
			out.Sessions = append(out.Sessions, sessionLine{s.Session, s.Messages, s.First, s.Last})
		}
		return out, nil
	}}
}

// lifecycle is the agent's engine: the daemon's where one serves the data folder, else that of the
// store, which is opened for want.
func (a *app) lifecycle(ctx context.Context, want access) (engine.ContextEngine, error) {
	c, err := a.daemon(ctx)
	if err != nil {
		return nil, err
	}
	if c != nil {
		traced := wire.NewClient(a.set.Data, wire.ClientOptions{Trace: true})
		a.closers = append(a.closers, func() error { traced.Close(); return nil })
		return wire.NewRemote(traced, a.set.Agent, nil), nil
	}
	m, err := a.openAgent(ctx, want)
	if err != nil {
		return nil, err
	}
	a.opened = m
	return m.engine, nil
}
