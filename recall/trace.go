package recall

import (
	"math"
	"slices"
	"time"
)

// Trace tells how a search came to its result: every stage with its numbers, and for every
// candidate why it was shown or not. It names messages by row and id and holds no text.
type Trace struct {
	Asked      string        `json:"asked"` // "" or why nothing was asked
	Terms      []TermTrace   `json:"terms,omitempty"`
	Times      []TimeTrace   `json:"times,omitempty"`
	Lexical    LegTrace      `json:"lexical"`
	Dense      LegTrace      `json:"dense"`
	Rerank     *LegTrace     `json:"rerank,omitempty"` // the second stage, where there is one
	Pool       int           `json:"pool"`             // candidates scored
	Cohesion   float64       `json:"cohesion"`         // 0..1: how much neighbours tell in this store
	Confidence float64       `json:"confidence"`
	Candidates []Explanation `json:"candidates,omitempty"`
	Watched    []Explanation `json:"watched,omitempty"` // of the rows of Request.Watch
}

// TermTrace is one term of the question.
type TermTrace struct {
	Term       string  `json:"term"`       // as indexed: class letter and text
	Candidates int     `json:"candidates"` // that hold it
	Weight     float64 `json:"weight"`     // 0 where no candidate does
	Used       bool    `json:"used"`       // took part in choosing candidates
}

// TimeTrace is a time that the question speaks of; To is not in it.
type TimeTrace struct {
	Words string    `json:"words"` // of the question
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// LegTrace is what one leg did.
type LegTrace struct {
	Ran    bool    `json:"ran"`
	Reason string  `json:"reason,omitempty"` // why it did not, or only in part
	Hits   int     `json:"hits"`
	Millis float64 `json:"ms"`
}

// The fates of a candidate.
const (
	Returned  = "returned"
	OutRanked = "out-ranked"
	OnScreen  = "on screen"
	NearCopy  = "near copy of a better hit"
	NotFound  = "not retrieved" // neither leg had it among its candidates
)

// Explanation is the fate of one message with the features that decided it.
type Explanation struct {
	Seq         int64   `json:"seq"`
	ID          string  `json:"id,omitempty"`
	Rank        int     `json:"rank,omitempty"` // 1-based among the candidates
	Fate        string  `json:"fate"`
	LexicalRank int     `json:"lexicalRank,omitempty"`
	DenseRank   int     `json:"denseRank,omitempty"`
	Text        float64 `json:"text"`
	Context     float64 `json:"context"`
	Session     float64 `json:"session"`
	Lexical     float64 `json:"lexical"`
	Cosine      float64 `json:"cosine"`
	Dense       float64 `json:"dense"`
	Matched     float64 `json:"matched"`
	Near        float64 `json:"near,omitempty"` // 1: said at the time that the question speaks of
	Look        float64 `json:"look"`           // what the second look added
	Score       float64 `json:"score"`
	Newer       int64   `json:"newer,omitempty"` // row of a later statement of the same thing
}

// time notes the times that the question speaks of.
func (t *Trace) time(w times) {
	for _, s := range w.spans {
		t.Times = append(t.Times, TimeTrace{w.text[s.Start:s.End], s.From, s.To})
	}
}

func (c *candidate) explain(rank int, fate string) Explanation {
	cos := c.Cosine
	if math.IsNaN(cos) {
		cos = 0
	}
	return Explanation{
		Seq: c.seq, Rank: rank, Fate: fate, LexicalRank: c.lexRank, DenseRank: c.denseRnk,
		Text: c.Text, Context: c.Context, Session: c.Session, Lexical: c.Lexical,
		Cosine: cos, Dense: c.Dense, Matched: c.Matched, Near: round(c.Near), Look: c.Look, Score: c.Score,
	}
}

// watch tells of the watched rows that are no candidates how they stand to the question; cos are the
// cosines of the watched rows, nil without vectors.
func (s *Searcher) watch(r Request, pool []*candidate, sc *scorer, cos []float64, t *Trace) {
	for i, seq := range r.Watch {
		if slices.ContainsFunc(pool, func(c *candidate) bool { return c.seq == seq }) {
			continue
		}
		row, ok := sc.src.Row(seq)
		if !ok || !admits(r.Filter, row) {
			continue
		}
		c := &candidate{seq: seq, row: row, tf: sc.freq(seq)}
		c.Cosine = math.NaN()
		sc.text(c)
		c.Lexical = c.Text
		if i < len(cos) {
			c.Cosine = cos[i]
		}
		t.Watched = append(t.Watched, c.explain(0, NotFound))
	}
}
