package index

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is far past the pid in the file: Windows refuses reads of a locked range.
const lockAt = 1 << 20

func tryLock(f *os.File) error {
	o := windows.Overlapped{Offset: lockAt}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

func unlock(f *os.File) {
	o := windows.Overlapped{Offset: lockAt}
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &o)
}
