package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
)

// exportHead is the first line of an export. Of the other lines those that hold "forgotten" are an
// engine.Forgotten each, and come first; the rest are an engine.Exported each.
type exportHead struct {
	Hark     string    `json:"hark"` // "export"
	Version  int       `json:"version"`
	Agent    string    `json:"agent"`
	Exported time.Time `json:"exported"`
}

// exportMark begins every export, so that import knows one.
const exportMark = `{"hark":"export"`

// exportVersion is what is written; version 1, without marks of what was forgotten, is read too.
const exportVersion = 2

func newExport(a *app) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "export [--session KEY] [FILE]",
		Short: "Write what is stored as JSON lines",
		Long: `Writes every stored message as a line of JSON, to a file or to standard output.
"hark import" takes the file in again, here or elsewhere, with ids, scopes and
times as they were; what is stored already is not stored twice.

What was forgotten is not in it, and does not come back where the file was imported:
it holds a mark of each such message, which tells nothing of what it said.

The file holds all that was said in plain text. It is made for your eyes only.`,
		Example: "  hark export memory.jsonl\n  hark export --session kitchen | gzip > kitchen.jsonl.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("hark export takes one file")
			}
			if len(args) == 0 || args[0] == "-" {
				q := exportQuery{Only: session}
				first, err := a.firstPage(cmd.Context(), q)
				if err != nil {
					return err
				}
				_, err = a.export(cmd.Context(), a.out, q, first)
				return err
			}
			return a.exportFile(cmd.Context(), args[0], session)
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only this session")
	a.sessionFlag(cmd)
	return cmd
}

// exportFile writes the export beside its place and puts it there when it is whole.
func (a *app) exportFile(ctx context.Context, path, session string) error {
	q := exportQuery{Only: session}
	first, err := a.firstPage(ctx, q)
	if err != nil {
		return err
	}
	next := path + ".part"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := a.export(ctx, file, q, first)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if a.json {
		return a.printJSON(map[string]any{"exported": n, "file": path})
	}
	a.printf("exported %s to %s\n", count(n, "message"), path)
	return nil
}

// firstPage reads the first page before anything is written: a session that is not there makes no file.
func (a *app) firstPage(ctx context.Context, q exportQuery) (engine.ExportPage, error) {
	page, err := exporting().ask(ctx, a, q)
	if err == nil && q.Only != "" && len(page.Messages) == 0 {
		err = fmt.Errorf("nothing is stored of session %q\n\"hark sessions\" lists what is", q.Only)
	}
	return page, err
}

// export writes the export, whose first page was read already, and returns how many messages it holds.
func (a *app) export(ctx context.Context, to io.Writer, q exportQuery, page engine.ExportPage) (int, error) {
	w := bufio.NewWriter(to)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	now := time.Now
	if a.clock != nil {
		now = a.clock
	}
	if err := enc.Encode(exportHead{"export", exportVersion, a.set.Agent, now().UTC().Truncate(time.Second)}); err != nil {
		return 0, err
	}
	if err := a.exportMarks(ctx, enc); err != nil {
		return 0, err
	}
	n := 0
	for {
		for _, m := range page.Messages {
			if err := enc.Encode(m); err != nil {
				return n, fmt.Errorf("write the export: %w", err)
			}
			n++
		}
		if page.Session == "" {
			break
		}
		q.Session, q.After = page.Session, page.After
		var err error
		if page, err = exporting().ask(ctx, a, q); err != nil {
			return n, err
		}
	}
	if err := w.Flush(); err != nil {
		return n, fmt.Errorf("write the export: %w", err)
	}
	return n, nil
}

// exportMarks writes the marks of what was forgotten. They are of the whole store: no mark tells which
// session it is of.
func (a *app) exportMarks(ctx context.Context, enc *json.Encoder) error {
	for after := (*engine.Forgotten)(nil); ; {
		page, err := marking().ask(ctx, a, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := enc.Encode(page[i]); err != nil {
				return fmt.Errorf("write the export: %w", err)
			}
			after = &page[i]
		}
	}
}

func marking() question[*engine.Forgotten, []engine.Forgotten] {
	return question[*engine.Forgotten, []engine.Forgotten]{"marks", func(ctx context.Context, _ *app, m *memory, after *engine.Forgotten) ([]engine.Forgotten, error) {
		return m.engine.ExportForgotten(ctx, after)
	}}
}

func remarking() question[[]engine.Forgotten, int] {
	return question[[]engine.Forgotten, int]{"remark", func(ctx context.Context, _ *app, m *memory, marks []engine.Forgotten) (int, error) {
		return m.engine.RestoreForgotten(ctx, marks)
	}}
}

// exportQuery asks for a page: see engine.Export.
type exportQuery struct {
	Only    string `json:"only,omitempty"`
	Session string `json:"session,omitempty"`
	After   int64  `json:"after,omitempty"`
}

func exporting() question[exportQuery, engine.ExportPage] {
	return question[exportQuery, engine.ExportPage]{"export", func(ctx context.Context, _ *app, m *memory, q exportQuery) (engine.ExportPage, error) {
		return m.engine.Export(ctx, q.Only, q.Session, q.After)
	}}
}

// restored is the outcome of one page of an import of an export.
type restored struct {
	New       int `json:"new"`
	Duplicate int `json:"duplicate"`
}

func restoring() question[[]engine.Exported, restored] {
	return question[[]engine.Exported, restored]{"restore", func(ctx context.Context, _ *app, m *memory, rows []engine.Exported) (restored, error) {
		done, err := m.engine.Restore(ctx, rows)
		return restored{done.New + done.Updated, done.Duplicate}, err
	}}
}

// openExport opens a file if it is an export, which its first bytes tell; otherwise it returns nil.
func openExport(path string, stdin *bufio.Reader) (io.ReadCloser, error) {
	if path == "-" {
		if head, _ := stdin.Peek(len(exportMark)); string(head) == exportMark {
			return io.NopCloser(stdin), nil
		}
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r io.Reader = bufio.NewReader(file)
	if zip, err := gzip.NewReader(file); err == nil {
		r = bufio.NewReader(zip)
	} else if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	buffered, _ := r.(*bufio.Reader)
	if head, _ := buffered.Peek(len(exportMark)); string(head) == exportMark {
		return struct {
			io.Reader
			io.Closer
		}{r, file}, nil
	}
	return nil, file.Close()
}

// restore imports an export.
func (im *importer) restore(ctx context.Context, path string, r io.Reader) (err error) {
	a := im.app
	res := importedFile{Path: path, Format: "hark"}
	defer func() { res.Messages = res.New + res.Duplicate; im.add(res) }()
	if im.flags.session != "" {
		return usage("%s is an export, which knows its sessions: leave --session out", path)
	}
	dec := json.NewDecoder(r)
	var head exportHead
	switch err := dec.Decode(&head); {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case head.Version < 1 || head.Version > exportVersion:
		return fmt.Errorf("%s is an export of version %d, and this program knows %d: update Hark", path, head.Version, exportVersion)
	case head.Agent != a.set.Agent:
		return fmt.Errorf("%s holds the memory of agent %q: import it with --agent %s", path, head.Agent, head.Agent)
	}
	if im.into != nil { // creates the store where there is none
		if _, err := im.into.Bootstrap(ctx, engine.BootstrapParams{SessionID: "import"}); err != nil {
			return err
		}
	}
	lines := &exportLines{dec: dec, path: path, line: 2}
	sessions, marks := map[string]bool{}, 0
	for {
		page, gone, err := lines.page()
		if err != nil {
			return err
		}
		if len(page)+len(gone) == 0 {
			break
		}
		for i := range page {
			sessions[page[i].Session] = true
		}
		marks += len(gone)
		if im.into == nil {
			res.New += len(page)
			continue
		}
		done, err := im.restorePage(ctx, page, gone)
		if err != nil {
			return fmt.Errorf("%s, before line %d: %w", path, lines.line, err)
		}
		res.New += done.New
		res.Duplicate += done.Duplicate
	}
	res.Sessions = len(sessions)
	if marks > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("what was forgotten there stays out here too (%s)", count(marks, "mark")))
	}
	return nil
}

// exportLines reads the lines of an export after its head.
type exportLines struct {
	dec  *json.Decoder
	path string
	line int // the next one
}

// exportLine is either.
type exportLine struct {
	engine.Exported
	engine.Forgotten
}

// page reads as much as one transaction takes; nothing is the end.
func (l *exportLines) page() (page []engine.Exported, gone []engine.Forgotten, err error) {
	for size := 0; len(page) < importPage && len(gone) < importPage && size < 8<<20; l.line++ {
		var x exportLine
		if err := l.dec.Decode(&x); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("%s, line %d: %w", l.path, l.line, err)
		}
		if x.Hash != "" {
			gone = append(gone, x.Forgotten)
			continue
		}
		size += len(x.Text) + len(x.Raw)
		page = append(page, x.Exported)
	}
	return page, gone, nil
}

// restorePage stores a page where the import goes: in the daemon's store, or in the one it has open. What
// is forgotten comes first.
func (im *importer) restorePage(ctx context.Context, page []engine.Exported, gone []engine.Forgotten) (restored, error) {
	e, here := im.into.(*engine.Engine)
	if len(gone) > 0 {
		var err error
		if here {
			_, err = e.RestoreForgotten(ctx, gone)
		} else {
			_, err = remarking().ask(ctx, im.app, gone)
		}
		if err != nil {
			return restored{}, err
		}
	}
	if !here {
		return restoring().ask(ctx, im.app, page)
	}
	done, err := e.Restore(ctx, page)
	return restored{done.New + done.Updated, done.Duplicate}, err
}

// exportIn looks whether a file is an export and opens it then. What was read of standard input to
// find out is put back.
func (im *importer) exportIn(path string) (io.ReadCloser, error) {
	if path != "-" {
		return openExport(path, nil)
	}
	data, err := io.ReadAll(im.app.in)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	im.app.in = bytes.NewReader(data)
	return openExport(path, bufio.NewReader(bytes.NewReader(data)))
}
