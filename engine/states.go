package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hark/index"
)

// How long a call waits for what it leaves behind to be written, and Close for all that is left.
// Something else may hold the store's files for seconds; a turn shall not wait for it.
const (
	stateTries = 15 // each waits two seconds for another writer
	stateWait  = 100 * time.Millisecond
	statesWait = 10 * time.Second
)

// states are the small values that assemblies leave behind in the store. They are written in the
// background in the order they were set, each value at least as new as it was then; a read sees what
// is not written yet. Safe for concurrent use.
type states struct {
	store *index.Store
	log   *slog.Logger

	mu      sync.Mutex
	queue   []stateKey // not yet written, each once
	pending map[stateKey][]byte
	idle    chan struct{} // closed when the queue is empty; nil where nobody writes
}

type stateKey struct{ bucket, key string }

// get returns a value, nil where it is not set.
func (s *states) get(ctx context.Context, bucket, key string) ([]byte, error) {
	s.mu.Lock()
	value, ok := s.pending[stateKey{bucket, key}]
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	return s.store.State(ctx, bucket, key)
}

// set sets a value, nil deletes it. It waits until that is written, for stateWait at most and not at
// all where an earlier value waits already. Losing a value in a crash costs a cut or a block's bytes.
func (s *states) set(bucket, key string, value []byte) {
	at := stateKey{bucket, key}
	s.mu.Lock()
	if s.pending == nil {
		s.pending = map[stateKey][]byte{}
	}
	if _, waits := s.pending[at]; !waits {
		s.queue = append(s.queue, at)
	}
	s.pending[at] = value
	if s.idle != nil {
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	go s.write(idle)
	s.wait(stateWait)
}

// write writes until nothing is left.
func (s *states) write(idle chan struct{}) {
	defer close(idle)
	for tries := 0; ; {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.idle = nil
			s.mu.Unlock()
			return
		}
		at := s.queue[0]
		value := s.pending[at]
		s.mu.Unlock()
		err := s.store.SetState(context.Background(), at.bucket, at.key, value)
		if err != nil && !errors.Is(err, index.ErrReadOnly) {
			if tries++; tries < stateTries {
				continue
			}
			s.log.Warn("a value was not remembered", "bucket", at.bucket, "error", err)
		}
		tries = 0
		s.mu.Lock()
		if string(s.pending[at]) == string(value) && (s.pending[at] == nil) == (value == nil) {
			delete(s.pending, at)
			s.queue = s.queue[1:]
		}
		s.mu.Unlock()
	}
}

// wait returns whether everything is written, after d at the latest.
func (s *states) wait(d time.Duration) bool {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	if idle == nil {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// late reports that something is not written yet.
func (s *states) late() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle != nil
}
