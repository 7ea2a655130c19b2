package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hark/engine"
	"hark/index"
)

// memoryCall is a line of testdata/memory/calls.jsonl: a call as the host's search manager and tools
// cause it, and what has to be in the answer. "<score>", "<string>" and "<absent>" stand for kinds of
// values; lists have to be as long as they are there, objects may have more.
type memoryCall struct {
	Note   string          `json:"note"`
	Call   string          `json:"call"`
	Params json.RawMessage `json:"params"`
	Want   any             `json:"want"`
	Error  string          `json:"error"`
}

// TestMemoryCalls replays calls of a host against a server with a real engine.
func TestMemoryCalls(t *testing.T) {
	ws := t.TempDir()
	for name, text := range map[string]string{
		"MEMORY.md": "The boiler is a Vaillant.\n", "memory/probe.md": "# Launch\n\nThe launch code word is pelican.\n", "../outside.md": "outside",
	} {
		file := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join("testdata", "memory", "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	name, err := json.Marshal(ws)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte(`"$WS"`), name)
	ts := memoryServer(t)
	for line := range bytes.Lines(data) {
		var c memoryCall
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(ts.URL+"/v1/agents/main/"+c.Call, "application/json", bytes.NewReader(c.Params))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // it was read to its end
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := c.Want
		if c.Error != "" {
			want = map[string]any{"error": map[string]any{"code": c.Error, "message": "<string>"}}
		}
		if why := fits("answer", want, got); why != "" {
			t.Errorf("%s: %s\n%s", c.Note, why, body)
		}
	}
}

// memoryServer serves a real engine with one message.
func memoryServer(t *testing.T) *httptest.Server {
	t.Helper()
	store, err := index.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(store, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.CommitTurn(t.Context(), engine.CommitTurnParams{
		AdvancementKey: "t1", SessionID: "s1", SessionKey: "agent:main:main",
		Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"my pelican lost some feathers","timestamp":1772884800000}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := engine.NewMemory(e, t.TempDir(), &engine.MemoryOptions{Whole: true})
	open := func(context.Context, string, bool) (*Agent, error) {
		return &Agent{Engine: e, Memory: m, Close: func() error { return errors.Join(m.Close(), e.Close(), store.Close()) }}, nil
	}
	notFound := func(err error) *Error {
		if errors.Is(err, index.ErrNotFound) {
			return &Error{Code: CodeNotFound, Message: err.Error()}
		}
		return nil
	}
	srv := NewServer(ServerOptions{Open: open, Classify: notFound})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		ts.Close()
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ts
}

// fits says what of got is not as wanted, "" where all is.
func fits(at string, want, got any) string {
	switch w := want.(type) {
	case string:
		switch s, isText := got.(string); w {
		case "<absent>":
			if got != nil {
				return at + " is there"
			}
			return ""
		case "<string>":
			if !isText || s == "" {
				return fmt.Sprintf("%s is %v", at, got)
			}
			return ""
		case "<score>":
			if n, ok := got.(float64); !ok || n <= 0 || n > 1 {
				return fmt.Sprintf("%s is %v", at, got)
			}
			return ""
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for key, v := range w {
			if why := fits(at+"."+key, v, g[key]); why != "" {
				return why
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s has another length: %v", at, got)
		}
		for i := range w {
			if why := fits(fmt.Sprint(at, "[", i, "]"), w[i], g[i]); why != "" {
				return why
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s is %q, want %q", at, got, want)
	}
	return ""
}

// A daemon without memory tools says so, and does not fall.
func TestNoMemoryTools(t *testing.T) {
	e := newScripted(script{})
	srv := NewServer(ServerOptions{Open: e.open})
	ts := httptest.NewServer(srv)
	defer ts.Close()
	res, err := http.Post(ts.URL+"/v1/agents/main/memorySearch", "application/json", strings.NewReader(`{"query":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", res.StatusCode)
	}
}
