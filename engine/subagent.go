package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// spawnRecord is what is kept of a prepared subagent, under its child's session key.
type spawnRecord struct {
	Parent  string `json:"parent"`
	Mode    string `json:"mode"`
	Expires int64  `json:"expires"` // Unix milliseconds
}

// maxSpawnDepth bounds the chain of forks that is followed.
const maxSpawnDepth = 8

// PrepareSubagentSpawn implements ContextEngine. The record lives until the child's end is
// reported, the result is rolled back, or its TTL (24 hours unless given) is over.
func (e *Engine) PrepareSubagentSpawn(ctx context.Context, p SpawnParams) (*Spawn, error) {
	child := canonicalKey(p.ChildSessionKey)
	if child == "" || strings.TrimSpace(p.ParentSessionKey) == "" {
		return nil, errors.New("prepare subagent: parent and child session keys are required")
	}
	mode := p.ContextMode
	if mode == "" {
		mode = Isolated
	}
	if mode != Isolated && mode != Fork {
		return nil, fmt.Errorf("prepare subagent: unknown context mode %q", p.ContextMode)
	}
	ttl := defaultSpawnTTL
	if p.TTLMs > 0 {
		ttl = time.Duration(p.TTLMs) * time.Millisecond
	}
	rec := spawnRecord{Parent: canonicalKey(p.ParentSessionKey), Mode: mode, Expires: e.opts.Clock().Add(ttl).UnixMilli()}
	err := e.editSpawns(ctx, func(all map[string]spawnRecord) bool { all[child] = rec; return true })
	if err != nil {
		return nil, fmt.Errorf("prepare subagent: %w", err)
	}
	return &Spawn{
		ChildSessionKey: child,
		Rollback:        func(ctx context.Context) error { return e.RollbackSpawn(ctx, child) },
	}, nil
}

// RollbackSpawn undoes PrepareSubagentSpawn for a child session, for callers that cannot keep the
// returned Spawn. A child that is not known is no error.
func (e *Engine) RollbackSpawn(ctx context.Context, childSessionKey string) error {
	return e.editSpawns(ctx, func(all map[string]spawnRecord) bool {
		_, ok := all[canonicalKey(childSessionKey)]
		delete(all, canonicalKey(childSessionKey))
		return ok
	})
}

// OnSubagentEnded implements ContextEngine. What the child said stays stored in the child's scope.
func (e *Engine) OnSubagentEnded(ctx context.Context, p SubagentEndedParams) error {
	if err := e.RollbackSpawn(ctx, p.ChildSessionKey); err != nil {
		return fmt.Errorf("end of subagent: %w", err)
	}
	return nil
}

// inherit gives a forked child what its parent may see.
func (e *Engine) inherit(ctx context.Context, sc *Scope, depth int) {
	all, err := e.spawns(ctx)
	if err != nil {
		sc.forbidden = "subagent records unreadable"
		return
	}
	rec, ok := all[sc.Session]
	if !ok || rec.Mode != Fork || rec.Expires <= e.opts.Clock().UnixMilli() || depth >= maxSpawnDepth {
		return
	}
	isOwner := ParseKey(rec.Parent).Audience == Direct && e.owner(ctx, rec.Parent, nil)
	parent := e.scopes.of(rec.Parent, "", isOwner)
	if parent.Address.Audience == Subagent {
		e.inherit(ctx, &parent, depth+1)
	}
	sc.visible, sc.all, sc.only, sc.forbidden = parent.visible, parent.all, parent.only, parent.forbidden
}

// sweepSpawns forgets the records whose time is over.
func (e *Engine) sweepSpawns(ctx context.Context) error {
	return e.editSpawns(ctx, func(map[string]spawnRecord) bool { return false })
}

func (e *Engine) spawns(ctx context.Context) (map[string]spawnRecord, error) {
	all := map[string]spawnRecord{}
	value, err := e.store.State(ctx, "engine", "subagents")
	if err != nil || len(value) == 0 {
		return all, err
	}
	if err := json.Unmarshal(value, &all); err != nil {
		e.log.Warn("subagent records were unreadable and are dropped", "error", err)
		return map[string]spawnRecord{}, nil
	}
	return all, nil
}

// editSpawns changes the records and drops expired ones; edit reports whether it changed any.
func (e *Engine) editSpawns(ctx context.Context, edit func(map[string]spawnRecord) bool) error {
	e.children.Lock()
	defer e.children.Unlock()
	all, err := e.spawns(ctx)
	if err != nil {
		return err
	}
	now, changed := e.opts.Clock().UnixMilli(), false
	for child, rec := range all {
		if rec.Expires <= now {
			delete(all, child)
			changed = true
		}
	}
	if !edit(all) && !changed {
		return nil
	}
	value, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return e.store.SetState(ctx, "engine", "subagents", value)
}
