package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hark/embed"
	"hark/index"
)

// Account tells how an agent was served: when, what failed last and why, what does not work now, and
// how much. It holds no text and no session keys. The counts are over the life of the store.
type Account struct {
	Assembled time.Time  `json:"assembled,omitzero"` // when a host last got a context
	Committed time.Time  `json:"committed,omitzero"` // when a turn was last stored
	Failed    *Failure   `json:"failed,omitempty"`   // the last call that failed
	Degraded  []Degraded `json:"degraded,omitempty"` // by name
	Counts    Counts     `json:"counts"`
	Accepted  int        `json:"accepted,omitempty"` // histories that are accepted and being stored
}

// Failure is a call that failed.
type Failure struct {
	At     time.Time `json:"at"`
	Call   string    `json:"call"` // "commitTurn"
	Reason string    `json:"reason"`
}

// Degraded is a part that does not work now; the rest goes on without it.
type Degraded struct {
	What   string    `json:"what"` // "meaning", "words", "histories" or "turns"
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// The parts that can be degraded.
const (
	DegradedMeaning   = "meaning"   // the embedder does not answer: words are found, their meaning is not
	DegradedWords     = "words"     // the lexical index cannot be used: words are found by scanning
	DegradedHistories = "histories" // an accepted history is not stored yet
	DegradedTurns     = "turns"     // the last turn could not be stored
)

// Counts of what was done.
type Counts struct {
	Assembled uint64 `json:"assembled"` // contexts given
	Committed uint64 `json:"committed"` // turns stored
	Duplicate uint64 `json:"duplicate"` // turns that were stored already
	Failed    uint64 `json:"failed"`    // calls that returned an error
	Recalled  uint64 `json:"recalled"`  // turns that were given memory
	Tokens    uint64 `json:"tokens"`    // of that memory, in tokens of the model
	Abstained uint64 `json:"abstained"` // turns for which nothing was good enough
}

// accounts keeps an engine's Account. Safe for concurrent use.
type accounts struct {
	clock func() time.Time

	mu    sync.Mutex
	sum   Account
	state map[string]Degraded
}

// accountState is where the account is kept.
const accountBucket, accountKey = "engine", "served"

// load goes on with what an earlier engine noted.
func (a *accounts) load(ctx context.Context, store *index.Store) error {
	value, err := store.State(ctx, accountBucket, accountKey)
	if err != nil || len(value) == 0 {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return json.Unmarshal(value, &a.sum)
}

// note writes the account down; what cannot be written in time is written with the next turn.
func (a *accounts) note(ctx context.Context, store *index.Store) error {
	ctx, cancel := context.WithTimeout(ctx, noteWait)
	defer cancel()
	a.mu.Lock()
	sum := a.sum
	sum.Degraded, sum.Accepted = nil, 0
	a.mu.Unlock()
	value, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return store.SetState(ctx, accountBucket, accountKey, value)
}

// noteWait is what a turn that is stored waits for the note of it.
const noteWait = 200 * time.Millisecond

// ail marks a part as degraded, or as well again where reason is empty.
func (a *accounts) ail(what, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ill := a.state[what]
	switch {
	case reason == "":
		delete(a.state, what)
	case ill:
		a.state[what] = Degraded{what, was.Since, reason}
	default:
		if a.state == nil {
			a.state = map[string]Degraded{}
		}
		a.state[what] = Degraded{what, a.clock().UTC(), reason}
	}
}

// assembled counts a context that was given.
func (a *accounts) assembled(tr *Trace) {
	a.mu.Lock()
	a.sum.Assembled = a.clock().UTC()
	a.sum.Counts.Assembled++
	switch {
	case tr.Recall.Cached:
	case tr.Budget.Recall > 0:
		a.sum.Counts.Recalled++
		a.sum.Counts.Tokens += uint64(tr.Budget.Recall)
	case tr.Recall.Ran:
		a.sum.Counts.Abstained++
	}
	a.mu.Unlock()
	if s := tr.Recall.Search; s != nil && s.Dense.Ran {
		a.ail(DegradedMeaning, "")
	} else if s != nil && strings.HasPrefix(s.Dense.Reason, "unavailable") {
		a.ail(DegradedMeaning, s.Dense.Reason)
	}
}

// called counts a call that stores something.
func (a *accounts) called(call string, duplicate bool, err error) {
	a.mu.Lock()
	switch {
	case err != nil:
		a.sum.Counts.Failed++
		a.sum.Failed = &Failure{At: a.clock().UTC(), Call: call, Reason: reasonOf(err)}
	case call == "afterTurn": // a turn too; a host that also commits it has it counted then
		a.sum.Committed = a.clock().UTC()
	case call != "commitTurn":
	case duplicate:
		a.sum.Counts.Duplicate++
	default:
		a.sum.Counts.Committed++
		a.sum.Committed = a.clock().UTC()
	}
	a.mu.Unlock()
	switch {
	case err == nil:
		a.ail(DegradedTurns, "")
	case !errors.Is(err, index.ErrConflict) && !errors.Is(err, context.Canceled):
		a.ail(DegradedTurns, reasonOf(err))
	}
}

// reasonOf is an error in one line of bounded length.
func reasonOf(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Account says how the agent was served, by this engine and those before it over the same store.
func (e *Engine) Account(ctx context.Context) (Account, error) {
	histories, _, jerr := e.journal.left()
	if jerr != nil {
		e.accounts.ail(DegradedHistories, reasonOf(jerr))
	} else {
		e.accounts.ail(DegradedHistories, "")
	}
	if words := e.store.WordsState(); words == "unavailable" {
		e.accounts.ail(DegradedWords, "the index of words cannot be opened; words are matched by scanning")
	} else {
		e.accounts.ail(DegradedWords, "")
	}
	if down, ok := e.emb.(embed.Reporter); ok {
		if u := down.Unavailable(); u != nil {
			e.accounts.ail(DegradedMeaning, "unavailable: "+u.Reason)
		}
	}
	e.accounts.mu.Lock()
	defer e.accounts.mu.Unlock()
	out := e.accounts.sum
	if out.Failed != nil {
		failed := *out.Failed
		out.Failed = &failed
	}
	out.Accepted = histories
	for _, d := range e.accounts.state {
		out.Degraded = append(out.Degraded, d)
	}
	slices.SortFunc(out.Degraded, func(x, y Degraded) int { return cmp.Compare(x.What, y.What) })
	return out, ctx.Err()
}

// counted counts a call that stores something and notes it down.
func (e *Engine) counted(ctx context.Context, call string, duplicate bool, err error) {
	e.accounts.called(call, duplicate, err)
	if err != nil || call != "commitTurn" && call != "afterTurn" || duplicate {
		return
	}
	if err := e.accounts.note(ctx, e.store); err != nil {
		e.log.Debug("account of the turn is noted with the next one", "error", err)
	}
}

// close notes what was counted since the last turn.
func (a *accounts) close(store *index.Store) error {
	a.mu.Lock()
	used := a.sum.Counts != (Counts{})
	a.mu.Unlock()
	if !used {
		return nil
	}
	if err := a.note(context.Background(), store); err != nil && !errors.Is(err, index.ErrReadOnly) && !errors.Is(err, index.ErrClosed) {
		return fmt.Errorf("note how the agent was served: %w", err)
	}
	return nil
}
