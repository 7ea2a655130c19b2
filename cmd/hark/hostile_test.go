package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/engine/wire"
)

// hostileNames are agent ids and session keys that mean a place elsewhere, or nothing, on some system.
// (ENV-01)
func hostileNames() []string {
	return []string{
		"../../etc", "..", ".", "/etc/passwd", `..\..\windows`, `C:\boot.ini`, "C:", "con", "NUL.txt", "a/../../b", "a\x00b", "",
		"agent:main:main", "agent:main:telegram:group:-100:topic:7", " spaces ", "ÄÖÜ", "ﬁle", "\u202egpj.exe", "-rf", "~", "$HOME",
		"%2e%2e%2f", "a%00b", strings.Repeat("x", 300), strings.Repeat("é", 60), "trailing.", "trailing ", ".hidden", "LOCK", "log.sqlite", "\r\n", "{}",
	}
}

// tree lists the files below a folder, without what is in the folders named.
func tree(t *testing.T, dir string, without ...string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && slices.Contains(without, path) {
			return fs.SkipDir
		}
		if err == nil && path != dir {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNoRequestLeavesTheFolder: whatever an agent, a session or an entry is called, nothing is read or
// written outside the folder of agents, and two names never share a store.
func TestNoRequestLeavesTheFolder(t *testing.T) {
	top := filepath.Dir(shortDir(t))
	data := filepath.Join(top, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(top, "secret.json")
	if err := os.WriteFile(secret, []byte(`{"role":"user","content":"the launch code"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &serving{console: console{env: func(string) (string, bool) { return "", false }}, metrics: newMetrics(), app: &app{}}
	d.app.set = defaults(func(string) (string, bool) { return "", false })
	d.app.set.Data, d.app.set.Embedder.Provider = data, "none"
	srv := wire.NewServer(wire.ServerOptions{Open: d.open, Classify: classify})
	before := tree(t, top, filepath.Join(data, "agents"))
	ask := func(method, path, body string) string {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, name := range hostileNames() {
		message := map[string]any{"role": "user", "content": "a walrus"}
		body, err := json.Marshal(map[string]any{
			"advancementKey": "k", "sessionId": name, "sessionKey": name, "sessionFile": secret, "messages": []any{message},
			"sessionTarget": map[string]string{"agentId": name, "sessionKey": name, "storePath": secret},
			"history":       []any{map[string]any{"entryId": name, "parentId": secret, "message": message}}, "workspaceDir": top, "cursor": secret,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{url.PathEscape(name), "main"} {
			for _, method := range []string{"commitTurn", "bootstrap", "afterTurn", "assemble", "search", "export", "forget", "compacted", "onSubagentEnded", url.PathEscape(name)} {
				if got := ask(http.MethodPost, "/v1/agents/"+agent+"/"+method, string(body)); strings.Contains(got, "launch code") {
					t.Errorf("%q %s tells %s", name, method, got)
				}
			}
			ask(http.MethodGet, "/v1/agents/"+agent+"/cursor?session="+url.QueryEscape(name), "")
		}
		ask(http.MethodGet, "/v1/status?agent="+url.QueryEscape(name), "")
		ask(http.MethodGet, "/"+url.PathEscape(name), "")
	}
	if err := srv.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if after := tree(t, top, filepath.Join(data, "agents")); !slices.Equal(before, after) {
		t.Errorf("outside of the agents' folder: %v, before: %v", after, before)
	}
	stores, err := os.ReadDir(filepath.Join(data, "agents"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		if safeName(s.Name()) != s.Name() {
			t.Errorf("a store in %q", s.Name())
		}
	}
}

// Two ids share a folder only where the host would not tell them apart either. (ENV-01, ISO-04)
func TestNamesDoNotCollide(t *testing.T) {
	seen := map[string]string{}
	for _, name := range hostileNames() {
		dir := safeName(name)
		if was, ok := seen[dir]; ok {
			t.Errorf("%q and %q are both in %s", was, name, dir)
		}
		seen[dir] = name
		if filepath.Base(dir) != dir || strings.ContainsAny(dir, `:\/*?"<>|`) || len(dir) > 64 {
			t.Errorf("%q is in %q", name, dir)
		}
	}
}

// FuzzConfigFile: no configuration file makes the program panic, and what is wrong names the file.
func FuzzConfigFile(f *testing.F) {
	for _, text := range []string{"", "agent = \"a\"", "[embedder]\nbatch = 3", "people = 3", "[people]\nann = [\"telegram:1\"]", "a.b.c = [[1]]", "timezone = 2026-01-01", "[embedder.x]\ny=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(path); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not name the file", err)
		}
	})
}

// FuzzCommandLine: no arguments make a command panic, hang or end with a code of its own; one that
// fails says why on standard error. (ENV-04)
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{
		"search \x00", "search -k -1 x", "search -k 99999999999999999999 x", "status --json --agent ../../x", "sessions --agent agent:main:main", "forget --id x --yes",
		"forget --before 2026 --yes", "check --agent \u202e", "search --session '' x", "context --budget -5", "assemble --budget NaN", "config --config /", "trace x", "help nothing",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		if len(args) == 0 || len(args) > 12 || !slices.Contains([]string{"search", "status", "sessions", "forget", "check", "context", "config", "trace", "help", "version"}, args[0]) {
			t.Skip()
		}
		var out, errs bytes.Buffer
		home := t.TempDir()
		env := func(name string) (string, bool) {
			switch name {
			case "HOME", "HARK_DATA":
				return filepath.Join(home, strings.ToLower(name)), true
			case "HARK_EMBEDDER_PROVIDER":
				return "none", true
			}
			return "", false
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		code := run(ctx, args, console{in: strings.NewReader(""), out: &out, err: &errs, env: env})
		if code < 0 || code > 2 || ctx.Err() != nil {
			t.Errorf("%q ends with %d", args, code)
		}
		if code == 2 && errs.Len() == 0 {
			t.Errorf("%q fails without a word", args)
		}
	})
}
