package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// stalled sends the head of a call and the first byte of its body.
func stalled(t *testing.T, addr, header string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /v1/agents/main/ingest HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n%s\r\n{", header); err != nil {
		t.Fatal(err)
	}
	return conn
}

func answerOf(t *testing.T, conn net.Conn) (int, string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// The deadline of a call covers its body: one that does not arrive gives its place back.
func TestStalledBodyKeepsItsDeadline(t *testing.T) {
	_, ts := serveTest(t, ServerOptions{Open: newScripted(script{}).open})
	addr := strings.TrimPrefix(ts.URL, "http://")
	var conns []net.Conn
	for range MaxConcurrent {
		conns = append(conns, stalled(t, addr, "Hark-Deadline-Ms: 100\r\n"))
	}
	for _, c := range conns {
		if code, body := answerOf(t, c); code != http.StatusGatewayTimeout && code != http.StatusBadRequest {
			t.Fatalf("%d %s", code, body)
		}
	}
	if code, body := post(t, ts, "/v1/agents/main/ingest", `{"message":{}}`); code != http.StatusOK {
		t.Errorf("after the stalled ones: %d %s", code, body)
	}
}

// A body that has not arrived does not hold up the end, and the stores are closed.
func TestStalledBodyDoesNotHoldUpTheEnd(t *testing.T) {
	e := newScripted(script{})
	srv, ts := serveTest(t, ServerOptions{Open: e.open})
	if code, _ := post(t, ts, "/v1/agents/main/ingest", `{"message":{}}`); code != http.StatusOK {
		t.Fatal(code)
	}
	conn := stalled(t, strings.TrimPrefix(ts.URL, "http://"), "")
	for len(srv.slots) == 0 {
		runtime.Gosched()
	}
	if err := srv.Close(t.Context()); err != nil || e.closed != 1 {
		t.Errorf("closed %d stores: %v", e.closed, err)
	}
	if code, body := answerOf(t, conn); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, body)
	}
}

// A folder of Hark's own is closed to other users; another one is left as it is.
func TestKeepPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean something else there")
	}
	mode := func(dir string) os.FileMode {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := keepPrivate(dir); err != nil || mode(dir) != 0o700 {
		t.Errorf("mode %v: %v", mode(dir), err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "diary.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keepPrivate(dir); err == nil || mode(dir) != 0o755 {
		t.Errorf("mode %v: %v", mode(dir), err)
	}
}
