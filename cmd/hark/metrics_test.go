package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hark/engine"
	"hark/engine/wire"
)

// TestMetrics: what was served, what failed and how it is can be scraped on the loopback port, and no
// text, session or made-up name is in it.
func TestMetrics(t *testing.T) {
	data := shortDir(t)
	m := newMetrics()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, address := range []string{"0.0.0.0:0", "example.com:80", "9464", "192.0.2.1:9464"} {
		if _, err := m.serveLoopback(ctx, address); err == nil {
			t.Errorf("metrics are served at %s", address)
		}
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &serving{console: console{env: func(string) (string, bool) { return "", false }}, metrics: m, app: &app{}}
	d.app.set = defaults(func(string) (string, bool) { return "", false })
	d.app.set.Data = data
	srv := wire.NewServer(wire.ServerOptions{Open: d.open, Classify: classify, Metrics: m.handler(), Observe: m.observe})
	defer func() {
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	socket := filepath.Join(data, "hark.sock")
	hs := &http.Server{Handler: srv}
	l := listenAt(t, socket)
	go func() { _ = hs.Serve(l) }()
	defer hs.Close()
	c := wire.NewClient(data, wire.ClientOptions{})
	defer c.Close()
	remote := wire.NewRemote(c, "main", nil)
	turn := engine.CommitTurnParams{AdvancementKey: "k1", SessionID: "s", SessionKey: "agent:main:explicit:secretsession", Messages: []json.RawMessage{
		json.RawMessage(`{"role":"user","content":"the walrus is called Otto"}`), json.RawMessage(`{"role":"assistant","content":"noted"}`),
	}}
	for range 2 {
		if _, err := remote.CommitTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := remote.Assemble(t.Context(), engine.AssembleParams{SessionID: "o", SessionKey: "agent:main:explicit:other", Prompt: "what is the walrus called?", TokenBudget: 50_000}); err != nil {
		t.Fatal(err)
	}
	_ = c.Call(t.Context(), "main", "madeupmethod", nothing{}, nil)
	_ = c.Call(t.Context(), "madeupagent", "search", searchQuery{Query: "x"}, nil)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://hark/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := body(t, socketClient(socket), req)
	for _, want := range []string{
		`hark_turns_committed_total{agent="main"} 1`, `hark_turns_duplicate_total{agent="main"} 1`, `hark_contexts_total{agent="main"} 1`,
		`hark_recalls_total{agent="main"} 1`, `hark_messages{agent="main"} 2`, `hark_degraded{agent="main",what="meaning"} 0`,
		`hark_embedder_up{agent="main",model="builtin/`, `hark_call_seconds_count{agent="main",method="commitTurn"} 2`,
		`hark_calls_failed_total{agent="main",code="unknown-method",method=""} 1`, `hark_store_bytes{agent="main",part="log"}`,
		`hark_pending{agent="main",what="vectors"} 0`, `hark_last_turn_timestamp_seconds{agent="main",what="committed"}`, `go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, private := range []string{"walrus", "Otto", "secretsession", "madeup"} {
		if strings.Contains(text, private) {
			t.Errorf("the metrics tell %q", private)
		}
	}
}

func body(t *testing.T, c *http.Client, req *http.Request) string {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %s", res.Status, err, data)
	}
	return string(data)
}

// TestMetricsOnAPort: the port answers this machine under its own names only.
func TestMetricsOnAPort(t *testing.T) {
	l := listenAt(t, "")
	address := l.Addr().String()
	_ = l.Close()
	ended, err := newMetrics().serveLoopback(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer ended()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if text := body(t, client, req); !strings.Contains(text, "hark_build_info") {
		t.Error(text)
	}
	req.Host = "evil.example"
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusForbidden {
		t.Errorf("asked under another name: %s", res.Status)
	}
}

// listenAt listens on a socket, or on a free port where there is no path.
func listenAt(t *testing.T, socket string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	network, address := "unix", socket
	if socket == "" {
		network, address = "tcp", "127.0.0.1:0"
	}
	l, err := config.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
}
