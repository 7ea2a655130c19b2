package index

import (
	"encoding/json"
	"time"
)

// Kind says what a stored message is, and so whether it can be recalled.
type Kind uint8

// The kinds of rows. Noise and Summary rows are kept but never matched.
const (
	Said    Kind = iota // somebody's words: a person's or the assistant's
	Tool                // a tool call or its result
	Summary             // a compaction or branch summary, stored beside its sources
	Noise               // heartbeats, cron chatter, aborted turns: stored, not recalled
)

// TimeSource says where a message's time came from.
type TimeSource uint8

// The sources of a time, best first.
const (
	FromMessage TimeSource = iota // the message carried it
	FromEvent                     // the transcript event that held the message carried it
	FromIngest                    // nothing did: the clock when Hark stored it
)

// Message is one row of the log.
type Message struct {
	Seq int64  // row number, ascending in order of storage; assigned by Append
	ID  string // public id, stable over restarts and rebuilds; assigned by Append from Keys[0]

	// Keys identify the message, most reliable first (entry id, idempotency key, generation and
	// position, content). A message one of whose keys is stored is the same message. Never empty.
	Keys []string

	Session    string // lineage: the host's session key
	SessionID  string // the host's session id at the time, which rotates
	Scope      string // partition for recall; opaque here, see engine.Scope
	Kind       Kind
	Role       string // "user", "assistant", "tool", "system"
	Sender     string // display name, or ""
	Time       time.Time
	TimeSource TimeSource

	// Version is which form of the message the text is.
	Version Version

	Text    string          // what is searched, embedded and recalled; valid UTF-8, without markup of the host
	Caption string          // secondary text, searched at lower weight (tool arguments, image captions)
	Raw     json.RawMessage // the host's message, byte for byte; may be nil
}

// Version tells the forms of a message apart that an editor makes of it. Append stores it and replaces
// the text of a row, where Keys[0] allows it, unless Old says that the row has a newer one.
type Version struct {
	Mark   string    // fingerprint of the form, opaque here; "" where unknown
	Said   time.Time // what this form says of its message's time; zero where it says nothing
	Edited time.Time // when this form was written; zero where unknown
	Old    bool      // the row has a newer form; not stored
	Dates  bool      // the row got its time from elsewhere and takes the message's; not stored
}

// Receipt makes a batch idempotent: the same Key and Digest again is a duplicate,
// the same Key with another Digest is ErrConflict.
type Receipt struct {
	Key    string
	Digest [32]byte
}

// Batch is what Append stores in one transaction.
type Batch struct {
	Messages []Message
	Receipt  *Receipt // nil where the caller has no key
}

// Appended is the outcome of one Append.
type Appended struct {
	New       int     // rows added
	Duplicate int     // messages that were stored already
	Updated   int     // rows whose text was replaced (same entry id, other text)
	Replayed  bool    // the receipt was known: nothing was written
	Seqs      []int64 // row of every message of the batch, in order; nil when Replayed
}

// Filter restricts both legs before ranking. The zero Filter matches nothing: a caller that
// does not know its scope must not see anything.
type Filter struct {
	Scopes  []string // any of these; empty matches nothing unless AllScopes
	Session string   // only this lineage, when set
	// AllScopes lifts the scope restriction; for tools of the store's owner, never for a turn.
	AllScopes bool
	Kinds     []Kind // empty means Said and Tool
}

// Scored is a row with the raw score of one leg.
type Scored struct {
	Seq   int64
	Score float64
}

// Space names one vector space: vectors of different spaces never meet.
type Space struct {
	ID  string // embed.Model.String()
	Dim int
}

// Vector is the embedding of a message (Part 0: the whole text) or of one of its passages
// (Part 1..n, in the order of terms.Passages, only where there is more than one).
type Vector struct {
	Seq  int64
	Part int
	V    []float32 // unit length; nil records that there is nothing to embed
	// Failed, when set, records why this message could not be embedded; it stays pending.
	Failed string
}
