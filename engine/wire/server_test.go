package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hark/engine"
)

func raws(messages ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i] = json.RawMessage(m)
	}
	return out
}

// waitFor returns when a method was called.
func (e *scripted) waitFor(t *testing.T, method string) {
	t.Helper()
	for range 2000 {
		e.mu.Lock()
		called := slices.Contains(e.calls, method)
		e.mu.Unlock()
		if called {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("%s was not called", method)
}

// serveTest runs a server over HTTP; the test closes it.
func serveTest(t *testing.T, opts ServerOptions) (*Server, *httptest.Server) {
	t.Helper()
	srv := NewServer(opts)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		ts.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return srv, ts
}

func post(t *testing.T, ts *httptest.Server, path, body string) (int, string) {
	t.Helper()
	a := send(t, ts, []byte("POST "+path+"\n\n"+body+"\n"))
	return a.status, string(a.body)
}

func TestClosedConnectionCancels(t *testing.T) {
	e := newScripted(script{})
	a := e.agent()
	started, ended := make(chan struct{}), make(chan error, 1)
	a.Methods["search"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	_, ts := serveTest(t, ServerOptions{Open: func(context.Context, string, bool) (*Agent, error) { return a, nil }})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, ts.URL+"/v1/agents/main/search", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-started; cancel() }()
	if res, err := ts.Client().Do(req); err == nil {
		res.Body.Close()
		t.Error("an answer to a client that went away")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the work ended with %v", err)
	}
}

func TestLimits(t *testing.T) {
	e := newScripted(script{Hang: []string{"maintain"}})
	_, ts := serveTest(t, ServerOptions{Open: e.open})
	var wg sync.WaitGroup
	for range MaxConcurrent {
		wg.Go(func() {
			// What is not answered in time keeps its place as long as it runs.
			if a := send(t, ts, []byte("POST /v1/agents/main/maintain\nHark-Deadline-Ms: 20\n\n{}\n")); a.status != http.StatusGatewayTimeout {
				t.Errorf("hung call: %d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if code, body := post(t, ts, "/v1/agents/main/ingest", "{}"); code != http.StatusServiceUnavailable || !strings.Contains(body, CodeBusy) {
		t.Errorf("one call too many: %d %s", code, body)
	}
	if a := send(t, ts, []byte("GET /v1/health\n\n")); a.status != http.StatusOK {
		t.Errorf("health while busy: %d", a.status)
	}
	close(e.release)
	for range 2000 { // the places are free again
		if code, _ := post(t, ts, "/v1/agents/main/ingest", `{"message":{}}`); code == http.StatusOK {
			break
		}
		<-time.After(time.Millisecond)
	}
	if code, body := post(t, ts, "/v1/agents/main/ingest", `{"message":{}}`); code != http.StatusOK {
		t.Errorf("after the flood: %d %s", code, body)
	}
}

// TestCloseDoesNotWaitForEver closes a server under a call that heeds nothing: the wait is bounded,
// the call's store is left alone, and what comes is refused.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	e := newScripted(script{Hang: []string{"maintain"}})
	srv := NewServer(ServerOptions{Open: e.open})
	ts := httptest.NewServer(srv)
	defer ts.Close()
	if a := send(t, ts, []byte("POST /v1/agents/main/maintain\nHark-Deadline-Ms: 20\n\n{}\n")); a.status != http.StatusGatewayTimeout {
		t.Errorf("hung call: %d", a.status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := srv.Close(ctx); err == nil || e.closed != 0 {
		t.Errorf("closed %d stores under a running call: %v", e.closed, err)
	}
	if code, body := post(t, ts, "/v1/agents/main/ingest", "{}"); code != http.StatusServiceUnavailable || !strings.Contains(body, CodeShuttingDown) {
		t.Errorf("after the end: %d %s", code, body)
	}
	close(e.release)
	if err := srv.Close(t.Context()); err != nil || e.closed != 1 {
		t.Errorf("closed %d stores at last: %v", e.closed, err)
	}
}

func TestTooLarge(t *testing.T) {
	_, ts := serveTest(t, ServerOptions{Open: newScripted(script{}).open})
	for name, body := range map[string]any{
		"announced": bytes.NewReader(make([]byte, MaxBody+1)),
		"streamed":  struct{ *bytes.Reader }{bytes.NewReader(make([]byte, MaxBody+1))},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+"/v1/agents/main/ingest", body.(interface {
			Read(p []byte) (int, error)
		}))
		if err != nil {
			t.Fatal(err)
		}
		res, err := ts.Client().Do(req)
		if err != nil {
			continue // the server hung up on it, which is as clear
		}
		res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
}

func TestPanicsKeepTheirTextOutOfTheLog(t *testing.T) {
	var log bytes.Buffer
	e := newScripted(script{Panic: []string{"ingest"}})
	_, ts := serveTest(t, ServerOptions{Open: e.open, Log: slog.New(slog.NewTextHandler(&log, nil))})
	code, body := post(t, ts, "/v1/agents/main/ingest", `{"message":{}}`)
	if code != http.StatusInternalServerError || strings.Contains(body, "goroutine") || strings.Contains(body, "conversation") {
		t.Errorf("%d %s", code, body)
	}
	if text := log.String(); !strings.Contains(text, "panic") || strings.Contains(text, "the text of a conversation") {
		t.Errorf("log: %s", text)
	}
}

func TestTraceOnlyOnRequest(t *testing.T) {
	_, ts := serveTest(t, ServerOptions{Open: newScripted(script{}).open})
	for header, want := range map[string]bool{"": false, "Hark-Trace: 1\n": true} {
		a := send(t, ts, []byte("POST /v1/agents/main/assemble\n"+header+"\n"+`{"sessionKey":"agent:main:main","messages":[]}`+"\n"))
		if got := strings.Contains(string(a.body), `"trace"`); got != want {
			t.Errorf("header %q: %s", header, a.body)
		}
	}
}

func TestRuntimeContextStopsAtTheDoor(t *testing.T) {
	e := newScripted(script{})
	_, ts := serveTest(t, ServerOptions{Open: e.open})
	post(t, ts, "/v1/agents/main/assemble", `{"sessionId":"s","messages":[],"runtimeContext":{"provider":"p"}}`)
	if len(e.seen) != 1 || e.seen[0].RuntimeContext != nil {
		t.Errorf("the engine saw %+v", e.seen)
	}
}

func TestStatusAndSearch(t *testing.T) {
	_, ts := serveTest(t, ServerOptions{Open: newScripted(script{}).open, Version: "0.1.0"})
	if a := send(t, ts, []byte("GET /v1/status?agent=main\n\n")); !strings.Contains(string(a.body), `"status":{"messages":0}`) {
		t.Errorf("status: %s", a.body)
	}
	if a := send(t, ts, []byte("GET /v1/status\n\n")); !strings.Contains(string(a.body), `"daemon":{"protocol":1`) {
		t.Errorf("status: %s", a.body)
	}
	if _, body := post(t, ts, "/v1/agents/main/search", `{"query":"bike"}`); !strings.Contains(body, `"asked":{"query":"bike"}`) {
		t.Errorf("search: %s", body)
	}
	if _, body := post(t, ts, "/v1/agents/MAIN/search", `{}`); !strings.Contains(body, `"asked"`) {
		t.Errorf("the same agent in capitals: %s", body)
	}
	if a := send(t, ts, []byte("GET /v1/hello\n\n")); !strings.Contains(string(a.body), `"agents":["main"]`) {
		t.Errorf("hello: %s", a.body)
	}
}

func TestErrorsHaveTheirCodes(t *testing.T) {
	locked := &Error{Code: CodeLocked, Message: "in use by process 7", Remedy: "stop it"}
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{locked, http.StatusLocked, CodeLocked},
		{errors.New("disk I/O: database or disk is full (13)"), http.StatusInsufficientStorage, CodeDiskFull},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, CodeDeadline},
		{errors.New("odd"), http.StatusInternalServerError, CodeInternal},
	} {
		_, ts := serveTest(t, ServerOptions{Open: func(context.Context, string, bool) (*Agent, error) { return nil, c.err }})
		code, body := post(t, ts, "/v1/agents/main/maintain", "{}")
		if code != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) {
			t.Errorf("%v: %d %s", c.err, code, body)
		}
	}
}

func TestAgentsAreOpenedOnceAndClosed(t *testing.T) {
	var mu sync.Mutex
	opened, fails := map[string]int{}, 2
	e := newScripted(script{})
	as := newAgents(t.Context(), func(_ context.Context, name string, create bool) (*Agent, error) {
		mu.Lock()
		defer mu.Unlock()
		opened[name]++
		switch {
		case name == "failing" && opened[name] <= fails:
			return nil, errors.New("not now")
		case name == "new" && !create:
			return nil, &Error{Code: CodeNotFound, Message: "nothing is stored for this agent"}
		case name == "panics":
			panic("bug")
		}
		return e.agent(), nil
	}, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := as.get(t.Context(), "main", true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened["main"] != 1 {
		t.Errorf("opened %d times", opened["main"])
	}
	for i := range fails + 1 {
		if _, err := as.get(t.Context(), "failing", true); (err != nil) != (i < fails) {
			t.Errorf("try %d: %v", i, err)
		}
	}
	if _, err := as.get(t.Context(), "new", false); !errors.Is(err, &Error{Code: CodeNotFound}) {
		t.Errorf("looking at an agent that is not there: %v", err)
	}
	if _, err := as.get(t.Context(), "new", true); err != nil {
		t.Errorf("creating it then: %v", err)
	}
	if _, err := as.get(t.Context(), "panics", true); !errors.Is(err, &Error{Code: CodeInternal}) {
		t.Errorf("an open that panics: %v", err)
	}
	if got := strings.Join(as.names(), " "); got != "failing main new" {
		t.Errorf("open: %s", got)
	}
	if err := as.close(t.Context()); err != nil || e.closed != 3 {
		t.Errorf("closed %d, %v", e.closed, err)
	}
	if _, err := as.get(t.Context(), "main", true); !errors.Is(err, errShuttingDown) {
		t.Errorf("after the end: %v", err)
	}
}

// FuzzBody sends bodies to every method: none is answered as a failure of the server.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		"", "{", "[]", "null", `{"sessionId":"s","messages":[{"role":"user"}]}`, `{"history":{"count":-1}}`,
		`{"history":{"base":"x","count":9999999999,"messages":[null]}}`, `{"messages":["\ud800",{"a":1e999}]}`,
		`{"advancementKey":"k","messages":[{}]}`, "{\"sessionKey\":\"\\u0000\"}", `{"childSessionKey":{}}`, `{"prePromptMessageCount":-5,"messages":[1]}`,
	} {
		f.Add(seed)
	}
	srv := NewServer(ServerOptions{Open: newScripted(script{}).open, Classify: classify})
	f.Fuzz(func(t *testing.T, body string) {
		for _, method := range []string{"bootstrap", "maintain", "ingest", "ingestBatch", "commitTurn", "afterTurn", "assemble", "prepareSubagentSpawn", "rollbackSubagentSpawn", "onSubagentEnded", "compacted"} {
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/agents/main/"+method, strings.NewReader(body)))
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %q: %d %s", method, body, w.Code, w.Body)
			}
		}
	})
}

func TestRanges(t *testing.T) {
	got, err := json.Marshal(ranges([]int{0, 1, 2, 5, 7, 8}))
	if err != nil || string(got) != "[[0,3],[5,6],[7,9]]" {
		t.Errorf("%s, %v", got, err)
	}
	if got := refer(engine.AssembleResult{}, false); got.Kept == nil || got.Insert == nil {
		t.Errorf("lists are never null: %+v", got)
	}
}
