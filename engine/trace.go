package engine

import (
	"time"

	"hark/recall"
)

// Trace tells how one Assemble came to its result. It names messages by id and index and holds
// numbers and reasons, but no text of any stored message.
type Trace struct {
	Session string   `json:"session,omitempty"`
	Scope   string   `json:"scope,omitempty"`
	Model   string   `json:"model,omitempty"`
	Mode    string   `json:"mode,omitempty"` // the host's mode: "normal", "fallback", "degraded"
	Notes   []string `json:"notes,omitempty"`

	Budget BudgetTrace `json:"budget"`
	Window WindowTrace `json:"window"`
	Recall RecallTrace `json:"recall"`
}

// BudgetTrace tells which budget was used, and what the parts of the result take, in tokens of the
// model: Factor of them for each of ours.
type BudgetTrace struct {
	Tokens   int     `json:"tokens"`
	Usable   int     `json:"usable"` // after the safety margin
	Source   string  `json:"source"` // "call", "settings" or "default"
	Reason   string  `json:"reason,omitempty"`
	Family   string  `json:"family,omitempty"` // whose tokenizer it is
	Factor   float64 `json:"factor"`
	History  int     `json:"history"`
	Prompt   int     `json:"prompt"` // of the words of this turn, which the host has taken off the budget
	Recall   int     `json:"recall"`
	Addition int     `json:"addition"`
}

// WindowTrace tells what part of the history was kept.
type WindowTrace struct {
	Messages  int    `json:"messages"`
	Frames    int    `json:"frames"`
	First     int    `json:"first"`          // index of the first kept message of the tail
	Head      []int  `json:"head,omitempty"` // indexes of kept messages before it: the host's summary, the user message of a turn cut inside
	Dropped   int    `json:"dropped"`
	Shortened []int  `json:"shortened,omitempty"` // indexes of messages shortened to fit
	Anchored  bool   `json:"anchored,omitempty"`  // the window was cut anew in this call
	Reason    string `json:"reason"`
}

// RecallTrace tells what was recalled and why, or why nothing was.
type RecallTrace struct {
	Ran        bool          `json:"ran"`
	Reason     string        `json:"reason,omitempty"`
	Question   string        `json:"question,omitempty"`
	Context    string        `json:"context,omitempty"`
	Cap        int           `json:"cap"`            // tokens the block may take
	Room       int           `json:"room,omitempty"` // of them, what the confidence leaves
	Hits       int           `json:"hits"`
	OnScreen   int           `json:"onScreen"` // stored messages left out because the window shows them
	Confidence float64       `json:"confidence"`
	Items      []TraceItem   `json:"items,omitempty"`
	Dropped    []TraceDrop   `json:"dropped,omitempty"`
	Kept       int           `json:"kept,omitempty"`   // blocks of earlier turns that stay in place
	Cached     bool          `json:"cached,omitempty"` // same bytes as an earlier call of this turn
	Took       time.Duration `json:"tookNs,omitempty"`
	Search     *recall.Trace `json:"search,omitempty"`
}

// TraceItem is one message shown to the model.
type TraceItem struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Role    string    `json:"role"`
	Sender  string    `json:"sender,omitempty"`
	Time    time.Time `json:"time"`
	Score   float64   `json:"score"`
	Lexical float64   `json:"lexical"`
	Dense   float64   `json:"dense"`
	Tokens  int       `json:"tokens"`
	Excerpt bool      `json:"excerpt,omitempty"`
	Why     []string  `json:"why,omitempty"`
}

// TraceDrop is one hit that was not shown.
type TraceDrop struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}
