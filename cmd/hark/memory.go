package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/history"
	"hark/engine/wire"
	"hark/memorybridge"
)

// memoryFlags are the flags that the commands of hark memory share.
type memoryFlags struct {
	workspace string
	extra     []string
	session   string
}

func newMemory(a *app) *cobra.Command {
	var f memoryFlags
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Search a workspace's memory files beside the messages",
		Long: `Searches what an agent remembers: the memory files of its workspace (MEMORY.md,
USER.md and every Markdown file under memory/) and the stored messages, as one
ranking. This is what the agent's own tools memory_search and memory_get answer
where Hark is OpenClaw's memory plugin; --json prints their results.

  hark memory search "when does the lease end" --workspace ~/.openclaw/workspace
  hark memory get MEMORY.md --from 10 --lines 5
  hark memory status
  hark memory sync

The files are indexed in the data folder and read again when they change. Without
--workspace the one that was named last is meant, else ~/.openclaw/workspace.
docs/memory.md tells the rest.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fl := cmd.PersistentFlags()
	fl.StringVar(&f.workspace, "workspace", "", "folder whose memory files are meant")
	fl.StringArrayVar(&f.extra, "extra", nil, "another file or folder of Markdown files; may be given several times")
	fl.StringVar(&f.session, "session", "", "ask as this session, which may see less; default: as the agent's owner")
	cmd.AddCommand(newMemorySearch(a, &f), newMemoryGet(a, &f), newMemoryStatus(a, &f), newMemorySync(a, &f))
	return cmd
}

func newMemorySearch(a *app, f *memoryFlags) *cobra.Command {
	var p engine.MemorySearchParams
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find notes and messages by words and meaning",
		Long: `Finds the places in memory files, and the messages, that answer a question best.
Scores go from 0 to 1 and mean the same for every question: from about 0.6 a hit
is probably right, below 0.3 probably not.`,
		Example: "  hark memory search \"blood type\" --workspace ~/.openclaw/workspace\n" +
			"  hark memory search --corpus memory -k 3 --min-score 0.35 boiler pressure\n" +
			"  hark memory search --session telegram:group:-100123 --json \"who has the key\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Query = strings.TrimSpace(strings.Join(args, " "))
			switch {
			case p.Query == "":
				return usage("say what to search for")
			case p.MaxResults < 1 || p.MaxResults > 100:
				return usage("-k has to be between 1 and 100, not %d", p.MaxResults)
			case p.MinScore < 0 || p.MinScore > 1:
				return usage("--min-score has to be between 0 and 1, not %g", p.MinScore)
			}
			return a.memorySearch(cmd.Context(), f, p)
		},
	}
	fl := cmd.Flags()
	fl.IntVarP(&p.MaxResults, "limit", "k", 8, "hits to show")
	fl.Float64Var(&p.MinScore, "min-score", 0, "leave out hits below this score")
	fl.StringVar(&p.Corpus, "corpus", "all", "where to look: memory (files), sessions (messages) or all")
	fl.BoolVar(&p.LexicalOnly, "words", false, "search by words only: no embedder is asked")
	fl.StringVar(&p.Citations, "citations", "auto", "citations in the results: auto, on or off")
	_ = cmd.RegisterFlagCompletionFunc("corpus", cobra.FixedCompletions([]string{"all", "memory", "sessions"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("citations", cobra.FixedCompletions([]string{"auto", "on", "off"}, cobra.ShellCompDirectiveNoFileComp))      // likewise
	return cmd
}

func newMemoryGet(a *app, f *memoryFlags) *cobra.Command {
	var p engine.MemoryGetParams
	cmd := &cobra.Command{
		Use:     "get PATH",
		Short:   "Read lines of a memory file, or a message",
		Long:    "Reads lines of a memory file, or of a message by the path that search shows.",
		Example: "  hark memory get MEMORY.md\n  hark memory get memory/2026-03-07.md --from 3 --lines 10\n  hark memory get sessions/main/kg7m2gkq4e.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("name one path, as hark memory search shows it")
			}
			if p.From < 0 || p.Lines < 0 {
				return usage("--from and --lines count from 1")
			}
			p.Path = args[0]
			return a.memoryGet(cmd.Context(), f, p)
		},
	}
	cmd.Flags().IntVar(&p.From, "from", 0, "first line (default 1)")
	cmd.Flags().IntVar(&p.Lines, "lines", 0, "how many lines (default 120)")
	return cmd
}

func newMemoryStatus(a *app, f *memoryFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Tell what is indexed of a workspace",
		Example: "  hark memory status --workspace ~/.openclaw/workspace",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.memoryStatus(cmd.Context(), f)
		},
	}
}

func newMemorySync(a *app, f *memoryFlags) *cobra.Command {
	var p engine.MemorySyncParams
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Read the memory files that have changed",
		Long: `Reads the memory files that have changed, and forgets those that are gone. There
is no need for it: searching does the same. With --force the index is made anew.`,
		Example: "  hark memory sync --workspace ~/.openclaw/workspace\n  hark memory sync --force",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.memorySync(cmd.Context(), f, p)
		},
	}
	cmd.Flags().BoolVar(&p.Force, "force", false, "make the index anew")
	return cmd
}

// remembering is a method of the memory tools: its name on the wire, and who answers it where no
// daemon runs.
type remembering[P, R any] struct {
	name   string
	method func(*engine.Memory, context.Context, P) (R, error)
}

// ask puts a question to the daemon where one serves the data folder, and to the store otherwise.
func (r remembering[P, R]) ask(ctx context.Context, a *app, p P) (R, error) {
	return asked(ctx, a, r.name, p, writing, func(m *memory) (R, error) { return r.method(m.notes, ctx, p) })
}

// corpora says where the files are.
func (a *app) corpora(f *memoryFlags) (engine.Corpora, error) {
	c := engine.Corpora{}
	for _, path := range f.extra {
		if !strings.HasPrefix(path, "~") {
			abs, err := filepath.Abs(path)
			if err != nil {
				return c, fmt.Errorf("find %s: %w", path, err)
			}
			path = abs
		}
		c.Extra = append(c.Extra, memorybridge.Extra{Path: path})
	}
	dir := f.workspace
	if dir == "" {
		return c, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return c, fmt.Errorf("find %s: %w", dir, err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, usage("there is no folder %s", dir)
	case err != nil:
		return c, fmt.Errorf("look at the workspace: %w", err)
	case !info.IsDir():
		return c, usage("%s is a file: name the folder that holds MEMORY.md and memory/", dir)
	}
	c.Workspace = abs
	return c, nil
}

// synced brings the index up to date. Where no workspace was ever named, the host's own is.
func (a *app) synced(ctx context.Context, f *memoryFlags, p engine.MemorySyncParams) (engine.Corpora, engine.MemorySynced, error) {
	c, err := a.corpora(f)
	if err != nil {
		return c, engine.MemorySynced{}, err
	}
	if c.Workspace == "" {
		st, err := remembering[engine.Corpora, engine.MemoryStatus]{"memoryStatus", (*engine.Memory).Status}.ask(ctx, a, c)
		if err != nil {
			return c, engine.MemorySynced{}, err
		}
		if c.Workspace = st.WorkspaceDir; c.Workspace == "" {
			home, _ := a.env("HOME")
			c.Workspace = filepath.Join(home, ".openclaw", "workspace")
			if info, err := os.Stat(c.Workspace); home == "" || err != nil || !info.IsDir() {
				return engine.Corpora{}, engine.MemorySynced{}, errNoWorkspace
			}
		}
	}
	p.Corpora = c
	out, err := remembering[engine.MemorySyncParams, engine.MemorySynced]{"memorySync", (*engine.Memory).Sync}.ask(ctx, a, p)
	return c, out, err
}

// errNoWorkspace says that nothing tells where the files are.
var errNoWorkspace = usageError{errors.New("no workspace is known yet: name the folder that holds MEMORY.md and memory/ with --workspace")}

// requester is who a command asks as.
func (a *app) requester(f *memoryFlags) engine.Requester {
	if f.session != "" {
		return engine.Requester{SessionKey: history.KeyFor(a.set.Agent, f.session)}
	}
	owner := true
	return engine.Requester{SessionKey: "agent:" + a.set.Agent + ":main", SenderIsOwner: &owner}
}

func (a *app) memorySearch(ctx context.Context, f *memoryFlags, p engine.MemorySearchParams) error {
	var err error
	if p.Corpus != engine.SourceSessions {
		p.Corpora, _, err = a.synced(ctx, f, engine.MemorySyncParams{Reason: "search"})
		if err != nil && (p.Corpus == engine.SourceMemory || !errors.Is(err, errNoWorkspace)) {
			return err
		}
	}
	p.Requester = a.requester(f)
	out, err := remembering[engine.MemorySearchParams, engine.MemoryResults]{"memorySearch", (*engine.Memory).Search}.ask(ctx, a, p)
	if err != nil {
		return asUsage(err)
	}
	if a.json {
		return a.printJSON(out)
	}
	for i, h := range out.Results {
		a.printMemoryHit(i+1, h)
	}
	if len(out.Results) == 0 {
		a.printf("nothing found\n")
	}
	if out.Warning != "" {
		a.note("%s %s", a.term.yellow("warning:"), clean(out.Warning))
	}
	return nil
}

// asUsage makes a mistake of the caller one of the command line.
func asUsage(err error) error {
	if _, wrong := errors.AsType[*engine.RequestError](err); wrong {
		return usageError{err}
	}
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.CodeBadRequest {
		return usageError{err}
	}
	return err
}

// printMemoryHit shows one hit: where, from when, how it scored, and its text.
func (a *app) printMemoryHit(rank int, h engine.MemoryHit) {
	head := fmt.Sprintf("%2d. ", rank)
	var more []string
	if h.Source == engine.SourceSessions {
		who := h.Speaker
		if who == "" {
			who = h.Role
		}
		more = append(more, who)
	} else if h.Title != "" {
		more = append(more, h.Title)
	}
	if h.Date != "" {
		date := h.Date
		if at, err := time.Parse(time.RFC3339, h.Date); err == nil {
			date = a.when(at)
		}
		more = append(more, date)
	}
	more = append(more, fmt.Sprintf("score %.2f", h.Score))
	place := clean(memorybridge.Citation(h.Path, h.StartLine, h.EndLine))
	a.printf("%s%s  %s\n", head, a.term.bold(place), a.term.dim(clean(strings.Join(more, " · "))))
	indent := strings.Repeat(" ", len(head))
	const most = 8
	lines := wrapLines(h.Snippet, a.term.room(len(indent)))
	for i, line := range lines {
		if i == most && len(lines) > most+1 {
			a.printf("%s…\n", indent)
			break
		}
		a.printf("%s%s\n", indent, line)
	}
	a.printf("\n")
}

// wrapLines wraps each line of a text; blank ones are left out.
func wrapLines(text string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = clean(strings.TrimSpace(line)); line != "" {
			out = append(out, wrap(line, width)...)
		}
	}
	return out
}

func (a *app) memoryGet(ctx context.Context, f *memoryFlags, p engine.MemoryGetParams) error {
	c, err := a.corpora(f)
	if err != nil {
		return err
	}
	p.Corpora, p.Requester = c, a.requester(f)
	out, err := remembering[engine.MemoryGetParams, engine.MemoryText]{"memoryGet", (*engine.Memory).Get}.ask(ctx, a, p)
	if err != nil {
		return asUsage(err)
	}
	if a.json {
		return a.printJSON(out)
	}
	if out.Status == engine.MemoryNotFound {
		return fmt.Errorf("there is no %s\nhark memory search shows the paths", clean(out.Path))
	}
	for line := range strings.SplitSeq(out.Text, "\n") {
		a.printf("%s\n", clean(line))
	}
	if out.NextFrom > 0 {
		a.note("%s", a.term.dim(fmt.Sprintf("lines %d to %d of %d; --from %d goes on", out.From, out.From+out.Lines-1, out.Total, out.NextFrom)))
	}
	return nil
}

func (a *app) memoryStatus(ctx context.Context, f *memoryFlags) error {
	c, err := a.corpora(f)
	if err != nil {
		return err
	}
	out, err := remembering[engine.Corpora, engine.MemoryStatus]{"memoryStatus", (*engine.Memory).Status}.ask(ctx, a, c)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	where := "none was named yet"
	if out.WorkspaceDir != "" {
		where = shortHome(a.env, out.WorkspaceDir)
	}
	a.printf("workspace  %s\n", clean(where))
	for _, e := range out.ExtraPaths {
		a.printf("extra      %s\n", clean(e))
	}
	state := ""
	if out.Dirty {
		state = "; not looked at since it was opened: hark memory sync does"
	}
	a.printf("files      %s in %s%s\n", count(out.Files, "file"), count(out.Chunks, "part"), state)
	a.printf("messages   %d\n", out.Messages)
	if out.Vector.Enabled {
		a.printf("meaning    %s/%s, %d dimensions", out.Provider, out.Model, out.Vector.Dims)
		if out.Vector.Pending > 0 {
			a.printf("; %d without a vector yet", out.Vector.Pending)
		}
		a.printf("\n")
	} else {
		a.printf("meaning    off: words only\n")
	}
	if out.Warning != "" {
		a.note("%s %s", a.term.yellow("warning:"), clean(out.Warning))
	}
	return nil
}

func (a *app) memorySync(ctx context.Context, f *memoryFlags, p engine.MemorySyncParams) error {
	p.Reason = "cli"
	_, out, err := a.synced(ctx, f, p)
	if err != nil {
		return asUsage(err)
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printf("%s in %s (%d added, %d changed, %d removed) in %s\n", count(out.Files, "file"), count(out.Chunks, "part"),
		out.Added, out.Changed, out.Removed, took(time.Duration(out.Ms)*time.Millisecond))
	for _, p := range out.Problems {
		a.note("%s %s", a.term.yellow("warning:"), clean(p))
	}
	return nil
}
