package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errHeld is what tryLock returns when another opener holds the lock.
var errHeld = errors.New("held")

// lockPoll is how often a waiting opener tries again.
const lockPoll = 25 * time.Millisecond

// lockDir takes the directory's lock, which the operating system releases when the process
// ends however it ends, so a lock file left behind by a dead process never blocks.
func lockDir(ctx context.Context, dir string, wait time.Duration) (*os.File, error) {
	path := filepath.Join(dir, "LOCK")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		err := tryLock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, errHeld) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if wait <= 0 || time.Now().After(deadline) {
			held := heldBy(f)
			f.Close()
			return nil, fmt.Errorf("%s is in use by %s: stop it, or ask it instead: %w", dir, held, ErrLocked)
		}
		t := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			t.Stop()
			f.Close()
			return nil, ctx.Err()
		case <-t.C:
		}
	}
	if err := writePID(f); err != nil {
		unlock(f)
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func heldBy(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return "another process"
	}
	return "process " + pid
}

// unlockDir lets go. The file stays: removing it would let two later openers each lock a
// different file of the same name.
func unlockDir(f *os.File) {
	if f == nil {
		return
	}
	unlock(f)
	f.Close()
}
