package wire

import (
	"bytes"
	"container/list"
	"encoding/json"
	"sync"
)

// maxHistoryBytes bounds what a server keeps of histories: hundreds of sessions of a usual length,
// and one of the largest body.
const maxHistoryBytes = MaxBody

// histories keeps the messages of each session's last assemble, so that the next one sends only
// what is new. It holds at most limit bytes, except that the latest history always fits, and lets
// go of the session that was not asked for the longest. Losing one costs a resend, never a message.
type histories struct {
	limit int

	mu    sync.Mutex
	bytes int
	order *list.List // of *history, latest first
	by    map[sessionRef]*list.Element
}

// sessionRef names a session across agents.
type sessionRef struct{ agent, session string }

type history struct {
	ref      sessionRef
	messages []json.RawMessage
	chain    []Chain // chain[i] is over the first i messages
	bytes    int
}

func newHistories(limit int) *histories {
	return &histories{limit: limit, order: list.New(), by: map[sessionRef]*list.Element{}}
}

// resolve turns what a client sent into all messages, and remembers them for the next call. It
// reports false where the client has to send them in full.
func (hs *histories) resolve(ref sessionRef, full []json.RawMessage, part *History) ([]json.RawMessage, bool) {
	next := &history{ref: ref, chain: []Chain{NewChain()}}
	rest := full
	if part != nil {
		old := hs.find(ref)
		if part.Count < 0 || (old == nil && part.Count > 0) {
			return nil, false
		}
		if old != nil {
			if part.Count > len(old.messages) {
				return nil, false
			}
			next.messages = append(next.messages, old.messages[:part.Count]...)
			next.chain = append(next.chain[:0], old.chain[:part.Count+1]...)
		}
		if next.chain[part.Count].String() != part.Base {
			return nil, false
		}
		rest = part.Messages
	}
	chain := next.chain[len(next.chain)-1]
	for _, m := range rest {
		m = bytes.Clone(m) // the request's body is not kept alive by its messages
		chain = chain.Add(m)
		next.messages, next.chain = append(next.messages, m), append(next.chain, chain)
	}
	for _, m := range next.messages {
		next.bytes += len(m) + len(chain)
	}
	hs.keep(next)
	return next.messages, true
}

func (hs *histories) find(ref sessionRef) *history {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if at, ok := hs.by[ref]; ok {
		return at.Value.(*history)
	}
	return nil
}

func (hs *histories) keep(h *history) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.drop(hs.by[h.ref])
	hs.by[h.ref] = hs.order.PushFront(h)
	hs.bytes += h.bytes
	for hs.bytes > hs.limit && hs.order.Len() > 1 {
		hs.drop(hs.order.Back())
	}
}

// forget lets go of a session, whose history is about to change as a whole.
func (hs *histories) forget(ref sessionRef) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.drop(hs.by[ref])
}

func (hs *histories) drop(at *list.Element) {
	if at == nil {
		return
	}
	h := hs.order.Remove(at).(*history)
	delete(hs.by, h.ref)
	hs.bytes -= h.bytes
}
