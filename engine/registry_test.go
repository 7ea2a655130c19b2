package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stub is a complete engine whose methods answer with its name, fail, or panic.
type stub struct {
	ContextEngine
	id, name string
	err      error
	crash    bool
	mute     bool // declares no transcript semantics
	meddles  bool // changes the messages it is given
	requires map[string]HostRequirement
	calls    *[]string
}

func (s stub) Info() Info {
	info := Info{ID: s.id, Name: s.name, HostRequirements: s.requires}
	if !s.mute {
		info.TranscriptSemantics = &TranscriptSemantics{FenceBeforeCurrentTurn, AtomicIdempotent}
	}
	return info
}

func (s stub) do(op string) error {
	if s.calls != nil {
		*s.calls = append(*s.calls, op)
	}
	if s.crash {
		panic("broken")
	}
	return s.err
}

func (s stub) Assemble(_ context.Context, p AssembleParams) (AssembleResult, error) {
	if s.meddles {
		copy(p.Messages[0], "meddled")
		p.Messages[0] = json.RawMessage(`"meddled"`)
	}
	return AssembleResult{Messages: append([]json.RawMessage{}, p.Messages...), SystemPromptAddition: s.id}, s.do("assemble")
}
func (s stub) Bootstrap(context.Context, BootstrapParams) (BootstrapResult, error) {
	return BootstrapResult{Reason: s.id}, s.do("bootstrap")
}
func (s stub) Ingest(context.Context, IngestParams) (IngestResult, error) {
	return IngestResult{}, s.do("ingest")
}
func (s stub) CommitTurn(context.Context, CommitTurnParams) (CommitTurnResult, error) {
	return CommitTurnResult{Status: Committed}, s.do("commitTurn")
}
func (s stub) Compact(context.Context, CompactParams) (CompactResult, error) {
	return CompactResult{Reason: s.id}, s.do("compact")
}
func (s stub) PrepareSubagentSpawn(context.Context, SpawnParams) (*Spawn, error) {
	return nil, s.do("prepareSubagentSpawn")
}
func (s stub) Dispose(context.Context) error { return s.do("dispose") }

func opens(e ContextEngine, err error) func(context.Context) (ContextEngine, error) {
	return func(context.Context) (ContextEngine, error) { return e, err }
}

func TestGuard(t *testing.T) {
	fallback := stub{id: "legacy", name: "Legacy"}
	boom := errors.New("boom")
	good := stub{id: "x", name: "X"}
	ops := map[string]func(*Guard, context.Context) error{
		"assemble":  func(g *Guard, ctx context.Context) error { _, err := g.Assemble(ctx, AssembleParams{}); return err },
		"bootstrap": func(g *Guard, ctx context.Context) error { _, err := g.Bootstrap(ctx, BootstrapParams{}); return err },
		"ingest":    func(g *Guard, ctx context.Context) error { _, err := g.Ingest(ctx, IngestParams{}); return err },
		"compact":   func(g *Guard, ctx context.Context) error { _, err := g.Compact(ctx, CompactParams{}); return err },
		"prepareSubagentSpawn": func(g *Guard, ctx context.Context) error {
			_, err := g.PrepareSubagentSpawn(ctx, SpawnParams{})
			return err
		},
		"commitTurn": func(g *Guard, ctx context.Context) error { _, err := g.CommitTurn(ctx, CommitTurnParams{}); return err },
	}
	ctx := t.Context()
	for op, call := range ops {
		for _, broken := range []stub{{id: "x", name: "X", err: boom}, {id: "x", name: "X", crash: true}} {
			g := NewGuard("x", opens(broken, nil), fallback, nil, nil, nil)
			first := call(g, ctx)
			rethrows := slices.Contains([]string{"compact", "prepareSubagentSpawn", "commitTurn"}, op)
			if (first != nil) != rethrows {
				t.Errorf("%s: first failure returned %v", op, first)
			}
			fault, bad := g.Fault()
			if want := op != "commitTurn" || broken.crash; bad != want {
				t.Errorf("%s: quarantined %v, want %v", op, bad, want)
			}
			if bad && fault.Operation != op {
				t.Errorf("%s: fault of %s", op, fault.Operation)
			}
			if bad {
				if err := call(g, ctx); err != nil {
					t.Errorf("%s: the fallback failed: %v", op, err)
				}
			}
		}
		if err := call(NewGuard("x", opens(good, nil), fallback, nil, nil, nil), ctx); err != nil {
			t.Errorf("%s on a good engine: %v", op, err)
		}
	}
	for name, open := range map[string]func(context.Context) (ContextEngine, error){
		"missing": nil, "factory fails": opens(nil, boom), "nothing": opens(nil, nil), "no name": opens(stub{id: "x", name: " "}, nil),
		"no id": opens(stub{name: "X"}, nil), "other id": opens(stub{id: "y", name: "Y"}, nil),
		"factory panics": func(context.Context) (ContextEngine, error) { panic("no") },
	} {
		g := NewGuard("x", open, fallback, nil, nil, nil)
		res, err := g.Assemble(ctx, AssembleParams{})
		if err != nil || res.SystemPromptAddition != "legacy" {
			t.Errorf("%s: %v %v", name, res, err)
		}
		if _, bad := g.Fault(); !bad {
			t.Errorf("%s: not quarantined", name)
		}
	}
}

// An aborted call is the caller's doing.
func TestGuardAbort(t *testing.T) {
	fallback := stub{id: "legacy", name: "Legacy"}
	for name, err := range map[string]error{"canceled": context.Canceled, "aborted": ErrAborted} {
		g := NewGuard("x", opens(stub{id: "x", name: "X", err: err}, nil), fallback, nil, nil, nil)
		if _, got := g.Assemble(t.Context(), AssembleParams{}); !errors.Is(got, err) {
			t.Errorf("%s: %v", name, got)
		}
		if _, bad := g.Fault(); bad {
			t.Errorf("%s quarantines", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := NewGuard("x", opens(stub{id: "x", name: "X", err: errors.New("late")}, nil), fallback, nil, nil, nil)
	if _, err := g.Compact(ctx, CompactParams{}); err == nil {
		t.Error("the error of an aborted call is lost")
	}
	if _, bad := g.Fault(); bad {
		t.Error("an aborted call quarantines")
	}
}

// HOST-11: whatever an engine did to the messages before it failed, the fallback gets the host's.
func TestGuardMessages(t *testing.T) {
	g := NewGuard("x", opens(stub{id: "x", name: "X", crash: true, meddles: true}, nil), stub{id: "legacy", name: "L"}, nil, nil, nil)
	res, err := g.Assemble(t.Context(), AssembleParams{Messages: []json.RawMessage{user("hello", day)}})
	if err != nil || res.SystemPromptAddition != "legacy" || string(res.Messages[0]) != string(user("hello", day)) {
		t.Errorf("%s %v", res.Messages, err)
	}
}

// A factory that its first caller gave up is asked again.
func TestGuardTriesAgain(t *testing.T) {
	calls := 0
	g := NewGuard("x", func(ctx context.Context) (ContextEngine, error) {
		calls++
		return stub{id: "x", name: "X"}, ctx.Err()
	}, stub{id: "legacy", name: "L"}, nil, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res, err := g.Assemble(ctx, AssembleParams{}); err != nil || res.SystemPromptAddition != "legacy" {
		t.Errorf("%+v %v", res, err)
	}
	given := calls
	for range 2 {
		if res, err := g.Assemble(t.Context(), AssembleParams{}); err != nil || res.SystemPromptAddition != "x" {
			t.Errorf("%+v %v", res, err)
		}
	}
	if calls != given+1 {
		t.Errorf("%d calls, %d of them given up", calls, given)
	}
}

func TestGuardDispose(t *testing.T) {
	var calls []string
	s := stub{id: "x", name: "X", calls: &calls}
	g := NewGuard("x", opens(s, nil), stub{id: "legacy", name: "L"}, nil, nil, nil)
	if _, err := g.Ingest(t.Context(), IngestParams{}); err != nil {
		t.Fatal(err)
	}
	if err := g.Dispose(t.Context()); err != nil || !slices.Equal(calls, []string{"ingest", "dispose"}) {
		t.Errorf("%v %v", calls, err)
	}
}

// Unmet host requirements fail closed with the declared message.
func TestHostRequirements(t *testing.T) {
	s := stub{id: "x", name: "X", requires: map[string]HostRequirement{
		ManualCompact: {RequiredCapabilities: []string{CanCompact}, UnsupportedMessage: "no compaction here"},
		AgentRun:      {RequiredCapabilities: []string{CanAssemble, CanBootstrap}},
	}}
	g := NewGuard("x", opens(s, nil), stub{id: "legacy", name: "L"}, []string{CanBootstrap}, nil, nil)
	_, err := g.Compact(t.Context(), CompactParams{})
	var unmet *HostError
	if !errors.As(err, &unmet) || err.Error() != "no compaction here" {
		t.Errorf("compact: %v", err)
	}
	_, err = g.Assemble(t.Context(), AssembleParams{})
	if err == nil || !strings.Contains(err.Error(), CanAssemble) || strings.Contains(err.Error(), CanBootstrap) {
		t.Errorf("assemble: %v", err)
	}
	if _, bad := g.Fault(); bad {
		t.Error("a poor host quarantines the engine")
	}
	if err := CheckHost(s.Info(), SubagentSpawn, nil); err != nil {
		t.Errorf("an undeclared operation: %v", err)
	}
}

func TestRegistry(t *testing.T) {
	fallback := stub{id: LegacyID, name: "Legacy"}
	factory := func(e ContextEngine, err error) Factory {
		return func(context.Context, FactoryContext) (ContextEngine, error) { return e, err }
	}
	r := NewRegistry(fallback, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var got FactoryContext
	must(r.Register("hark", "plugin", func(_ context.Context, fc FactoryContext) (ContextEngine, error) {
		got = fc
		return stub{id: "hark", name: "Hark"}, nil
	}))
	must(r.Register("bad", "plugin", factory(nil, errors.New("no disk"))))
	must(r.Register("liar", "other", factory(stub{id: "hark", name: "H"}, nil)))
	for _, id := range []string{"", " ", "legacy", " x"} {
		if r.Register(id, "plugin", factory(nil, nil)) == nil {
			t.Errorf("%q was registered", id)
		}
	}
	if r.Register("hark", "thief", factory(nil, nil)) == nil {
		t.Error("another owner took the id")
	}
	for slot, want := range map[string]string{"": "legacy", "legacy": "legacy", "hark": "hark", " hark ": "hark", "gone": "legacy", "bad": "legacy", "liar": "legacy"} {
		res, err := r.Resolve(t.Context(), Run{Slot: slot, Context: FactoryContext{AgentDir: "/a", WorkspaceDir: "/w"}})
		if err != nil || res.ID != want || res.Engine.Info().ID != want {
			t.Errorf("slot %q: %+v %v", slot, res, err)
		}
		if falls := want == "legacy" && strings.TrimSpace(slot) != "" && slot != "legacy"; falls != (res.Reason != "") {
			t.Errorf("slot %q: reason %q", slot, res.Reason)
		}
	}
	if got.AgentDir != "/a" || got.WorkspaceDir != "/w" {
		t.Errorf("the factory got %+v", got)
	}
	if f, bad := r.Fault("bad"); !bad || f.Operation != "factory" {
		t.Errorf("fault %+v", f)
	}
	var calls []string
	must(r.Register("mute", "plugin", factory(stub{id: "mute", name: "Mute", mute: true, calls: &calls}, nil)))
	if res, err := r.Resolve(t.Context(), Run{Slot: "mute"}); err != nil || res.ID != "legacy" || !strings.Contains(res.Reason, "transcriptSemantics") || !slices.Equal(calls, []string{"dispose"}) {
		t.Errorf("an engine without transcript semantics: %+v %v, %v", res, err, calls)
	}
	must(r.Register("bad", "plugin", factory(stub{id: "bad", name: "Better"}, nil)))
	if res, _ := r.Resolve(t.Context(), Run{Slot: "bad"}); res.ID != "bad" {
		t.Errorf("registering anew did not clear the quarantine: %+v", res)
	}
	r.Unregister("plugin")
	if res, _ := r.Resolve(t.Context(), Run{Slot: "hark"}); res.ID != "legacy" || !strings.Contains(res.Reason, "hark") {
		t.Errorf("a removed plugin: %+v", res)
	}
}

func TestReadSlot(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ in, want string }{
		"json":        {`{"plugins":{"slots":{"contextEngine":"hark"}}}`, "hark"},
		"unset":       {`{}`, ""},
		"null":        {`{"plugins":{"slots":{"contextEngine":null}}}`, ""},
		"json5":       {"// main\n{ plugins: { slots: { contextEngine: 'hark', /* own */ memory: \"memory-core\", }, load: { paths: ['~/x',], n: +.5, h: 0xFF, f: 5., inf: -Infinity }, }, }", "hark"},
		"quotes":      {`{plugins:{slots:{contextEngine:'ha"r\'k'}}}`, `ha"r'k`},
		"continued":   {"{plugins:{slots:{contextEngine:'ha\\\nrk'}}}", "hark"},
		"odd keys":    {"{$a_1: 1, \u00e9: 2, 'x y': 3, 4: 5, \\u0061b: 6, plugins /* c */ : {slots:{contextEngine:\"\\x68ark\"}}}", "hark"},
		"url inside":  {`{a:"http://x/*y*/", plugins:{slots:{contextEngine:"hark"}}}`, "hark"},
		"byte order":  {"\ufeff{plugins:{slots:{contextEngine:'hark'}}}", "hark"},
		"last line":   {"{plugins:{slots:{contextEngine:'hark'}}} // the end", "hark"},
		"other case":  {`{"Plugins":{"SLOTS":{"contextengine":"hark"}}}`, ""},
		"case inside": {`{plugins:{Slots:{contextEngine:"x"},slots:{contextEngine:"hark",ContextEngine:"y"}}}`, "hark"},
		"no slots":    {`{plugins:{slots:null}}`, ""},
		"colon value": {`{a:{b:true}, plugins:{slots:{contextEngine:'hark'}}}`, "hark"},
	} {
		path := filepath.Join(dir, "openclaw.json")
		if err := os.WriteFile(path, []byte(tc.in), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadSlot(path); err != nil || got != tc.want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	for _, bad := range []string{"{plugins:{slots:{contextEngine:hark}}}", "{a:'x", "{\n\n a: b c}", "", `{plugins:{slots:{contextEngine:4}}}`} {
		path := filepath.Join(dir, "bad.json")
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSlot(path); err == nil || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got, err := ReadSlot(filepath.Join(dir, "none.json")); got != "" || err != nil {
		t.Errorf("a missing file: %q %v", got, err)
	}
}

func FuzzStandardJSON(f *testing.F) {
	for _, s := range []string{"{a:'b'}", "{/*x*/a:+.5,}", "[0x1,\"\\x41\"]", "{\\u0061:1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, err := StandardJSON(data); err == nil && !json.Valid(out) {
			t.Fatalf("%q became %q", data, out)
		}
	})
}
