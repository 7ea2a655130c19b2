package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"hark/engine"
)

// Agent is one agent's memory as a daemon serves it. Engine, State, SetState and Close are required.
type Agent struct {
	Engine engine.ContextEngine // with HostCompacted as its Runtime
	Memory Memory               // answers the memory tools; nil where there are none

	// State and SetState keep small values that survive the process, beside the agent's rows and
	// no less durable than they are. A key that was never set reads as nil.
	State    func(ctx context.Context, key string) ([]byte, error)
	SetState func(ctx context.Context, key string, value []byte) error

	// Methods are what can be asked beside the lifecycle, by name: "search", "check", "status".
	// They take the body of the call and return what is encoded as the answer.
	Methods map[string]Method
	// Close ends the engine's background work and closes the store.
	Close func() error
}

// Method is one operation beside the lifecycle.
type Method func(ctx context.Context, body json.RawMessage) (any, error)

// OpenFunc opens the memory of an agent. Where create is false and nothing is stored for the agent,
// it makes nothing and returns an Error with CodeNotFound. The ctx outlives the call that caused it.
type OpenFunc func(ctx context.Context, agent string, create bool) (*Agent, error)

// rollbacker is an engine that can undo a spawn by the child's key alone, after a restart too.
type rollbacker interface {
	RollbackSpawn(ctx context.Context, childSessionKey string) error
}

// HostCompacted is the Runtime of an engine in a daemon. The host compacts in its own process and
// only says so, so that it has happened when the engine asks for it.
type HostCompacted struct{}

// Compact implements engine.Runtime.
func (HostCompacted) Compact(context.Context, engine.CompactParams) (engine.CompactResult, error) {
	return engine.CompactResult{OK: true, Compacted: true}, nil
}

// maxAgentName bounds an agent's id, in bytes; hosts use a few letters.
const maxAgentName = 128

// agentName is an agent's id as it is known here: hosts write them in small letters, so one that is
// not is the same agent. Ids that no host uses and that could only be meant as something else are
// refused. Which folder an id becomes is decided by OpenFunc.
func agentName(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	bad := name == "" || name == "." || name == ".." || len(name) > maxAgentName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' })
	if bad {
		return "", &Error{Code: CodeBadRequest, Message: fmt.Sprintf("%q is no agent id", clip(name, 40))}
	}
	return name, nil
}

// agents opens each agent on first use, once, and keeps it until the end.
type agents struct {
	open OpenFunc
	log  *slog.Logger
	ctx  context.Context // of opening: the daemon's, not a request's

	mu     sync.Mutex
	closed bool
	by     map[string]*opening
}

// opening is an agent that is open or being opened. The fields are set when done is closed.
type opening struct {
	done  chan struct{}
	agent *Agent
	err   error
}

func newAgents(ctx context.Context, open OpenFunc, log *slog.Logger) *agents {
	return &agents{open: open, log: log, ctx: ctx, by: map[string]*opening{}}
}

// get returns the agent of a name from agentName, opening it where needed. Callers that come while it is being opened wait
// for the same opening, each no longer than its ctx. What failed is tried again by the next call.
func (as *agents) get(ctx context.Context, name string, create bool) (*Agent, error) {
	for {
		o, mine, err := as.claim(name)
		if err != nil {
			return nil, err
		}
		if mine {
			go as.run(name, create, o)
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !mine && create && isNotFound(o.err) {
			continue // the other caller only wanted to look
		}
		return o.agent, o.err
	}
}

func (as *agents) claim(name string) (o *opening, mine bool, err error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.closed {
		return nil, false, errShuttingDown
	}
	if o := as.by[name]; o != nil {
		return o, false, nil
	}
	o = &opening{done: make(chan struct{})}
	as.by[name] = o
	return o, true, nil
}

func (as *agents) run(name string, create bool, o *opening) {
	defer close(o.done)
	defer func() {
		if p := recover(); p != nil {
			o.err = panicked(as.log, "open", name, p)
		}
		if o.err != nil {
			as.mu.Lock()
			delete(as.by, name)
			as.mu.Unlock()
			if !isNotFound(o.err) {
				as.log.Warn("agent not opened", "agent", name, "error", o.err)
			}
			return
		}
		as.log.Debug("agent opened", "agent", name)
	}()
	o.agent, o.err = as.open(as.ctx, name, create)
}

func isNotFound(err error) bool { return errors.Is(err, &Error{Code: CodeNotFound}) }

// names lists the open agents, sorted.
func (as *agents) names() []string {
	as.mu.Lock()
	defer as.mu.Unlock()
	out := []string{}
	for name, o := range as.by {
		select {
		case <-o.done:
			if o.err == nil {
				out = append(out, name)
			}
		default:
		}
	}
	slices.Sort(out)
	return out
}

// close closes every agent and lets none be opened again. It waits for openings that are under way
// as long as ctx allows.
func (as *agents) close(ctx context.Context) error {
	as.mu.Lock()
	as.closed = true
	names := make([]string, 0, len(as.by))
	for name := range as.by {
		names = append(names, name)
	}
	slices.Sort(names)
	open := make([]*opening, len(names))
	for i, name := range names {
		open[i] = as.by[name]
	}
	as.mu.Unlock()

	var errs []error
	for i, o := range open {
		select {
		case <-o.done:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("agent %s is still being opened", names[i]))
			continue
		}
		if o.err != nil {
			continue
		}
		if err := o.agent.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close agent %s: %w", names[i], err))
		}
	}
	return errors.Join(errs...)
}
