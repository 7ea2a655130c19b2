package embed

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Pauses after failures. A provider that fails for an hour hears about fifteen requests from all callers together.
const (
	firstPause = 500 * time.Millisecond // doubled at each failure in a row
	longPause  = 5 * time.Minute        // the most after transient failures; also how often an exhausted or misconfigured provider is probed
	maxPause   = time.Hour              // the most a server's Retry-After is believed
	// maxRefusals texts refused one by one with no success between them are taken as the provider's fault, not theirs:
	// isolating bad texts must not become a storm against a server that refuses everything.
	maxRefusals = 8
)

// gate is the state all callers of one provider share: a cooldown, and a breaker that lets one probe through when the
// cooldown ends. Safe for concurrent use.
type gate struct {
	log  *slog.Logger
	rand func() float64

	mu       sync.Mutex
	until    time.Time     // nobody passes before
	last     *fault        // why; nil while all is well
	failures int           // in a row
	refusals int           // in a row
	probing  bool          // the one request after a cooldown is on its way
	epoch    int           // counts cooldowns and probes: a request that entered before the last one is stale
	changed  chan struct{} // closed and replaced when any of this changes
}

func newGate(log *slog.Logger, rand func() float64) *gate {
	return &gate{log: log, rand: rand, changed: make(chan struct{})}
}

// enter lets the caller send one request, after which it must call report with the epoch returned. If the gate is shut
// it waits up to patience for it to open; a zero patience does not wait.
func (g *gate) enter(ctx context.Context, patience time.Duration) (epoch int, err error) {
	deadline := time.Now().Add(patience)
	for {
		g.mu.Lock()
		now := time.Now()
		wait := g.until.Sub(now)
		if g.last == nil || wait <= 0 && !g.probing {
			if g.last != nil {
				g.probing = true
				g.epoch++
			}
			epoch = g.epoch
			g.mu.Unlock()
			return epoch, nil
		}
		unavailable := g.unavailable(wait)
		changed := g.changed
		g.mu.Unlock()
		left := deadline.Sub(now)
		if left <= 0 || wait > left {
			return 0, unavailable
		}
		if wait <= 0 { // somebody is probing
			wait = left
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// report tells the gate how the request of an enter ended: nil for an answer, or its fault. A request its caller
// abandoned reports abandoned. What a stale request saw is old news, except for how long the server wants peace.
func (g *gate) report(epoch int, f *fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.wake()
	if epoch != g.epoch {
		if f != nil && f.after > 0 {
			g.pauseUntil(time.Now().Add(min(maxPause, f.after)))
		}
		return
	}
	g.probing = false
	switch {
	case f == abandoned:
	case f != nil && !f.aboutTexts():
		g.shut(f)
	default: // it answers
		if g.last != nil {
			g.log.Info("embedding provider recovered", "failures", g.failures)
		}
		g.last, g.failures, g.until = nil, 0, time.Time{}
		if f == nil {
			g.refusals = 0
		}
	}
}

// abandoned is reported for a request whose caller left: it says nothing about the provider.
var abandoned = &fault{reason: "abandoned"}

// refusal counts a text the provider refused alone. It returns a non-nil error when the provider seems to refuse everything.
func (g *gate) refusal(f *fault) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusals++; g.refusals < maxRefusals {
		return nil
	}
	g.refusals = 0
	g.shut(&fault{kind: misconfigured, reason: "it refuses every text (" + f.reason + "); check the model and its settings", err: f.err})
	g.wake()
	return g.unavailable(time.Until(g.until))
}

func (g *gate) shut(f *fault) {
	g.failures++
	g.epoch++
	pause := longPause
	if f.kind == transient || f.kind == throttled {
		pause = min(longPause, firstPause<<min(g.failures-1, 20))
		pause = pause/2 + time.Duration(g.rand()*float64(pause/2))
	}
	pause = min(maxPause, max(pause, f.after))
	g.pauseUntil(time.Now().Add(pause))
	if g.last == nil || g.last.kind != f.kind {
		g.log.Warn("embedding provider unavailable", "reason", f.reason, "pause", pause.Round(time.Millisecond))
	}
	g.last = f
}

// wait is how long the gate stays shut.
func (g *gate) wait() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, time.Until(g.until))
}

func (g *gate) pauseUntil(t time.Time) {
	if t.After(g.until) {
		g.until = t
	}
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) unavailable(wait time.Duration) *UnavailableError {
	return &UnavailableError{Reason: g.last.reason, After: max(0, wait), Err: g.last.err}
}
