package index

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settled waits until nothing is left to do in the background.
func settled(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func numbered(n int) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i] = say(i, fmt.Sprint("s", i%3), fmt.Sprintf("common talk, marker%d", i))
	}
	return out
}

// STO-02.
func TestDamagedWordsAreRebuilt(t *testing.T) {
	damages := map[string]func(t *testing.T, words string){
		"removed": func(t *testing.T, words string) {
			t.Helper()
			if err := os.RemoveAll(words); err != nil {
				t.Fatal(err)
			}
		},
		"segment cut": func(t *testing.T, words string) { t.Helper(); cut(t, words, ".zap") },
		"root cut":    func(t *testing.T, words string) { t.Helper(); cut(t, words, ".bolt") },
		"root gone": func(t *testing.T, words string) {
			t.Helper()
			if err := os.Remove(filepath.Join(words, "root.bolt")); err != nil {
				t.Fatal(err)
			}
		},
		"zeroes": func(t *testing.T, words string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(words, "root.bolt"), make([]byte, 65536), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, nil)
			add(t, s, numbered(300)...)
			settled(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(dir, "words"))
			s = open(t, dir, nil)
			for range 2 { // while it is rebuilt, and after
				if got := matched(t, s, all, "marker123"); len(got) == 0 || got[0] != 124 {
					t.Errorf("found %v", got)
				}
				settled(t, s)
			}
			check(t, s)
		})
	}
}

// cut halves the largest file below dir with the suffix.
func cut(t *testing.T, dir, suffix string) {
	t.Helper()
	var path string
	var size int64
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, suffix) {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > size {
			path, size = p, info.Size()
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("no %s file below %s: %v", suffix, dir, err)
	}
	if err := os.Truncate(path, size/2); err != nil {
		t.Fatal(err)
	}
}

func TestWordsOfAnotherStoreAreNotBelieved(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		s := open(t, dir, nil)
		add(t, s, say(1, "a", []string{"walrus", "ocelot"}[i]))
		settled(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dirs[0], "words")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dirs[0], "words"), os.DirFS(filepath.Join(dirs[1], "words"))); err != nil {
		t.Fatal(err)
	}
	s := open(t, dirs[0], nil)
	settled(t, s)
	if got := matched(t, s, all, "ocelot"); got != nil {
		t.Errorf("found another store's word: %v", got)
	}
	if got := matched(t, s, all, "walrus"); len(got) != 1 {
		t.Errorf("lost its own: %v", got)
	}
	if _, err := os.Stat(filepath.Join(dirs[0], "words.broken-1")); err != nil {
		t.Error("the foreign index was not kept:", err)
	}
}

// STO-06.
func TestUnreadableWordsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, numbered(20)...)
	settled(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	words := filepath.Join(dir, "words")
	if err := os.Chmod(words, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(words, 0o700) }()
	if _, err := os.ReadDir(words); err == nil {
		t.Skip("this user may read everything")
	}
	s, err := Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := matched(t, s, all, "marker7"); len(got) == 0 || got[0] != 8 {
		t.Errorf("found %v", got)
	}
	if st, err := s.Status(context.Background()); err != nil || st.WordsState != "unavailable" || len(st.Errors) == 0 {
		t.Errorf("status %+v %v", st, err)
	}
	if broken, _ := filepath.Glob(words + ".broken-*"); broken != nil {
		t.Error("set aside:", broken)
	}
}

// STO-05, STO-06.
func TestSecondOpenerIsTold(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, say(1, "a", "kestrel"))
	_, err := Open(context.Background(), dir, &Options{LockWait: -1})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second open: %v", err)
	}
	ro := open(t, dir, &Options{ReadOnly: true})
	if got := matched(t, ro, all, "kestrel"); len(got) != 1 {
		t.Errorf("read-only: %v", got)
	}
	if _, err := ro.Append(context.Background(), Batch{Messages: []Message{say(2, "a", "x")}}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only append: %v", err)
	}
	if _, err := ro.Status(context.Background()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled open: %v", err)
	}
	waited := make(chan error)
	go func() {
		s, err := Open(context.Background(), dir, &Options{LockWait: time.Minute})
		if err == nil {
			err = s.Close()
		}
		waited <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error("an opener that waits:", err)
	}
}

func TestNewerSchemaIsLeftUntouched(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	if _, err := s.durable.Exec("PRAGMA user_version=999"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*Options{nil, {ReadOnly: true}} {
		if _, err := Open(context.Background(), dir, opts); !errors.Is(err, ErrNewer) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "log.sqlite"))
	if err != nil || string(before) != string(after) {
		t.Error("the log was changed", err)
	}
}

// childDir tells a re-executed test binary to append to a store until it is killed.
const childDir = "HARK_INDEX_TEST_CHILD"

// STO-08.
func TestKilledWhileAppending(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		appendForever(t, dir)
		return
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 5))
	done := 0
	for range 15 {
		done = max(done, killed(t, dir, r))
		s, err := Open(context.Background(), dir, nil)
		if err != nil {
			t.Fatal("reopen:", err)
		}
		keys := make([]string, done)
		for i := range keys {
			keys[i] = fmt.Sprintf("entry:s/%d", i)
		}
		rows, err := s.Lookup(context.Background(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if row == 0 {
				t.Fatalf("message %d was acknowledged and is gone", i)
			}
		}
		if done > 0 {
			if got := matched(t, s, all, fmt.Sprintf("marker%d", done-1)); got[0] != rows[done-1] {
				t.Errorf("the last acknowledged message is row %d, found %v", rows[done-1], got)
			}
		}
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d messages acknowledged", done)
}

// killed runs a child for a random number of acknowledgements and kills it; it returns the
// number of messages acknowledged so far.
func killed(t *testing.T, dir string, r *rand.Rand) (done int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileAppending$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 1 + r.IntN(40) {
		if !lines.Scan() {
			break
		}
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			done = n
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // acknowledged before the kill arrived
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			done = n
		}
	}
	_ = cmd.Wait()
	return done
}

func appendForever(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Session(ctx, "s", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	space := Space{"m", 2}
	for n := len(rows); ; {
		var ms []Message
		for range 1 + n%7 {
			ms = append(ms, say(n, "s", fmt.Sprintf("talk marker%d", n)))
			n++
		}
		seqs := add(t, s, ms...)
		fmt.Println(n)
		if err := s.SetVectors(ctx, space, []Vector{{Seq: seqs[0], V: []float32{1, float32(n)}}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedColumnsAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, numbered(50)...)
	settled(t, s)
	before := observe(t, s)
	for _, stmt := range []string{`UPDATE docs SET body=x'ff' WHERE seq=7`, `DELETE FROM docs WHERE seq=9`} {
		if _, err := s.durable.Exec(stmt); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Check(context.Background()); err != nil || r.Problems != 1 {
			t.Errorf("check saw %d problems: %v", r.Problems, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, nil)
		settled(t, s)
		if d := cmp.Diff(before, observe(t, s)); d != "" {
			t.Error(d)
		}
	}
}
