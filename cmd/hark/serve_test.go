package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hark/engine"
	"hark/engine/wire"
	"hark/index"
)

// hark runs a command line in this process, over a data folder.
func hark(ctx context.Context, t *testing.T, data string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	env := func(name string) (string, bool) {
		switch name {
		case "HARK_DATA":
			return data, true
		case "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME":
			return filepath.Dir(data), true
		}
		return "", false
	}
	code = run(ctx, args, console{in: strings.NewReader(""), out: &o, err: &e, env: env})
	return code, o.String(), e.String()
}

// shortDir is a folder whose path leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hark")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// startServe runs hark serve until the test ends or stop is called, which returns its exit code.
func startServe(t *testing.T, data string) (c *wire.Client, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		code, _, errs := hark(ctx, t, data, "serve", "--idle-exit", "1h")
		if errs != "" {
			t.Errorf("serve is not quiet: %s", errs)
		}
		done <- code
	}()
	stop = func() int {
		cancel()
		code := <-done
		done <- code
		return code
	}
	t.Cleanup(func() { stop() })
	c = wire.NewClient(data, wire.ClientOptions{Spawn: func(context.Context) error { return nil }})
	t.Cleanup(c.Close)
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatalf("the daemon does not answer: %v", err)
	}
	return c, stop
}

const kitchenTalk = `{"session":"kitchen","role":"user","sender":"Ann","timestamp":"2026-03-01T18:00:00Z","content":"The quince jelly needs nine hundred grams of sugar."}
{"session":"kitchen","role":"assistant","timestamp":"2026-03-01T18:00:05Z","content":"Noted: 900 g of sugar for the quince jelly."}
{"session":"garage","role":"user","sender":"Ann","timestamp":"2026-03-02T09:00:00Z","content":"The bike lock has the code 4471."}
{"session":"garage","role":"assistant","timestamp":"2026-03-02T09:00:09Z","content":"I will keep the code of the bike lock."}
`

// timings differ from run to run.
var timings = regexp.MustCompile(`"(took_ms|ms|tookNs)": [0-9.e+-]+|in [0-9.]+ (µs|ms|s)\b`)

// TestCommandsWhileADaemonServes runs each command with and without a daemon: it says the same.
func TestCommandsWhileADaemonServes(t *testing.T) {
	data := shortDir(t)
	file := filepath.Join(filepath.Dir(data), "talk.jsonl")
	if err := os.WriteFile(file, []byte(kitchenTalk), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := hark(t.Context(), t, data, "import", file); code != 0 || !strings.Contains(out, "4 new") {
		t.Fatalf("import: %d %s%s", code, out, errs)
	}
	commands := [][]string{
		{"search", "quince", "sugar"}, {"search", "--json", "--trace", "bike lock"}, {"search", "--session", "garage", "code"},
		{"status", "--json"}, {"check", "--json"}, {"sessions", "--json"}, {"import", file},
		{"assemble", "--json", "--session", "main", "--budget", "4000", "--prompt", "how much sugar for the quince jelly?"},
		{"search", ""}, {"search", "-k", "0", "x"}, {"status", "--agent", "nobody"}, {"search", "--agent", "nobody", "x"},
		{"forget", "--id", "none", "--yes"},
	}
	type said struct {
		code      int
		out, errs string
	}
	alone := make([]said, len(commands))
	do := func(args []string) said {
		code, out, errs := hark(t.Context(), t, data, args...)
		return said{code, timings.ReplaceAllString(out, "TIME"), errs}
	}
	for i, args := range commands {
		alone[i] = do(args)
	}
	if !strings.Contains(alone[7].out, "900") || !strings.Contains(alone[0].out, "nine hundred") {
		t.Errorf("without a daemon nothing is recalled: %+v", alone[7])
	}
	c, stop := startServe(t, data)
	for i, args := range commands {
		got, want := do(args), alone[i]
		if args[0] == "status" { // the files grow
			got.out, want.out = sizes.ReplaceAllString(got.out, "SIZE"), sizes.ReplaceAllString(want.out, "SIZE")
		}
		if got != want {
			t.Errorf("hark %s with a daemon:\n%+v\nwithout:\n%+v", strings.Join(args, " "), got, want)
		}
	}
	hello, err := c.Hello(t.Context())
	if err != nil || fmt.Sprint(hello.Agents) != "[main]" {
		t.Errorf("the commands made no stores and opened one: %+v, %v", hello, err)
	}

	more := `{"session":"kitchen","role":"user","sender":"Ann","timestamp":"2026-03-05T18:00:00Z","content":"The oven door squeaks."}` + "\n"
	if err := os.WriteFile(file, []byte(kitchenTalk+more), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := hark(t.Context(), t, data, "import", file); code != 0 || !strings.Contains(out, "5 messages (1 new, 4 duplicate, 0 skipped)") {
		t.Errorf("import through the daemon: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "forget", "--session", "garage", "--yes"); code != 0 || out != "forgot 2 messages\n" {
		t.Errorf("forget through the daemon: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "serve"); code != 0 || out+errs != "" {
		t.Errorf("a second daemon: %d %s%s", code, out, errs)
	}
	if code := stop(); code != 0 {
		t.Errorf("the daemon ended with %d", code)
	}
	if got := do([]string{"search", "squeaks"}); !strings.Contains(got.out, "oven door") {
		t.Errorf("after the daemon: %+v", got)
	}
	log, err := os.ReadFile(filepath.Join(data, "logs", "hark.log"))
	if err != nil || !bytes.Contains(log, []byte("stopped")) || bytes.Contains(log, []byte("quince")) || bytes.Contains(log, []byte("WARN")) {
		t.Errorf("log: %s, %v", log, err)
	}
}

var sizes = regexp.MustCompile(`"(log|words|bytes_total|set aside)": \d+`)

// TestDaemonRefusesANewerStore lets the daemon meet a store it must not touch.
func TestDaemonRefusesANewerStore(t *testing.T) {
	data := shortDir(t)
	c, _ := startServe(t, data)
	dir := filepath.Join(data, "agents", "main")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log.sqlite"), []byte("this is no database, and not ours to replace"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := c.Call(t.Context(), "main", "maintain", map[string]string{"sessionId": "s"}, nil)
	if refused, ok := errors.AsType[*wire.Error](err); !ok || refused.Message == "" {
		t.Errorf("a damaged store: %v", err)
	}
	if err := c.Call(t.Context(), "other", "maintain", map[string]string{"sessionId": "s"}, nil); err != nil {
		t.Errorf("another agent meanwhile: %v", err)
	}
}

// saidTurn is a turn of a session, as a host commits it.
func saidTurn(key, session, text string) engine.CommitTurnParams {
	message := func(role, text string, ms int) json.RawMessage {
		raw, _ := json.Marshal(map[string]any{"role": role, "content": text, "timestamp": 1796061012079 + ms})
		return raw
	}
	return engine.CommitTurnParams{
		AdvancementKey: key, SessionID: session, SessionKey: "agent:main:explicit:" + session,
		Messages: []json.RawMessage{message("user", text, 0), message("assistant", "Noted: "+text, 1)},
	}
}

// TestManySessionsAtOnce lets 32 sessions commit and assemble at the same time.
func TestManySessionsAtOnce(t *testing.T) {
	data := shortDir(t)
	c, _ := startServe(t, data)
	r := wire.NewRemote(c, "main", nil)
	const sessions, turns = 32, 3
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			session := fmt.Sprintf("s%02d", i)
			var messages []json.RawMessage
			for j := range turns {
				p := saidTurn(fmt.Sprintf("%s-%d", session, j), session, fmt.Sprintf("parcel %d of session %d has arrived", j, i))
				if res, err := r.CommitTurn(t.Context(), p); err != nil || res.Status != engine.Committed {
					t.Errorf("commit: %+v, %v", res, err)
				}
				messages = append(messages, p.Messages...)
				if res, err := r.Assemble(t.Context(), engine.AssembleParams{SessionKey: p.SessionKey, Messages: messages, Prompt: "and now?"}); err != nil || len(res.Kept) != len(messages) {
					t.Errorf("assemble keeps %d of %d, %v", len(res.Kept), len(messages), err)
				}
			}
		})
	}
	wg.Wait()
	code, out, errs := hark(t.Context(), t, data, "check", "--json")
	if want := fmt.Sprintf(`"rows": %d,`, sessions*turns*2); code != 0 || !strings.Contains(out, want) {
		t.Errorf("check: %d %s%s, want %s", code, out, errs, want)
	}
}

// TestKilledDaemonLosesNothing kills the daemon (kill -9) after each commit: the next call starts
// another one, which knows every turn that was acknowledged.
func TestKilledDaemonLosesNothing(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("starts processes under the name hark")
	}
	data := shortDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "hark")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	var running *exec.Cmd
	kill := func() {
		if running != nil {
			_ = running.Process.Kill()
			_ = running.Wait()
			running = nil
		}
	}
	t.Cleanup(kill)
	c := wire.NewClient(data, wire.ClientOptions{Spawn: func(context.Context) error {
		kill() // what is left of the last one
		running = exec.Command(program, "serve", "--data", data)
		running.Env = []string{"HOME=" + filepath.Dir(data)}
		return running.Start()
	}})
	t.Cleanup(c.Close)
	r := wire.NewRemote(c, "main", nil)
	for i := range 4 {
		for j := range i + 1 {
			want := engine.Duplicate
			if j == i {
				want = engine.Committed
			}
			res, err := r.CommitTurn(t.Context(), saidTurn(fmt.Sprint("turn-", j), "s1", fmt.Sprintf("the number of locker %d is %d", j, 700+j)))
			if err != nil || res.Status != want {
				t.Fatalf("round %d, turn %d: %+v, %v, want %s", i, j, res, err, want)
			}
		}
		_ = running.Process.Kill()
	}
	kill()
	if code, out, errs := hark(t.Context(), t, data, "check", "--json"); code != 0 || !strings.Contains(out, `"rows": 8,`) {
		t.Errorf("check: %d %s%s", code, out, errs)
	}
	if _, out, _ := hark(t.Context(), t, data, "search", "number of locker 3"); !strings.Contains(out, "703") {
		t.Errorf("search: %s", out)
	}
}

// TestCommandsBesideADaemonThatHangs holds the socket and the store and answers nothing, like a
// daemon that was stopped: what reads is served from the rows, what writes is refused, both soon.
func TestCommandsBesideADaemonThatHangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix sockets")
	}
	data := shortDir(t)
	file := filepath.Join(filepath.Dir(data), "talk.jsonl")
	if err := os.WriteFile(file, []byte(kitchenTalk), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := hark(t.Context(), t, data, "import", file); code != 0 {
		t.Fatalf("import: %s", errs)
	}
	store, err := index.Open(t.Context(), filepath.Join(data, "agents", "main"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", filepath.Join(data, "hark.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	if code, out, errs := hark(t.Context(), t, data, "search", "quince"); code != 0 || !strings.Contains(out, "nine hundred") {
		t.Errorf("search: %d %s%s", code, out, errs)
	}
	if code, _, errs := hark(t.Context(), t, data, "check"); code != 1 || !strings.Contains(errs, "does not answer") {
		t.Errorf("check: %d %s", code, errs) // ENV-04
	}
	if code, out, errs := hark(t.Context(), t, data, "status"); code != 0 || !strings.Contains(errs, "does not answer") || !strings.Contains(out, "4 in 2 sessions") {
		t.Errorf("status: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "import", file); code != 1 || !strings.Contains(errs, "in use") {
		t.Errorf("import: %d %s%s", code, out, errs)
	}
	if took := time.Since(start); took > 4*(daemonWait+time.Second) {
		t.Errorf("four commands took %v", took)
	}
}

func TestLogFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "hark.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 64<<10)
	for range 2 * (maxLog << 20) / len(line) {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) < 2 || len(files) > 1+oldLogs {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Size() > maxLog<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info, err)
		}
	}
}

// recordings is the folder with the traffic of a real host, "" where it is not there.
func recordings() string {
	for _, dir := range []string{os.Getenv("HARK_SHARED"), filepath.Join("..", "..", "..", "shared")} {
		path := filepath.Join(dir, "host", "recordings")
		if info, err := os.Stat(path); dir != "" && err == nil && info.IsDir() {
			return path
		}
	}
	return ""
}

// recorded is a line of a recording that is a call of an engine's method.
type recorded struct {
	Ev     string          `json:"ev"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  json.RawMessage `json:"error"`
	All    struct {
		Cursor  string            `json:"cursor"`
		Entries []json.RawMessage `json:"entries"`
	} `json:"all"`
}

// TestRecordings plays what a real host did against a daemon with the real engine: all of it is
// served, every committed turn is stored once, and what it says is valid for the host.
func TestRecordings(t *testing.T) {
	dir := recordings()
	if dir == "" {
		t.Skip("no recordings of a host: set HARK_SHARED")
	}
	for _, names := range [][]string{
		{"01-gateway-durable"}, {"02-agent-local"}, {"05a-throw-commitTurn", "05b-commitTurn-replayed"}, {"11-small-window-preflight-compaction"},
	} {
		t.Run(names[0], func(t *testing.T) {
			c, _ := startServe(t, shortDir(t))
			p := &player{client: c, keys: map[string]bool{}, calls: map[string]int{}}
			rows := 0
			for range 2 { // the second time everything is known already
				for _, name := range names {
					data, err := os.ReadFile(filepath.Join(dir, name+".lifecycle.jsonl"))
					if err != nil {
						t.Fatal(err)
					}
					for line := range bytes.Lines(data) {
						p.line(t, line)
					}
				}
				n := p.check(t)
				if rows != 0 && n != rows {
					t.Errorf("the same again makes %d rows of %d", n, rows)
				}
				rows = n
			}
			t.Logf("%d rows", rows)
			t.Logf("served %v; slowest assemble %v, commitTurn %v", p.calls, p.slowest["assemble"], p.slowest["commitTurn"])
		})
	}
}

// player sends what a host did to a daemon.
type player struct {
	client  *wire.Client
	keys    map[string]bool // advancement keys that were committed
	calls   map[string]int
	slowest map[string]time.Duration
	history struct {
		cursor  string
		entries []json.RawMessage
	}
}

func (p *player) line(t *testing.T, data []byte) {
	t.Helper()
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Ev == "transcript-delta" {
		p.history.cursor, p.history.entries = r.All.Cursor, r.All.Entries
		return
	}
	if r.Ev != "call" || r.Method == "dispose" {
		return
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(r.Params, &params); err != nil {
		t.Fatal(err)
	}
	delete(params, "runtimeContext")
	delete(params, "abortSignal")
	if set, ok := params["availableTools"]; ok { // a Set, as the recording writes it
		var tools struct {
			Set json.RawMessage `json:"$set"`
		}
		if err := json.Unmarshal(set, &tools); err != nil {
			t.Fatal(err)
		}
		params["availableTools"] = tools.Set
	}
	method := r.Method
	switch method {
	case "compact": // the host's; the daemon only hears of it
		method = "compacted"
	case "bootstrap":
		if len(p.history.entries) > 0 {
			params["history"], _ = json.Marshal(p.history.entries)
			params["cursor"], _ = json.Marshal(p.history.cursor)
		}
	}
	start := time.Now()
	var out map[string]json.RawMessage
	err := p.client.Call(t.Context(), "main", method, params, &out)
	if p.slowest == nil {
		p.slowest = map[string]time.Duration{}
	}
	p.slowest[method] = max(p.slowest[method], time.Since(start))
	p.calls[method]++
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return
	}
	p.answered(t, method, params, out)
}

// answered checks what the host would.
func (p *player) answered(t *testing.T, method string, params, out map[string]json.RawMessage) {
	t.Helper()
	switch method {
	case "commitTurn":
		key, want := string(params["advancementKey"]), `"committed"`
		if p.keys[key] {
			want = `"duplicate"`
		}
		p.keys[key] = true
		if got := string(out["status"]); got != want {
			t.Errorf("commitTurn %s: %s, want %s", key, got, want)
		}
	case "bootstrap":
		p.history.entries = nil
	case "assemble":
		var messages []json.RawMessage
		var kept [][2]int
		if json.Unmarshal(params["messages"], &messages) != nil || json.Unmarshal(out["kept"], &kept) != nil {
			t.Fatalf("assemble: %s", out["kept"])
		}
		for _, span := range kept {
			if span[0] < 0 || span[0] >= span[1] || span[1] > len(messages) {
				t.Errorf("assemble keeps %v of %d messages", kept, len(messages))
			}
		}
		if string(out["insert"]) == "null" || out["estimatedTokens"] == nil {
			t.Errorf("assemble: %v", out)
		}
	}
}

// check looks at the store at the end of a recording and returns how many rows it has.
func (p *player) check(t *testing.T) int {
	t.Helper()
	var status struct {
		Status struct {
			Messages int      `json:"messages"`
			Errors   []string `json:"errors"`
		} `json:"status"`
	}
	if err := p.client.Status(t.Context(), "main", &status); err != nil {
		t.Fatal(err)
	}
	var report checked
	if err := p.client.Call(t.Context(), "main", "check", nothing{}, &report); err != nil {
		t.Fatal(err)
	}
	if !report.OK || len(status.Status.Errors) != 0 || status.Status.Messages == 0 {
		t.Errorf("after the recording: %+v, %+v", status, report)
	}
	return status.Status.Messages
}
