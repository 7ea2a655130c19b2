package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/history"
)

// importPage is how many messages go into one transaction: enough that its cost does not count,
// few enough that an interrupted import loses no more than a moment's work.
const importPage = 500

// importFlags are the flags of hark import.
type importFlags struct {
	format    string
	session   string
	keepGoing bool
	dryRun    bool
	progress  string
}

// importedFile is the outcome for one file.
type importedFile struct {
	Path      string   `json:"path"`
	Format    string   `json:"format,omitempty"`
	Sessions  int      `json:"sessions"`
	Messages  int      `json:"messages"`
	New       int      `json:"new"`
	Duplicate int      `json:"duplicate"`
	Skipped   int      `json:"skipped"`
	BadLines  []string `json:"bad_lines,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// imported is the outcome of one import.
type imported struct {
	Messages  int            `json:"messages"`
	New       int            `json:"new"`
	Duplicate int            `json:"duplicate"`
	Skipped   int            `json:"skipped"`
	Files     []importedFile `json:"files"`
	TookMS    float64        `json:"took_ms"`
	DryRun    bool           `json:"dry_run,omitempty"`

	Notes []importedNotes `json:"memory,omitempty"`
}

func newImport(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [--format auto|openclaw|chat] FILE|DIR…",
		Short: "Take in past conversations",
		Long: `Takes in past conversations: OpenClaw transcripts, what "hark export" wrote, or a
simple chat format with one JSON object a line:

  {"session":"kitchen","role":"user","sender":"Ann","timestamp":"2026-03-01T18:00:00Z","content":"…"}

In a folder every *.jsonl and *.jsonl.gz is read, and the transcripts OpenClaw
archives when a session is reset. "-" reads standard input. Importing the same
history again adds nothing, so an import that was interrupted is simply repeated.

A folder with MEMORY.md, USER.md or notes under memory/ is an agent's workspace: its
memory files are indexed where they are, see "hark memory". OpenClaw's state folder
is both, the agent's transcripts and its workspace.

A line that cannot be used is named by file and line. With --keep-going it is left
out; without, nothing of its file is imported.`,
		Example: "  hark import ~/.openclaw/agents/main\n  hark import --dry-run ~/.openclaw\n  hark import ~/.openclaw/workspace\n  hark import --session agent:main:main old-chat.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name a file or folder to import")
			}
			if err := f.check(); err != nil {
				return err
			}
			return a.importAll(cmd.Context(), args, f)
		},
	}
	cmd.Flags().StringVar(&f.format, "format", "auto", "format of the files: auto, openclaw or chat")
	cmd.Flags().StringVar(&f.session, "session", "", "store every message under this session key, whatever the files say")
	cmd.Flags().BoolVar(&f.keepGoing, "keep-going", false, "leave bad lines out instead of rejecting their file")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "read and report, but store nothing")
	cmd.Flags().StringVar(&f.progress, "progress", "auto", "auto (a bar, on a terminal), plain (a line for every stored page) or none")
	_ = cmd.RegisterFlagCompletionFunc("progress", cobra.FixedCompletions([]string{"auto", "plain", "none"}, cobra.ShellCompDirectiveNoFileComp))  // likewise
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"auto", "openclaw", "chat"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	a.sessionFlag(cmd)
	return cmd
}

func (f importFlags) check() error {
	switch f.progress {
	case "auto", "plain", "none":
	default:
		return usage("unknown --progress %q: use auto, plain or none", f.progress)
	}
	switch history.Format(f.format) {
	case history.Auto, history.OpenClaw, history.Chat:
		return nil
	}
	return usage("unknown format %q: use auto, openclaw or chat", f.format)
}

// importAll imports the files that paths mean, one after another.
func (a *app) importAll(ctx context.Context, paths []string, f importFlags) error {
	start := time.Now()
	paths, workspaces := a.split(paths)
	var files []string
	var err error
	if len(paths) > 0 {
		files, err = a.sources(paths)
	}
	if err != nil && len(workspaces) > 0 && errors.Is(err, errNoHistory) {
		a.note("%v", err)
	} else if err != nil {
		return err
	}
	var into engine.ContextEngine
	if err = nil; !f.dryRun && len(files) > 0 {
		if into, err = a.lifecycle(ctx, writing); err != nil {
			return err
		}
	}
	im := &importer{app: a, into: into, flags: f, out: imported{DryRun: f.dryRun, Files: []importedFile{}}}
	for i, path := range files {
		if err = im.file(ctx, path, fmt.Sprintf("%d/%d", i+1, len(files))); err != nil {
			break
		}
	}
	for _, dir := range workspaces {
		if err == nil {
			err = im.notes(ctx, dir)
		}
	}
	if err == nil && into != nil {
		im.vectors(ctx)
	}
	im.out.TookMS = millis(time.Since(start))
	if perr := im.report(time.Since(start)); err == nil {
		err = perr
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: what is reported above is stored; run the same command again to go on", err)
	}
	return err
}

// vectors waits for a remote embedder, which the daemon would otherwise follow in the background.
// What it does not answer stays pending: that is a note, not a failure of the import.
func (im *importer) vectors(ctx context.Context) {
	e, ok := im.into.(*engine.Engine)
	if !ok {
		return
	}
	var bar *progressbar.ProgressBar
	err := e.Embed(ctx, func(done, left int) {
		if bar == nil {
			bar = im.bar(done+left, "vectors")
		}
		_ = bar.Set(done)
	})
	if bar != nil {
		_ = bar.Finish()
	}
	if err != nil {
		im.app.note("the embedder did not answer (%v): words find what was imported; its vectors follow with the next import or under hark serve", err)
	}
}

// sources lists the files to read.
func (a *app) sources(paths []string) ([]string, error) {
	var named []string
	stdin := false
	for _, p := range paths {
		if p == "-" {
			stdin = true
			continue
		}
		named = append(named, p)
	}
	files, err := history.Find(named)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if stdin {
		files = append(files, "-")
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s", errNoHistory, strings.Join(paths, ", "))
	}
	return files, nil
}

// errNoHistory says that there is nothing to import.
var errNoHistory = errors.New("no *.jsonl or *.jsonl.gz")

// importer imports files into one store.
type importer struct {
	app   *app
	into  engine.ContextEngine // nil in a dry run
	flags importFlags
	out   imported
}

// file imports one file. Its error ends the import.
func (im *importer) file(ctx context.Context, path, nth string) error {
	a := im.app
	if export, err := im.exportIn(path); err != nil {
		return err
	} else if export != nil {
		return errors.Join(im.restore(ctx, path, export), export.Close())
	}
	if im.flags.session != "" {
		im.flags.session = history.KeyFor(a.set.Agent, im.flags.session)
	}
	opts := history.Options{
		Format: history.Format(im.flags.format), Agent: a.set.Agent, Session: im.flags.session,
		KeepGoing: im.flags.keepGoing, Now: time.Now(),
	}
	h, err := im.read(path, opts)
	if err != nil {
		return im.reject(path, err)
	}
	return im.decoded(ctx, h, nth)
}

// decoded imports what a file holds.
func (im *importer) decoded(ctx context.Context, h *history.File, nth string) error {
	var err error
	res := importedFile{Path: h.Path, Format: string(h.Format), Sessions: len(h.Sessions), Messages: h.Messages, Skipped: h.Skipped, Notes: h.Notes}
	for _, b := range h.Bad {
		res.BadLines = append(res.BadLines, b.String())
	}
	for _, w := range h.Warnings {
		res.Warnings = append(res.Warnings, w.String())
	}
	bar := im.bar(h.Messages-h.Skipped, nth)
	for _, s := range h.Sessions {
		if err = im.session(ctx, s, &res, bar); err != nil {
			err = fmt.Errorf("%s: %w", h.Path, err)
			break
		}
	}
	_ = bar.Finish() // draws to standard error only
	res.Messages = res.New + res.Duplicate + res.Skipped
	im.add(res)
	return err
}

func (im *importer) read(path string, opts history.Options) (*history.File, error) {
	if path != "-" {
		return history.Read(path, opts)
	}
	data, err := io.ReadAll(im.app.in)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return history.Decode("stdin", data, opts)
}

// reject reports a file nothing of which is imported. With --keep-going the import goes on.
func (im *importer) reject(path string, err error) error {
	var bad *history.RejectedError
	var form *history.FormatError
	res := importedFile{Path: path, Error: err.Error()}
	switch {
	case errors.As(err, &bad):
		for _, b := range bad.Bad {
			res.BadLines = append(res.BadLines, b.String())
		}
		res.Error = "not imported: bad lines"
		err = fmt.Errorf("%w\nNothing of %s was imported: mend the line, or leave it out with --keep-going", bad, path)
	case errors.As(err, &form) && im.flags.keepGoing:
		res.Skipped, res.Messages = 1, 1
		im.app.note("%s %v; skipped", im.app.term.yellow("warning:"), err)
		err = nil
	}
	im.out.Files = append(im.out.Files, res)
	im.out.Skipped += res.Skipped
	im.out.Messages += res.Messages
	return err
}

// session imports one session in pages.
func (im *importer) session(ctx context.Context, s history.Session, res *importedFile, bar *progressbar.ProgressBar) error {
	skip := func(reason string) error {
		res.Skipped += len(s.Entries)
		res.Notes = append(res.Notes, fmt.Sprintf("session %s (%s) skipped: %s", s.Key, count(len(s.Entries), "message"), reason))
		return bar.Add(len(s.Entries))
	}
	switch {
	case !strings.EqualFold(s.Agent, im.app.set.Agent):
		return skip(fmt.Sprintf("it is agent %q's; import it with --agent %s", s.Agent, s.Agent))
	case engine.ParseKey(s.Key).Audience == engine.Automatic && !im.app.set.Ingest.Cron:
		return skip("a run of the host's own, not a conversation (ingest.cron = true takes it in)")
	}
	for from := 0; from < len(s.Entries); from += importPage {
		page := s.Entries[from:min(from+importPage, len(s.Entries))]
		if err := im.page(ctx, s, page, res); err != nil {
			return err
		}
		_ = bar.Add(len(page)) // draws to standard error only
		if im.flags.progress == "plain" && im.into != nil {
			_, _ = fmt.Fprintf(im.app.err, "stored %s\n", count(im.out.New+im.out.Duplicate+res.New+res.Duplicate, "message"))
		}
	}
	return nil
}

func (im *importer) page(ctx context.Context, s history.Session, page []engine.HistoryEntry, res *importedFile) error {
	if im.into == nil {
		res.New += len(page)
		return ctx.Err()
	}
	done, err := im.into.Bootstrap(ctx, engine.BootstrapParams{SessionID: s.ID, SessionKey: s.Key, History: page})
	if err != nil {
		return err
	}
	res.New += done.ImportedMessages
	res.Duplicate += len(page) - done.ImportedMessages
	return nil
}

// add sums up and tells what was done to a file.
func (im *importer) add(res importedFile) {
	im.out.Messages += res.Messages
	im.out.New += res.New
	im.out.Duplicate += res.Duplicate
	im.out.Skipped += res.Skipped
	im.out.Files = append(im.out.Files, res)
	if im.app.json {
		return
	}
	im.warn(res.Path, res.BadLines, "; skipped", "bad lines skipped")
	im.warn(res.Path, res.Warnings, "", "warnings")
	for _, n := range res.Notes {
		im.app.note("%s %s: %s", im.app.term.dim("note:"), res.Path, clean(n))
	}
}

// warn tells of the first lines of a file, and how many more there are.
func (im *importer) warn(path string, lines []string, end, more string) {
	const shown = 20
	for i, l := range lines {
		if i == shown {
			im.app.note("%s %s: %d more %s; --json lists them", im.app.term.yellow("warning:"), path, len(lines)-shown, more)
			return
		}
		im.app.note("%s %s%s", im.app.term.yellow("warning:"), clean(l), end)
	}
}

// report prints the outcome.
func (im *importer) report(d time.Duration) error {
	o := im.out
	if im.app.json {
		return im.app.printJSON(o)
	}
	im.reportNotes()
	if len(o.Files) == 0 && len(o.Notes) > 0 {
		return nil
	}
	verb := "imported"
	if o.DryRun {
		verb = "would import"
	}
	im.app.printf("%s %s (%d new, %d duplicate, %d skipped) in %s\n", verb, count(o.Messages, "message"), o.New, o.Duplicate, o.Skipped, took(d))
	return nil
}

// bar draws progress on a terminal, and nothing elsewhere.
func (im *importer) bar(n int, nth string) *progressbar.ProgressBar {
	a := im.app
	if !a.term.errTTY || a.quiet || a.json || im.flags.progress != "auto" {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n,
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("file "+nth), progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("msg"),
		progressbar.OptionThrottle(80*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true),
	)
}
