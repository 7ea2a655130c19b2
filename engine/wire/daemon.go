package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrRunning says that another daemon serves the state directory and answers: there is nothing to do.
var ErrRunning = errors.New("a daemon serves this state directory already")

const (
	// grace is how long a daemon that ends waits for the calls that run.
	grace = 10 * time.Second
	// takeover is how long a starting daemon waits for one that is ending: its grace and some more.
	takeover = grace + 5*time.Second
	// lockPoll is how often it looks.
	lockPoll = 25 * time.Millisecond
	// defaultSilence is the default of Options.Silence, helloWait how long one look at a silent daemon takes.
	defaultSilence = 6 * time.Second
	helloWait      = 2 * time.Second
)

// Options describe a daemon. State, Version and Open are required.
type Options struct {
	State    string        // the state directory; created where missing
	Socket   string        // path of the socket; "" for the usual place
	Version  string        // of Hark
	IdleExit time.Duration // without requests; 0 or less: never
	// Silence is how long another daemon that holds the lock and takes connections may say nothing
	// before it counts as hung and is ended; default 6 s.
	Silence  time.Duration
	Open     OpenFunc
	Classify func(error) *Error  // see ServerOptions
	Log      *slog.Logger        // nil discards
	Env      func(string) string // environment; nil means that nothing is set
	Ready    func(Record)        // called when requests are accepted
	Metrics  http.Handler        // see ServerOptions
	Observe  Observer            // see ServerOptions
}

// Serve is the life of a daemon: it takes the state directory's lock, listens, and serves until ctx
// ends, a client asks it to stop, or nothing was asked for IdleExit. Then it lets no more calls in,
// finishes those that run within ten seconds, closes the stores and returns nil.
//
// When another daemon has the lock, Serve waits until that one answers, and returns ErrRunning, or
// has ended, and takes over. One that hangs or was stopped (it holds the lock, takes connections, and
// says nothing for Silence) is ended: that is as safe as a crash.
func Serve(ctx context.Context, opts Options) error {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Env == nil {
		opts.Env = func(string) string { return "" }
	}
	if opts.Silence <= 0 {
		opts.Silence = defaultSilence
	}
	if err := os.MkdirAll(opts.State, 0o700); err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	if err := keepPrivate(opts.State); err != nil {
		opts.Log.Warn("other users may reach the state directory", "dir", opts.State, "error", err)
	}
	lock, err := takeLock(ctx, opts)
	if err != nil {
		return err
	}
	defer lock.Close()
	return serve(ctx, opts)
}

// takeLock waits for the lock as long as its holder may be about to end.
func takeLock(ctx context.Context, opts Options) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, takeover, errHeld)
	defer cancel()
	client := NewClient(opts.State, ClientOptions{})
	defer client.Close()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	var silent time.Time // since when the holder takes connections and says nothing
	for {
		lock, err := lockState(opts.State)
		if err == nil {
			// For people who look who it is; nothing relies on it.
			_ = errors.Join(lock.Truncate(0), writeAt(lock, strconv.Itoa(os.Getpid())+"\n"))
			return lock, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("lock the state directory: %w", err)
		}
		hello, cancelHello := context.WithTimeout(ctx, min(helloWait, opts.Silence))
		asked := time.Now()
		_, err = client.Hello(hello)
		cancelHello()
		switch {
		case err == nil:
			return nil, ErrRunning
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			silent = time.Time{}
		case silent.IsZero():
			silent = asked
		case time.Since(silent) >= opts.Silence:
			pid, err := endHolder(opts.State)
			opts.Log.Warn("ended a daemon that does not answer", "pid", pid, "error", err)
			silent = time.Time{}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errHeld) {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("another daemon (process %s) holds %s and does not answer: end that process and try again",
				holder(opts.State), filepath.Join(opts.State, lockFile))
		}
	}
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func holder(state string) string {
	data, err := os.ReadFile(filepath.Join(state, lockFile))
	if pid, perr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && perr == nil {
		return strconv.Itoa(pid)
	}
	return "unknown"
}

// endHolder ends the process that holds the lock. It wrote its id into the locked file, so the id is
// that of a daemon as long as the lock is held.
func endHolder(state string) (pid int, err error) {
	if pid, err = strconv.Atoi(holder(state)); err != nil || pid <= 0 || pid == os.Getpid() {
		return 0, errors.New("its process is not known")
	}
	if lock, err := lockState(state); err == nil {
		return pid, errors.Join(errors.New("it has ended by itself"), lock.Close())
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return pid, err
	}
	return pid, p.Kill()
}

// serve listens and serves; the lock is held.
func serve(ctx context.Context, opts Options) error {
	d, err := listen(opts.State, opts.Socket, opts.Env)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	idle := newIdle(opts.IdleExit)
	srv := NewServer(ServerOptions{
		Open: opts.Open, Version: opts.Version, IdleExit: opts.IdleExit, Classify: opts.Classify,
		Stop: func() { stop(errAsked) }, Log: opts.Log, Touch: idle.touch, Allow: d.allow, Metrics: opts.Metrics, Observe: opts.Observe,
	})
	hs := &http.Server{
		Handler: srv, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: d.connCtx, ErrorLog: slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	rec := d.record
	rec.Protocol, rec.Version, rec.PID, rec.StartedAt = Protocol, opts.Version, os.Getpid(), time.Now().UTC()
	if err := writeRecord(opts.State, rec); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", filepath.Join(opts.State, recordFile), err), d.Close())
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(d) }()
	go func() {
		if idle.wait(ctx) {
			stop(errIdle)
		}
	}()
	opts.Log.Info("serving", "version", opts.Version, "pid", rec.PID, "at", rec.Socket+rec.Address)
	if opts.Ready != nil {
		opts.Ready(rec)
	}
	select {
	case err = <-failed:
		err = fmt.Errorf("accept connections: %w", err)
	case <-ctx.Done():
	}
	reason := "signal"
	if cause := context.Cause(ctx); errors.Is(cause, errAsked) || errors.Is(cause, errIdle) {
		reason = cause.Error()
	}
	opts.Log.Info("stopping", "reason", reason)
	return errors.Join(err, end(opts, srv, hs, rec))
}

var (
	errAsked = errors.New("asked by a client")
	errIdle  = errors.New("idle")
)

// end takes the daemon out of sight, so that clients look for the next one, then finishes.
func end(opts Options, srv *Server, hs *http.Server, rec Record) error {
	srv.drain()
	removeRecord(opts.State, rec)
	if rec.Socket != "" {
		_ = os.Remove(rec.Socket) // a socket left behind refuses connections and is replaced
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := srv.Close(ctx)
	// The calls are answered; what is left are idle connections.
	last, cancelLast := context.WithTimeout(context.Background(), time.Second)
	defer cancelLast()
	if hs.Shutdown(last) != nil {
		_ = hs.Close()
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	opts.Log.Info("stopped")
	return nil
}
