package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hark/index"
	"hark/recall"
)

// Fate is what became of a message on its way into a block.
type Fate string

// The fates, in the order of the stages.
const (
	FateRecalled     Fate = "recalled"
	FateNotStored    Fate = "not stored"
	FateNotForRecall Fate = "not for recall" // stored, and kept out of memory
	FateNotInScope   Fate = "not in scope"
	FateNotAsked     Fate = "nothing asked"
	FateNotRetrieved Fate = "not retrieved"
	FateOutRanked    Fate = "out-ranked"
	FateOnScreen     Fate = "on screen"
	FateGated        Fate = "gated"
	FateSuperseded   Fate = "superseded"
	FateNearCopy     Fate = "near copy"
	FateOverBudget   Fate = "over budget"
)

// Explained is the fate of one message. What the session may not see is told of by its id alone.
type Explained struct {
	ID      string    `json:"id"`
	Fate    Fate      `json:"fate"`
	Why     string    `json:"why"`
	Session string    `json:"session,omitempty"`
	Role    string    `json:"role,omitempty"`
	Sender  string    `json:"sender,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	Tokens  int       `json:"tokens,omitempty"` // of a recalled one
	// Scores are those of every stage; nil where the message came to none.
	Scores *recall.Explanation `json:"scores,omitempty"`
}

// Explanation says why a call recalls what it does.
type Explanation struct {
	Trace *Trace      `json:"trace"`
	Shown []Explained `json:"shown"` // what is recalled, in the order of the block
	Not   []Explained `json:"not"`   // the best of what is not
	Asked []Explained `json:"asked"` // the messages that were asked about, in that order
}

// watching are the rows that an explanation asks about, and what the call found out about the session.
type watching struct {
	rows  []int64
	scope Scope
}

func (w *watching) see(sc Scope) {
	if w != nil {
		w.scope = sc
	}
}

func (w *watching) list() []int64 {
	if w == nil {
		return nil
	}
	return w.rows
}

// Explain does what Assemble does for the call, without a turn, and says of every message with one of
// the ids why it is in the block or not, and of the best others too. The block is the one that
// Assemble makes. Nothing is remembered of it.
func (e *Engine) Explain(ctx context.Context, p AssembleParams, ids ...string) (Explanation, error) {
	p.Inspect = true
	w := &watching{}
	known := make([]*index.Message, len(ids))
	for i, id := range ids {
		m, err := e.store.Find(ctx, id)
		switch {
		case errors.Is(err, index.ErrNotFound):
		case err != nil:
			return Explanation{}, fmt.Errorf("explain %s: %w", id, err)
		default:
			known[i] = &m[0]
			w.rows = append(w.rows, m[0].Seq)
		}
	}
	out := Explanation{Trace: &Trace{Model: p.Model}, Shown: []Explained{}, Not: []Explained{}, Asked: []Explained{}}
	e.assemble(ctx, p, out.Trace, w)
	j := judge{e: e, w: w, t: &out.Trace.Recall, fates: map[string]Explained{}}
	if err := j.candidates(ctx, &out); err != nil {
		return Explanation{}, fmt.Errorf("explain: %w", err)
	}
	for i, id := range ids {
		out.Asked = append(out.Asked, j.of(id, known[i]))
	}
	return out, nil
}

// judge works out fates from the trace of a call.
type judge struct {
	e     *Engine
	w     *watching
	t     *RecallTrace
	fates map[string]Explained // of the candidates the trace lists
}

// unshown bounds the messages that are told of without being asked about.
const unshown = 10

// candidates tells of what the trace lists.
func (j *judge) candidates(ctx context.Context, out *Explanation) error {
	scores := map[string]*recall.Explanation{}
	if s := j.t.Search; s != nil {
		for i := range s.Candidates {
			scores[s.Candidates[i].ID] = &s.Candidates[i]
		}
	}
	for _, it := range j.t.Items {
		x := Explained{
			ID: it.ID, Fate: FateRecalled, Session: it.Session, Role: it.Role, Sender: it.Sender, Time: it.Time, Tokens: it.Tokens, Scores: scores[it.ID],
		}
		x.Why = j.whyShown(it)
		j.fates[it.ID] = x
		out.Shown = append(out.Shown, x)
	}
	if j.t.Search == nil {
		return nil
	}
	var rows []int64
	for _, c := range j.t.Search.Candidates {
		if _, shown := j.fates[c.ID]; (c.ID == "" || !shown) && len(rows) < unshown {
			rows = append(rows, c.Seq)
		}
	}
	ms, err := j.e.store.Get(ctx, rows...)
	if err != nil {
		return err
	}
	for i := range ms {
		x := j.of(ms[i].ID, &ms[i])
		j.fates[x.ID] = x
		out.Not = append(out.Not, x)
	}
	return nil
}

func (j *judge) whyShown(it TraceItem) string {
	why := strings.Join(it.Why, ", ")
	if why == "" {
		why = "near in meaning"
	}
	if it.Excerpt {
		why += "; an excerpt around the match"
	}
	return why
}

// of is the fate of a message; m is nil where none is stored under that id.
func (j *judge) of(id string, m *index.Message) Explained {
	if m == nil {
		return Explained{ID: id, Fate: FateNotStored, Why: "no message of this agent has this id; it may be another agent's, or forgotten"}
	}
	if x, ok := j.fates[m.ID]; ok {
		return x
	}
	x := Explained{ID: m.ID}
	if !j.visible(m) {
		x.Fate, x.Why = FateNotInScope, "this session may not see the conversation it belongs to"
		return x
	}
	x.Session, x.Role, x.Sender, x.Time = m.Session, m.Role, m.Sender, m.Time
	if s := j.t.Search; s != nil {
		for _, list := range [...][]recall.Explanation{s.Candidates, s.Watched} {
			if i := slices.IndexFunc(list, func(c recall.Explanation) bool { return c.Seq == m.Seq }); i >= 0 && x.Scores == nil {
				x.Scores = &list[i]
			}
		}
	}
	x.Fate, x.Why = j.fate(m, x.Scores)
	return x
}

// visible reports that the session may see a message, whatever its kind.
func (j *judge) visible(m *index.Message) bool {
	sc := j.w.scope
	if sc.only != "" && m.Session != sc.only {
		return false
	}
	return sc.all || slices.Contains(sc.visible, m.Scope)
}

// fate finds the stage at which a visible message stayed behind.
func (j *judge) fate(m *index.Message, s *recall.Explanation) (Fate, string) {
	switch m.Kind {
	case index.Noise:
		return FateNotForRecall, "a heartbeat, a failed turn, a scheduled run or what the host restates: kept, and never recalled"
	case index.Summary:
		return FateNotForRecall, "a summary that the host made: what it sums up is recalled itself"
	case index.Tool:
		if !j.e.opts.RecallTools {
			return FateNotForRecall, "tool output, which is recalled only with recall.tools"
		}
	}
	switch {
	case !j.t.Ran:
		return FateNotAsked, "memory was not searched: " + j.t.Reason
	case s == nil && slices.ContainsFunc(j.t.Dropped, func(d TraceDrop) bool { return d.ID == m.ID }):
	case s == nil:
		return FateNotAsked, "memory was not searched again: " + j.t.Reason
	case s.Fate == recall.OnScreen:
		return FateOnScreen, "the kept history shows it already"
	case s.Fate == recall.NearCopy:
		return FateNearCopy, "says what a better match says, word for word"
	case s.Fate == recall.NotFound:
		return FateNotRetrieved, j.notRetrieved(s)
	case s.Fate == recall.OutRanked:
		return FateOutRanked, fmt.Sprintf("rank %d of %d candidates, with a score of %.2f", s.Rank, j.t.Search.Pool, s.Score)
	}
	i := slices.IndexFunc(j.t.Dropped, func(d TraceDrop) bool { return d.ID == m.ID })
	if i < 0 {
		if s != nil && len(j.t.Items) == 0 {
			return FateGated, fmt.Sprintf("%s (confidence %.2f)", j.t.Reason, j.t.Confidence)
		}
		return FateOutRanked, fmt.Sprintf("rank %d of %d candidates", s.Rank, j.t.Search.Pool)
	}
	why := j.t.Dropped[i].Reason
	if n := j.newer(s); n != "" && why == recall.OverBudget {
		return FateSuperseded, "the same person said something newer about it, which is recalled: " + n
	}
	switch why {
	case recall.OnScreen:
		return FateOnScreen, "the kept history shows it already"
	case sameWords:
		return FateOnScreen, "it is the question itself"
	case recall.OverBudget:
		return FateOverBudget, fmt.Sprintf("rank %d; no room was left of %d tokens", rankOf(s), j.t.Room)
	case recall.NearCopy:
		return FateNearCopy, "says what a better match says"
	default:
		return FateGated, why
	}
}

func rankOf(s *recall.Explanation) int {
	if s == nil {
		return 0
	}
	return s.Rank
}

// newer is the id of a recalled message that says something newer, "" where there is none.
func (j *judge) newer(s *recall.Explanation) string {
	if s == nil || s.Newer == 0 {
		return ""
	}
	for _, c := range j.t.Search.Candidates {
		if _, shown := j.fates[c.ID]; c.Seq == s.Newer && shown && j.fates[c.ID].Fate == FateRecalled {
			return c.ID
		}
	}
	return ""
}

func (j *judge) notRetrieved(s *recall.Explanation) string {
	if s.Text == 0 {
		return fmt.Sprintf("holds no word of the question, and %d others are nearer in meaning (its cosine is %.2f)", j.t.Search.Dense.Hits, s.Cosine)
	}
	return fmt.Sprintf("holds words of the question (score %.2f), and %d others hold more of them or rarer ones", s.Text, j.t.Search.Lexical.Hits)
}
