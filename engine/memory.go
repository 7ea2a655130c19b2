package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hark/embed"
	"hark/index"
	"hark/memorybridge"
	"hark/recall"
)

// MemoryOptions are the tunables of a Memory; nil and zero fields mean the defaults.
type MemoryOptions struct {
	Home   string          // what "~/" of an extra path means
	Watch  bool            // follow changes of files; otherwise they are looked at when something is asked
	Whole  bool            // a search waits for all vectors to be in memory, a sync for those of a server
	Recall *recall.Options // of the search
	// Patience is how long a search waits for files to be read first; default 3 s. What is not read by
	// then is told of as stale.
	Patience time.Duration
}

// Memory answers the memory tools of one agent: it searches the memory files of a workspace and the
// messages of an engine in one ranking, under the engine's scopes. It is safe for concurrent use.
type Memory struct {
	engine *Engine
	emb    embed.Embedder
	dir    string
	opts   MemoryOptions
	log    *slog.Logger

	opening sync.Mutex // held while a notebook is opened

	mu     sync.Mutex
	closed bool
	last   Corpora              // named last; read from the store at first
	known  bool                 // last was read
	open   map[string]*notebook // by folder of the workspace
	used   []string             // keys of open, least recently used first
}

// maxNotebooks bounds the workspaces that are open at a time; an agent has one.
const maxNotebooks = 8

// NewMemory returns the memory of an engine. The indexes of workspaces are kept in dir, each in a
// folder of its own; they can be made again from the files at any time.
func NewMemory(e *Engine, dir string, opts *MemoryOptions) *Memory {
	m := &Memory{engine: e, emb: e.emb, dir: dir, log: e.log, open: map[string]*notebook{}}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.Patience <= 0 {
		m.opts.Patience = 3 * time.Second
	}
	return m
}

// Close ends watching and reading and closes the indexes. The engine stays open.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	open := m.open
	m.open, m.used = map[string]*notebook{}, nil
	m.mu.Unlock()
	keys := make([]string, 0, len(open))
	for key := range open {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var errs []error
	for _, key := range keys {
		errs = append(errs, open[key].close())
	}
	return errors.Join(errs...)
}

// RequestError is a request that cannot be answered as it is: the caller's mistake.
type RequestError struct{ Reason string }

func (e *RequestError) Error() string { return e.Reason }

func badRequest(format string, args ...any) error { return &RequestError{fmt.Sprintf(format, args...)} }

// corpora completes what a call says about where files are, and remembers it for calls that do not.
func (m *Memory) corpora(ctx context.Context, c Corpora) (Corpora, error) {
	m.mu.Lock()
	last, known := m.last, m.known
	m.mu.Unlock()
	if !known {
		value, err := m.engine.store.State(ctx, "memory", "workspace")
		if err != nil {
			return c, err
		}
		if len(value) > 0 && json.Unmarshal(value, &last) != nil {
			last = Corpora{}
		}
	}
	if c.Workspace != "" {
		if !filepath.IsAbs(c.Workspace) {
			return c, badRequest("the workspace %q is not an absolute path", c.Workspace)
		}
		c.Workspace = filepath.Clean(c.Workspace)
	} else {
		c.Workspace = last.Workspace
	}
	if c.Extra == nil && c.Workspace == last.Workspace {
		c.Extra = last.Extra
	}
	m.mu.Lock()
	m.known = true
	changed := c.Workspace != last.Workspace || !slices.Equal(c.Extra, last.Extra)
	if changed || !known {
		m.last = c
	}
	m.mu.Unlock()
	if changed && c.Workspace != "" {
		value, err := json.Marshal(c)
		if err != nil {
			return c, err
		}
		m.engine.states.set("memory", "workspace", value)
	}
	return c, nil
}

// notebook returns the index of a workspace, nil where none was ever named.
func (m *Memory) notebook(ctx context.Context, c Corpora) (*notebook, error) {
	c, err := m.corpora(ctx, c)
	if err != nil || c.Workspace == "" {
		return nil, err
	}
	m.opening.Lock()
	defer m.opening.Unlock()
	m.mu.Lock()
	nb, closed := m.open[c.Workspace], m.closed
	m.mu.Unlock()
	ws := memorybridge.Workspace{Dir: c.Workspace, Extra: c.Extra, Home: m.opts.Home}
	switch {
	case closed:
		return nil, index.ErrClosed
	case nb == nil:
		sum := sha256.Sum256([]byte(c.Workspace))
		dir := filepath.Join(m.dir, hex.EncodeToString(sum[:8]))
		if nb, err = openNotebook(ctx, dir, ws, m.emb, m.opts.Recall, m.engine.opts.KeepSecrets, m.log); err != nil {
			return nil, fmt.Errorf("open the index of memory files: %w", err)
		}
		if m.opts.Watch {
			nb.follow(ws)
		}
	case !slices.Equal(nb.workspace().Extra, c.Extra):
		nb.move(ws)
	}
	return nb, m.keep(c.Workspace, nb)
}

// keep notes that a notebook is in use, and closes the one that was not for longest.
func (m *Memory) keep(key string, nb *notebook) error {
	var old *notebook
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errors.Join(index.ErrClosed, nb.close())
	}
	m.open[key] = nb
	m.used = append(slices.DeleteFunc(m.used, func(k string) bool { return k == key }), key)
	if len(m.used) > maxNotebooks {
		old = m.open[m.used[0]]
		delete(m.open, m.used[0])
		m.used = m.used[1:]
	}
	m.mu.Unlock()
	if old != nil {
		return old.close()
	}
	return nil
}

// Sync implements the tools' sync: it reads what has changed and waits for it as long as ctx allows.
func (m *Memory) Sync(ctx context.Context, p MemorySyncParams) (MemorySynced, error) {
	nb, err := m.notebook(ctx, p.Corpora)
	if err != nil {
		return MemorySynced{}, err
	}
	if nb == nil {
		return MemorySynced{}, badRequest("name the workspace whose memory files are meant")
	}
	s := nb.start(p.Reason, p.Force)
	if _, err := s.wait(ctx, 0); err != nil {
		return MemorySynced{}, err
	}
	if m.opts.Whole && nb.worker != nil {
		if err := nb.worker.drain(ctx, nil); err != nil {
			s.out.Problems = append(s.out.Problems, "vectors follow later: "+err.Error())
		}
	}
	return s.out, nil
}

// Status describes what is searched. It reads no files.
func (m *Memory) Status(ctx context.Context, c Corpora) (MemoryStatus, error) {
	out := MemoryStatus{
		Backend: "builtin", Provider: "none", Sources: []string{SourceMemory, SourceSessions},
		FTS: FTSStatus{Enabled: true, Available: true},
	}
	st, err := m.engine.store.Status(ctx)
	if err != nil {
		return out, err
	}
	out.Messages = st.Recallable
	out.Provider, out.Model = m.provider()
	if m.emb != nil {
		out.Vector = VectorStatus{Enabled: true, Available: true, Dims: m.emb.Model().Dim}
		out.Vector.add(st)
	}
	var warnings []string
	nb, err := m.notebook(ctx, c)
	switch {
	case errors.Is(err, index.ErrLocked):
		warnings = append(warnings, "the index of memory files is in use by another hark")
	case err != nil:
		return out, err
	}
	custom := map[string]any{"version": Version, "policy": string(m.engine.opts.Policy), "scoreModel": recall.LikelyVersion}
	if nb != nil {
		st, err := nb.store.Status(ctx)
		if err != nil {
			return out, err
		}
		if m.emb != nil {
			out.Vector.add(st)
		}
		ws := nb.workspace()
		out.WorkspaceDir = ws.Dir
		for _, e := range ws.Extra {
			out.ExtraPaths = append(out.ExtraPaths, e.Path)
		}
		nb.mu.Lock()
		out.Files, out.Chunks = len(nb.files), len(nb.chunks)
		out.Dirty = nb.dirty || nb.running != nil
		custom["watching"] = nb.watch != nil
		if !nb.synced.IsZero() {
			custom["synced"] = nb.synced.UTC().Format(time.RFC3339)
		}
		if len(nb.problems) > 0 {
			custom["problems"] = slices.Clone(nb.problems)
			warnings = append(warnings, "not read: "+shortList(nb.problems, 3))
		}
		nb.mu.Unlock()
	}
	out.SourceCounts = []SourceCount{{SourceMemory, out.Files, out.Chunks}, {SourceSessions, st.Sessions, st.Recallable}}
	out.Custom = map[string]any{"hark": custom}
	out.Warning = strings.Join(warnings, "; ")
	return out, nil
}

// add counts what has no vector yet, and tells the dimension of a model that has not told it itself.
func (v *VectorStatus) add(st index.Status) {
	for _, sp := range st.Spaces {
		if sp.InUse {
			v.Pending += sp.Pending
			if v.Dims == 0 {
				v.Dims = sp.Space.Dim
			}
		}
	}
}

func (m *Memory) provider() (provider, model string) {
	if m.emb == nil {
		return "none", ""
	}
	is := m.emb.Model()
	return is.Provider, is.Name
}

// shortList joins the first n of a list.
func shortList(list []string, n int) string {
	out := strings.Join(list[:min(n, len(list))], ", ")
	if more := len(list) - n; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// follow begins to watch the files.
func (nb *notebook) follow(ws memorybridge.Workspace) {
	watch := memorybridge.Watch(ws,
		func() { nb.mu.Lock(); nb.dirty = true; nb.mu.Unlock() },
		func() { nb.start("changed", false) }, nb.log)
	nb.mu.Lock()
	nb.watch = watch
	nb.mu.Unlock()
}

// move changes the extra places.
func (nb *notebook) move(ws memorybridge.Workspace) {
	nb.mu.Lock()
	nb.ws, nb.dirty = ws, true
	watched := nb.watch
	nb.mu.Unlock()
	if watched != nil {
		watched.Close()
		nb.follow(ws)
	}
}

func (nb *notebook) workspace() memorybridge.Workspace {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	return nb.ws
}

// fewFiles is the number of files up to which a search looks at all of them: a few milliseconds.
const fewFiles = 500

// fresh brings the index up to date before a search where that is due, and says in words what is not.
func (nb *notebook) fresh(ctx context.Context, patience time.Duration) (stale string, err error) {
	nb.mu.Lock()
	due := nb.dirty || nb.synced.IsZero() || nb.watch == nil || nb.running != nil || len(nb.files) <= fewFiles
	never := nb.synced.IsZero()
	nb.mu.Unlock()
	if !due {
		return "", nil
	}
	done, err := nb.start("search", false).wait(ctx, patience)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch {
	case err != nil: // what was read before is searched
		stale = "memory files could not be read: " + err.Error()
	case done:
	case never:
		stale = "memory files are still being read for the first time: not all of them were searched"
	default:
		stale = "changed memory files are still being read"
	}
	return stale, nil
}
