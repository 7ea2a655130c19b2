package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/natefinch/lumberjack.v2"

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
after finishing what it does. Its log is logs/hark.log in the data folder.

GET /metrics on the socket tells Prometheus how it is; with --metrics a port of
this machine does so too:

  curl --unix-socket ~/.openclaw/hark/hark.sock http://hark/metrics
  hark serve --idle-exit 0 --metrics 127.0.0.1:9464`,
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
	cmd.Flags().String("metrics", "", "serve metrics for Prometheus at this address of this machine too, like 127.0.0.1:9464")
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
	d := &serving{console: a.console, app: a, metrics: newMetrics()}
	if !foreground {
		file, err := openLog(filepath.Join(a.set.Data, "logs", "hark.log"))
		if err != nil {
			return fmt.Errorf("open the log: %w", err)
		}
		a.closers = append(a.closers, file.Close)
		d.err = file
	}
	var handler slog.Handler = slog.NewTextHandler(d.err, &slog.HandlerOptions{Level: level})
	if a.set.Log.Format == "json" {
		handler = slog.NewJSONHandler(d.err, &slog.HandlerOptions{Level: level})
	}
	log := slog.New(handler)
	a.std.send(log)
	d.log = log
	if a.set.Serve.Metrics != "" {
		ended, err := d.metrics.serveLoopback(ctx, a.set.Serve.Metrics)
		if err != nil {
			return err
		}
		defer ended()
	}
	loaded := make(chan struct{})
	go func() { // the vocabulary takes a while to load, and every agent needs it
		defer close(loaded)
		_, _ = engine.TokenCounter() // where it fails, opening an agent says so
	}()
	defer func() { <-loaded }()
	v, _ := buildVersion()
	err := wire.Serve(ctx, wire.Options{
		State: a.set.Data, Socket: socket, Version: v, IdleExit: idle, Open: d.open, Classify: classify, Log: log,
		Metrics: d.metrics.handler(), Observe: d.metrics.observe,
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
	metrics *metrics
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
	d.metrics.opened(agent, m)
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
		Close: func() error {
			d.metrics.closed(agent)
			return a.close()
		},
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

// The bounds of the daemon's log: megabytes of a file, and how many full ones are kept.
const (
	maxLog  = 5
	oldLogs = 3
)

// openLog opens the daemon's log, a file that only its owner reads. A full one is renamed after the
// time, and the oldest are removed.
func openLog(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &lumberjack.Logger{Filename: path, MaxSize: maxLog, MaxBackups: oldLogs}, f.Close()
}
