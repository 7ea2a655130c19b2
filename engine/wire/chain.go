package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Chain is a running digest over a list of messages, so that two sides can agree on the first n of
// them by one value: d(0) = sha256(""), d(i+1) = sha256(d(i) || sha256(message i)), where a message
// is its JSON as sent, byte for byte (in JavaScript: the UTF-8 of JSON.stringify).
type Chain [sha256.Size]byte

// NewChain is the value over no messages.
func NewChain() Chain { return sha256.Sum256(nil) }

// Add is the value over one more message.
func (c Chain) Add(message json.RawMessage) Chain {
	sum := sha256.Sum256(message)
	var both [2 * sha256.Size]byte
	copy(both[:], c[:])
	copy(both[sha256.Size:], sum[:])
	return sha256.Sum256(both[:])
}

// String is the value in lower-case hex, as it travels.
func (c Chain) String() string { return hex.EncodeToString(c[:]) }
