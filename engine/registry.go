package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// LegacyID is the id of the host's built-in engine, which nobody else may register.
const LegacyID = "legacy"

// FactoryContext is what a host gives a factory.
type FactoryContext struct {
	Config       json.RawMessage // the host's configuration; may be nil
	AgentDir     string
	WorkspaceDir string
}

// Factory builds an engine for one run. It may be called any number of times, also at once.
type Factory func(ctx context.Context, fc FactoryContext) (ContextEngine, error)

// Registry is the host's side of context engines, for Go programs that embed Hark: factories
// register under an id, and a slot chooses one of them for a run. Safe for concurrent use.
type Registry struct {
	fallback   ContextEngine
	log        *slog.Logger
	quarantine Quarantine

	mu        sync.RWMutex
	factories map[string]registered
}

type registered struct {
	owner   string
	factory Factory
}

// NewRegistry returns a registry whose slot falls back to the given engine, in general legacy.Engine.
func NewRegistry(fallback ContextEngine, log *slog.Logger) *Registry {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Registry{fallback: fallback, log: log, factories: map[string]registered{}}
}

// Register offers a factory under id for the plugin owner. The same owner may register again, which
// replaces the factory and ends a quarantine; another owner may not.
func (r *Registry) Register(id, owner string, f Factory) error {
	switch {
	case strings.TrimSpace(id) == "" || id != strings.TrimSpace(id):
		return fmt.Errorf("register context engine: the id %q is blank or has blanks around it", id)
	case id == LegacyID:
		return fmt.Errorf("register context engine: the id %q is the host's own", id)
	case f == nil:
		return fmt.Errorf("register context engine %q: no factory", id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.factories[id]; ok && was.owner != owner {
		return fmt.Errorf("register context engine: %q is registered by %q already", id, was.owner)
	}
	r.factories[id] = registered{owner, f}
	r.quarantine.Clear(id)
	return nil
}

// Unregister removes what a plugin registered.
func (r *Registry) Unregister(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, reg := range r.factories {
		if reg.owner == owner {
			delete(r.factories, id)
		}
	}
}

// IDs lists the registered ids, sorted.
func (r *Registry) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ids := make([]string, 0, len(r.factories))
	for id := range r.factories {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// Resolution is the one engine of a run.
type Resolution struct {
	Engine ContextEngine
	ID     string // of the engine that serves
	Wanted string // what the slot says, "legacy" when it says nothing
	Reason string // why Wanted does not serve; "" when it does
}

// Run describes a run to resolve an engine for.
type Run struct {
	Slot         string // plugins.slots.contextEngine; "" means LegacyID
	Context      FactoryContext
	Capabilities []string // of the host; nil is not known and not checked
}

// Resolve returns exactly one engine for a run: the slot's, guarded, or the fallback with the
// reason, which is logged: also where it does not declare both parts of TranscriptSemantics. Its only
// error is a *HostError: the host lacks what the slot's engine needs for a run.
func (r *Registry) Resolve(ctx context.Context, run Run) (Resolution, error) {
	res := Resolution{Wanted: strings.TrimSpace(run.Slot), Engine: r.fallback, ID: r.fallback.Info().ID}
	if res.Wanted == "" || res.Wanted == LegacyID {
		res.Wanted = LegacyID
		return res, nil
	}
	r.mu.RLock()
	reg, ok := r.factories[res.Wanted]
	r.mu.RUnlock()
	if !ok {
		res.Reason = fmt.Sprintf("no context engine %q is registered (registered: %s); is its plugin installed and enabled?",
			res.Wanted, strings.Join(append([]string{LegacyID}, r.IDs()...), ", "))
		r.log.Warn("context engine slot falls back", "slot", res.Wanted, "fallback", res.ID, "reason", res.Reason)
		return res, nil
	}
	guard := NewGuard(res.Wanted, func(ctx context.Context) (ContextEngine, error) {
		return reg.factory(ctx, run.Context)
	}, r.fallback, run.Capabilities, &r.quarantine, r.log)
	if guard.served(ctx) == nil {
		res.Reason = "the engine could not be built"
		if fault, bad := guard.Fault(); bad {
			res.Reason = fmt.Sprintf("%s: %v", fault.Operation, fault.Err)
		}
		r.log.Warn("context engine slot falls back", "slot", res.Wanted, "fallback", res.ID, "reason", res.Reason)
		return res, nil
	}
	if err := guard.needs(ctx, AgentRun); err != nil {
		_ = guard.Dispose(ctx) // a failure of it is logged
		return Resolution{}, err
	}
	if !guard.Info().TranscriptSemantics.complete() {
		_ = guard.Dispose(ctx) // a failure of it is logged
		res.Reason = fmt.Sprintf("the engine does not declare info.transcriptSemantics (%s and %s), without which no turn can be committed to it",
			FenceBeforeCurrentTurn, AtomicIdempotent)
		r.log.Warn("context engine slot falls back", "slot", res.Wanted, "fallback", res.ID, "reason", res.Reason)
		return res, nil
	}
	res.Engine, res.ID = guard, res.Wanted
	return res, nil
}

// Fault returns why the engine with this id is in quarantine, if it is.
func (r *Registry) Fault(id string) (Fault, bool) { return r.quarantine.Fault(id) }

// ReadSlot reads plugins.slots.contextEngine from an openclaw.json, which is JSON5. A missing file
// or slot is "". The error names the file and the place.
func ReadSlot(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the host's configuration: %w", err)
	}
	slot, err := slotOf(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return slot, nil
}

func slotOf(data []byte) (string, error) {
	plain, err := StandardJSON(data)
	if err != nil {
		return "", err
	}
	value := json.RawMessage(plain)
	for _, name := range []string{"plugins", "slots", "contextEngine"} {
		if value, err = memberOf(value, name); err != nil {
			return "", fmt.Errorf("plugins.slots.contextEngine: %w", err)
		}
	}
	var slot string
	if len(value) > 0 {
		if err := json.Unmarshal(value, &slot); err != nil {
			return "", fmt.Errorf("plugins.slots.contextEngine: %w", err)
		}
	}
	return strings.TrimSpace(slot), nil
}

// StandardJSON turns JSON5 into JSON. Comments and trailing commas are hujson's part; unquoted
// keys, single quotes and the number forms of JSON5 are rewritten before (json5.go).
func StandardJSON(data []byte) ([]byte, error) {
	rewritten, err := rewriteJSON5(data)
	if err != nil {
		return nil, err
	}
	return hujson.Standardize(rewritten)
}
