// Package index holds all durable state of one agent's memory: the log of messages (SQLite),
// the lexical index over it (bleve) and the vectors of its texts.
//
// The rows of the log are the truth. Both indexes are derived: each remembers how far it has
// followed the rows, is compared with them on Open, catches up by replay, and is set aside and
// rebuilt when it cannot be read. Until an index has caught up, the rows it does not hold yet
// are searched through their forward documents in memory, so that a message can be found by
// its words from the moment Append returns.
//
// The package ranks nothing: Match and Nearest return candidates of one leg each, and View
// gives the package recall what it needs to rank them. Filters apply before candidates are
// chosen, never after.
package index

import (
	"errors"
	"log/slog"
	"time"

	"hark/index/terms"
)

// The errors that callers branch on; test with errors.Is.
var (
	// ErrConflict: a receipt's key is stored with another digest. Nothing was written.
	ErrConflict = errors.New("index: this receipt key was used for other content")
	// ErrLocked: another process has the directory open for writing.
	ErrLocked = errors.New("index: locked")
	// ErrNewer: the directory was written by a newer version of Hark. It is left untouched.
	ErrNewer = errors.New("index: written by a newer version")
	// ErrNotFound: a row that was asked for does not exist.
	ErrNotFound = errors.New("index: no such message")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("index: closed")
	// ErrReadOnly: the store was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("index: opened read-only")
	// ErrSpace: a vector or question does not belong to the space: wrong dimension, or a space
	// that is not in use.
	ErrSpace = errors.New("index: vector does not fit its space")
)

// Options are the tunables of Open; nil and zero fields mean the defaults.
type Options struct {
	Log      *slog.Logger  // nil discards
	Vectors  string        // "auto" (default), "exact" or "flat": see leg
	ReadOnly bool          // take no lock and write nothing; words are matched by scanning
	LockWait time.Duration // how long to wait for another process to let go; default 3 s, negative: do not wait
}

// WeightedTerm is one term of a question.
type WeightedTerm struct {
	Term   terms.Term
	Weight float64 // at least 0; 0 is searched like 1
}

// Matches is the answer of the lexical leg.
type Matches struct {
	Hits []Scored // by score, descending, ties by row
	DF   []int    // per term of the question, in order: messages that contain it, unfiltered
	Used []bool   // which terms were searched: at most the 16 rarest
}

// Neighbours is the answer of the vector leg.
type Neighbours struct {
	Hits    []Scored // one per message: best cosine over its parts, descending, ties by row
	Mean    float64  // of the best-of-parts cosine over the messages the filter admits
	SD      float64
	N       int  // messages that Mean and SD are over
	Partial bool // the space is still being loaded: more messages have vectors than were searched
}

// Row is what is kept in memory about a message.
type Row struct {
	Seq      int64
	Session  string
	Scope    string
	Sender   string
	Role     string
	Kind     Kind
	Time     time.Time
	Lang     terms.Lang // detected, or assumed where the text does not tell
	Words    int        // content words of the text
	Question bool       // the text ends in ? or ？
}

// EpisodeKey identifies an episode as long as no earlier message is inserted or removed.
type EpisodeKey struct {
	Session string
	First   int64
}

// Episode is a run of recallable messages of one session without a silence of over six hours,
// at most 200 messages long.
type Episode struct {
	Key   EpisodeKey
	Seqs  []int64 // in order of time, then row
	Words int
}

// LangShare is the share of a language among the recallable messages.
type LangShare struct {
	Lang  terms.Lang
	Share float64
}

// Stats describes the recallable messages (Said and Tool) of the store.
type Stats struct {
	Messages             int
	Episodes             int
	AvgWords             float64 // content words a message
	AvgPassageWords      float64
	AvgGrams             float64
	AvgEpisodeWords      float64
	MedianUserWords      float64
	MedianAssistantWords float64
	Lift                 float64     // similarity of adjacent messages over that of random pairs; 1 where unknown
	Langs                []LangShare // largest share first
}

// SessionInfo describes one session.
type SessionInfo struct {
	Session  string
	Messages int // rows of any kind
	First    time.Time
	Last     time.Time
}

// Selection says what Forget removes: the rows that meet every condition set. The zero
// Selection removes nothing.
type Selection struct {
	Seqs    []int64
	Session string
	Before  time.Time // strictly before
	All     bool      // everything; the other fields must be zero
	At      time.Time // when it is forgotten; zero means now
}

// Report is the outcome of Check.
type Report struct {
	Rows        int // in the log
	Recallable  int // of kind Said or Tool
	Words       int // messages in the lexical index
	Vectors     int // messages with vectors, over all spaces
	Problems    int
	Differences []string // the first 50 problems, each naming a row or file
}

// OK says whether rows and indexes agree.
func (r Report) OK() bool { return r.Problems == 0 }

// SpaceStatus describes the vectors of one space.
type SpaceStatus struct {
	Space   Space
	Stored  int // messages with vectors (or known to have nothing to embed)
	Pending int // recallable messages without
	Failed  int // of those, how many were tried in vain
	Loaded  int // messages whose vectors Nearest searches; 0 where the space is not in use
	InUse   bool
	Leg     string // "exact" or "flat" where in use
}

// Status describes the store for people.
type Status struct {
	Dir        string
	Schema     int
	Rows       int
	Recallable int
	Forgotten  int // messages forgotten so far, whose identities are kept so that a re-import does not bring them back
	Sessions   int
	Words      int    // messages the lexical index holds
	WordsLag   int    // messages it has yet to take in; they are found by scanning meanwhile
	WordsState string // "ready", "catching up", "rebuilding", "erasing", "unavailable"
	Spaces     []SpaceStatus
	Bytes      map[string]int64 // "log", "words", "set aside"
	Errors     []string         // last errors, newest last, with time
}
