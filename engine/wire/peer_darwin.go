package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID asks the kernel who opened a Unix socket.
func peerUID(c net.Conn) (int, bool) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err != nil || failed != nil {
		return 0, false
	}
	return int(cred.Uid), true
}
