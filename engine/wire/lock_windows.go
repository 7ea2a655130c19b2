package wire

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

// ownedByUs relies on the profile directory, which other users cannot write.
func ownedByUs(fs.FileInfo) bool { return true }
