package index

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"

	chromem "github.com/philippgille/chromem-go"
)

// exact compares with every vector through chromem-go, in memory: the reference, and the
// faster one while there are few vectors. chromem-go answers a query with an error when one
// vector has a foreign dimension, so put checks; it is never asked to persist.
type exact struct {
	dim int

	mu    sync.RWMutex
	coll  *chromem.Collection
	parts map[int][]int // slot → parts stored; empty where there is nothing to embed
}

func newExact(dim int) (*exact, error) {
	never := func(context.Context, string) ([]float32, error) {
		return nil, errors.New("index: vectors come with the document")
	}
	coll, err := chromem.NewDB().CreateCollection("vectors", nil, never)
	if err != nil {
		return nil, err
	}
	return &exact{dim: dim, coll: coll, parts: map[int][]int{}}, nil
}

func (e *exact) name() string  { return "exact" }
func (e *exact) table() string { return "floats" }

func (e *exact) count() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.parts)
}

func exactID(slot, n int) string { return strconv.Itoa(slot) + "." + strconv.Itoa(n) }

func (e *exact) put(slot int, body []byte) error {
	parts, err := decodeFloats(body, e.dim)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.remove(slot); err != nil {
		return err
	}
	numbers := make([]int, len(parts))
	for i, p := range parts {
		numbers[i] = p.n
		doc := chromem.Document{ID: exactID(slot, p.n), Embedding: p.v}
		if err := e.coll.AddDocument(context.Background(), doc); err != nil {
			return err
		}
	}
	e.parts[slot] = numbers
	return nil
}

func (e *exact) drop(slot int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Deleting by id from memory has no way to go wrong.
	_ = e.remove(slot)
}

func (e *exact) remove(slot int) error {
	ids := make([]string, 0, len(e.parts[slot]))
	for _, n := range e.parts[slot] {
		ids = append(ids, exactID(slot, n))
	}
	delete(e.parts, slot)
	if len(ids) == 0 {
		return nil // without ids Delete means something else
	}
	return e.coll.Delete(context.Background(), nil, nil, ids...)
}

func (e *exact) nearest(ctx context.Context, q []float32, admit bitset, n int) (found, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	all := e.coll.Count()
	if all == 0 || len(admit) == 0 {
		return found{}, ctx.Err()
	}
	results, err := e.coll.QueryEmbedding(ctx, q, all, nil, nil)
	if err != nil {
		return found{}, err
	}
	top := make([]float64, 64*len(admit))
	for i := range top {
		top[i] = math.Inf(-1)
	}
	for _, r := range results {
		id, _, _ := strings.Cut(r.ID, ".")
		slot, err := strconv.Atoi(id)
		if err != nil || !admit.has(slot) {
			continue
		}
		top[slot] = max(top[slot], float64(r.Similarity))
	}
	out, b := found{}, best{n: n}
	for slot, score := range top {
		if !math.IsInf(score, -1) {
			out.add(score)
			b.add(hit{slot, score})
		}
	}
	out.hits = b.sorted()
	return out, ctx.Err()
}
