package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hark/engine"
)

func TestMain(m *testing.M) {
	if state := os.Getenv("HARK_WIRE_TEST_DAEMON"); state != "" {
		e := newScripted(script{})
		err := Serve(context.Background(), Options{State: state, Version: "child", Open: e.open, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err != nil && !errors.Is(err, ErrRunning) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// stateDir is a state directory whose path is short enough for a socket.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hark")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "state")
}

// daemon is a running Serve.
type daemon struct {
	stop context.CancelFunc
	done chan error
}

// start runs a daemon and returns when it accepts requests. The test ends it.
func start(t *testing.T, opts Options) *daemon {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &daemon{stop: stop, done: make(chan error, 1)}
	ready := make(chan struct{})
	opts.Version, opts.Ready = "0.1.0", func(Record) { close(ready) }
	if opts.Open == nil {
		opts.Open = newScripted(script{}).open
	}
	go func() { d.done <- Serve(ctx, opts) }()
	t.Cleanup(func() { d.end(t) })
	select {
	case <-ready:
	case err := <-d.done:
		d.done <- err
		t.Fatalf("the daemon did not start: %v", err)
	}
	return d
}

func (d *daemon) end(t *testing.T) {
	t.Helper()
	d.stop()
	err := <-d.done
	d.done <- err
	if err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

func dialTest(t *testing.T, state string, spawn func(context.Context) error) *Client {
	t.Helper()
	c := NewClient(state, ClientOptions{Spawn: spawn})
	t.Cleanup(c.Close)
	return c
}

func turn(key, text string) engine.CommitTurnParams {
	return engine.CommitTurnParams{
		AdvancementKey: key, SessionID: "s1", SessionKey: "agent:main:main",
		Messages: raws(`{"role":"user","content":"`+text+`"}`, `{"role":"assistant","content":"noted"}`),
	}
}

func TestDaemonLivesAndLeavesNothing(t *testing.T) {
	state := stateDir(t)
	e := newScripted(script{})
	d := start(t, Options{State: state, Open: e.open, IdleExit: time.Hour})
	c, hello, err := Find(t.Context(), state, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if hello.PID != os.Getpid() || hello.IdleExitMs != time.Hour.Milliseconds() || hello.Version != "0.1.0" || len(hello.Agents) != 0 {
		t.Errorf("hello: %+v", hello)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{".": fs.ModeDir | 0o700, socketFile: fs.ModeSocket | 0o600, recordFile: 0o600} {
			info, err := os.Stat(filepath.Join(state, name))
			if err != nil || info.Mode() != want {
				t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	res, err := NewRemote(c, "main", nil).CommitTurn(t.Context(), turn("k1", "hi"))
	if err != nil || res.Status != engine.Committed {
		t.Fatalf("commit: %+v, %v", res, err)
	}
	if hello, err = c.Hello(t.Context()); err != nil || !slices.Equal(hello.Agents, []string{"main"}) {
		t.Errorf("hello after a commit: %+v, %v", hello, err)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.end(t)
	if e.closed != 1 {
		t.Errorf("the store was closed %d times", e.closed)
	}
	left, err := os.ReadDir(state)
	if err != nil || len(left) != 1 || left[0].Name() != lockFile {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := c.Hello(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("hello to a daemon that ended: %v", err)
	}
}

func TestDaemonsStartedAtOnceEndAsOne(t *testing.T) {
	state := stateDir(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const n = 6
	results := make(chan error, n)
	for range n {
		go func() {
			results <- Serve(ctx, Options{State: state, Version: "0.1.0", Open: newScripted(script{}).open})
		}()
	}
	for range n - 1 {
		if err := <-results; !errors.Is(err, ErrRunning) {
			t.Errorf("a loser ended with %v", err)
		}
	}
	if _, err := dialTest(t, state, nil).Hello(t.Context()); err != nil {
		t.Errorf("the winner does not answer: %v", err)
	}
	stop()
	if err := <-results; err != nil {
		t.Errorf("the winner ended with %v", err)
	}
}

// TestDaemonWaitsForItsPredecessor starts a daemon while another is ending and still at work: it
// takes over, and the call of the old one is answered.
func TestDaemonWaitsForItsPredecessor(t *testing.T) {
	state := stateDir(t)
	e := newScripted(script{Hang: []string{"assemble"}})
	old := start(t, Options{State: state, Open: e.open})
	answered := make(chan error, 1)
	c := dialTest(t, state, nil)
	go func() {
		_, err := NewRemote(c, "main", nil).Assemble(t.Context(), engine.AssembleParams{SessionID: "s1"})
		answered <- err
	}()
	e.waitFor(t, "assemble")
	old.stop()
	next := make(chan struct{})
	go func() {
		start(t, Options{State: state})
		close(next)
	}()
	select {
	case <-next:
		t.Error("two daemons serve at once")
	default:
	}
	close(e.release)
	if err := <-answered; err != nil {
		t.Errorf("the call that ran: %v", err)
	}
	<-next
	if err := <-old.done; err != nil {
		t.Errorf("the old daemon ended with %v", err)
	}
	old.done <- nil
}

func TestDaemonTakesOverFromTheDead(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	state := stateDir(t)
	for range 2 {
		child := spawnTestDaemon(t, state)
		c := dialTest(t, state, func(context.Context) error { return nil })
		hello, err := c.Start(t.Context())
		if err != nil || hello.Version != "child" || hello.PID != child.Process.Pid {
			t.Fatalf("hello: %+v, %v; the child is %d", hello, err, child.Process.Pid)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		if _, err := ReadRecord(state); err != nil {
			t.Errorf("the dead daemon's record is expected to be there: %v", err)
		}
	}
	start(t, Options{State: state})
	if hello, err := dialTest(t, state, nil).Hello(t.Context()); err != nil || hello.PID != os.Getpid() {
		t.Errorf("hello: %+v, %v", hello, err)
	}
}

func spawnTestDaemon(t *testing.T, state string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HARK_WIRE_TEST_DAEMON="+state)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// TestClientStartsTheDaemon lets many calls find none at once: they are all served, and so are
// those after it was shut down and after it was killed.
func TestClientStartsTheDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	state := stateDir(t)
	var mu sync.Mutex
	var children []*exec.Cmd
	c := dialTest(t, state, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		children = append(children, spawnTestDaemon(t, state))
		return nil
	})
	r := NewRemote(c, "main", nil)
	all := func() {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if _, err := r.CommitTurn(t.Context(), turn(fmt.Sprint("k", i), "hi")); err != nil {
					t.Errorf("commit %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
	all()
	if len(children) != 1 {
		t.Errorf("%d daemons were started by one client", len(children))
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	all()
	_ = children[len(children)-1].Process.Kill()
	all()
	for _, child := range children {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		i := newIdle(15 * time.Minute)
		var ended time.Duration
		done := make(chan bool)
		go func() {
			is := i.wait(t.Context())
			ended = time.Since(begin)
			done <- is
		}()
		<-time.After(10 * time.Minute)
		end := i.touch()
		<-time.After(20 * time.Minute) // a long call is no idleness
		short := i.touch()
		short()
		end()
		if !<-done || ended != 45*time.Minute {
			t.Errorf("idle after %v, want 15m after the last call ended at 30m", ended)
		}
	})
}

func TestIdleEndsWithItsContext(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if newIdle(limit).wait(ctx) {
			t.Errorf("limit %v: idle though the context ended", limit)
		}
	}
}

func TestIdleDaemonEnds(t *testing.T) {
	state := stateDir(t)
	d := start(t, Options{State: state, IdleExit: 10 * time.Millisecond})
	if err := <-d.done; err != nil {
		t.Error(err)
	}
	d.done <- nil
}

func TestLongPathsGetAPrivateSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets")
	}
	run := filepath.Dir(stateDir(t))
	state := filepath.Join(run, strings.Repeat("long", 30))
	env := func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return run
		}
		return ""
	}
	start(t, Options{State: state, Env: env})
	rec, err := ReadRecord(state)
	if err != nil || !strings.HasPrefix(rec.Socket, filepath.Join(run, fmt.Sprintf("hark-%d", os.Getuid()))) {
		t.Fatalf("record %+v, %v", rec, err)
	}
	info, err := os.Stat(filepath.Dir(rec.Socket))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the socket: %v, %v", info.Mode(), err)
	}
	if _, _, err := Find(t.Context(), state, 5*time.Second); err != nil {
		t.Error(err)
	}
}

func TestSocketReplacesOnlySockets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets")
	}
	state := stateDir(t)
	path := filepath.Join(state, "precious")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Serve(t.Context(), Options{State: state, Socket: path, Version: "0.1.0", Open: newScripted(script{}).open})
	if err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("serve on a file: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "x" {
		t.Errorf("the file: %q, %v", data, err)
	}
}

func TestPeers(t *testing.T) {
	for _, c := range []struct {
		peer peer
		ok   bool
	}{
		{peer{os.Getuid(), true}, true}, {peer{0, true}, true}, {peer{0, false}, true}, {peer{os.Getuid() + 1, true}, false},
	} {
		r, _ := http.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, c.peer), http.MethodGet, "/v1/hello", nil)
		if refused := allowPeer(r); (refused == nil) != c.ok {
			t.Errorf("peer %+v: %v", c.peer, refused)
		}
	}
}

func TestTCPWantsItsToken(t *testing.T) {
	state := stateDir(t)
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := listenTCP()
	if err != nil {
		t.Fatal(err)
	}
	if host, _, err := net.SplitHostPort(d.record.Address); err != nil || host != "127.0.0.1" || len(d.record.Token) != 64 {
		t.Errorf("record %+v, %v", d.record, err)
	}
	srv := NewServer(ServerOptions{Open: newScripted(script{}).open, Allow: d.allow})
	hs := &http.Server{Handler: srv, ReadHeaderTimeout: time.Second}
	go func() { _ = hs.Serve(d) }()
	defer hs.Close()
	defer func() {
		if err := srv.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()

	rec := d.record
	rec.Protocol = Protocol
	if err := writeRecord(state, rec); err != nil {
		t.Fatal(err)
	}
	c := dialTest(t, state, nil)
	if _, err := c.Hello(t.Context()); err != nil {
		t.Errorf("with the token: %v", err)
	}
	for _, token := range []string{"", "wrong", rec.Token[:63]} {
		rec.Token = token
		if err := writeRecord(state, rec); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Hello(t.Context()); !errors.Is(err, &Error{Code: CodeForbidden}) {
			t.Errorf("with token %q: %v", token, err)
		}
	}
}
