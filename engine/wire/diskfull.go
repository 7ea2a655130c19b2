package wire

import (
	"errors"
	"strings"
	"syscall"
)

// isDiskFull recognises a full disk or quota through whatever wrapped it; SQLite reports it in words.
func isDiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "database or disk is full") || strings.Contains(text, "no space left on device") ||
		strings.Contains(text, "disk quota exceeded")
}
