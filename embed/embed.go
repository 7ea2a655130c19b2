// Package embed turns texts into vectors of their meaning: with the table compiled into the program (Builtin), through
// an OpenAI-compatible server, or through Ollama.
//
// It is not an index and stores nothing: a vector belongs to the Model that made it, and callers keep the two together.
// Whatever a provider answers, what leaves this package holds: one entry per text in order, finite, of one dimension,
// of length one; nil where there is nothing to embed or the text failed. Texts and vectors are never logged.
//
// New chooses an embedder from a Config. Remote ones share one set of manners (see remote.go): requests of bounded
// size and number, a cooldown all callers respect, a breaker, isolation of the texts a server refuses, and a cache of
// query vectors.
package embed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Model identifies one vector space; vectors of different Models never mix.
type Model struct {
	Provider    string
	Name        string
	Dim         int    // 0 = not known yet (remote, before the first answer)
	Instruction string // what is put before texts, empty for nothing
	Server      string // whose it is, where it is not at the provider's usual address: another may call another model the same
}

// String returns a stable identity, e.g. "builtin/hark-static-40k-256@256".
func (m Model) String() string {
	s := m.Provider + "/" + m.Name + "@" + strconv.Itoa(m.Dim)
	if m.Server != "" {
		s += "~" + m.Server
	}
	if m.Instruction != "" {
		s += "#" + m.Instruction
	}
	return s
}

// Kind says what a text is for: models may treat the two differently, and a Query is never kept waiting.
type Kind uint8

// The kinds of text.
const (
	Passage Kind = iota // stored, looked for
	Query               // asked, looks
)

func (k Kind) String() string {
	if k == Query {
		return "query"
	}
	return "passage"
}

// Embedder makes one unit-norm vector per text in order; nil for a text with nothing to embed (blank, no known word):
// never a zero vector, never NaN. Vectors are finite and of one dimension.
//
// With a nil error the result is as long as texts. A *PartialError accompanies a result of that length too: the texts
// it lists are nil, the others are good or blank. With any other error there is no result. Cancelling ctx ends the call
// with an error that matches ctx's. Safe for concurrent use; the caller owns the vectors.
type Embedder interface {
	Model() Model
	Embed(ctx context.Context, kind Kind, texts []string) ([][]float32, error)
}

// InProcess is implemented by embedders that need no network and answer in microseconds; ingest waits for these.
type InProcess interface{ InProcess() bool }

// Coverer reports which share (0..1) of a text's words the model knows; an embedder without it knows all.
type Coverer interface{ Coverage(text string) float64 }

// Reporter tells how a provider was when it was last asked: nil while it answers.
type Reporter interface{ Unavailable() *UnavailableError }

// Errors a caller branches on.
var (
	// ErrUnavailable: the provider cannot answer now (down, cooling down, out of quota, refusing the key). The same
	// call may succeed later. It is always wrapped in an *UnavailableError.
	ErrUnavailable = errors.New("embedding provider unavailable")
	// ErrRejected: the provider will not embed this text; asking again is useless.
	ErrRejected = errors.New("embedding provider rejected the text")
)

// UnavailableError says why a provider cannot answer and when to ask again. It matches ErrUnavailable.
type UnavailableError struct {
	Reason string        // for a person to read, with the remedy where there is one
	After  time.Duration // ask again after this long; 0 = not known
	Err    error         // the cause, may be nil
}

func (e *UnavailableError) Error() string {
	s := ErrUnavailable.Error() + ": " + e.Reason
	if e.After > 0 {
		s += fmt.Sprintf(" (next try in %s)", e.After.Round(time.Second/10))
	}
	return s
}

// Is reports a match with ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *UnavailableError) Unwrap() error { return e.Err }

// TextError is one text's failure inside a PartialError.
type TextError struct {
	Index int // into the texts of the call
	Err   error
}

// PartialError lists the texts of a call that have no vector because they failed, by ascending index. The others succeeded.
type PartialError struct{ Failed []TextError }

func (e *PartialError) Error() string {
	if len(e.Failed) == 1 {
		return fmt.Sprintf("embed text %d: %v", e.Failed[0].Index, e.Failed[0].Err)
	}
	return fmt.Sprintf("embed %d texts, first %d: %v", len(e.Failed), e.Failed[0].Index, e.Failed[0].Err)
}

// Unwrap gives errors.Is and errors.As every text's error.
func (e *PartialError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}
