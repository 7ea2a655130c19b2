// Package history decodes files of past conversations into the entries an engine takes in
// Bootstrap: OpenClaw transcripts (JSONL of version 1 to 4, plain or as rows of the host's
// database) and a simple chat format anybody can write.
//
// It reads and never writes, it does not decide what is worth remembering (the engine does), and
// it does not touch the text of a message: what the host recorded is handed on byte for byte, with
// one exception, bytes that are no UTF-8, which JSON does not allow and which become U+FFFD.
//
// A file is decoded whole before anything of it is used. Every line that cannot be used is named
// by file, line and reason, whatever it holds; no input makes the package panic.
package history

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"hark/engine"
)

// Format is a format of history files.
type Format string

// The formats. Auto tells the other two apart by the first line that is one of them.
const (
	Auto     Format = "auto"
	OpenClaw Format = "openclaw"
	Chat     Format = "chat"
)

// Options say how files are read. The zero Options are the defaults.
type Options struct {
	Format    Format    // "" means Auto
	Agent     string    // agent of sessions whose file does not tell; "" means "main"
	Session   string    // session key for every message, whatever the file says; "" lets the file decide
	KeepGoing bool      // leave bad lines out instead of rejecting their file
	Now       time.Time // what "in the future" is measured against; zero does not ask
}

// Session is what a file holds of one session.
type Session struct {
	Key     string // the host's session key
	ID      string // the host's session id
	Agent   string // whose conversation it is
	Entries []engine.HistoryEntry
}

// File is one decoded file.
type File struct {
	Path     string
	Format   Format
	Sessions []Session // in the order in which the file mentions them
	Lines    int       // that are not blank
	Messages int       // in the file: those in Sessions and those Skipped
	Skipped  int       // messages and bad lines that are in the file and not in Sessions
	Bad      []BadLine // in order; with Options.KeepGoing only
	Warnings []BadLine // lines that are used, though not as they stand, in order
	Notes    []string  // what was done to the file, for a person to read
}

// BadLine is a line that cannot be used, or not as it stands.
type BadLine struct {
	Path   string
	Line   int // from 1
	Reason string
}

func (b BadLine) String() string { return fmt.Sprintf("%s:%d: %s", b.Path, b.Line, b.Reason) }

// RejectedError says that nothing of a file is used, because of these lines.
type RejectedError struct {
	Path string
	Bad  []BadLine // at least one, in order
}

func (e *RejectedError) Error() string {
	const shown = 5
	var b strings.Builder
	for i, bad := range e.Bad {
		if i == shown {
			fmt.Fprintf(&b, "\n%s: and %d more", e.Path, len(e.Bad)-shown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(bad.String())
	}
	return b.String()
}

// FormatError says that a file as a whole is in no format this package reads.
type FormatError struct {
	Path   string
	Reason string
}

func (e *FormatError) Error() string { return e.Path + ": " + e.Reason }

// Decode decodes the content of one file. path names the file in messages and, where the content
// does not say which session it is, names the session. The entries share memory with data, which
// the caller leaves alone afterwards.
//
// The error is a *RejectedError or a *FormatError.
func Decode(path string, data []byte, opts Options) (*File, error) {
	d := &decoding{opts: opts, file: &File{Path: path, Format: opts.Format}}
	if opts.Agent == "" {
		d.opts.Agent = "main"
	}
	data, err := d.prepare(data)
	if err != nil {
		return nil, err
	}
	switch d.file.Format {
	case Chat:
		d.chat(data)
	default:
		d.openClaw(data)
	}
	if len(d.file.Bad) > 0 && !opts.KeepGoing {
		return nil, &RejectedError{Path: path, Bad: d.file.Bad}
	}
	d.finish()
	return d.file, nil
}

// decoding is the state of one Decode.
type decoding struct {
	opts Options
	file *File

	sessions map[string]int // by key and id: index into file.Sessions
	counts   counts
}

// counts are the things a note is written about.
type counts struct {
	repaired   int // lines with bytes that are no UTF-8
	undated    int
	odd        int // dated to when there were no messages
	future     int
	branches   int // messages on abandoned branches
	orphans    int // events whose parent is not in the file
	summaries  int // compaction and branch summaries
	injected   int // custom messages of plugins
	empty      int
	unknown    map[string]int // messages by role
	unknownEvt map[string]int // events by type
}

// prepare undoes what editors and operating systems do to text files, and settles the format.
func (d *decoding) prepare(data []byte) ([]byte, error) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return nil, &FormatError{d.file.Path, "the file is UTF-16: save it as UTF-8 and import it again"}
		}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if d.file.Format == "" || d.file.Format == Auto {
		f, err := detect(d.file.Path, data)
		if err != nil {
			return nil, err
		}
		d.file.Format = f
	}
	return data, nil
}

// session returns the session of that key and id, to be filled in.
func (d *decoding) session(key, id string) *Session {
	k := key + "\x00" + id
	i, ok := d.sessions[k]
	if !ok {
		if d.sessions == nil {
			d.sessions = map[string]int{}
		}
		i = len(d.file.Sessions)
		d.sessions[k] = i
		d.file.Sessions = append(d.file.Sessions, Session{Key: key, ID: id, Agent: agentOf(key, d.opts.Agent)})
	}
	return &d.file.Sessions[i]
}

// agentOf reads the agent from a session key of the form agent:<id>:….
func agentOf(key, fallback string) string {
	if rest, ok := strings.CutPrefix(strings.ToLower(key), "agent:"); ok {
		if agent, _, ok := strings.Cut(rest, ":"); ok && agent != "" {
			return agent
		}
	}
	return fallback
}

func (d *decoding) bad(line int, reason string) {
	d.file.Bad = append(d.file.Bad, BadLine{d.file.Path, line, reason})
}

func (d *decoding) warn(line int, format string, args ...any) {
	d.file.Warnings = append(d.file.Warnings, BadLine{d.file.Path, line, fmt.Sprintf(format, args...)})
}

// dated counts an entry's time for the notes.
func (d *decoding) dated(t stamp) {
	switch {
	case t.odd:
		d.counts.odd++
	case t.IsZero():
		d.counts.undated++
	case !d.opts.Now.IsZero() && t.After(d.opts.Now.Add(24*time.Hour)):
		d.counts.future++
	}
}

// finish drops sessions without messages, sums up and writes the notes.
func (d *decoding) finish() {
	f := d.file
	kept := f.Sessions[:0]
	entries := 0
	for _, s := range f.Sessions {
		if len(s.Entries) > 0 {
			kept = append(kept, s)
			entries += len(s.Entries)
		}
	}
	f.Sessions = kept
	f.Skipped += len(f.Bad)
	f.Messages = entries + f.Skipped
	f.Notes = d.counts.notes()
	if f.Lines == 0 {
		f.Notes = append(f.Notes, "the file is empty")
	}
}
