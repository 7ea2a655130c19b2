package embed

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
)

// cache keeps the vectors of recent queries, the least recently used going first, and lets equal queries in flight
// share one request. Safe for concurrent use.
type cache struct {
	flight singleflight.Group

	mu      sync.Mutex
	room    int // bytes left
	entries map[string]*list.Element
	recent  *list.List // of *cacheEntry, latest first
}

type cacheEntry struct {
	key    string
	vector []float32
}

// size estimates the bytes an entry holds, with its map and list cells.
func (e *cacheEntry) size() int { return len(e.key) + 4*len(e.vector) + 160 }

func newCache(bytes int) *cache {
	return &cache{room: bytes, entries: map[string]*list.Element{}, recent: list.New()}
}

// get returns the vector for key, from memory or by fetch. Errors are not kept. A caller whose ctx ends leaves the
// flight; when the flight's own caller left it, another waiting one takes over.
func (c *cache) get(ctx context.Context, key string, fetch func() ([]float32, error)) ([]float32, error) {
	for {
		if v := c.look(key); v != nil {
			return v, nil
		}
		ran := false
		answer := c.flight.DoChan(key, func() (any, error) {
			ran = true
			v, err := fetch()
			if err == nil {
				c.keep(key, v)
			}
			return v, err
		})
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-answer:
			left := errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, context.DeadlineExceeded)
			if left && !ran && ctx.Err() == nil {
				continue
			}
			v, _ := a.Val.([]float32)
			return slices.Clone(v), a.Err
		}
	}
}

func (c *cache) look(key string) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[key]
	if el == nil {
		return nil
	}
	c.recent.MoveToFront(el)
	return slices.Clone(el.Value.(*cacheEntry).vector)
}

func (c *cache) keep(key string, vector []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] != nil || vector == nil {
		return
	}
	e := &cacheEntry{key, slices.Clone(vector)}
	c.entries[key] = c.recent.PushFront(e)
	c.room -= e.size()
	for c.room < 0 {
		oldest := c.recent.Remove(c.recent.Back()).(*cacheEntry)
		delete(c.entries, oldest.key)
		c.room += oldest.size()
	}
}
