package index

import (
	"os"
	"path/filepath"
	"testing"
)

// A store is read where nothing can be written beside it, its journal included.
func TestReadWhereNothingCanBeWritten(t *testing.T) {
	for _, journal := range []bool{false, true} {
		dir, frozen := t.TempDir(), t.TempDir()
		t.Setenv("TMPDIR", t.TempDir())
		s := open(t, dir, nil)
		add(t, s, say(1, "a", "the heron"))
		names := []string{"log.sqlite"}
		if journal {
			names = append(names, "log.sqlite-wal")
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := copyFile(filepath.Join(dir, name), filepath.Join(frozen, name)); err != nil {
				t.Fatal(err)
			}
		}
		// A folder in the place of the shared memory keeps even root from making it.
		if err := os.Mkdir(filepath.Join(frozen, "log.sqlite-shm"), 0o700); err != nil {
			t.Fatal(err)
		}
		ro, err := Open(t.Context(), frozen, &Options{ReadOnly: true})
		if err != nil {
			t.Fatalf("journal %v: %v", journal, err)
		}
		if got := matched(t, ro, all, "heron"); len(got) != 1 {
			t.Errorf("journal %v: found %v", journal, got)
		}
		if err := ro.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
