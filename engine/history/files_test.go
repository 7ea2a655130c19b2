package history

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"b.jsonl", "sub/a.jsonl.gz", "old.jsonl.reset.2026-01-01T00-00-00Z", "gone.jsonl.deleted.2026-01-01",
		"b.trajectory.jsonl", "sessions.json", "notes.txt", ".hidden.jsonl",
	} {
		write(t, filepath.Join(dir, name), nil)
	}
	got, err := Find([]string{dir, filepath.Join(dir, "notes.txt"), filepath.Join(dir, "b.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i], err = filepath.Rel(dir, got[i]); err != nil {
			t.Fatal(err)
		}
		got[i] = filepath.ToSlash(got[i])
	}
	if d := cmp.Diff([]string{"b.jsonl", "notes.txt", "old.jsonl.reset.2026-01-01T00-00-00Z", "sub/a.jsonl.gz"}, got); d != "" {
		t.Errorf("found (-want +got):\n%s", d)
	}
	if _, err := Find([]string{filepath.Join(dir, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
}

// A transcript in its place in the host's folder is named by the host's index and its agent.
func TestReadInPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents", "research", "sessions")
	write(t, filepath.Join(dir, "sessions.json"), []byte(`{"agent:research:telegram:direct:7":{"sessionId":"s9"},"agent:research:main":{"sessionId":"other"}}`))
	write(t, filepath.Join(dir, "s9.jsonl"), []byte(header+"\n"+msg("a", "", "user", "one")))
	write(t, filepath.Join(dir, "s8-topic-3.jsonl"), []byte(msg("a", "", "user", "one")))
	for name, want := range map[string]Session{
		"s9.jsonl":         {Key: "agent:research:telegram:direct:7", ID: "s9", Agent: "research"},
		"s8-topic-3.jsonl": {Key: "agent:research:explicit:s8", ID: "s8", Agent: "research"},
	} {
		f, err := Read(filepath.Join(dir, name), Options{Agent: "main"})
		if err != nil {
			t.Fatal(err)
		}
		got := one(t, f)
		got.Entries = nil
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestReadCompressed(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(msg("a", "", "user", "one"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.jsonl.gz")
	write(t, path, b.Bytes())
	f, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := one(t, f); s.ID != "x" || len(s.Entries) != 1 {
		t.Errorf("session %+v", s)
	}
	write(t, path, b.Bytes()[:b.Len()/2])
	var form *FormatError
	if _, err := Read(path, Options{}); !errors.As(err, &form) {
		t.Errorf("half a compressed file: %v", err)
	}
}
