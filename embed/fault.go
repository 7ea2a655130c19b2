package embed

import (
	"errors"
	"fmt"
	"time"
)

// faultKind sorts a failed request by what to do about it.
type faultKind uint8

const (
	transient     faultKind = iota // network, timeout, 5xx: back off and try again
	throttled                      // 429: everybody pauses, for as long as the server says
	exhausted                      // quota used up: probe rarely
	misconfigured                  // key, model, URL or answer format: probe rarely, somebody has to act
	tooLong                        // a text exceeds the model: embed its halves
	refused                        // the server does not like something in the batch, or its answer is incomplete: isolate it
)

// fault is a failed request.
type fault struct {
	kind   faultKind
	reason string // for a person; never a text, never a key
	after  time.Duration
	err    error
}

func (f *fault) Error() string {
	if f.err != nil {
		return fmt.Sprintf("%s: %v", f.reason, f.err)
	}
	return f.reason
}

func (f *fault) Unwrap() error { return f.err }

// aboutTexts tells faults of what was sent from faults of the provider.
func (f *fault) aboutTexts() bool { return f.kind == tooLong || f.kind == refused }

// asFault sorts an error a backend did not sort itself.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{kind: transient, reason: "no answer from the server; is it running at the base URL?", err: err}
}
