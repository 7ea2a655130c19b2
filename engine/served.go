package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hark/index"
)

// Served says when the engine last served a host, so that one which passes it by can be noticed:
// turns that happened later were served by another engine. Zero times mean never.
type Served struct {
	Assembled time.Time `json:"assembled"`
	Committed time.Time `json:"committed"`
}

// LastServed reads what the engine over store noted at its last committed turn.
func LastServed(ctx context.Context, store *index.Store) (Served, error) {
	var s Served
	value, err := store.State(ctx, "engine", "served")
	if err != nil || len(value) == 0 {
		return s, err
	}
	if err := json.Unmarshal(value, &s); err != nil {
		return s, fmt.Errorf("read when a host was last served: %w", err)
	}
	return s, nil
}

// Served says when a host was last served, by this engine or by one before it over the same store.
func (e *Engine) Served(ctx context.Context) (Served, error) {
	s, err := LastServed(ctx, e.store)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served.Assembled.After(s.Assembled) {
		s.Assembled = e.served.Assembled
	}
	return s, err
}

// noteWait is what a turn that is stored waits for the note of its time.
const noteWait = 200 * time.Millisecond

// noteCommit notes the time of a committed turn, and of the last assembly with it.
func (e *Engine) noteCommit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noteWait)
	defer cancel()
	before, err := e.Served(ctx)
	if err != nil {
		e.log.Warn("time of the last turn unreadable", "error", err)
	}
	e.mu.Lock()
	e.served.Assembled = before.Assembled
	e.served.Committed = e.opts.Clock().UTC()
	value, err := json.Marshal(e.served)
	e.mu.Unlock()
	if err == nil {
		err = e.store.SetState(ctx, "engine", "served", value)
	}
	if err != nil {
		e.log.Warn("time of the turn not noted", "error", err)
	}
}
