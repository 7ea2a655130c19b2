package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hark/engine"
	"hark/engine/wire"
	"hark/index"
)

// TestStatusSaysThatRecallIsOff: a host that stores turns and asks for no context is noticed.
func TestStatusSaysThatRecallIsOff(t *testing.T) {
	data := shortDir(t)
	c, _ := startServe(t, data)
	r := wire.NewRemote(c, "main", nil)
	p := saidTurn("t1", "s", "the kettle is copper")
	if _, err := r.CommitTurn(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := hark(t.Context(), t, data, "status"); !strings.Contains(out, "recall     off: the host stores turns here") {
		t.Errorf("a host without assemble: %s%s", out, errs)
	}
	if _, err := r.Assemble(t.Context(), engine.AssembleParams{SessionID: "s", SessionKey: p.SessionKey, Prompt: "and?"}); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := hark(t.Context(), t, data, "status"); strings.Contains(out, "off") {
		t.Errorf("a host with assemble: %s", out)
	}
	var o statusJSON
	o.Committed = time.Now()
	for served, want := range map[time.Duration]bool{time.Minute: false, 72 * time.Hour: true} {
		if o.Served = o.Committed.Add(-served); (o.recallOff(1200) != "") != want {
			t.Errorf("served %v before the turn: %q", served, o.recallOff(1200))
		}
	}
	if o.recallOff(0) == "" {
		t.Error("recall.max_tokens = 0 is not told")
	}
}

// TestCheckWhileAnotherProcessWrites: two processes cannot be compared with each other.
func TestCheckWhileAnotherProcessWrites(t *testing.T) {
	data := shortDir(t)
	file := filepath.Join(filepath.Dir(data), "talk.jsonl")
	if err := os.WriteFile(file, []byte(kitchenTalk), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := hark(t.Context(), t, data, "import", file); code != 0 {
		t.Fatal(errs)
	}
	store, err := index.Open(t.Context(), filepath.Join(data, "agents", "main"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if code, out, errs := hark(t.Context(), t, data, "check"); code != 1 || !strings.Contains(out, "4 rows") || !strings.Contains(out, "in use:") {
		t.Errorf("check: %d %s%s", code, out, errs)
	}
	info, err := os.Stat(filepath.Join(data, "agents", "main", "log.sqlite"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the log: %v %v", info.Mode(), err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestResultThatCannotBePrinted: a result that did not arrive is a failure.
func TestResultThatCannotBePrinted(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"help"}, {"config"}, {"config", "--json"}} {
		var errs bytes.Buffer
		env := func(string) (string, bool) { return "", false }
		code := run(t.Context(), args, console{in: strings.NewReader(""), out: fullDisk{}, err: &errs, env: env})
		if code != exitFailed || !strings.Contains(errs.String(), "the result could not be written: no space left on device") {
			t.Errorf("%v: %d %s", args, code, errs.String())
		}
	}
}

// TestInterruptedWhileReading: Ctrl-C ends a command that waits for standard input, with the code a
// shell expects.
func TestInterruptedWhileReading(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	data := shortDir(t)
	for _, args := range [][]string{{"import", "-"}, {"assemble", "--session", "main", "--budget", "100", "--prompt", "x", "--messages", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan struct{})
		var errs bytes.Buffer
		env := func(name string) (string, bool) {
			v, ok := map[string]string{"HARK_DATA": data}[name]
			return v, ok
		}
		done := make(chan int, 1)
		go func() {
			done <- run(ctx, args, console{in: &announced{Reader: in, reading: waits}, out: io.Discard, err: &errs, env: env})
		}()
		select {
		case <-waits:
		case code := <-done:
			t.Fatalf("%v does not read: %d %s", args, code, errs.String())
		}
		cancel()
		if code := <-done; code != exitInterrupted || !strings.Contains(errs.String(), "hark: interrupted") {
			t.Errorf("%v: %d %s", args, code, errs.String())
		}
	}
}

// announced is a reader that tells when it is first read.
type announced struct {
	io.Reader
	reading chan struct{}
	told    bool
}

func (a *announced) Read(p []byte) (int, error) {
	if !a.told {
		a.told = true
		close(a.reading)
	}
	return a.Reader.Read(p)
}

// TestWarningsAreToldAtTheEnd: what packages warn of becomes lines of plain words.
func TestWarningsAreToldAtTheEnd(t *testing.T) {
	var errs bytes.Buffer
	a := &app{console: console{err: &errs, env: func(string) (string, bool) { return "", false }}, warned: &warnings{}}
	std := &standardLog{}
	std.send(a.logger())
	for i := range 3 {
		a.logger().Warn("embedding postponed", "error", errors.New("the server is down"), "retry", i)
	}
	_, _ = fmt.Fprintln(std, "a segment is damaged")
	if errs.Len() > 0 {
		t.Errorf("told too soon: %s", errs.String())
	}
	a.warned.tell(a)
	want := "warning: embedding postponed: the server is down\nwarning: the index of words says: a segment is damaged\n"
	if errs.String() != want {
		t.Errorf("told %q", errs.String())
	}
}
