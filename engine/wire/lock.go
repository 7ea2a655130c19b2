package wire

import (
	"errors"
	"os"
	"path/filepath"
)

// errHeld says that another process has the lock.
var errHeld = errors.New("locked by another process")

// lockState takes the daemon's lock of a state directory without waiting. The operating system
// releases it with the process, however that ends, so there is no stale lock to recognise.
func lockState(state string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(state, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
