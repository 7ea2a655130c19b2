package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/wire"
	"hark/index"
)

func newServe(a *app) *cobra.Command {
	var idle time.Duration
	var socket string
	var foreground bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the agents' memory to OpenClaw",
		Long: `Runs the daemon that OpenClaw's plugin and the other commands speak to, over a
socket in the data folder that only you can open. The plugin starts it on first
use; there is no need to run it by hand.

One daemon serves a data folder: where one runs already, this command ends at once
and all is well. It ends when nothing was asked for --idle-exit, and on SIGTERM,
after finishing what it does. Its log is logs/hark.log in the data folder.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if idle < 0 {
				return usage("--idle-exit has to be a time like 15m, or 0 to stay")
			}
			return a.serve(cmd.Context(), socket, idle, foreground)
		},
	}
	cmd.Flags().DurationVar(&idle, "idle-exit", 15*time.Minute, "end after so long without requests; 0: stay")
	cmd.Flags().StringVar(&socket, "socket", "", "path of the socket (default hark.sock in the data folder)")
	cmd.Flags().BoolVar(&foreground, "foreground", false, "write the log to this terminal instead of its file")
	return cmd
}

// serve runs the daemon until it has nothing to do any more.
func (a *app) serve(ctx context.Context, socket string, idle time.Duration, foreground bool) error {
	if err := a.folder(); err != nil {
		return err
	}
	level := slog.LevelInfo
	if v, _ := a.env("HARK_DEBUG"); v != "" {
		level = slog.LevelDebug
	}
	d := &serving{console: a.console, app: a}
	if !foreground {
		file, err := openLogFile(filepath.Join(a.set.Data, "logs", "hark.log"))
		if err != nil {
			return fmt.Errorf("open the log: %w", err)
		}
		a.closers = append(a.closers, file.Close)
		d.err = file
	}
	log := slog.New(slog.NewTextHandler(d.err, &slog.HandlerOptions{Level: level}))
	a.std.send(log)
	d.log = log
	v, _ := buildVersion()
	err := wire.Serve(ctx, wire.Options{
		State: a.set.Data, Socket: socket, Version: v, IdleExit: idle, Open: d.open, Classify: classify, Log: log,
		Env: func(name string) string { v, _ := a.env(name); return v },
	})
	if errors.Is(err, wire.ErrRunning) {
		log.Debug("another daemon serves already")
		return nil
	}
	return err
}

// serving opens what a daemon serves.
type serving struct {
	console      // the daemon's: its errors go to the log
	app     *app // the settings, which hold for every agent
	log     *slog.Logger
}

// open implements wire.OpenFunc: each agent is opened by an app of its own.
func (d *serving) open(ctx context.Context, agent string, create bool) (*wire.Agent, error) {
	a := &app{console: d.console, clock: d.app.clock, log: d.log, set: d.app.set, runtime: wire.HostCompacted{}, serving: true}
	a.set.Agent = agent
	if !create {
		if err := a.stored(); err != nil {
			return nil, &wire.Error{Code: wire.CodeNotFound, Message: err.Error()}
		}
	}
	m, err := a.openAgent(ctx, writing)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	if a.set.retention() != (engine.Retention{}) {
		a.closers = append(a.closers, retainDaily(m.engine, a.logger()))
	}
	return &wire.Agent{
		Engine: m.engine,
		Memory: m.notes,
		State: func(ctx context.Context, key string) ([]byte, error) {
			return m.store.State(ctx, "wire", key)
		},
		SetState: func(ctx context.Context, key string, value []byte) error {
			return m.store.SetState(ctx, "wire", key, value)
		},
		Methods: a.methods(m),
		Close:   a.close,
	}, nil
}

// retainDaily applies the retention at once and every day, until the returned function is called.
func retainDaily(e *engine.Engine, log *slog.Logger) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		day := time.NewTicker(24 * time.Hour)
		defer day.Stop()
		for {
			if n, err := e.Retain(ctx); err != nil && ctx.Err() == nil {
				log.Warn("retention not applied", "error", err)
			} else if n > 0 {
				log.Info("retention applied", "forgotten", n)
			}
			select {
			case <-day.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() error { cancel(); <-ended; return nil }
}

// classify gives a store's errors the codes and remedies that a client is told.
func classify(err error) *wire.Error {
	switch {
	case errors.Is(err, index.ErrConflict):
		return &wire.Error{Code: wire.CodeConflict, Message: err.Error()}
	case errors.Is(err, index.ErrNotFound):
		return &wire.Error{Code: wire.CodeNotFound, Message: err.Error()}
	case errors.Is(err, index.ErrBusy):
		return &wire.Error{Code: wire.CodeBusy, Message: err.Error(), Remedy: "nothing was stored by this call; it can be repeated"}
	case errors.Is(err, index.ErrLocked):
		return &wire.Error{Code: wire.CodeLocked, Message: err.Error(), Remedy: "another hark is using this store: wait for it to end, or stop it"}
	case errors.Is(err, index.ErrNewer):
		return &wire.Error{Code: wire.CodeNewer, Message: err.Error(), Remedy: "update this hark; nothing was changed"}
	case errors.Is(err, fs.ErrPermission):
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error(), Remedy: "check who owns the folder"}
	}
	return nil
}

// maxLog bounds the log file, in bytes. When it is full it becomes hark.log.1 and a new one begins.
const maxLog = 5 << 20

// logFile is a log of bounded size. It is safe for concurrent use.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

func openLogFile(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := &logFile{path: path}
	return l, l.reopen()
}

func (l *logFile) reopen() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends a line, and turns the file over first where it would become too long.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(line)) > maxLog && l.size > 0 {
		old := l.file
		err := os.Rename(l.path, l.path+".1")
		if err == nil {
			err = l.reopen()
		}
		if err != nil {
			return 0, err
		}
		_ = old.Close() // its last line is written
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *logFile) Close() error { return l.file.Close() }
