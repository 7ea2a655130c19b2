package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/recall"
)

// app is what every command is given: where to print, what is configured, and the wiring.
type app struct {
	console
	term term

	set   settings
	from  map[string]source
	file  string // the configuration file that was read, "" for none
	json  bool
	quiet bool

	clock   func() time.Time // of the engine; nil means time.Now
	runtime engine.Runtime   // the host's compaction; nil for none
	opened  *memory          // the store that questions are put to, once it is open
	closers []func() error   // in order of opening
	warned  *warnings
	log     *slog.Logger // of a daemon; nil: warnings are collected

	lockWait time.Duration // for a store's lock; 0: the usual time, negative: none
	serving  bool          // this is a daemon: memory files are watched
}

// configure settles the options before a command runs.
func (a *app) configure(cmd *cobra.Command) error {
	var err error
	if a.json, err = cmd.Flags().GetBool("json"); err != nil {
		return usageError{err}
	}
	if a.quiet, err = cmd.Flags().GetBool("quiet"); err != nil {
		return usageError{err}
	}
	a.set, a.from, a.file, err = resolve(cmd, a.env)
	return err
}

// close releases what the command opened, last first.
func (a *app) close() error {
	var errs []error
	for _, closer := range slices.Backward(a.closers) {
		errs = append(errs, closer())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// memory is one agent's store with everything that works on it.
type memory struct {
	dir      string
	store    *index.Store
	emb      embed.Embedder // nil for words only
	searcher *recall.Searcher
	engine   *engine.Engine
	notes    *engine.Memory
	readOnly bool
	inUse    bool // another process may be writing
}

// access is what a command wants to do with a store.
type access int

const (
	reading access = iota // the store has to exist; read-only where it cannot be locked
	writing               // the store is created where there is none
)

// errNoStore says that nothing was stored for the agent yet.
var errNoStore = errors.New("nothing is stored yet")

// folder reports a missing data folder: commands that store or read nothing do without.
func (a *app) folder() error {
	if a.set.Data == "" {
		return usage("no folder to store in: name one with --data or HARK_DATA")
	}
	return nil
}

// agentDir is the folder of the configured agent's store.
func (a *app) agentDir() string {
	return filepath.Join(a.set.Data, "agents", safeName(a.set.Agent))
}

// openAgent opens the configured agent's store.
func (a *app) openAgent(ctx context.Context, want access) (*memory, error) {
	if want == reading {
		if err := a.stored(); err != nil {
			return nil, err
		}
	}
	return a.open(ctx, a.agentDir(), want)
}

// stored returns errNoStore with what to do about it where the configured agent has no store.
func (a *app) stored() error {
	if err := a.folder(); err != nil {
		return err
	}
	if _, err := os.Stat(a.agentDir()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w for agent %q in %s\nImport a history first, for example: hark import ~/.openclaw/agents/%s",
			errNoStore, a.set.Agent, shortHome(a.env, a.set.Data), safeName(a.set.Agent))
	}
	return nil
}

// open opens the store in dir and wires embedder, searcher and engine to it. It is closed with the app.
func (a *app) open(ctx context.Context, dir string, want access) (*memory, error) {
	log := a.logger()
	emb, err := embed.New(a.set.embedder(), log)
	if err != nil {
		return nil, fmt.Errorf("embedder: %w", err)
	}
	m := &memory{dir: dir, emb: emb}
	if want == writing {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the store: %w", err)
		}
	}
	m.store, err = index.Open(ctx, dir, &index.Options{Log: log, LockWait: a.lockWait})
	if want == reading && (errors.Is(err, index.ErrLocked) || errors.Is(err, fs.ErrPermission) || isReadOnlyFS(err)) {
		a.note("the store is in use or cannot be written; reading it as it is")
		m.readOnly, m.inUse = true, errors.Is(err, index.ErrLocked)
		m.store, err = index.Open(ctx, dir, &index.Options{Log: log, ReadOnly: true})
	}
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	a.closers = append(a.closers, m.store.Close)
	a.tuneMemory()
	opts, err := a.set.engineAndSecond()
	if err != nil {
		return nil, err
	}
	opts.Clock = a.clock
	opts.Runtime = a.runtime
	m.searcher = recall.NewSearcher(m.store, emb, opts.Recall, log)
	if m.engine, err = engine.New(m.store, emb, opts, log); err != nil {
		return nil, err
	}
	a.closers = append(a.closers, m.engine.Close)
	home, _ := a.env("HOME")
	m.notes = engine.NewMemory(m.engine, filepath.Join(dir, "memory"), &engine.MemoryOptions{Home: home, Watch: a.serving, Whole: !a.serving, Recall: opts.Recall})
	a.closers = append(a.closers, m.notes.Close)
	return m, nil
}

// isReadOnlyFS reports a file system that is mounted for reading only.
func isReadOnlyFS(err error) bool { return errors.Is(err, syscall.EROFS) }

// logger collects warnings, which are told when the command has ended; with HARK_DEBUG it writes
// everything to standard error as it comes.
func (a *app) logger() *slog.Logger {
	if a.log != nil {
		return a.log
	}
	if v, _ := a.env("HARK_DEBUG"); v != "" {
		return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if a.warned == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(a.warned)
}

// printf prints a result.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// note tells something beside the result, on standard error.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		_, _ = fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// printJSON prints a result as JSON, for programs.
func (a *app) printJSON(v any) error { return writeJSON(a.out, v) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

var (
	plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}[a-z0-9]$|^[a-z0-9]$`)
	oddRunes  = regexp.MustCompile(`[^a-z0-9_-]+`)
	reserved  = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`) // on Windows
)

// safeName makes a file name of an agent id. Plain ids stay as they are; others keep what can be
// read of them and get a hash, so that two ids never share a folder on any file system.
func safeName(id string) string {
	if plainName.MatchString(id) && !reserved.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	slug := strings.Trim(oddRunes.ReplaceAllString(strings.ToLower(id), "-"), "-")
	if len(slug) > 40 {
		slug = slug[:40]
	}
	return strings.TrimLeft(slug+"-", "-") + "x" + hex.EncodeToString(sum[:5])
}

// shortKey leaves out of a session key what every key of the agent begins with.
func shortKey(agent, key string) string {
	return strings.TrimPrefix(key, "agent:"+agent+":")
}

// when shows a time in the user's zone.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "no date"
	}
	return t.In(a.set.location()).Format("2006-01-02 15:04")
}

// millis is a duration as JSON shows it.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// count is a number of things in words.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// took shows a duration with three digits at most.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", millis(d))
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", millis(d))
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// bytesOf shows a size.
func bytesOf(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefixes := float64(n), "KMGT"
	i := -1
	for value >= unit && i < len(prefixes)-1 {
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", value, prefixes[i])
}
