package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// console is the world outside the program.
type console struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	std      *standardLog // what libraries print to Go's standard logger; nil where that is left alone
}

// watched is standard output that keeps the first error, so that a result which did not arrive is a
// failure wherever it was printed.
type watched struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (o *watched) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// interruptible is standard input whose reader stops waiting when ctx ends. What the abandoned read
// still gets is lost: the program ends.
type interruptible struct {
	ctx  context.Context
	r    io.Reader
	rest []byte
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if len(i.rest) > 0 {
		n := copy(p, i.rest)
		i.rest = i.rest[n:]
		return n, nil
	}
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		buf := make([]byte, max(len(p), 4096))
		n, err := i.r.Read(buf)
		done <- result{buf[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case got := <-done:
		n := copy(p, got.data)
		i.rest = got.data[n:]
		if len(i.rest) > 0 {
			return n, nil // the error comes again with the next read
		}
		return n, got.err
	}
}

// warnings collects what a command's packages warn of. It is told when the command has ended, one
// line each, so that it never runs into a result or a progress bar. It is safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

// mostWarnings bounds how many are told.
const mostWarnings = 5

// Enabled implements slog.Handler.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler. The same line is told once.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			line += ": " + a.Value.String()
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.lines, line) {
		w.lines = append(w.lines, line)
	}
	return nil
}

// WithAttrs implements slog.Handler: attributes beside the error are for logs.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *warnings) WithGroup(string) slog.Handler { return w }

// tell prints what was collected.
func (w *warnings) tell(a *app) {
	w.mu.Lock()
	lines := w.lines
	w.lines = nil
	w.mu.Unlock()
	for i, line := range lines {
		if i == mostWarnings {
			a.note("%s %d more; HARK_DEBUG=1 shows all", a.term.yellow("warning:"), len(lines)-mostWarnings)
			return
		}
		a.note("%s %s", a.term.yellow("warning:"), clean(line))
	}
}

// standardLog is where Go's standard logger writes: to the log of the command that runs.
type standardLog struct {
	mu sync.Mutex
	to *slog.Logger
}

// send directs what comes from now on. It does nothing where the standard logger is left alone.
func (s *standardLog) send(to *slog.Logger) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.to = to
	s.mu.Unlock()
}

// Write implements io.Writer.
func (s *standardLog) Write(line []byte) (int, error) {
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()
	if to != nil {
		to.Warn("the index of words says", "error", strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// errOutput is a result that could not be printed.
var errOutput = errors.New("the result could not be written")

// outputError makes an error of what happened to standard output, nil where nothing did.
func (o *watched) outputError() error {
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errOutput, o.err)
}
