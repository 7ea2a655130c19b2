package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"hark/engine"
)

// Remote is an agent's engine that lives in a daemon. It is safe for concurrent use.
type Remote struct {
	client  *Client
	agent   string
	runtime engine.Runtime

	mu       sync.Mutex
	sessions map[string]*sent
}

// sent is what a session's last assemble sent.
type sent struct {
	chain   []Chain // over the first i messages
	refused int     // resends in a row
}

// The bounds of what a Remote remembers, beyond which messages go in full.
const (
	maxSessions = 512
	maxRefused  = 2
)

var _ engine.ContextEngine = (*Remote)(nil)

// NewRemote returns the engine of an agent in the client's daemon. The runtime is this process's
// way to its host's compaction, nil where there is none.
func NewRemote(c *Client, agent string, runtime engine.Runtime) *Remote {
	return &Remote{client: c, agent: agent, runtime: runtime, sessions: map[string]*sent{}}
}

// Info implements engine.ContextEngine: what every engine of Hark declares.
func (r *Remote) Info() engine.Info {
	return engine.Info{
		ID: engine.ID, Name: "Hark", Version: engine.Version, TurnMaintenanceMode: "background",
		TranscriptSemantics: &engine.TranscriptSemantics{
			CurrentTurnFence: engine.FenceBeforeCurrentTurn, TurnAdvancementIdempotency: engine.AtomicIdempotent,
		},
		AcceptedHostParams: []string{"sessionKey", "prompt", "sessionTarget", "runtimeSettings", "runtimeContext", "abortSignal"},
	}
}

// Bootstrap implements engine.ContextEngine.
func (r *Remote) Bootstrap(ctx context.Context, p engine.BootstrapParams) (engine.BootstrapResult, error) {
	return r.BootstrapPage(ctx, p, "")
}

// BootstrapPage is Bootstrap with the host's cursor after p.History, which is kept once the page is
// durable; see Client.Cursor.
func (r *Remote) BootstrapPage(ctx context.Context, p engine.BootstrapParams, cursor string) (out engine.BootstrapResult, err error) {
	p.RuntimeContext = nil
	return out, r.client.Call(ctx, r.agent, "bootstrap", BootstrapRequest{p, cursor}, &out)
}

// Maintain implements engine.ContextEngine.
func (r *Remote) Maintain(ctx context.Context, p engine.MaintainParams) (out engine.MaintainResult, err error) {
	p.RuntimeContext = nil
	return out, r.client.Call(ctx, r.agent, "maintain", p, &out)
}

// Ingest implements engine.ContextEngine.
func (r *Remote) Ingest(ctx context.Context, p engine.IngestParams) (out engine.IngestResult, err error) {
	return out, r.client.Call(ctx, r.agent, "ingest", p, &out)
}

// IngestBatch implements engine.ContextEngine.
func (r *Remote) IngestBatch(ctx context.Context, p engine.IngestBatchParams) (out engine.IngestBatchResult, err error) {
	return out, r.client.Call(ctx, r.agent, "ingestBatch", p, &out)
}

// CommitTurn implements engine.ContextEngine.
func (r *Remote) CommitTurn(ctx context.Context, p engine.CommitTurnParams) (out engine.CommitTurnResult, err error) {
	p.RuntimeContext = nil
	return out, r.client.Call(ctx, r.agent, "commitTurn", p, &out)
}

// AfterTurn implements engine.ContextEngine.
func (r *Remote) AfterTurn(ctx context.Context, p engine.AfterTurnParams) error {
	p.RuntimeContext = nil
	return r.client.Call(ctx, r.agent, "afterTurn", p, nil)
}

// Assemble implements engine.ContextEngine. Of a history that the daemon has seen, only what is new
// is sent. The messages of the result are p's own, byte for byte.
func (r *Remote) Assemble(ctx context.Context, p engine.AssembleParams) (engine.AssembleResult, error) {
	p.RuntimeContext = nil
	chain := chainOf(p.Messages)
	session := r.session(p)
	req := AssembleRequest{AssembleParams: p}
	n := session.common(chain)
	if n > 0 {
		req.History = &History{Base: chain[n].String(), Count: n, Messages: p.Messages[n:]}
	} else {
		req.Messages = p.Messages
	}
	var res AssembleResponse
	err := r.client.Call(ctx, r.agent, "assemble", req, &res)
	if n > 0 && errors.Is(err, &Error{Code: CodeResend}) {
		req.History, req.Messages = nil, p.Messages
		err = r.client.Call(ctx, r.agent, "assemble", req, &res)
		n = -1
	}
	if err != nil {
		r.remember(p, nil)
		return engine.AssembleResult{}, err
	}
	next := &sent{chain: chain, refused: session.refused}
	switch {
	case n < 0:
		next.refused++
	case n > 0:
		next.refused = 0
	}
	r.remember(p, next)
	return put(p.Messages, res)
}

// put makes the engine's result of its form on the wire.
func put(messages []json.RawMessage, res AssembleResponse) (engine.AssembleResult, error) {
	out := engine.AssembleResult{
		EstimatedTokens: res.EstimatedTokens, PromptAuthority: res.PromptAuthority, SystemPromptAddition: res.SystemPromptAddition,
		ContextProjection: res.ContextProjection, Kept: []int{}, Insert: res.Insert, Trace: res.Trace,
	}
	for _, span := range res.Kept {
		if span[0] < 0 || span[1] > len(messages) {
			return engine.AssembleResult{}, fmt.Errorf("the daemon keeps messages %d to %d of %d", span[0], span[1], len(messages))
		}
		for i := span[0]; i < span[1]; i++ {
			out.Kept = append(out.Kept, i)
		}
	}
	var err error
	out.Messages, err = engine.Rebuild(messages, out.Kept, res.Insert)
	return out, err
}

// Compact implements engine.ContextEngine: it is the host's, in this process; the daemon only hears
// of it.
func (r *Remote) Compact(ctx context.Context, p engine.CompactParams) (engine.CompactResult, error) {
	if r.runtime == nil {
		return engine.CompactResult{OK: true, Reason: "not compacted: compaction is the host's, and no host runtime is attached"}, nil
	}
	res, err := r.runtime.Compact(ctx, p)
	if err != nil || !res.Compacted {
		return res, err
	}
	// The host has compacted already; a daemon that does not hear of it notices by the history.
	_ = r.client.Call(ctx, r.agent, "compacted", CompactedRequest{p.SessionID, p.SessionKey}, nil)
	return res, nil
}

// PrepareSubagentSpawn implements engine.ContextEngine.
func (r *Remote) PrepareSubagentSpawn(ctx context.Context, p engine.SpawnParams) (*engine.Spawn, error) {
	var out SpawnResponse
	if err := r.client.Call(ctx, r.agent, "prepareSubagentSpawn", p, &out); err != nil || !out.Prepared {
		return nil, err
	}
	return &engine.Spawn{ChildSessionKey: out.ChildSessionKey, Rollback: func(ctx context.Context) error {
		return r.client.Call(ctx, r.agent, "rollbackSubagentSpawn", RollbackRequest{out.ChildSessionKey}, nil)
	}}, nil
}

// OnSubagentEnded implements engine.ContextEngine.
func (r *Remote) OnSubagentEnded(ctx context.Context, p engine.SubagentEndedParams) error {
	return r.client.Call(ctx, r.agent, "onSubagentEnded", p, nil)
}

// Dispose implements engine.ContextEngine. The daemon and its engine go on.
func (r *Remote) Dispose(context.Context) error { return nil }

// chainOf returns the chain values over the first 0, 1, … messages, as they are encoded.
func chainOf(messages []json.RawMessage) []Chain {
	out := make([]Chain, 1, len(messages)+1)
	out[0] = NewChain()
	var buf bytes.Buffer
	for i, m := range messages {
		// The encoder takes white space out of raw messages; what is hashed is what is sent.
		buf.Reset()
		if json.Compact(&buf, m) == nil {
			m = buf.Bytes()
		}
		out = append(out, out[i].Add(m))
	}
	return out
}

// common is how many first messages were sent before, 0 where they are to be sent again.
func (s *sent) common(chain []Chain) int {
	if s.refused >= maxRefused {
		return 0
	}
	n := 0
	for n+1 < len(chain) && n+1 < len(s.chain) && chain[n+1] == s.chain[n+1] {
		n++
	}
	return n
}

func (r *Remote) session(p engine.AssembleParams) *sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[sessionName(p)]; s != nil {
		return s
	}
	return &sent{}
}

func (r *Remote) remember(p engine.AssembleParams, s *sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, sessionName(p))
	if s == nil {
		return
	}
	if len(r.sessions) >= maxSessions {
		clear(r.sessions)
	}
	r.sessions[sessionName(p)] = s
}

func sessionName(p engine.AssembleParams) string {
	if p.SessionKey != "" {
		return p.SessionKey
	}
	return "id:" + p.SessionID
}
