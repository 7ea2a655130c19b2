package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// When the history no longer fits, it is cut to this share of what it may take, so that the next
// cut, which costs the host its prompt cache, is many turns away. When the whole history takes less
// than the second share, an old anchor is given up.
const (
	cutTo      = 0.70
	giveUpFrom = 0.50
)

// window is the part of the history that is kept: messages[start:].
type window struct {
	start  int
	live   int // first message of the last turn, which is always kept
	tokens int // of the kept messages
	moved  bool
	frames int
	reason string
}

// layout is what the host's messages allow: where they may be cut.
type layout struct {
	n     int
	cuts  []int // ascending, the first is 0: a window may start here
	live  int   // the last of cuts
	suffs []int // tokens from a message to the end; one longer than the messages
}

// lay finds the cuts: between turns, and never so that a tool result is parted from its call. A
// history without any user message may be cut between frames.
func lay(ms []*measure) layout {
	l := layout{n: len(ms), suffs: make([]int, len(ms)+1)}
	for i := len(ms) - 1; i >= 0; i-- {
		l.suffs[i] = l.suffs[i+1] + ms[i].tokens
	}
	needs := dependencies(ms)
	turns := false
	for _, m := range ms {
		turns = turns || m.isUser()
	}
	l.cuts = []int{0}
	for i := 1; i < len(ms); i++ {
		boundary := ms[i].isUser() && !ms[i-1].isUser()
		if !turns {
			boundary = ms[i].result == "" && ms[i].role != "tool"
		}
		if boundary && needs[i] >= i {
			l.cuts = append(l.cuts, i)
		}
	}
	l.live = l.cuts[len(l.cuts)-1]
	return l
}

// dependencies returns, for every i, the first message that messages[i:] cannot do without: the
// call of a result among them. Calls and results are paired by position: a result answers the
// nearest call of its id before it.
func dependencies(ms []*measure) []int {
	needs := make([]int, len(ms)+1)
	needs[len(ms)] = len(ms)
	caller := map[string]int{}
	early := map[string][]int{} // results that came before their call
	for i, m := range ms {
		needs[i] = i
		for _, id := range m.calls {
			caller[id] = i
			for _, r := range early[id] {
				needs[i] = min(needs[i], r)
			}
			delete(early, id)
		}
		if m.result == "" {
			continue
		}
		if c, ok := caller[m.result]; ok {
			needs[i] = min(needs[i], c)
		} else {
			early[m.result] = append(early[m.result], i)
		}
	}
	for i := len(ms) - 1; i >= 0; i-- {
		needs[i] = min(needs[i], needs[i+1])
	}
	return needs
}

// choose picks the window: from the anchor while that fits, else from the first cut that brings the
// history down to cutTo of limit. anchor is -1 where there is none. While a turn is running, in the
// host's tool loop, an anchor is not given up, so that its requests begin alike.
func (l layout) choose(anchor, limit int, running bool) window {
	w := window{live: l.live, frames: len(l.cuts)}
	total := l.suffs[0]
	switch {
	case l.n == 0:
		w.reason = "no history"
		return w
	case total <= limit && (anchor <= 0 || !running && float64(total) <= giveUpFrom*float64(limit)):
		w.reason, w.moved = "everything fits", anchor > 0
	case anchor > 0 && l.suffs[anchor] <= limit:
		w.start, w.reason = anchor, "from the anchor"
	default:
		w.start, w.moved = l.live, true
		for _, c := range l.cuts {
			if c > max(anchor, 0) && float64(l.suffs[c]) <= cutTo*float64(limit) {
				w.start = c
				break
			}
		}
		w.reason = fmt.Sprintf("over %d tokens: cut to %d percent at a turn", limit, int(cutTo*100))
		if l.suffs[w.start] > limit {
			w.reason = fmt.Sprintf("the last turn alone is over %d tokens", limit)
		}
	}
	w.tokens = l.suffs[w.start]
	return w
}

// anchor is what is stored of a window's start, to find it again in the host's next list.
type anchor struct {
	First string `json:"first"`
	Next  string `json:"next,omitempty"`
}

func anchorAt(ms []*measure, i int) anchor {
	a := anchor{First: ms[i].role + "/" + strconv.FormatInt(ms[i].ms, 10) + "/" + ms[i].print}
	if i+1 < len(ms) {
		a.Next = ms[i+1].role + "/" + strconv.FormatInt(ms[i+1].ms, 10) + "/" + ms[i+1].print
	}
	return a
}

// findAnchor returns the index of the stored start of the session's window, or -1: the host may
// have compacted or reset the session since.
func (e *Engine) findAnchor(ctx context.Context, session string, ms []*measure, l layout) int {
	value, err := e.store.State(ctx, "window", session)
	if err != nil || len(value) == 0 {
		return -1
	}
	var a anchor
	if json.Unmarshal(value, &a) != nil || a.First == "" {
		return -1
	}
	loose := -1
	for _, c := range l.cuts {
		if c >= len(ms) {
			break
		}
		at := anchorAt(ms, c)
		if at.First != a.First {
			continue
		}
		if at.Next == a.Next || a.Next == "" {
			return c
		}
		loose = c
	}
	return loose
}

// saveAnchor stores where the window starts; losing it costs a cut, not a turn.
func (e *Engine) saveAnchor(ctx context.Context, session string, ms []*measure, start int) {
	value := []byte("{}")
	if start > 0 {
		value, _ = json.Marshal(anchorAt(ms, start))
	}
	if err := e.store.SetState(ctx, "window", session, value); err != nil {
		e.log.Warn("window start not remembered", "error", err)
	}
}

// forgetWindow drops the anchor and the blocks of a session whose history the host has rewritten.
func (e *Engine) forgetWindow(ctx context.Context, session string) {
	e.saveAnchor(ctx, session, nil, 0)
	e.saveLedger(ctx, session, ledger{})
}
