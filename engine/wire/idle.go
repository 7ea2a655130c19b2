package wire

import (
	"context"
	"sync"
	"time"
)

// idle tells when nothing was asked for long enough. A limit of 0 or less never ends.
type idle struct {
	limit time.Duration

	mu      sync.Mutex
	running int
	last    time.Time // when running became 0
}

func newIdle(limit time.Duration) *idle { return &idle{limit: limit, last: time.Now()} }

// touch marks the start of a use; the returned function marks its end.
func (i *idle) touch() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.running--
		i.last = time.Now()
	}
}

// left is how long it takes at least until the limit has passed without use.
func (i *idle) left() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running > 0 {
		return i.limit
	}
	return time.Until(i.last.Add(i.limit))
}

// wait returns true when the limit has passed without use, false when ctx ended before.
func (i *idle) wait(ctx context.Context) bool {
	if i.limit <= 0 {
		<-ctx.Done()
		return false
	}
	t := time.NewTimer(i.limit)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
		left := i.left()
		if left <= 0 {
			return true
		}
		t.Reset(left)
	}
}
