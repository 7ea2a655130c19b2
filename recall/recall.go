// Package recall finds the few stored messages that matter for a question: it builds the
// question from what a person said, takes candidates from the lexical and the vector leg,
// scores them with one formula, decides how much is worth showing and packs it.
//
// It holds no state and renders nothing: stages are functions of values, and every stage
// leaves its numbers in a Trace.
package recall

import (
	"time"

	"hark/index"
)

// Question is what is searched for.
type Question struct {
	Text    string // the person's words of this turn; "" asks nothing
	Context string // the person's previous words, where Text alone is a follow-up; searched at lower weight
	Reason  string // why Text is empty or was widened; for the trace
}

// Request is one search.
type Request struct {
	Question Question
	Filter   index.Filter
	// Asked is when the question was asked, in the zone of who asked: what "yesterday" is relative
	// to. Zero leaves times in the question unread.
	Asked   time.Time
	Exclude map[int64]bool // rows already on screen
	// Once lets the same words of the same speaker take one place; the rest are near copies.
	Once bool
	// Watch are rows whose fate the Trace tells wherever they end, without a change of the result.
	// They are told of only as far as the filter admits them.
	Watch []int64
	K     int // hits wanted; 0 means 50

	WordsOnly bool          // the meaning is not asked, so that no embedder is
	Wait      time.Duration // for the meaning, in place of Options.DenseWait; 0 means that
}

// Hit is one recalled message.
type Hit struct {
	Message index.Message
	Score   float64  // fused; comparable within one search only
	Fused   float64  // Score before the second look
	Lexical float64  // share of Score owed to the words, before fusion weights
	Dense   float64  // cosine of the best of message and passages, -1..1; 0 when the dense leg did not run
	Why     []string // short reasons for a reader: matched words, "near in meaning", "same session as ..."
	Newer   int64    // row of a later statement of the same thing by the same person, 0 if none is known
	Likely  float64  // 0..1 that the message answers; comparable between questions and between stores
	Words   float64  // 0..1: the root of what the message's own words score against the most they could
	Matched []Span   // byte ranges of Message.Text that matched, ascending; centre excerpts on them
}

// Span is a half-open byte range.
type Span struct{ Start, End int }

// Result is what a search returns: hits, best first.
type Result struct {
	Hits       []Hit
	Confidence float64 // 0..1 that the store answers the question at all
	Trace      *Trace
}
