//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a torture can do on this system.
const (
	canLimitFiles = true
	canStop       = true
)

// limitFiles bounds the files of this process: what would grow beyond fails as on a full disk. 0 lifts
// the bound.
func limitFiles(most int64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return setFileLimit(unix.RLIMIT_FSIZE, most)
}

func setFileLimit(what int, most int64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(what, &limit); err != nil {
		return err
	}
	if limit.Cur = limit.Max; most > 0 {
		limit.Cur = min(limit.Max, uint64(most))
	}
	return unix.Setrlimit(what, &limit)
}

func stopProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
