package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"hark/embed"
	"hark/index"
)

// StoreDir is the directory, in an agent's own, of the store that a shared factory's engines use.
const StoreDir = "hark"

// Sharing says what the engines of a shared factory are made with. The zero value is ready: memory by
// words only, with the defaults.
type Sharing struct {
	Embedder embed.Embedder                // nil: words only
	Options  func(FactoryContext) *Options // of an agent's engine, by the call that opens its store; nil means the defaults
	Store    *index.Options                // nil means the defaults
	Log      *slog.Logger                  // nil: nothing is logged
}

// NewFactory returns a factory for a Registry whose engines share one store for each agent directory.
// A host may build as many as it likes, also at once: the store is opened by the first call that needs
// it, in StoreDir of FactoryContext.AgentDir, and closed when the last engine that used it is disposed
// of. An engine that was disposed of returns ErrDisposed.
func NewFactory(s Sharing) Factory {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	p := &pool{sharing: s, stores: map[string]*shared{}}
	return func(_ context.Context, fc FactoryContext) (ContextEngine, error) {
		if fc.AgentDir == "" {
			return nil, errors.New("the host gave no agent directory to keep the store in")
		}
		dir, err := filepath.Abs(filepath.Join(fc.AgentDir, StoreDir))
		if err != nil {
			return nil, fmt.Errorf("find the agent's directory: %w", err)
		}
		return &tenant{pool: p, dir: dir, given: fc}, nil
	}
}

// ErrDisposed is returned by an engine of a shared factory after its Dispose.
var ErrDisposed = errors.New("the context engine was disposed of")

// pool holds the open stores by their directory.
type pool struct {
	sharing Sharing

	mu     sync.Mutex
	stores map[string]*shared
}

// shared is one store and its engine while somebody uses them.
type shared struct {
	users int // guarded by the pool's mu

	mu     sync.Mutex // held while it is opened and closed
	store  *index.Store
	engine *Engine
}

// enter returns the engine over the store in dir, which it opens for the first user.
func (p *pool) enter(ctx context.Context, dir string, fc FactoryContext) (*Engine, error) {
	p.mu.Lock()
	s := p.stores[dir]
	if s == nil {
		s = &shared{}
		p.stores[dir] = s
	}
	s.users++
	p.mu.Unlock()
	s.mu.Lock()
	if s.engine != nil {
		defer s.mu.Unlock()
		return s.engine, nil
	}
	err := s.open(ctx, dir, fc, p.sharing)
	engine := s.engine
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, p.leave(dir))
	}
	return engine, nil
}

// leave ends a use; the last user closes.
func (p *pool) leave(dir string) error {
	p.mu.Lock()
	s := p.stores[dir]
	s.users--
	last := s.users == 0
	p.mu.Unlock()
	if !last {
		return nil
	}
	s.mu.Lock() // whoever comes now waits for this and opens it again
	defer s.mu.Unlock()
	p.mu.Lock()
	if s.users > 0 || p.stores[dir] != s {
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	err := s.close()
	p.mu.Lock()
	if s.users == 0 {
		delete(p.stores, dir)
	}
	p.mu.Unlock()
	return err
}

func (s *shared) open(ctx context.Context, dir string, fc FactoryContext, with Sharing) error {
	store, err := index.Open(ctx, dir, with.Store)
	if err != nil {
		return err
	}
	var opts *Options
	if with.Options != nil {
		opts = with.Options(fc)
	}
	engine, err := New(store, with.Embedder, opts, with.Log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s.store, s.engine = store, engine
	return nil
}

func (s *shared) close() error {
	if s.engine == nil {
		return nil
	}
	err := errors.Join(s.engine.Close(), s.store.Close())
	s.store, s.engine = nil, nil
	return err
}

// tenant is one engine of a shared factory.
type tenant struct {
	pool  *pool
	dir   string
	given FactoryContext

	life     sync.RWMutex // read-held during every call; Dispose takes it
	disposed bool

	mu     sync.Mutex
	engine *Engine // once it has entered
}

var _ ContextEngine = (*tenant)(nil)

// use runs a call on the shared engine.
func use[T any](ctx context.Context, t *tenant, call func(*Engine) (T, error)) (result T, err error) {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.disposed {
		return result, ErrDisposed
	}
	e, err := t.enter(ctx)
	if err != nil {
		return result, err
	}
	return call(e)
}

func (t *tenant) enter(ctx context.Context) (*Engine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.engine == nil {
		e, err := t.pool.enter(ctx, t.dir, t.given)
		if err != nil {
			return nil, err
		}
		t.engine = e
	}
	return t.engine, nil
}

// Info implements ContextEngine. It opens nothing.
func (t *tenant) Info() Info { return info() }

// Bootstrap implements ContextEngine.
func (t *tenant) Bootstrap(ctx context.Context, p BootstrapParams) (BootstrapResult, error) {
	return use(ctx, t, func(e *Engine) (BootstrapResult, error) { return e.Bootstrap(ctx, p) })
}

// Maintain implements ContextEngine.
func (t *tenant) Maintain(ctx context.Context, p MaintainParams) (MaintainResult, error) {
	return use(ctx, t, func(e *Engine) (MaintainResult, error) { return e.Maintain(ctx, p) })
}

// Ingest implements ContextEngine.
func (t *tenant) Ingest(ctx context.Context, p IngestParams) (IngestResult, error) {
	return use(ctx, t, func(e *Engine) (IngestResult, error) { return e.Ingest(ctx, p) })
}

// IngestBatch implements ContextEngine.
func (t *tenant) IngestBatch(ctx context.Context, p IngestBatchParams) (IngestBatchResult, error) {
	return use(ctx, t, func(e *Engine) (IngestBatchResult, error) { return e.IngestBatch(ctx, p) })
}

// CommitTurn implements ContextEngine.
func (t *tenant) CommitTurn(ctx context.Context, p CommitTurnParams) (CommitTurnResult, error) {
	return use(ctx, t, func(e *Engine) (CommitTurnResult, error) { return e.CommitTurn(ctx, p) })
}

// AfterTurn implements ContextEngine.
func (t *tenant) AfterTurn(ctx context.Context, p AfterTurnParams) error {
	_, err := use(ctx, t, func(e *Engine) (struct{}, error) { return struct{}{}, e.AfterTurn(ctx, p) })
	return err
}

// Assemble implements ContextEngine.
func (t *tenant) Assemble(ctx context.Context, p AssembleParams) (AssembleResult, error) {
	return use(ctx, t, func(e *Engine) (AssembleResult, error) { return e.Assemble(ctx, p) })
}

// Compact implements ContextEngine.
func (t *tenant) Compact(ctx context.Context, p CompactParams) (CompactResult, error) {
	return use(ctx, t, func(e *Engine) (CompactResult, error) { return e.Compact(ctx, p) })
}

// PrepareSubagentSpawn implements ContextEngine.
func (t *tenant) PrepareSubagentSpawn(ctx context.Context, p SpawnParams) (*Spawn, error) {
	return use(ctx, t, func(e *Engine) (*Spawn, error) { return e.PrepareSubagentSpawn(ctx, p) })
}

// OnSubagentEnded implements ContextEngine.
func (t *tenant) OnSubagentEnded(ctx context.Context, p SubagentEndedParams) error {
	_, err := use(ctx, t, func(e *Engine) (struct{}, error) { return struct{}{}, e.OnSubagentEnded(ctx, p) })
	return err
}

// Dispose implements ContextEngine. It waits for calls that run; doing it again does nothing.
func (t *tenant) Dispose(context.Context) error {
	t.life.Lock()
	defer t.life.Unlock()
	if t.disposed {
		return nil
	}
	t.disposed = true
	if t.engine == nil {
		return nil
	}
	t.engine = nil
	if err := t.pool.leave(t.dir); err != nil {
		return fmt.Errorf("close the store in %s: %w", t.dir, err)
	}
	return nil
}
