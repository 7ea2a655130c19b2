package memorybridge

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func paths(t *testing.T, w Workspace) []string {
	t.Helper()
	files, problems, err := w.Files(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	var out []string
	for _, f := range files {
		out = append(out, string(f.Class)+" "+f.Path)
	}
	return out
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"ws/MEMORY.md": "m", "ws/USER.md": "u", "ws/OTHER.md": "o", "ws/memory/a.md": "a", "ws/memory/b.txt": "b", "ws/memory/x/y.md": "y",
		"ws/memory/.trash/t.md": "t", "ws/memory/dreaming/d.md": "d", "ws/docs/in.md": "i", "out/n.md": "n", "out/sub/s.md": "s", "single.md": "1", "out2/skip.md": "k",
	})
	w := Workspace{Dir: filepath.Join(dir, "ws"), Home: dir, Extra: []Extra{
		{Path: "docs"}, {Path: "~/out", Pattern: "sub/**"}, {Path: filepath.Join(dir, "single.md")}, {Path: "nowhere"}, {Path: "memory"},
	}}
	want := []string{
		"extra ../out/sub/s.md", "extra ../single.md", "curated MEMORY.md", "curated USER.md", "extra docs/in.md",
		"note memory/a.md", "dream memory/dreaming/d.md", "note memory/x/y.md",
	}
	if diff := cmp.Diff(want, paths(t, w)); diff != "" {
		t.Error(diff)
	}
	if err := os.Rename(filepath.Join(w.Dir, "MEMORY.md"), filepath.Join(w.Dir, "memory.md")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(paths(t, w), ","); !strings.Contains(got, "curated memory.md") {
		t.Error("the memory.md of an old workspace is not found: " + got)
	}
	if got := paths(t, Workspace{Dir: filepath.Join(dir, "gone")}); got != nil {
		t.Error(got)
	}
}

// Symbolic links and paths that lead out are refused, by whatever way they come.
func TestNothingOutsideIsRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"secret/s.md": "secret", "ws/memory/a.md": "a", "ws/notmemory.md": "n", "extra/e.md": "e"})
	for link, to := range map[string]string{
		"ws/memory/link.md": "../../secret/s.md", "ws/memory/dir": "../../secret", "ws/MEMORY.md": "../secret/s.md", "ws/memory/inside.md": "a.md",
		"extra/link.md": "../secret/s.md", "linked": "secret",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	w := Workspace{Dir: filepath.Join(dir, "ws"), Extra: []Extra{{Path: filepath.Join(dir, "extra")}, {Path: filepath.Join(dir, "linked")}}}
	if diff := cmp.Diff([]string{"extra ../extra/e.md", "note memory/a.md"}, paths(t, w)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{
		"../secret/s.md", "memory/../../secret/s.md", filepath.Join(dir, "secret", "s.md"), "memory/link.md", "memory/dir/s.md", "MEMORY.md",
		"memory/inside.md", "../extra/link.md", "../linked/s.md", "notmemory.md", "memory/a.md\x00.md", "", "memory", "~/x.md", "memory/../notmemory.md",
	} {
		if f, data, err := w.Read(name); !errors.Is(err, ErrNotMemory) {
			t.Errorf("%q: %q of %s, %v", name, data, f.Path, err)
		}
	}
	for _, name := range []string{"memory/a.md", "./memory/a.md", "memory/x/../a.md", filepath.Join(dir, "ws", "memory", "a.md")} {
		if f, data, err := w.Read(name); err != nil || string(data) != "a" || f.Path != "memory/a.md" {
			t.Errorf("%q: %q of %s, %v", name, data, f.Path, err)
		}
	}
	if _, _, err := w.Read("memory/none.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A folder that becomes a link while files are read through it shows nothing of where it leads.
func TestSwappedFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"ws/memory/d/a.md": "mine", "secret/a.md": "secret"})
	w := Workspace{Dir: filepath.Join(dir, "ws")}
	d, moved := filepath.Join(dir, "ws", "memory", "d"), filepath.Join(dir, "ws", "moved")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Rename(d, moved) // of two that race one fails at times
			_ = os.Symlink(filepath.Join(dir, "secret"), d)
			_ = os.Remove(d)
			_ = os.Rename(moved, d)
		}
	}()
	for range 2000 {
		if _, data, _ := w.Read("memory/d/a.md"); string(data) == "secret" {
			t.Error("a file outside was read")
			break
		}
	}
	stop.Store(true)
	<-done
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"memory/a.md": "a"})
	big := filepath.Join(dir, "memory", "big.md")
	write(t, dir, map[string]string{"memory/big.md": ""})
	if err := os.Truncate(big, MaxFile+1); err != nil {
		t.Fatal(err)
	}
	files, problems, err := Workspace{Dir: dir}.Files(t.Context())
	if err != nil || len(files) != 1 || len(problems) != 1 || problems[0].Path != "memory/big.md" || !errors.Is(problems[0].Err, ErrTooLarge) {
		t.Error(files, problems, err)
	}
	if _, _, err := (Workspace{Dir: dir}).Read("memory/big.md"); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestExtraDecodes(t *testing.T) {
	var got []Extra
	if err := json.Unmarshal([]byte(`["a", {"path":"b","pattern":"*.md"}]`), &got); err != nil || !cmp.Equal(got, []Extra{{Path: "a"}, {"b", "*.md"}}) {
		t.Error(got, err)
	}
	if err := json.Unmarshal([]byte(`[7]`), &got); err == nil {
		t.Error("a number was accepted")
	}
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.md", "a.md", true}, {"*.md", "x/a.md", false}, {"**/*.md", "a.md", true}, {"**/*.md", "x/y/a.md", true}, {"x/**", "x/y/a.md", true},
		{"x/?.md", "x/a.md", true}, {"{a,b}.md", "b.md", true}, {"[a].md", "a.md", false}, {"a+b.md", "a+b.md", true},
	} {
		if got := (Extra{Pattern: c.pattern}).admits(c.path); got != c.want {
			t.Errorf("%s %s: %v", c.pattern, c.path, got)
		}
	}
}

// A change, a new folder and a removal are told of.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"MEMORY.md": "m"})
	settled := make(chan struct{}, 100)
	var seen atomic.Int32
	w := Watch(Workspace{Dir: dir}, func() { seen.Add(1) }, func() { settled <- struct{}{} }, slog.New(slog.DiscardHandler))
	defer w.Close()
	timeout := time.After(20 * time.Second)
	await := func(what string, change func()) {
		t.Helper()
		// Watching begins in the background: a change before that is seen by no event.
		for {
			change()
			select {
			case <-settled:
				return
			case <-time.After(time.Second):
			case <-timeout:
				t.Fatal("not told of " + what)
			}
		}
	}
	await("a change", func() { write(t, dir, map[string]string{"MEMORY.md": time.Now().String()}) })
	await("a file in a new folder", func() { write(t, dir, map[string]string{"memory/new/a.md": time.Now().String()}) })
	await("a change in it", func() { write(t, dir, map[string]string{"memory/new/a.md": time.Now().String()}) })
	if seen.Load() == 0 {
		t.Error("nothing was told at once")
	}
}
