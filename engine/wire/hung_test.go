//go:build unix

package wire

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestDaemonReplacesOneThatWasStopped: a daemon that was stopped (SIGSTOP) holds the lock and the
// socket, and answers nothing; the next one ends it and takes over.
func TestDaemonReplacesOneThatWasStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	state := stateDir(t)
	child := spawnTestDaemon(t, state)
	c := dialTest(t, state, func(context.Context) error { return nil })
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	start(t, Options{State: state, Silence: 300 * time.Millisecond})
	if err := <-ended; err == nil {
		t.Error("the stopped daemon ended by itself")
	}
	c.Close()
	if hello, err := c.Hello(t.Context()); err != nil || hello.PID != os.Getpid() {
		t.Errorf("hello: %+v, %v", hello, err)
	}
}
