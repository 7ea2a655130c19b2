package eval

import (
	"hark/recall"
)

// Outcome is what became of one query. Every metric is computed from outcomes, so that a report
// can be compared with another without running anything again.
type Outcome struct {
	ID       string `json:"id"`
	Conv     string `json:"conv"`
	Cat      string `json:"cat"`
	Text     string `json:"text"`
	Negative bool   `json:"negative,omitempty"` // nothing should be recalled
	Abstain  bool   `json:"abstain,omitempty"`  // its set calls it unanswerable; it may have labels

	Gold       []Gold        `json:"gold,omitempty"`     // by document
	Sessions   []GoldSession `json:"sessions,omitempty"` // by session
	Returned   int           `json:"returned"`
	Top        []TopHit      `json:"top,omitempty"` // the first ten
	Confidence float64       `json:"confidence"`
	Contexts   []InContext   `json:"contexts"` // by budget
	Update     *Update       `json:"update,omitempty"`
	Turns      *UserTurns    `json:"userTurns,omitempty"` // LongMemEval's candidates
}

// Gold is a relevant document.
type Gold struct {
	Doc   string `json:"doc"`
	Grade int    `json:"grade,omitempty"` // where it is not 1
	Rank  int    `json:"rank,omitempty"`  // from 1; 0 where it was not returned
	Fate  Fate   `json:"fate"`            // at the reference budget
	Why   *Trace `json:"trace,omitempty"` // where it is not in the context
	Text  string `json:"text,omitempty"`
}

// grade is at least 1.
func (g Gold) grade() int { return max(1, g.Grade) }

// GoldSession is a relevant session.
type GoldSession struct {
	Sess string `json:"sess"`
	Rank int    `json:"rank,omitempty"` // among the sessions of the returned documents, in order of their best
}

// TopHit is a returned document.
type TopHit struct {
	Doc   string  `json:"doc"`
	Score float64 `json:"score"`
	Gold  bool    `json:"gold,omitempty"`
	Text  string  `json:"text,omitempty"` // of the first three where evidence is missing
}

// InContext is what an assembled context held.
type InContext struct {
	Budget       int    `json:"budget"`
	Found        int    `json:"found"`            // relevant documents in it
	Window       int    `json:"window,omitempty"` // of Found, how many are there by the recent window
	Items        int    `json:"items"`            // recalled documents
	Relevant     int    `json:"relevant"`         // of Items
	Tokens       int    `json:"tokens"`           // of the recalled block
	WindowTokens int    `json:"windowTokens,omitempty"`
	Silent       string `json:"silent,omitempty"` // why nothing was recalled
}

// Update is what became of a fact that changed.
type Update struct {
	Newer        int  `json:"newer,omitempty"`        // rank of the newest value, 0 where it was not returned
	Older        int  `json:"older,omitempty"`        // best rank of a replaced one
	OlderShown   bool `json:"olderShown,omitempty"`   // a replaced value is in the context at the reference budget
	NewerShown   bool `json:"newerShown,omitempty"`   // the newest is
	OlderUndated bool `json:"olderUndated,omitempty"` // a replaced value is shown without its date
}

// UserTurns are ranks among the user's messages only: LongMemEval's own evaluation has no others
// as candidates.
type UserTurns struct {
	Turns    []int `json:"turns,omitempty"` // ranks of the relevant turns, 0 where not returned
	Sessions []int `json:"sessions,omitempty"`
}

// Fate says what became of evidence on its way into a context.
type Fate string

// The fates, in the order of the stages.
const (
	InBlock      Fate = "in the context"
	InWindow     Fate = "in the recent window"
	NotIndexed   Fate = "not indexed"
	NotSearched  Fate = "not searched" // of a kind that Assemble does not recall
	NotRetrieved Fate = "not retrieved"
	OutRanked    Fate = "out-ranked"
	Gated        Fate = "gated"
	OverBudget   Fate = "over budget"
)

// fates lists the fates of evidence that is missing.
func fates() []Fate {
	return []Fate{NotIndexed, NotSearched, NotRetrieved, OutRanked, Gated, OverBudget}
}

// Trace is what decided the place of a document.
type Trace struct {
	Reason  string  `json:"reason,omitempty"`
	Words   int     `json:"wordsRank,omitempty"` // in the lexical leg
	Meaning int     `json:"meaningRank,omitempty"`
	Place   int     `json:"place,omitempty"` // among all candidates
	Score   float64 `json:"score,omitempty"`
	Lexical float64 `json:"lexical,omitempty"`
	Context float64 `json:"context,omitempty"`
	Session float64 `json:"session,omitempty"`
	Cosine  float64 `json:"cosine,omitempty"`
	Matched float64 `json:"matched,omitempty"` // share of the question's idf mass
}

func traceOf(e recall.Explanation) *Trace {
	return &Trace{
		Words: e.LexicalRank, Meaning: e.DenseRank, Place: e.Rank, Score: round(e.Score, 3), Lexical: round(e.Lexical, 3),
		Context: round(e.Context, 3), Session: round(e.Session, 3), Cosine: round(e.Cosine, 3), Matched: round(e.Matched, 3),
	}
}
