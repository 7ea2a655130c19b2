package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"hark/engine"
)

// call is one method call on its way through the server.
type call struct {
	server *Server
	name   string // of the agent
	agent  *Agent
	body   json.RawMessage
	trace  bool
}

// lifecycleMethod looks up a method of the lifecycle. Its calls may create the agent's store: the
// host drives them.
func lifecycleMethod(name string) (func(context.Context, *call) (any, error), bool) {
	switch name {
	case "bootstrap":
		return bootstrap, true
	case "maintain":
		return maintain, true
	case "ingest":
		return ingest, true
	case "ingestBatch":
		return ingestBatch, true
	case "commitTurn":
		return commitTurn, true
	case "afterTurn":
		return afterTurn, true
	case "assemble":
		return assemble, true
	case "prepareSubagentSpawn":
		return prepareSubagentSpawn, true
	case "rollbackSubagentSpawn":
		return rollbackSubagentSpawn, true
	case "onSubagentEnded":
		return onSubagentEnded, true
	case "compacted":
		return compacted, true
	}
	return nil, false
}

// method serves POST /v1/agents/{agent}/{method}.
func (s *Server) method(w http.ResponseWriter, r *http.Request) {
	method := r.PathValue("method")
	name, err := agentName(r.PathValue("agent"))
	if err != nil {
		s.answer(w, r, "", method, nil, err)
		return
	}
	value, err := s.dispatch(w, r, name, method)
	s.answer(w, r, name, method, value, err)
}

func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, name, method string) (any, error) {
	do, lifecycle := lifecycleMethod(method)
	if !lifecycle {
		do, lifecycle = memoryMethod(method)
	}
	return s.run(w, r, name, method, func(ctx context.Context, body json.RawMessage) (any, error) {
		agent, err := s.agents.get(ctx, name, lifecycle)
		if err != nil {
			return nil, err
		}
		if lifecycle {
			return do(ctx, &call{server: s, name: name, agent: agent, body: body, trace: r.Header.Get(HeaderTrace) == "1"})
		}
		if extra, ok := agent.Methods[method]; ok {
			return extra(ctx, body)
		}
		return nil, &Error{Code: CodeUnknown, Message: fmt.Sprintf("there is no method %q", clip(method, 40)),
			Remedy: "see the README of engine/wire for the methods"}
	})
}

// bootstrap stores a page of history and then the host's cursor after it, in this order: a cursor
// that is ahead of its page would lose it.
func bootstrap(ctx context.Context, c *call) (any, error) {
	var p BootstrapRequest
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	p.RuntimeContext = nil
	res, err := c.agent.Engine.Bootstrap(ctx, p.BootstrapParams)
	if err == nil && p.Cursor != "" {
		err = c.agent.setCursor(ctx, p.SessionID, p.SessionKey, p.Cursor)
	}
	return res, err
}

func maintain(ctx context.Context, c *call) (any, error) {
	var p engine.MaintainParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	p.RuntimeContext = nil
	return c.agent.Engine.Maintain(ctx, p)
}

func ingest(ctx context.Context, c *call) (any, error) {
	var p engine.IngestParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	return c.agent.Engine.Ingest(ctx, p)
}

func ingestBatch(ctx context.Context, c *call) (any, error) {
	var p engine.IngestBatchParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	return c.agent.Engine.IngestBatch(ctx, p)
}

func commitTurn(ctx context.Context, c *call) (any, error) {
	var p engine.CommitTurnParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	p.RuntimeContext = nil
	if strings.TrimSpace(p.AdvancementKey) == "" {
		return nil, &Error{Code: CodeBadRequest, Message: "the advancement key is missing"}
	}
	return c.agent.Engine.CommitTurn(ctx, p)
}

func afterTurn(ctx context.Context, c *call) (any, error) {
	var p engine.AfterTurnParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	p.RuntimeContext = nil
	return done{}, c.agent.Engine.AfterTurn(ctx, p)
}

// done is the answer of methods that have nothing to say.
type done struct{}

// assemble puts the client's history together, asks the engine, and answers by reference.
func assemble(ctx context.Context, c *call) (any, error) {
	var p AssembleRequest
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	if p.History != nil && p.Messages != nil {
		return nil, &Error{Code: CodeBadRequest, Message: "give messages or history, not both"}
	}
	full, ok := c.server.histories.resolve(c.session(p.SessionID, p.SessionKey), p.Messages, p.History)
	if !ok {
		return nil, &Error{Code: CodeResend, Message: "the history named by base and count is not known here",
			Remedy: "send the messages in full"}
	}
	params := p.AssembleParams
	params.Messages, params.RuntimeContext = full, nil
	if params.Messages == nil {
		params.Messages = []json.RawMessage{}
	}
	res, err := c.agent.Engine.Assemble(ctx, params)
	if err != nil {
		return nil, err
	}
	return refer(res, c.trace), nil
}

// refer turns an engine's result into its form on the wire.
func refer(res engine.AssembleResult, trace bool) AssembleResponse {
	out := AssembleResponse{
		Kept: ranges(res.Kept), Insert: res.Insert, EstimatedTokens: res.EstimatedTokens,
		PromptAuthority: res.PromptAuthority, SystemPromptAddition: res.SystemPromptAddition,
		ContextProjection: res.ContextProjection,
	}
	if out.Insert == nil {
		out.Insert = []engine.Insertion{}
	}
	if res.Trace != nil {
		out.Shortened = res.Trace.Window.Shortened
		if trace {
			out.Trace = res.Trace
		}
	}
	return out
}

// ranges joins ascending indexes into half-open ranges.
func ranges(kept []int) [][2]int {
	out := [][2]int{}
	for _, i := range kept {
		if n := len(out); n > 0 && out[n-1][1] == i {
			out[n-1][1]++
			continue
		}
		out = append(out, [2]int{i, i + 1})
	}
	return out
}

func (c *call) session(id, key string) sessionRef {
	if key == "" {
		key = "id:" + id
	}
	return sessionRef{agent: c.name, session: key}
}

func prepareSubagentSpawn(ctx context.Context, c *call) (any, error) {
	var p engine.SpawnParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	spawn, err := c.agent.Engine.PrepareSubagentSpawn(ctx, p)
	if err != nil || spawn == nil {
		return SpawnResponse{}, err
	}
	c.server.spawns.put(sessionRef{c.name, spawn.ChildSessionKey}, spawn)
	return SpawnResponse{Prepared: true, ChildSessionKey: spawn.ChildSessionKey}, nil
}

// rollbackSubagentSpawn undoes a spawn. One that a former daemon prepared is undone by its key.
func rollbackSubagentSpawn(ctx context.Context, c *call) (any, error) {
	var p RollbackRequest
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	spawn := c.server.spawns.take(sessionRef{c.name, p.ChildSessionKey})
	if spawn != nil && spawn.Rollback != nil {
		return done{}, spawn.Rollback(ctx)
	}
	if e, ok := c.agent.Engine.(rollbacker); ok {
		return done{}, e.RollbackSpawn(ctx, p.ChildSessionKey)
	}
	return done{}, c.agent.Engine.OnSubagentEnded(ctx, engine.SubagentEndedParams{ChildSessionKey: p.ChildSessionKey, Reason: "released"})
}

func onSubagentEnded(ctx context.Context, c *call) (any, error) {
	var p engine.SubagentEndedParams
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	c.server.spawns.take(sessionRef{c.name, p.ChildSessionKey})
	return done{}, c.agent.Engine.OnSubagentEnded(ctx, p)
}

// compacted tells the engine that the host shortened the session's history: its Compact, with
// HostCompacted, is what comes after that. The kept copy of the history is useless now.
func compacted(ctx context.Context, c *call) (any, error) {
	var p CompactedRequest
	if err := decode(c.body, &p); err != nil {
		return nil, err
	}
	c.server.histories.forget(c.session(p.SessionID, p.SessionKey))
	_, err := c.agent.Engine.Compact(ctx, engine.CompactParams{SessionID: p.SessionID, SessionKey: p.SessionKey})
	return done{}, err
}

// status serves GET /v1/status: the daemon, and with ?agent= that agent's own account.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("agent") {
		writeJSON(w, http.StatusOK, map[string]any{"daemon": s.describe()})
		return
	}
	name, err := agentName(r.URL.Query().Get("agent"))
	if err != nil {
		s.answer(w, r, "", "status", nil, err)
		return
	}
	value, err := s.run(w, r, name, "status", func(ctx context.Context, _ json.RawMessage) (any, error) {
		agent, err := s.agents.get(ctx, name, false)
		if err != nil {
			return nil, err
		}
		out := map[string]any{"daemon": s.describe(), "agent": name}
		if method, ok := agent.Methods["status"]; ok {
			out["status"], err = method(ctx, json.RawMessage("{}"))
		}
		return out, err
	})
	s.answer(w, r, name, "status", value, err)
}

// maxSpawns bounds the spawns whose rollback is kept; an older one is rolled back by its key.
const maxSpawns = 1024

// spawns keeps what PrepareSubagentSpawn returned until it is rolled back or has ended.
type spawns struct {
	mu    sync.Mutex
	order []sessionRef // oldest first
	by    map[sessionRef]*engine.Spawn
}

func (sp *spawns) put(ref sessionRef, spawn *engine.Spawn) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.by == nil {
		sp.by = map[sessionRef]*engine.Spawn{}
	}
	if _, again := sp.by[ref]; !again {
		sp.order = append(sp.order, ref)
	}
	sp.by[ref] = spawn
	if len(sp.order) > maxSpawns {
		delete(sp.by, sp.order[0])
		sp.order = slices.Delete(sp.order, 0, 1)
	}
}

func (sp *spawns) take(ref sessionRef) *engine.Spawn {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	spawn, ok := sp.by[ref]
	if ok {
		delete(sp.by, ref)
		sp.order = slices.DeleteFunc(sp.order, func(r sessionRef) bool { return r == ref })
	}
	return spawn
}
