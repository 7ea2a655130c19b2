package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
	"hark/memorybridge"
)

const groupKey = "agent:main:telegram:group:-100"

// memoryOver opens a memory over a workspace of the given files.
func memoryOver(t *testing.T, emb embed.Embedder, files map[string]string) (*Memory, *Engine, string) {
	t.Helper()
	e := open(t, emb, nil)
	ws := t.TempDir()
	for name, text := range files {
		writeNote(t, ws, name, text)
	}
	m := NewMemory(e, t.TempDir(), &MemoryOptions{Patience: time.Minute, Whole: true})
	t.Cleanup(func() {
		for _, nb := range m.open {
			if report, err := nb.store.Check(context.Background()); err != nil || !report.OK() {
				t.Errorf("check: %+v %v", report, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := m.Sync(t.Context(), MemorySyncParams{Corpora: Corpora{Workspace: ws}}); err != nil {
		t.Fatal(err)
	}
	return m, e, ws
}

// lookUp searches and returns the paths, messages by their text.
func lookUp(t *testing.T, m *Memory, key, query string, change func(*MemorySearchParams)) ([]string, MemoryResults) {
	t.Helper()
	p := MemorySearchParams{Query: query, Requester: Requester{SessionKey: key}}
	if change != nil {
		change(&p)
	}
	res, err := m.Search(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	last := 1.0
	for _, h := range res.Results {
		if h.Score > last || h.Score <= 0 || h.Score > 1 {
			t.Errorf("score %v after %v", h.Score, last)
		}
		last = h.Score
		if h.Source == SourceSessions {
			out = append(out, h.Snippet)
		} else {
			out = append(out, h.Path)
		}
	}
	return out, res
}

func ofMemory(p *MemorySearchParams)   { p.Corpus = SourceMemory }
func ofSessions(p *MemorySearchParams) { p.Corpus = SourceSessions }

func notes() map[string]string {
	return map[string]string{
		"MEMORY.md":            "# Home\n\n- The boiler is a Vaillant.\n- The safe opens with 4417.\n",
		"USER.md":              "Ann likes short answers.\n",
		"memory/2026-03-07.md": "# Saturday\n\nThe dentist moved the root canal to the 19th.\n",
		"memory/plans.md":      "# Plans\n\nThe ferry to Texel leaves at 9:30.\n",
		"memory/own.md":        "---\nprivate: true\n---\nThe diary says the piano was sold.\n",
	}
}

// ISO-04: a session sees what is for it, in search, in get and in authorize.
func TestMemoryScopes(t *testing.T) {
	m, e, _ := memoryOver(t, nil, notes())
	commit(t, e, turn(mainKey, "t1", user("the anchor chain is forty metres", day), assistant("Noted.", day+1)))
	commit(t, e, turn(groupKey, "t2", user("the anchor is rusty", day+2), assistant("Scrape it.", day+3)))
	const other = "agent:main:telegram:direct:99"
	yes := true
	for _, c := range []struct {
		name, key, query string
		owner            *bool
		want             []string
	}{
		{"the owner, a private file", mainKey, "safe opens", nil, []string{"MEMORY.md"}},
		{"the owner, front matter", mainKey, "piano sold", nil, []string{"memory/own.md"}},
		{"a group, a private file", groupKey, "safe opens", nil, nil},
		{"a group, front matter", groupKey, "piano sold", nil, nil},
		{"a group, a note", groupKey, "ferry Texel", nil, []string{"memory/plans.md"}},
		{"a group, messages", groupKey, "anchor", nil, []string{"the anchor is rusty"}},
		{"the owner, messages", mainKey, "anchor", nil, []string{"the anchor chain is forty metres"}},
		{"another person", other, "anchor safe", nil, nil},
		{"the owner on a channel", other, "safe opens", &yes, []string{"MEMORY.md"}},
		{"nobody", "", "anchor safe ferry", nil, []string{"memory/plans.md"}},
		{"cron", "agent:main:cron:x", "anchor safe ferry", nil, []string{"memory/plans.md"}},
		{"an isolated subagent", "agent:main:subagent:1", "anchor safe ferry", nil, []string{"memory/plans.md"}},
	} {
		got, _ := lookUp(t, m, c.key, c.query, func(p *MemorySearchParams) { p.SenderIsOwner, p.MinScore = c.owner, 0.15 })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for key, want := range map[string]string{mainKey: MemoryOK, groupKey: MemoryNotFound, "": MemoryNotFound} {
		for _, path := range []string{"MEMORY.md", "memory/own.md"} {
			res, err := m.Get(t.Context(), MemoryGetParams{Path: path, Requester: Requester{SessionKey: key}})
			if err != nil || res.Status != want || want == MemoryNotFound && res.Text != "" {
				t.Errorf("%s for %q: %+v %v", path, key, res, err)
			}
		}
	}
	_, hits := lookUp(t, m, mainKey, "anchor", ofSessions)
	refs := []MemoryRef{{"MEMORY.md", "memory"}, {"memory/plans.md", "memory"}, {"memory/own.md", "memory"}, {hits.Results[0].Path, "sessions"}, {"sessions/x/nothing.md", "sessions"}, {hits.Results[0].Path, "memory"}}
	for key, want := range map[string][]int{mainKey: {0, 1, 2, 3, 5}, groupKey: {1}, "": {1}} {
		res, err := m.Authorize(t.Context(), MemoryAuthorizeParams{Requester: Requester{SessionKey: key}, Hits: refs})
		if err != nil || !slices.Equal(res.Allowed, want) {
			t.Errorf("authorize %q: %v %v", key, res.Allowed, err)
		}
	}
	classes, err := m.Classify(t.Context(), MemoryClassifyParams{Paths: []string{"MEMORY.md", "memory/plans.md", "memory/own.md", "DREAMS.md", "x/y.md"}})
	want := MemoryClasses{Private: []string{"MEMORY.md", "memory/own.md", "DREAMS.md"}, Classifications: []MemoryClass{
		{"MEMORY.md", "agent"}, {"memory/plans.md", "agent"}, {"memory/own.md", "agent"}, {"DREAMS.md", "system"}, {"x/y.md", "untrusted"},
	}}
	if diff := cmp.Diff(want, classes); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A sandboxed session sees messages of its own only.
func TestMemorySandboxed(t *testing.T) {
	m, e, _ := memoryOver(t, nil, notes())
	commit(t, e, turn(mainKey, "t1", user("the anchor chain is forty metres", day)))
	commit(t, e, turn("agent:main:explicit:a", "t2", user("the anchor is of bronze", day+2)))
	got, _ := lookUp(t, m, "agent:main:explicit:a", "anchor", func(p *MemorySearchParams) { p.Sandboxed, p.Corpus = true, SourceSessions })
	if !cmp.Equal(got, []string{"the anchor is of bronze"}) {
		t.Error(got)
	}
}

// RCL-14: among 5,000 messages about the same thing a curated memory is there, and is not alone.
func TestMemoryIsNotCrowdedOut(t *testing.T) {
	m, e, _ := memoryOver(t, embedtest.Hashed(64), map[string]string{"MEMORY.md": "# Network\n\nThe wifi password of the cabin is heron-42-lake.\n"})
	for from := 0; from < 5000; from += 500 {
		var msgs []json.RawMessage
		for i := from; i < from+500; i++ {
			msgs = append(msgs, user(fmt.Sprintf("what was the wifi password of the cabin again? asked for the %dth time, the cabin wifi password", i), day+int64(i)*1000))
		}
		commit(t, e, turn(mainKey, fmt.Sprint("t", from), msgs...))
	}
	for _, query := range []string{"wifi password of the cabin", "what was the wifi password of the cabin again?"} {
		got, res := lookUp(t, m, mainKey, query, nil)
		if !slices.Contains(got, "MEMORY.md") || len(got) != 8 || res.Files != 1 || res.Messages != 7 {
			t.Errorf("%s: %q", query, got)
		}
	}
}

// Changes, additions, moves and removals of files are seen by the next search; what is gone leaves no
// hit, and lines that moved are told as they are now.
func TestMemoryFollowsFiles(t *testing.T) {
	m, _, ws := memoryOver(t, embedtest.Hashed(64), notes())
	find := func(query string) []string {
		t.Helper()
		got, _ := lookUp(t, m, mainKey, query, func(p *MemorySearchParams) { p.Corpus, p.MinScore = SourceMemory, 0.3 })
		return got
	}
	writeNote(t, ws, "memory/plans.md", "# Plans\n\nA new first line.\n\n## Boats\n\nThe ferry to Texel leaves at 10:15.\n")
	_, res := lookUp(t, m, mainKey, "ferry to Texel", ofMemory)
	if h := res.Results[0]; h.Path != "memory/plans.md" || h.StartLine != 5 || h.EndLine != 7 || !strings.Contains(h.Snippet, "10:15") {
		t.Errorf("%+v", h)
	}
	writeNote(t, ws, "memory/plans.md", "above\n\n# Plans\n\nA new first line.\n\n## Boats\n\nThe ferry to Texel leaves at 10:15.\n")
	if _, res = lookUp(t, m, mainKey, "ferry to Texel", ofMemory); res.Results[0].StartLine != 7 {
		t.Errorf("a chunk that moved is at %d", res.Results[0].StartLine)
	}
	if err := os.Rename(filepath.Join(ws, "memory", "plans.md"), filepath.Join(ws, "memory", "travel.md")); err != nil {
		t.Fatal(err)
	}
	if got := find("ferry to Texel"); !cmp.Equal(got, []string{"memory/travel.md"}) {
		t.Errorf("after a move: %v", got)
	}
	if err := os.Remove(filepath.Join(ws, "memory", "travel.md")); err != nil {
		t.Fatal(err)
	}
	if got := find("ferry to Texel"); got != nil {
		t.Errorf("after a removal: %v", got)
	}
	writeNote(t, ws, "memory/travel.md", "# Plans\n\nThe ferry to Texel leaves at 9:30.\n")
	if got := find("ferry to Texel"); !cmp.Equal(got, []string{"memory/travel.md"}) {
		t.Errorf("the same again: %v", got)
	}
	// A change that keeps size and time is noticed while the file is young.
	info, err := os.Stat(filepath.Join(ws, "memory", "travel.md"))
	if err != nil {
		t.Fatal(err)
	}
	writeNote(t, ws, "memory/travel.md", "# Plans\n\nThe ferry to Ameland goes at 9:30.")
	if err := os.Chtimes(filepath.Join(ws, "memory", "travel.md"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := find("Ameland"); !cmp.Equal(got, []string{"memory/travel.md"}) {
		t.Errorf("a change within a moment: %v", got)
	}
}

// Only what changed is embedded again.
func TestMemoryEmbedsOnlyChanges(t *testing.T) {
	emb := &countingEmbedder{Embedder: embedtest.Hashed(32)}
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("memory/n%02d.md", i)] = fmt.Sprintf("# Note %d\n\nabout topic%d\n\n## More\n\nand thing%d\n", i, i, i)
	}
	m, _, ws := memoryOver(t, emb, files)
	if emb.texts.Load() < 80 {
		t.Fatalf("%d texts embedded at first", emb.texts.Load())
	}
	before := emb.texts.Load()
	writeNote(t, ws, "memory/n07.md", "# Note 7\n\nabout topic7\n\n## More\n\nand another thing\n")
	out, err := m.Sync(t.Context(), MemorySyncParams{})
	if err != nil || out.Changed != 1 || out.Added != 0 || out.Removed != 0 || out.Files != 40 {
		t.Errorf("%+v %v", out, err)
	}
	if n := emb.texts.Load() - before; n != 1 {
		t.Errorf("%d texts embedded for one changed part", n)
	}
	out, err = m.Sync(t.Context(), MemorySyncParams{Force: true})
	if err != nil || out.Files != 40 || out.Added != 40 {
		t.Errorf("made anew: %+v %v", out, err)
	}
}

// The index is derived: without it, with rubbish in its place and after a crash it is made again.
func TestMemoryIndexIsDerived(t *testing.T) {
	e := open(t, nil, nil)
	dir, ws := t.TempDir(), t.TempDir()
	writeNote(t, ws, "MEMORY.md", "The boiler is a Vaillant.")
	for name, damage := range map[string]func(string) error{
		"nothing": func(string) error { return nil },
		"removed": os.RemoveAll,
		"rubbish": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "log.sqlite"), []byte("rubbish"), 0o600)
		},
		"half": func(dir string) error {
			store, err := index.Open(t.Context(), dir, nil)
			if err != nil {
				return err
			}
			_, err = store.Append(t.Context(), index.Batch{Messages: []index.Message{{Keys: []string{"chunk:x"}, Session: "memory/ghost.md", Scope: sharedFiles, Text: "the boiler of a ghost"}}})
			return errors.Join(err, store.Close())
		},
		"another layout": func(dir string) error {
			store, err := index.Open(t.Context(), dir, nil)
			if err != nil {
				return err
			}
			return errors.Join(store.SetState(t.Context(), "notebook", "layout", []byte("0")), store.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory(e, dir, &MemoryOptions{Whole: true})
			if got, _ := lookUp(t, m, mainKey, "boiler", func(p *MemorySearchParams) { p.Corpus, p.Workspace = SourceMemory, ws }); !cmp.Equal(got, []string{"MEMORY.md"}) {
				t.Error(got)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Fatal(entries, err)
			}
			if err := damage(filepath.Join(dir, entries[0].Name())); err != nil {
				t.Fatal(err)
			}
			m = NewMemory(e, dir, &MemoryOptions{Whole: true})
			defer m.Close()
			if got, _ := lookUp(t, m, mainKey, "boiler", ofMemory); !cmp.Equal(got, []string{"MEMORY.md"}) {
				t.Errorf("after: %v", got)
			}
		})
	}
}

// Files that cannot be read, odd bytes and huge lines cost nobody anything.
func TestMemoryOddFiles(t *testing.T) {
	m, _, ws := memoryOver(t, nil, map[string]string{
		"memory/latin.md": "Der Schl\xfcssel h\xe4ngt am Haken.\n", "memory/wide.md": "\xff\xfeT\x00h\x00e\x00 \x00o\x00t\x00t\x00e\x00r\x00",
		"memory/nul.md": "the heron \x00 stands still by the water all day\n", "memory/binary.md": "\x00\x01\x02\x03\x04\x05\x06\x07\x08",
		"memory/empty.md": "", "memory/huge.md": strings.Repeat("filler words here ", 60_000) + "the needle is golden " + strings.Repeat("more filler ", 10_000),
	})
	for query, want := range map[string]string{"Schlüssel Haken": "memory/latin.md", "otter": "memory/wide.md", "heron": "memory/nul.md", "golden needle": "memory/huge.md"} {
		got, res := lookUp(t, m, mainKey, query, ofMemory)
		if len(got) == 0 || got[0] != want || len(res.Results[0].Snippet) > memorybridge.SnippetSize+20 {
			t.Errorf("%s: %v", query, got)
		}
	}
	st, err := m.Status(t.Context(), Corpora{})
	if err != nil || !strings.Contains(st.Warning, "memory/binary.md: this is no text") {
		t.Errorf("%+v %v", st, err)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		return // everything can be read there
	}
	if err := os.Chmod(filepath.Join(ws, "memory", "nul.md"), 0); err != nil {
		t.Fatal(err)
	}
	if got, _ := lookUp(t, m, mainKey, "heron", ofMemory); len(got) > 0 && got[0] == "memory/nul.md" {
		t.Error("an unreadable file has hits")
	}
}

// What is a secret in a note is found by the words around it, and its text is in no file of the index.
func TestMemoryMasksSecrets(t *testing.T) {
	const key, word = "sk-proj-Zx81LqPw03nTrYbVd5Kc7Gm2Hs9Ja4Ef6", "hunter2Correct9Horse"
	m, _, _ := memoryOver(t, nil, map[string]string{
		"MEMORY.md": "# Keys\n\nThe api key of the weather station:\nWEATHER_API_KEY=" + key + "\nexport ROUTER_PASSWORD='" + word + "'\n\n# Port\n\nThe port of the weather station is 8123.\n",
	})
	got, res := lookUp(t, m, mainKey, "api key of the weather station", ofMemory)
	if len(got) == 0 || res.Results[0].StartLine != 1 || strings.Contains(fmt.Sprint(res), key) {
		t.Errorf("%+v", res)
	}
	if _, res := lookUp(t, m, mainKey, "port of the weather station", ofMemory); len(res.Results) == 0 || res.Results[0].StartLine != 7 {
		t.Errorf("lines moved: %+v", res.Results)
	}
	dir := m.dir
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) || bytes.Contains(bytes.ToLower(data), []byte(strings.ToLower(word))) {
			t.Errorf("%s holds a secret", d.Name())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// RCL-13: words answer when the meaning is late, and the answer says so.
func TestMemoryMeaningIsLate(t *testing.T) {
	slow := &lateEmbedder{Embedder: embedtest.Hashed(32), release: make(chan struct{})}
	m, e, _ := memoryOver(t, slow, notes())
	commit(t, e, turn(mainKey, "t1", user("the ferry was late", day)))
	slow.late.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res, err := m.Search(ctx, MemorySearchParams{Query: "ferry Texel", Requester: Requester{SessionKey: mainKey}})
	close(slow.release)
	if err != nil || len(res.Results) < 2 || !res.Partial || res.Mode != "lexical" || !strings.Contains(res.Warning, "words only") {
		t.Errorf("%+v %v", res, err)
	}
	slow.late.Store(false)
	if _, res := lookUp(t, m, mainKey, "ferry Texel", nil); res.Partial || res.Mode != "hybrid" || res.Warning != "" {
		t.Errorf("%+v", res)
	}
	if _, res := lookUp(t, m, mainKey, "ferry Texel", func(p *MemorySearchParams) { p.LexicalOnly = true }); res.Partial || res.Mode != "lexical" {
		t.Errorf("lexicalOnly: %+v", res)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := m.Search(ctx, MemorySearchParams{Query: "ferry", Requester: Requester{SessionKey: mainKey}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMemoryOptions(t *testing.T) {
	m, e, _ := memoryOver(t, nil, notes())
	for i := range 20 {
		commit(t, e, turn(mainKey, fmt.Sprint("t", i), user("Fire the test", day+int64(i)), user(fmt.Sprintf("the ferry number %d to Texel", i), day+100+int64(i))))
	}
	if got, _ := lookUp(t, m, mainKey, "Fire the test now", ofSessions); len(got) == 0 || got[0] != "Fire the test" || slices.Contains(got[1:], "Fire the test") {
		t.Errorf("RCL-08: the same words have more than one place: %v", got)
	}
	if got, _ := lookUp(t, m, mainKey, "ferry to Texel", func(p *MemorySearchParams) { p.MaxResults = 3 }); len(got) != 3 {
		t.Error(got)
	}
	if got, _ := lookUp(t, m, mainKey, "ferry to Texel", func(p *MemorySearchParams) { p.Sources = []string{"memory"} }); !slices.Contains(got, "memory/plans.md") || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "number") }) {
		t.Error(got)
	}
	_, res := lookUp(t, m, mainKey, "ferry to Texel", func(p *MemorySearchParams) { p.MinScore = 0.5 })
	for _, h := range res.Results {
		if h.Score < 0.5 {
			t.Errorf("%+v", h)
		}
	}
	cited := func(key, mode string) string {
		_, res := lookUp(t, m, key, "ferry to Texel", func(p *MemorySearchParams) { p.Citations, p.Corpus = mode, SourceMemory })
		return res.Results[0].Citation
	}
	for got, want := range map[string]string{
		cited(mainKey, ""): "memory/plans.md#L1-L3", cited(mainKey, "off") + "-": "-", cited(groupKey, "auto") + "=": "=", cited(groupKey, "on"): "memory/plans.md#L1-L3",
	} {
		if got != want {
			t.Errorf("citation %q, want %q", got, want)
		}
	}
	for _, p := range []MemorySearchParams{{}, {Query: " "}, {Query: "x", Corpus: "wiki"}, {Query: "x", MaxResults: -1}, {Query: "x", Citations: "maybe"}, {Query: "x", Corpora: Corpora{Workspace: "relative"}}} {
		var wrong *RequestError
		if _, err := m.Search(t.Context(), p); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// The workspace is remembered, over a restart too.
func TestMemoryWorkspaceIsRemembered(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, filepath.Join(dir, "store"), nil, nil)
	ws := t.TempDir()
	writeNote(t, ws, "MEMORY.md", "The boiler is a Vaillant.")
	writeNote(t, dir, "more/x.md", "The lathe needs oil.")
	m := NewMemory(e, filepath.Join(dir, "index"), nil)
	if st, err := m.Status(t.Context(), Corpora{}); err != nil || st.WorkspaceDir != "" || len(st.SourceCounts) != 2 {
		t.Errorf("%+v %v", st, err)
	}
	if _, err := m.Sync(t.Context(), MemorySyncParams{Corpora: Corpora{Workspace: ws, Extra: []memorybridge.Extra{{Path: filepath.Join(dir, "more")}}}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	done()
	e, done = openAt(t, filepath.Join(dir, "store"), nil, nil)
	defer done()
	m = NewMemory(e, filepath.Join(dir, "index"), nil)
	defer m.Close()
	st, err := m.Status(t.Context(), Corpora{})
	if err != nil || st.WorkspaceDir != ws || st.Files != 2 || len(st.ExtraPaths) != 1 || !st.Dirty {
		t.Errorf("%+v %v", st, err)
	}
	if got, _ := lookUp(t, m, mainKey, "lathe", nil); len(got) == 0 || !strings.HasSuffix(got[0], "more/x.md") {
		t.Error(got)
	}
}
