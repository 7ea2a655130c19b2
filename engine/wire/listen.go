package wire

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// door is a listener with what clients need to find and pass it.
type door struct {
	net.Listener
	record  Record                                                // Socket, or Address and Token
	allow   func(r *http.Request) *Error                          // refuses peers; nil: everyone who can connect
	connCtx func(ctx context.Context, c net.Conn) context.Context // notes who connected
}

// listen opens the door of this system. The caller holds the daemon's lock.
func listen(state, socket string, env func(string) string) (*door, error) {
	if runtime.GOOS == "windows" {
		return listenTCP()
	}
	return listenUnix(state, socket, env)
}

// listenUnix listens on a Unix socket that only this user can open. The socket is made in a private
// directory and moved into place, which also replaces the one of a dead daemon: nobody can connect
// before its mode is right, and no client finds it missing.
func listenUnix(state, socket string, env func(string) string) (*door, error) {
	path, err := place(state, socket, env)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("%s is in the way: it is no socket, so it is left alone; move it, or choose another place with --socket", path)
	}
	making := filepath.Join(filepath.Dir(path), ".h") // with the name in it no longer than "hark.sock"
	if err := privateDir(making); err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	defer os.RemoveAll(making)
	fresh := filepath.Join(making, "s")
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return &door{Listener: l, record: Record{Socket: path}, allow: allowPeer, connCtx: notePeer}, nil
}

// place is the absolute path of the socket: the one that was asked for, or the usual one, whose
// directory is made where needed.
func place(state, socket string, env func(string) string) (string, error) {
	if socket == "" {
		path, err := socketPath(state, env)
		if err == nil && filepath.Base(path) != socketFile {
			err = privateDir(filepath.Dir(path))
		}
		return path, err
	}
	path, err := filepath.Abs(socket)
	if err == nil && len(path) > maxSocketPath {
		err = fmt.Errorf("the path %s is too long for a socket: choose a shorter one with --socket", path)
	}
	return path, err
}

// listenTCP listens on loopback, for systems without Unix sockets. Who knows the token may pass; it
// stands in daemon.json, which only this user can read.
func listenTCP() (*door, error) {
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return &door{
		Listener: l, record: Record{Address: l.Addr().String(), Token: token},
		allow: func(r *http.Request) *Error {
			got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok || subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
				return &Error{Code: CodeForbidden, Message: "the bearer token is missing or not this daemon's", Remedy: "read it from daemon.json in the state directory"}
			}
			return nil
		},
	}, nil
}

// peer is the user at the other end of a connection.
type peer struct {
	uid   int
	known bool
}

type peerKey struct{}

// notePeer keeps who opened a connection for the requests on it.
func notePeer(ctx context.Context, c net.Conn) context.Context {
	uid, ok := peerUID(c)
	return context.WithValue(ctx, peerKey{}, peer{uid, ok})
}

// allowPeer admits this user and root. The mode of the socket keeps others out already; this holds
// where a directory was opened up. Where the system does not tell who it is, the mode has to do.
func allowPeer(r *http.Request) *Error {
	p, _ := r.Context().Value(peerKey{}).(peer)
	if !p.known || p.uid == os.Getuid() || p.uid == 0 {
		return nil
	}
	return &Error{Code: CodeForbidden, Message: "this daemon serves another user"}
}
