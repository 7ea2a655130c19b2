package wire

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"hark/engine"
)

var errKeyReused = errors.New("commit turn: the advancement key was used for another turn, nothing was stored")

// script is the server section of a transcript: how the engine behind it behaves.
type script struct {
	Recall string   `json:"recall"` // assemble inserts this as the last message when there is a prompt
	Drop   int      `json:"drop"`   // assemble keeps nothing before this index
	Hang   []string `json:"hang"`   // methods that do not return and do not heed their context
	Panic  []string `json:"panic"`
}

// scripted is an engine in memory that does what its script says and keeps the promises a client
// can see: a turn is stored once for its key, a message once for its bytes.
type scripted struct {
	script
	release chan struct{} // closed at the end of the test; hung calls return then

	mu       sync.Mutex
	turns    map[string]string
	messages map[string]bool
	seen     []engine.AssembleParams
	calls    []string
	state    map[string][]byte
	closed   int
}

func newScripted(s script) *scripted {
	return &scripted{
		script: s, release: make(chan struct{}),
		turns: map[string]string{}, messages: map[string]bool{}, state: map[string][]byte{},
	}
}

// agent makes the engine what a daemon serves.
func (e *scripted) agent() *Agent {
	return &Agent{
		Engine: e,
		State: func(_ context.Context, key string) ([]byte, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.state[key], nil
		},
		SetState: func(_ context.Context, key string, value []byte) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.state[key] = value
			return nil
		},
		Methods: map[string]Method{
			"search": func(_ context.Context, body json.RawMessage) (any, error) {
				return map[string]any{"hits": []string{}, "asked": body}, nil
			},
			"status": func(context.Context, json.RawMessage) (any, error) {
				return map[string]int{"messages": len(e.messages)}, nil
			},
		},
		Close: func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.closed++
			return nil
		},
	}
}

// open serves the same engine for every agent that is asked for.
func (e *scripted) open(context.Context, string, bool) (*Agent, error) { return e.agent(), nil }

func (e *scripted) enter(method string) {
	e.mu.Lock()
	e.calls = append(e.calls, method)
	e.mu.Unlock()
	for _, m := range e.Hang {
		if m == method {
			<-e.release
		}
	}
	for _, m := range e.Panic {
		if m == method {
			panic("the text of a conversation")
		}
	}
}

func (e *scripted) add(messages ...json.RawMessage) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := 0
	for _, m := range messages {
		if !e.messages[string(m)] {
			e.messages[string(m)] = true
			fresh++
		}
	}
	return fresh
}

func (e *scripted) Info() engine.Info { return engine.Info{ID: "scripted", Name: "scripted"} }

func (e *scripted) Bootstrap(_ context.Context, p engine.BootstrapParams) (engine.BootstrapResult, error) {
	e.enter("bootstrap")
	fresh := 0
	for _, h := range p.History {
		fresh += e.add(h.Message)
	}
	return engine.BootstrapResult{Bootstrapped: true, ImportedMessages: fresh}, nil
}

func (e *scripted) Maintain(context.Context, engine.MaintainParams) (engine.MaintainResult, error) {
	e.enter("maintain")
	return engine.MaintainResult{}, nil
}

func (e *scripted) Ingest(_ context.Context, p engine.IngestParams) (engine.IngestResult, error) {
	e.enter("ingest")
	return engine.IngestResult{Ingested: e.add(p.Message) == 1}, nil
}

func (e *scripted) IngestBatch(_ context.Context, p engine.IngestBatchParams) (engine.IngestBatchResult, error) {
	e.enter("ingestBatch")
	return engine.IngestBatchResult{IngestedCount: e.add(p.Messages...)}, nil
}

func (e *scripted) CommitTurn(_ context.Context, p engine.CommitTurnParams) (engine.CommitTurnResult, error) {
	e.enter("commitTurn")
	digest := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, p.Messages)))
	e.mu.Lock()
	old, again := e.turns[p.AdvancementKey]
	if !again {
		e.turns[p.AdvancementKey] = digest
	}
	e.mu.Unlock()
	switch {
	case !again:
		e.add(p.Messages...)
		return engine.CommitTurnResult{Status: engine.Committed}, nil
	case old != digest:
		return engine.CommitTurnResult{}, errKeyReused
	}
	return engine.CommitTurnResult{Status: engine.Duplicate}, nil
}

func (e *scripted) AfterTurn(_ context.Context, p engine.AfterTurnParams) error {
	e.enter("afterTurn")
	e.add(p.Messages[min(max(0, p.PrePromptMessageCount), len(p.Messages)):]...)
	return nil
}

func (e *scripted) Assemble(_ context.Context, p engine.AssembleParams) (engine.AssembleResult, error) {
	e.mu.Lock()
	e.seen = append(e.seen, p)
	e.mu.Unlock()
	e.enter("assemble")
	res := engine.AssembleResult{PromptAuthority: engine.Assembled, Messages: []json.RawMessage{}, Kept: []int{}}
	for i, m := range p.Messages {
		if i >= e.Drop {
			res.Kept, res.Messages = append(res.Kept, i), append(res.Messages, m)
			res.EstimatedTokens += len(m) / 4
		}
	}
	if e.Recall != "" && p.Prompt != "" {
		text, _ := json.Marshal(e.Recall)
		m := json.RawMessage(`{"role":"custom","customType":"hark-recall","content":` + string(text) + `,"display":false}`)
		res.Insert = []engine.Insertion{{Position: len(res.Messages), Message: m}}
		res.Messages = append(res.Messages, m)
		res.EstimatedTokens += len(m) / 4
	}
	for i, line := range p.MemoryPrompt {
		if i > 0 {
			res.SystemPromptAddition += "\n"
		}
		res.SystemPromptAddition += line
	}
	res.Trace = &engine.Trace{Session: p.SessionKey}
	return res, nil
}

func (e *scripted) Compact(ctx context.Context, p engine.CompactParams) (engine.CompactResult, error) {
	e.enter("compact")
	return HostCompacted{}.Compact(ctx, p)
}

func (e *scripted) PrepareSubagentSpawn(_ context.Context, p engine.SpawnParams) (*engine.Spawn, error) {
	e.enter("prepareSubagentSpawn")
	return &engine.Spawn{ChildSessionKey: p.ChildSessionKey, Rollback: func(context.Context) error {
		e.enter("rollback " + p.ChildSessionKey)
		return nil
	}}, nil
}

func (e *scripted) OnSubagentEnded(_ context.Context, p engine.SubagentEndedParams) error {
	e.enter("onSubagentEnded")
	return nil
}

func (e *scripted) Dispose(context.Context) error { return nil }

// classify is what a program gives a server for its engine's errors.
func classify(err error) *Error {
	if errors.Is(err, errKeyReused) {
		return &Error{Code: CodeConflict, Message: err.Error()}
	}
	return nil
}
