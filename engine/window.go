package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// When the history no longer fits, it is cut to this share of what it may take, so that the next
// cut, which costs the host its prompt cache, is many turns away. When the whole history takes less
// than the second share, an old anchor is given up.
const (
	cutTo      = 0.70
	giveUpFrom = 0.50
)

// window is the part of the history that is kept: the messages at head, then messages[start:].
type window struct {
	head   []int // the host's summary of what it cut, and the user message a start inside its turn belongs to
	start  int
	live   int // first message of the last turn
	tokens int // of the kept messages
	moved  bool
	frames int
	reason string
}

// kept lists the indexes of the kept messages of n.
func (w window) kept(n int) []int {
	out := make([]int, 0, len(w.head)+n-w.start)
	out = append(out, w.head...)
	for i := w.start; i < n; i++ {
		out = append(out, i)
	}
	return out
}

// layout is what the host's messages allow: where they may be cut.
type layout struct {
	n      int
	lead   int   // the first messages are the host's summary of what it cut: a cut leaves them in place
	cuts   []int // ascending, the first is lead: a window may start here
	inner  []int // ascending, inside turns: a window starts here where no cut will do
	live   int   // the last of cuts
	suffs  []int // tokens from a message to the end; one longer than the messages
	asks   []int // for every message, the last user message up to it, -1 where there is none
	tokens []int // of the messages
}

// lay finds the cuts: between turns, and never so that a tool result is parted from its call. A
// history without any user message may be cut between frames. Inside a turn, which a row of user
// messages is too, there are inner cuts between frames.
func lay(ms []*measure) layout {
	lead := 0
	for lead+1 < len(ms) && ms[lead].role == "summary" {
		lead++
	}
	return layAfter(ms, lead)
}

// layAfter is lay with the first lead messages kept outside of what is cut.
func layAfter(ms []*measure, lead int) layout {
	l := layout{n: len(ms), lead: lead, cuts: []int{lead}, suffs: make([]int, len(ms)+1), asks: make([]int, len(ms)), tokens: make([]int, len(ms))}
	for i := len(ms) - 1; i >= 0; i-- {
		l.tokens[i] = ms[i].tokens
		l.suffs[i] = l.suffs[i+1] + ms[i].tokens
	}
	last := -1
	for i, m := range ms {
		if m.isUser() {
			last = i
		}
		l.asks[i] = last
	}
	needs := dependencies(ms)
	for i := lead + 1; i < len(ms); i++ {
		frame := ms[i].result == "" && ms[i].role != "tool"
		switch {
		case needs[i] < i:
		case ms[i].isUser() && !ms[i-1].isUser() || last < 0 && frame:
			l.cuts = append(l.cuts, i)
		case frame:
			l.inner = append(l.inner, i)
		}
	}
	l.live = l.cuts[len(l.cuts)-1]
	return l
}

// ask returns the user message that stays before a window from i because it starts inside its turn,
// -1 where none does.
func (l layout) ask(i int) int {
	if i >= l.n || l.asks[i] < l.lead || l.asks[i] == i {
		return -1
	}
	if _, inside := slices.BinarySearch(l.inner, i); !inside {
		return -1
	}
	return l.asks[i]
}

// taken returns the tokens of the window that starts at i, without the host's summary.
func (l layout) taken(i int) int {
	n := l.suffs[i]
	if a := l.ask(i); a >= 0 {
		n += l.tokens[a]
	}
	return n
}

// leadTokens are those of the host's summary.
func (l layout) leadTokens() int { return l.suffs[0] - l.suffs[l.lead] }

// startAt is the window that starts at i.
func (l layout) startAt(i int) window {
	w := window{start: i, live: l.live, frames: len(l.cuts), tokens: l.taken(i) + l.leadTokens()}
	if i == l.lead { // nothing is cut
		w.start = 0
		return w
	}
	for j := range l.lead {
		w.head = append(w.head, j)
	}
	if a := l.ask(i); a >= 0 {
		w.head = append(w.head, a)
	}
	return w
}

// within is the layout for a limit: the host's summary may be cut off where it would take the room of
// the last user message and the newest frame.
func (l layout) within(ms []*measure, limit int) layout {
	at := l.live
	if n := len(l.inner); n > 0 {
		at = max(at, l.inner[n-1])
	}
	lead := l.leadTokens()
	if l.lead == 0 || l.suffs[0] <= limit || lead <= limit/2 || lead+l.taken(at) <= limit {
		return l
	}
	return layAfter(ms, 0)
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
// host's tool loop, an anchor before it is not given up, so that its requests begin alike.
func (l layout) choose(anchor, limit int, running bool) window {
	if l.n == 0 {
		return window{live: l.live, frames: len(l.cuts), reason: "no history"}
	}
	total := l.suffs[0]
	anchored := anchor > l.lead
	if total <= limit && (!anchored || (!running || anchor > l.live) && float64(total) <= giveUpFrom*float64(limit)) {
		w := l.startAt(l.lead)
		w.reason, w.moved = "everything fits", anchored
		return w
	}
	if anchored {
		if w := l.startAt(anchor); w.tokens <= limit {
			w.reason = "from the anchor"
			return w
		}
	}
	w := l.startAt(l.live)
	for _, c := range l.cuts {
		if c > max(anchor, l.lead) && float64(l.taken(c)+l.leadTokens()) <= cutTo*float64(limit) {
			w = l.startAt(c)
			break
		}
	}
	w.moved = true
	w.reason = fmt.Sprintf("over %d tokens: cut to %d percent at a turn", limit, int(cutTo*100))
	if w.tokens > limit {
		w.reason = fmt.Sprintf("the last turn alone is over %d tokens", limit)
	}
	return w
}

// inside picks a window within the last turn, for one that is over limit whatever is shortened: the
// first inner cut that brings it down to cutTo of limit, else the last one. ok is false where there is none.
func (l layout) inside(limit int) (w window, ok bool) {
	at := -1
	for _, c := range l.inner {
		if c <= l.live {
			continue
		}
		if at = c; float64(l.taken(c)+l.leadTokens()) <= cutTo*float64(limit) {
			break
		}
	}
	if at < 0 {
		return window{}, false
	}
	w = l.startAt(at)
	w.moved = true
	w.reason = fmt.Sprintf("the last turn alone is over %d tokens: cut inside, after its user message", limit)
	return w, true
}

// anchor is what is stored of a window's start, to find it again in the host's next list.
type anchor struct {
	First string `json:"first"`
	Next  string `json:"next,omitempty"`
	Nth   int    `json:"nth,omitempty"` // how many of the same stand before it: not every host dates what repeats
}

func anchorAt(ms []*measure, i int) anchor {
	a := anchor{First: nameOf(ms[i])}
	if i+1 < len(ms) {
		a.Next = nameOf(ms[i+1])
	}
	return a
}

// nameOf names a message in any list that has it.
func nameOf(m *measure) string { return m.role + "/" + strconv.FormatInt(m.ms, 10) + "/" + m.print }

// findAnchor returns the index of the stored start of the session's window, or -1: the host may
// have compacted or reset the session since.
func (e *Engine) findAnchor(ctx context.Context, session string, ms []*measure, l layout) int {
	value, err := e.states.get(ctx, "window", session)
	if err != nil || len(value) == 0 {
		return -1
	}
	var a anchor
	if json.Unmarshal(value, &a) != nil || a.First == "" {
		return -1
	}
	exact, loose := -1, -1
	starts := slices.Concat(l.cuts, l.inner)
	slices.Sort(starts)
	for i, nth := 0, 0; i < len(ms); i++ {
		if !strings.HasSuffix(a.First, ms[i].print) || nameOf(ms[i]) != a.First {
			continue
		}
		same := a.Next == "" || anchorAt(ms, i).Next == a.Next
		if _, ok := slices.BinarySearch(starts, i); ok {
			if loose = i; same {
				if exact = i; nth == a.Nth {
					return i
				}
			}
		}
		nth++
	}
	if exact >= 0 {
		return exact
	}
	return loose
}

// saveAnchor stores where the window starts; losing it costs a cut, not a turn.
func (e *Engine) saveAnchor(session string, ms []*measure, start int) {
	value := []byte("{}")
	if start > 0 {
		a := anchorAt(ms, start)
		for i := range start {
			if nameOf(ms[i]) == a.First {
				a.Nth++
			}
		}
		value, _ = json.Marshal(a)
	}
	e.states.set("window", session, value)
}

// forgetWindow drops the anchor and the blocks of a session whose history the host has rewritten.
func (e *Engine) forgetWindow(session string) {
	e.saveAnchor(session, nil, 0)
	e.saveLedger(session, ledger{})
}
