package engine

import (
	"context"
	"slices"
	"strings"

	"hark/index"
)

// maxRemembered bounds the maps an engine keeps beside the store; they are refilled from it.
const maxRemembered = 10_000

// lineage returns the session's key: the one given, else the one last seen with the session id, else "".
func (e *Engine) lineage(ctx context.Context, key, sessionID string) string {
	key, sessionID = canonicalKey(key), hideInID(sessionID)
	if sessionID == "" {
		return key
	}
	e.mu.Lock()
	known := e.lineages[sessionID]
	e.mu.Unlock()
	if known == key && key != "" {
		return key
	}
	if key == "" {
		if known != "" {
			return known
		}
		value, err := e.states.get(ctx, "lineage", sessionID)
		if err != nil {
			return ""
		}
		key = string(value)
	} else {
		e.states.set("lineage", sessionID, []byte(key))
	}
	if key != "" {
		e.mu.Lock()
		if len(e.lineages) >= maxRemembered {
			clear(e.lineages)
		}
		e.lineages[sessionID] = key
		e.mu.Unlock()
	}
	return key
}

// scope computes the scope of a call. owner is what the call's messages say about their person.
func (e *Engine) scope(ctx context.Context, key, sessionID string, owner *bool) Scope {
	key = e.lineage(ctx, key, sessionID)
	isOwner := ParseKey(key).Audience == Direct && e.owner(ctx, key, owner)
	sc := e.scopes.of(key, sessionID, isOwner)
	if sc.Address.Audience == Subagent {
		e.inherit(ctx, &sc, 0)
	}
	return sc
}

// scopeOf computes the scope of an assembly. An inspection leaves no mark of what it was told.
func (e *Engine) scopeOf(ctx context.Context, p AssembleParams, owner *bool) Scope {
	if !p.Inspect {
		return e.scope(ctx, p.SessionKey, p.SessionID, owner)
	}
	key := canonicalKey(p.SessionKey)
	if key == "" {
		key = e.lineage(ctx, "", p.SessionID) // only reads
	}
	isOwner := false
	if ParseKey(key).Audience == Direct {
		if isOwner = e.owner(ctx, key, nil); owner != nil {
			isOwner = *owner
		}
	}
	sc := e.scopes.of(key, p.SessionID, isOwner)
	if sc.Address.Audience == Subagent {
		e.inherit(ctx, &sc, 0)
	}
	return sc
}

// owner tells whether the person of a direct session is the agent's owner, and remembers what the
// host said about it.
func (e *Engine) owner(ctx context.Context, key string, said *bool) bool {
	e.mu.Lock()
	known, ok := e.owners[key]
	e.mu.Unlock()
	if !ok {
		value, err := e.states.get(ctx, "owner", key)
		known, ok = string(value) == "yes", err == nil && len(value) > 0
	}
	if said == nil || ok && known == *said {
		return known
	}
	value := "no"
	if *said {
		value = "yes"
	}
	e.states.set("owner", key, []byte(value))
	e.mu.Lock()
	if len(e.owners) >= maxRemembered {
		clear(e.owners)
	}
	e.owners[key] = *said
	e.mu.Unlock()
	return *said
}

// ownerOf returns what the last message that says so says about its person.
func ownerOf(msgs []message) *bool {
	for _, msg := range slices.Backward(msgs) {
		if msg.role == "user" && !msg.machine && msg.owner != nil {
			return msg.owner
		}
	}
	return nil
}

// adopt gives a session the messages that came before its key was known: they were stored under the
// session's id, where nobody can recall them. Their ids change with their keys.
// The caller holds Engine.ingest.
func (e *Engine) adopt(ctx context.Context, sc Scope, sessionID string) error {
	orphan := "id:" + hideInID(sessionID)
	if sessionID == "" || sc.Session == orphan {
		return nil
	}
	rows, err := e.store.Session(ctx, orphan, 0, 1)
	if err != nil || len(rows) == 0 {
		return err
	}
	if rows, err = e.store.Session(ctx, orphan, 0, 0); err != nil {
		return err
	}
	seqs := make([]int64, len(rows))
	for i := range rows {
		m := &rows[i]
		seqs[i] = m.Seq
		m.Keys = slices.DeleteFunc(m.Keys, local)
		for k, key := range m.Keys {
			m.Keys[k] = strings.Replace(key, ":"+oneLine(orphan)+"/", ":"+oneLine(sc.Session)+"/", 1)
		}
		m.Session, m.Scope = sc.Session, sc.Stored
		if sc.Stored == automaticScope {
			m.Kind = index.Noise
		}
	}
	r := e.resolver(sc.Session, delivery{sessionID: sessionID, partial: true})
	if err := r.renumber(ctx, rows); err != nil {
		return err
	}
	if _, err := e.append(ctx, rows, nil, maxBatch); err != nil {
		return err
	}
	if e.worker != nil {
		e.worker.wake()
	}
	_, err = e.store.Discard(ctx, seqs, false)
	return err
}
