package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// The files of a daemon in its state directory.
const (
	lockFile   = "daemon.lock" // locked as long as a daemon lives; the file stays
	recordFile = "daemon.json"
	socketFile = "hark.sock"
)

// maxSocketPath is what every supported system takes as the path of a Unix socket, in bytes.
const maxSocketPath = 103

// Record says where the daemon of a state directory listens: the content of daemon.json, which
// only its owner can read.
type Record struct {
	Protocol  int       `json:"protocol"`
	Version   string    `json:"version"`
	PID       int       `json:"pid"`
	Socket    string    `json:"socket,omitempty"`  // path, on systems with Unix sockets
	Address   string    `json:"address,omitempty"` // host:port of loopback TCP
	Token     string    `json:"token,omitempty"`   // for Address: the bearer token
	StartedAt time.Time `json:"startedAt"`
}

// ReadRecord reads the record of a state directory. Without a daemon it is fs.ErrNotExist.
func ReadRecord(state string) (Record, error) {
	var r Record
	data, err := os.ReadFile(filepath.Join(state, recordFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is damaged; the next daemon writes it anew: %w", filepath.Join(state, recordFile), err)
	}
	return r, nil
}

// writeRecord puts the record in place as a whole, so that no reader sees a part of it.
func writeRecord(state string, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := filepath.Join(state, recordFile)
	next := path + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// removeRecord removes what this daemon wrote, and leaves what a later one did.
func removeRecord(state string, mine Record) {
	if r, err := ReadRecord(state); err == nil && r.PID == mine.PID && r.StartedAt.Equal(mine.StartedAt) {
		_ = os.Remove(filepath.Join(state, recordFile)) // a record left behind is found stale
	}
}

// socketPath is where the socket of a state directory is: in it, or, where that path is too long
// for the system, in a private directory for sockets. The directory is not created here.
func socketPath(state string, env func(string) string) (string, error) {
	abs, err := filepath.Abs(state)
	if err != nil {
		return "", err
	}
	path := filepath.Join(abs, socketFile)
	if len(path) <= maxSocketPath {
		return path, nil
	}
	base := env("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(base) { // a relative one would mean another place to every process
		base = os.TempDir()
	}
	sum := sha256.Sum256([]byte(abs))
	path = filepath.Join(base, "hark-"+strconv.Itoa(os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path %s is too long for a socket: choose a shorter one with --socket", path)
	}
	return path, nil
}

// privateDir makes a directory that is this user's alone, and refuses one that is not: in a shared
// place like /tmp another user may have made it first.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ownedByUs(info) {
		return fmt.Errorf("%s belongs to somebody else: remove it, or choose another place with --socket", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// keepPrivate closes a state directory to other users, where it holds nothing but Hark's own; a
// folder that serves other purposes too is left as it is, with an error that says so.
func keepPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	open := fmt.Errorf("its mode is %v: run chmod 700 %s, or choose a folder of Hark's own", info.Mode().Perm(), dir)
	if !ownedByUs(info) {
		return open
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case "agents", "host", "logs", recordFile, lockFile, socketFile:
		default:
			return open
		}
	}
	return os.Chmod(dir, 0o700)
}

// newToken makes the secret of a TCP daemon.
func newToken() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
