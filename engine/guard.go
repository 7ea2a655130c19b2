package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// HostError says that a host lacks what an operation of an engine needs. Its text is the engine's
// own message where it declares one.
type HostError struct {
	Engine    string
	Operation string
	Missing   []string
	Message   string
}

func (e *HostError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return fmt.Sprintf("context engine %q cannot do %s on this host: it lacks %s", e.Engine, e.Operation, strings.Join(e.Missing, ", "))
}

// CheckHost reports as a *HostError what the host, by its capabilities, lacks for an operation of
// the engine. An operation without declared requirements is always possible.
func CheckHost(info Info, operation string, capabilities []string) error {
	need, ok := info.HostRequirements[operation]
	if !ok {
		return nil
	}
	var missing []string
	for _, c := range need.RequiredCapabilities {
		if !slices.Contains(capabilities, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &HostError{Engine: info.ID, Operation: operation, Missing: missing, Message: need.UnsupportedMessage}
}

// ErrAborted is for engines and runtimes whose call was given up by the caller. Such an error never
// quarantines an engine.
var ErrAborted = errors.New("aborted")

// Fault is why an engine is in quarantine.
type Fault struct {
	Operation string // "factory", "contract" or a method of the lifecycle
	Err       error
}

// Quarantine holds the engines that failed in this process, by id. The zero value is ready.
type Quarantine struct {
	mu     sync.Mutex
	faults map[string]Fault
}

// Fault returns why the engine with this id is in quarantine, if it is.
func (q *Quarantine) Fault(id string) (Fault, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f, ok := q.faults[id]
	return f, ok
}

// Clear lets the engine with this id serve again, as registering it anew does.
func (q *Quarantine) Clear(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.faults, id)
}

func (q *Quarantine) put(id string, f Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.faults == nil {
		q.faults = map[string]Fault{}
	}
	if _, ok := q.faults[id]; !ok {
		q.faults[id] = f
	}
}

// Validate checks what a factory returned for the slot id.
func Validate(id string, e ContextEngine) (err error) {
	if e == nil {
		return errors.New("the factory returned no engine")
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("info panicked: %v", r)
		}
	}()
	info := e.Info()
	switch {
	case strings.TrimSpace(info.ID) == "":
		return errors.New("info.id is blank")
	case strings.TrimSpace(info.Name) == "":
		return errors.New("info.name is blank")
	case info.ID != id:
		return fmt.Errorf("info.id %q is not the registered id %q", info.ID, id)
	}
	return nil
}

// Guard serves an engine and, once that has failed, a fallback in its place. The first failure of
// the factory, the contract or a method puts the engine in quarantine for the process.
//
// The failing call itself is served by the fallback too, with these exceptions: Compact and
// PrepareSubagentSpawn return the first failure, because the caller has to know; CommitTurn returns
// every failure and only a panic of it quarantines, because the host keeps the turn and repeats it;
// a call that its caller gave up, and an operation the host lacks something for, is returned as it
// is and quarantines nothing.
type Guard struct {
	id         string
	open       func(context.Context) (ContextEngine, error)
	fallback   ContextEngine
	host       []string // capabilities; nil is not known and not checked
	quarantine *Quarantine
	log        *slog.Logger

	mu     sync.Mutex
	tried  bool // the factory has answered
	engine ContextEngine
}

var _ ContextEngine = (*Guard)(nil)

// NewGuard returns a guard that opens its engine on first use. quarantine and log may be nil.
func NewGuard(id string, open func(context.Context) (ContextEngine, error), fallback ContextEngine, capabilities []string, quarantine *Quarantine, log *slog.Logger) *Guard {
	if quarantine == nil {
		quarantine = &Quarantine{}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Guard{id: id, open: open, fallback: fallback, host: capabilities, quarantine: quarantine, log: log}
}

// Fault returns why the guarded engine is not served, if it is not.
func (g *Guard) Fault() (Fault, bool) { return g.quarantine.Fault(g.id) }

func (g *Guard) fail(operation string, err error) {
	g.log.Error("context engine quarantined for this process, falling back",
		"engine", g.id, "operation", operation, "fallback", g.fallback.Info().ID, "error", err)
	g.quarantine.put(g.id, Fault{Operation: operation, Err: err})
}

// served returns the engine, or nil where the fallback has to serve.
func (g *Guard) served(ctx context.Context) ContextEngine {
	if _, bad := g.Fault(); bad {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tried {
		return g.engine
	}
	engine, err := protect(func() (ContextEngine, error) {
		if g.open == nil {
			return nil, errors.New("no factory is registered")
		}
		return g.open(ctx)
	})
	if err != nil && aborted(ctx, err) {
		return nil // the next caller tries again
	}
	g.tried = true
	if err != nil {
		g.fail("factory", err)
		return nil
	}
	if err := Validate(g.id, engine); err != nil {
		g.fail("contract", err)
		return nil
	}
	g.engine = engine
	return engine
}

// panicked is a recovered panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func protect[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicked{value: r, stack: debug.Stack()}
		}
	}()
	return call()
}

func aborted(ctx context.Context, err error) bool {
	return errors.Is(err, ErrAborted) || errors.Is(err, context.Canceled) || ctx.Err() != nil
}

// guarded runs one operation on the engine, and on the fallback where it must.
func guarded[T any](ctx context.Context, g *Guard, operation string, call func(ContextEngine) (T, error)) (T, error) {
	e := g.served(ctx)
	if e == nil {
		return call(g.fallback)
	}
	result, err := protect(func() (T, error) { return call(e) })
	if err == nil {
		return result, nil
	}
	var unmet *HostError
	var crash *panicked
	isPanic := errors.As(err, &crash)
	if !isPanic && (aborted(ctx, err) || errors.As(err, &unmet)) {
		return result, err
	}
	if operation != "commitTurn" || isPanic {
		g.fail(operation, err)
	}
	switch operation {
	case "compact", "prepareSubagentSpawn", "commitTurn":
		return result, err
	}
	return call(g.fallback)
}

// needs fails closed where the host lacks something the operation needs.
func (g *Guard) needs(ctx context.Context, operation string) error {
	e := g.served(ctx)
	if e == nil || g.host == nil {
		return nil
	}
	return CheckHost(e.Info(), operation, g.host)
}

// copied copies messages, in one piece.
func copied(messages []json.RawMessage) []json.RawMessage {
	if messages == nil {
		return nil
	}
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	all := make([]byte, 0, size)
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		if m != nil {
			from := len(all)
			all = append(all, m...)
			out[i] = all[from:len(all):len(all)]
		}
	}
	return out
}

// Info implements ContextEngine: the info of whichever engine serves.
func (g *Guard) Info() Info {
	if e := g.served(context.Background()); e != nil {
		return e.Info()
	}
	return g.fallback.Info()
}

// Bootstrap implements ContextEngine.
func (g *Guard) Bootstrap(ctx context.Context, p BootstrapParams) (BootstrapResult, error) {
	return guarded(ctx, g, "bootstrap", func(e ContextEngine) (BootstrapResult, error) { return e.Bootstrap(ctx, p) })
}

// Maintain implements ContextEngine.
func (g *Guard) Maintain(ctx context.Context, p MaintainParams) (MaintainResult, error) {
	return guarded(ctx, g, "maintain", func(e ContextEngine) (MaintainResult, error) { return e.Maintain(ctx, p) })
}

// Ingest implements ContextEngine.
func (g *Guard) Ingest(ctx context.Context, p IngestParams) (IngestResult, error) {
	return guarded(ctx, g, "ingest", func(e ContextEngine) (IngestResult, error) { return e.Ingest(ctx, p) })
}

// IngestBatch implements ContextEngine.
func (g *Guard) IngestBatch(ctx context.Context, p IngestBatchParams) (IngestBatchResult, error) {
	return guarded(ctx, g, "ingestBatch", func(e ContextEngine) (IngestBatchResult, error) {
		p := p
		p.Messages = copied(p.Messages)
		return e.IngestBatch(ctx, p)
	})
}

// CommitTurn implements ContextEngine. A result that is neither committed nor duplicate is a failure.
func (g *Guard) CommitTurn(ctx context.Context, p CommitTurnParams) (CommitTurnResult, error) {
	return guarded(ctx, g, "commitTurn", func(e ContextEngine) (CommitTurnResult, error) {
		p := p
		p.Messages = copied(p.Messages)
		res, err := e.CommitTurn(ctx, p)
		if err == nil && res.Status != Committed && res.Status != Duplicate {
			err = fmt.Errorf("commitTurn returned the status %q", res.Status)
		}
		return res, err
	})
}

// AfterTurn implements ContextEngine.
func (g *Guard) AfterTurn(ctx context.Context, p AfterTurnParams) error {
	_, err := guarded(ctx, g, "afterTurn", func(e ContextEngine) (struct{}, error) {
		p := p
		p.Messages = copied(p.Messages)
		return struct{}{}, e.AfterTurn(ctx, p)
	})
	return err
}

// Assemble implements ContextEngine. A result without messages is a failure of the contract.
func (g *Guard) Assemble(ctx context.Context, p AssembleParams) (AssembleResult, error) {
	if err := g.needs(ctx, AgentRun); err != nil {
		return AssembleResult{}, err
	}
	return guarded(ctx, g, "assemble", func(e ContextEngine) (AssembleResult, error) {
		p := p
		p.Messages = copied(p.Messages) // what an engine changes before it fails, the fallback does not get
		res, err := e.Assemble(ctx, p)
		if err == nil && res.Messages == nil {
			err = errors.New("assemble returned no messages")
		}
		return res, err
	})
}

// Compact implements ContextEngine.
func (g *Guard) Compact(ctx context.Context, p CompactParams) (CompactResult, error) {
	if err := g.needs(ctx, ManualCompact); err != nil {
		return CompactResult{}, err
	}
	return guarded(ctx, g, "compact", func(e ContextEngine) (CompactResult, error) { return e.Compact(ctx, p) })
}

// PrepareSubagentSpawn implements ContextEngine.
func (g *Guard) PrepareSubagentSpawn(ctx context.Context, p SpawnParams) (*Spawn, error) {
	if err := g.needs(ctx, SubagentSpawn); err != nil {
		return nil, err
	}
	return guarded(ctx, g, "prepareSubagentSpawn", func(e ContextEngine) (*Spawn, error) { return e.PrepareSubagentSpawn(ctx, p) })
}

// OnSubagentEnded implements ContextEngine.
func (g *Guard) OnSubagentEnded(ctx context.Context, p SubagentEndedParams) error {
	_, err := guarded(ctx, g, "onSubagentEnded", func(e ContextEngine) (struct{}, error) { return struct{}{}, e.OnSubagentEnded(ctx, p) })
	return err
}

// Dispose implements ContextEngine. An engine that was never used is not opened for it.
func (g *Guard) Dispose(ctx context.Context) error {
	g.mu.Lock()
	g.tried = true // nothing is opened after this
	engine := g.engine
	g.mu.Unlock()
	if engine == nil {
		return nil
	}
	_, err := protect(func() (struct{}, error) { return struct{}{}, engine.Dispose(ctx) })
	if err != nil {
		g.log.Warn("dispose failed", "engine", g.id, "error", err)
	}
	return nil
}
