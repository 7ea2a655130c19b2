package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", to take things out behind the store's back

	"hark/index"
)

// errCannot says that a fault cannot be made on this system or by this user.
var errCannot = errors.New("cannot be made here")

// tortureFault is something that is done to the store.
type tortureFault struct {
	name string
	do   func(*torturer, context.Context) error
}

// tortureFaults are all but kill -9, which comes between any two of them.
func tortureFaults() []tortureFault {
	return []tortureFault{
		{"index file cut", (*torturer).cutWords},
		{"half the vectors removed", (*torturer).dropVectors},
		{"several processes at once", (*torturer).several},
		{"log cut, in a copy", (*torturer).cutLog},
		{"disk full", (*torturer).fullDisk},
		{"process stopped", (*torturer).stopped},
		{"lock held", (*torturer).lockHeld},
		{"newer schema", (*torturer).newerSchema},
		{"foreign writer", (*torturer).foreignWriter},
		{"index not readable", (*torturer).unreadable},
		{"folder read-only", (*torturer).readOnly},
		{"index removed", (*torturer).removeWords},
	}
}

// child is a process that works on the store.
type child struct {
	cmd   *exec.Cmd
	lines chan string // closed at its end
	errs  *strings.Builder
}

// spawn starts a child over a store.
func (t *torturer) spawn(ctx context.Context, store string, args ...string) (*child, error) {
	self, err := exec.LookPath(os.Args[0])
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	t.round++
	cmd := exec.CommandContext(ctx, self, append([]string{
		"torture-child", "--dir", store, "--prefix", fmt.Sprintf("r%d", t.round), "--seed", strconv.FormatUint(t.flags.seed*1000+uint64(t.round), 10),
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, lines: make(chan string, 4096), errs: &strings.Builder{}}
	cmd.Stderr = c.errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // a line that is not whole was not said
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return c, nil
}

// hear takes in the next line of a child; ok is false at its end and after a silence that is too long.
func (t *torturer) hear(c *child) (line string, ok bool) {
	timer := time.NewTimer(tortureSilence)
	defer timer.Stop()
	select {
	case line, ok = <-c.lines:
		if ok {
			t.take(line)
		}
		return line, ok
	case <-timer.C:
		t.incident(&t.report.Blocked, "a child says nothing for %v", tortureSilence)
		return "", false
	}
}

func (t *torturer) take(line string) {
	wrong, blocked := t.record.line(line)
	switch {
	case strings.HasPrefix(line, "failed "):
		t.report.Refused++
	case blocked:
		t.incident(&t.report.Blocked, "%s", wrong)
	case wrong != "":
		t.incident(&t.report.Wrong, "%s", wrong)
	}
}

// end kills a child and takes in what it had said.
func (t *torturer) end(c *child) {
	_ = c.cmd.Process.Kill() // it may have ended
	for line := range c.lines {
		t.take(line)
	}
	_ = c.cmd.Wait() // it was killed: that is its error
}

// kill lets a child work and kills it at a random point.
func (t *torturer) kill(ctx context.Context) error {
	c, err := t.spawn(ctx, t.store)
	if err != nil {
		return err
	}
	defer t.end(c)
	for range 1 + t.rand.IntN(60) {
		if _, ok := t.hear(c); !ok {
			t.incident(&t.report.Wrong, "a child ended by itself: %s", clip(c.errs.String()))
			return nil
		}
	}
	time.Sleep(time.Duration(t.rand.IntN(20_000)) * time.Microsecond) //nolint:forbidigo // so that a kill hits anywhere
	return nil
}

// clip is the beginning of what a child said when it ended.
func clip(text string) string { return text[:min(len(text), 600)] }

// finish lets a child with a bounded number of steps come to its end.
func (t *torturer) finish(c *child) {
	for {
		if _, ok := t.hear(c); !ok {
			break
		}
	}
	if err := c.cmd.Wait(); err != nil {
		t.incident(&t.report.Wrong, "a child failed: %v: %s", err, c.errs)
	}
}

// several lets three processes work on the store at once: each has it for a while.
func (t *torturer) several(ctx context.Context) error {
	var children []*child
	for range 3 {
		c, err := t.spawn(ctx, t.store, "--ops", "4")
		if err != nil {
			return err
		}
		children = append(children, c)
	}
	var readers sync.WaitGroup
	var readErr error
	var took time.Duration
	readers.Go(func() { took, readErr = t.glance(ctx) })
	for _, c := range children {
		t.finish(c)
	}
	readers.Wait()
	if readErr != nil {
		t.incident(&t.report.Wrong, "reading beside writers: %v", readErr)
	}
	if took > tortureOpen {
		t.incident(&t.report.Blocked, "reading beside writers took %v", took)
	}
	return nil
}

// glance opens the store for reading, as status and search do beside a writer.
func (t *torturer) glance(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	s, err := index.Open(ctx, t.store, &index.Options{ReadOnly: true})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // nobody has written yet
			err = nil
		}
		return time.Since(start), err
	}
	_, err = s.Status(ctx)
	return time.Since(start), errors.Join(err, s.Close())
}

// cutWords cuts a file of the index of words at a random length.
func (t *torturer) cutWords(context.Context) error {
	return t.cut(filepath.Join(t.store, "words"), func(string) bool { return true })
}

func (t *torturer) cut(dir string, want func(name string) bool) error {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && want(e.Name()) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return errors.Join(err, errCannot)
	}
	path := files[t.rand.IntN(len(files))]
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, t.rand.Int64N(info.Size()+1))
}

// cutLog cuts the messages themselves, in a copy of the store: it opens with what is left, or refuses
// with what to do, and is never taken for an empty store.
func (t *torturer) cutLog(ctx context.Context) error {
	c, err := t.spawn(ctx, t.store) // so that there is a journal beside the log
	if err != nil {
		return err
	}
	for range 30 {
		if _, ok := t.hear(c); !ok {
			break
		}
	}
	t.end(c)
	to := filepath.Join(t.dir, "cut")
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(t.store))); err != nil {
		return err
	}
	if err := t.cut(to, func(name string) bool { return name == "log.sqlite" || name == "log.sqlite-wal" }); err != nil {
		return err
	}
	s, err := index.Open(ctx, to, nil)
	if err != nil {
		if !strings.Contains(err.Error(), "log.sqlite") {
			t.incident(&t.report.Wrong, "a cut log is refused without its name: %v", err)
		}
		return nil
	}
	defer s.Close()
	st, err := s.Status(ctx)
	if err != nil {
		return nil
	}
	if st.Rows == 0 && len(t.record.order) > 20 {
		t.incident(&t.report.Wrong, "a cut log was taken for an empty store")
	}
	return nil
}

// behind changes the log with another program.
func (t *torturer) behind(ctx context.Context, stmts ...string) error {
	db, err := sql.Open("sqlite", filepath.Join(t.store, "log.sqlite"))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, stmt := range stmts {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

func (t *torturer) dropVectors(ctx context.Context) error {
	if t.rand.IntN(2) == 0 {
		return t.behind(ctx, `DELETE FROM vectors WHERE key%2=0`)
	}
	return t.behind(ctx, `DELETE FROM floats WHERE key%2=0`, `DELETE FROM vectors WHERE key%2=0`)
}

// refused expects the store not to open, soon and for the right reason.
func (t *torturer) refused(ctx context.Context, what string, opts *index.Options, want error) {
	start := time.Now()
	s, err := index.Open(ctx, t.store, opts)
	if err == nil {
		err = s.Close()
		t.incident(&t.report.Wrong, "%s: the store opened (%v)", what, err)
		return
	}
	if want != nil && !errors.Is(err, want) {
		t.incident(&t.report.Wrong, "%s: %v", what, err)
	}
	if took := time.Since(start); took > tortureOpen {
		t.incident(&t.report.Blocked, "%s: refused after %v", what, took)
	}
}

func (t *torturer) lockHeld(ctx context.Context) error {
	s, err := index.Open(ctx, t.store, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	t.refused(ctx, "a second opener", &index.Options{LockWait: 100 * time.Millisecond}, index.ErrLocked)
	if took, err := t.glance(ctx); err != nil || took > tortureOpen {
		t.incident(&t.report.Wrong, "reading beside the holder: %v in %v", err, took)
	}
	return nil
}

func (t *torturer) newerSchema(ctx context.Context) error {
	path := filepath.Join(t.store, "log.sqlite")
	var version int
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	err = errors.Join(db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version), db.Close())
	if err != nil {
		return err
	}
	if err := t.behind(ctx, "PRAGMA user_version=999", "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	t.refused(ctx, "a newer schema", nil, index.ErrNewer)
	after, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(before) != string(after) {
		t.incident(&t.report.Wrong, "a store of a newer schema was changed")
	}
	return t.behind(ctx, fmt.Sprintf("PRAGMA user_version=%d", version))
}

// foreignWriter holds SQLite's write lock while a turn is to be stored: it fails soon and says why.
func (t *torturer) foreignWriter(ctx context.Context) error {
	db, err := sql.Open("sqlite", filepath.Join(t.store, "log.sqlite"))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s, err := index.Open(ctx, t.store, nil)
	if err == nil {
		start := time.Now()
		err = s.SetState(ctx, "torture", "k", []byte("v"))
		if took := time.Since(start); !errors.Is(err, index.ErrBusy) || took > tortureOpen {
			t.incident(&t.report.Wrong, "a write beside a foreign writer: %v in %v", err, took)
		}
		err = s.Close()
	} else if !errors.Is(err, index.ErrBusy) {
		t.incident(&t.report.Wrong, "opening beside a foreign writer: %v", err)
		err = nil
	} else {
		err = nil
	}
	_, rerr := db.ExecContext(ctx, "ROLLBACK")
	return errors.Join(err, rerr)
}

// unreadable takes the permission to read the index of words; the rows answer.
func (t *torturer) unreadable(ctx context.Context) error {
	words := filepath.Join(t.store, "words")
	if os.Geteuid() == 0 {
		return errCannot // root may read everything
	}
	if err := os.Chmod(words, 0); err != nil {
		return err
	}
	defer func() { _ = os.Chmod(words, 0o700) }()
	s, err := index.Open(ctx, t.store, nil)
	if err != nil {
		t.incident(&t.report.Wrong, "with an index that cannot be read: %v", err)
		return nil
	}
	if key := t.sample(); key != "" {
		t.findable(ctx, s, key, "with an index that cannot be read")
	}
	return s.Close()
}

// readOnly makes the folder read-only: it is refused, and read.
func (t *torturer) readOnly(ctx context.Context) error {
	if os.Geteuid() == 0 {
		return errCannot
	}
	if err := os.Chmod(t.store, 0o500); err != nil {
		return err
	}
	defer func() { _ = os.Chmod(t.store, 0o700) }()
	if _, err := t.glance(ctx); err != nil {
		t.incident(&t.report.Wrong, "reading a folder that cannot be written: %v", err)
	}
	return nil
}

func (t *torturer) removeWords(context.Context) error {
	return os.RemoveAll(filepath.Join(t.store, "words"))
}

// fullDisk lets a child work where the files may not grow: it refuses turns, says why, and goes on
// where there is room again.
func (t *torturer) fullDisk(ctx context.Context) error {
	if !canLimitFiles {
		return errCannot
	}
	// The log and its journal may grow by little; other files are smaller.
	var size int64
	for _, name := range []string{"log.sqlite", "log.sqlite-wal"} {
		if info, err := os.Stat(filepath.Join(t.store, name)); err == nil {
			size = max(size, info.Size())
		}
	}
	c, err := t.spawn(ctx, t.store, "--limit", strconv.FormatInt(size+int64(1+t.rand.IntN(200))<<10, 10))
	if err != nil {
		return err
	}
	defer t.end(c)
	// When calls have failed the child makes room, and has to go on without being started again.
	for room, stored, heard := false, 0, 0; stored < 5 && heard < 5000; heard++ {
		line, ok := t.hear(c)
		if !ok {
			if !strings.Contains(c.errs.String(), "hark:") { // it refused to open, with a reason
				t.incident(&t.report.Wrong, "on a full disk a child ended: %s", c.errs)
			}
			return nil
		}
		switch {
		case line == "room again":
			room = true
		case room && strings.HasPrefix(line, "ok turn"):
			stored++
		case heard == 4999:
			t.incident(&t.report.Blocked, "nothing is stored when there is room again: %v", room)
		}
	}
	return nil
}

// stopped stops a process in the middle of its work: readers answer, and when it goes on nothing is lost.
func (t *torturer) stopped(ctx context.Context) error {
	if !canStop {
		return errCannot
	}
	c, err := t.spawn(ctx, t.store)
	if err != nil {
		return err
	}
	defer t.end(c)
	for range 20 {
		if _, ok := t.hear(c); !ok {
			t.incident(&t.report.Wrong, "a child ended by itself: %s", c.errs)
			return nil
		}
	}
	if err := stopProcess(c.cmd.Process); err != nil {
		return err
	}
	if took, err := t.glance(ctx); err != nil || took > tortureOpen {
		t.incident(&t.report.Blocked, "reading beside a stopped process: %v in %v", err, took)
	}
	t.refused(ctx, "beside a stopped process", &index.Options{LockWait: 100 * time.Millisecond}, index.ErrLocked)
	if t.rand.IntN(2) == 0 {
		return continueProcess(c.cmd.Process)
	}
	return nil
}
