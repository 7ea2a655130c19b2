package engine

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

// What is added to the tokens of a message's texts, in tokens: the frame of a message and of a call
// on the wire of the common providers, the host's stamp, and a picture at the host's own estimate.
const (
	perMessage = 4
	perStamp   = 16 // "[Mon 2026-11-30 17:38 UTC] "
	perCall    = 8
	perImage   = 2000
)

// defaultBudget is used where neither the call nor the settings give one: what a host leaves of a
// 128,000-token window.
const defaultBudget = 100_000

// usableShare is the part of a budget that is used; the rest covers the difference between
// tokenizers.
const usableShare = 0.95

// budget is the number of tokens a result may take.
type budget struct {
	tokens, usable int
	source, reason string
}

// chooseBudget takes the call's budget, else the one of the settings, else the default.
func chooseBudget(call Tokens, set *RuntimeSettings) budget {
	b := budget{tokens: defaultBudget, source: "default"}
	if n, reason := whole(call); reason == "" {
		b.tokens, b.source = n, "call"
	} else {
		b.reason = reason
		if set != nil && set.Limits.PromptTokenBudget != nil {
			if n, reason := whole(*set.Limits.PromptTokenBudget); reason == "" {
				b.tokens, b.source = n, "settings"
			}
		}
	}
	b.usable = int(math.Floor(float64(b.tokens) * usableShare))
	return b
}

func whole(t Tokens) (n int, reason string) {
	switch f := float64(t); {
	case math.IsNaN(f):
		return 0, "the budget is not a number"
	case f == 0:
		return 0, "no budget given"
	case f < 1:
		return 0, "the budget is not positive"
	case f > 1e9:
		return 1e9, ""
	default:
		return int(f), ""
	}
}

// counter counts tokens as the o200k vocabulary of OpenAI's models has them. Counts are cached by
// content. Safe for concurrent use.
type counter struct {
	codec  tokenizer.Codec
	seed   maphash.Seed
	pieces pieceCache

	mu    sync.Mutex
	cache map[uint64]int // of texts of at least cachedFrom bytes
}

const (
	cachedFrom    = 256
	maxCached     = 50_000
	blockBytes    = 4096 // cut to where there is white space
	exactBlocks   = 96   // up to here every block is counted
	sampledBlocks = 64   // of a longer text: so many, evenly spread. Five megabytes of random base64 take 0.13 s
)

func newCounter() (*counter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	c := &counter{codec: codec, seed: maphash.MakeSeed(), cache: map[uint64]int{}}
	c.pieces.seed = c.seed
	return c, nil
}

// TokenCounter returns a function that counts the tokens of a text as engines do. It is safe for
// concurrent use.
func TokenCounter() (func(text string) int, error) {
	c, err := newCounter()
	if err != nil {
		return nil, fmt.Errorf("load the tokenizer: %w", err)
	}
	return c.count, nil
}

// count returns the tokens of text; special-token markers count as the text they are.
func (c *counter) count(text string) int {
	if len(text) < cachedFrom {
		return c.block(text)
	}
	key := maphash.String(c.seed, text)
	c.mu.Lock()
	n, ok := c.cache[key]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.long(text)
	c.mu.Lock()
	if len(c.cache) >= maxCached {
		clear(c.cache)
	}
	c.cache[key] = n
	c.mu.Unlock()
	return n
}

func (c *counter) block(text string) (tokens int) {
	for text != "" {
		n := pieceLen(text)
		tokens += c.pieces.count(text[:n], c.encoded)
		text = text[n:]
	}
	return tokens
}

// encoded is the tokenizer's own count.
func (c *counter) encoded(text string) int {
	n, err := c.codec.Count(text)
	if err != nil {
		return len(text)/3 + 1
	}
	return n
}

// long counts block by block, and of very long texts a sample spread evenly over them.
func (c *counter) long(text string) int {
	blocks := splitBlocks(text)
	if len(blocks) <= exactBlocks {
		n := 0
		for _, b := range blocks {
			n += c.block(b)
		}
		return n
	}
	tokens, bytes := 0, 0
	for i := range sampledBlocks {
		b := blocks[i*len(blocks)/sampledBlocks]
		tokens += c.block(b)
		bytes += len(b)
	}
	return int(math.Ceil(float64(tokens) / float64(bytes) * float64(len(text))))
}

// splitBlocks cuts text into blocks of about blockBytes, at white space where there is some near,
// because a token does not reach across it.
func splitBlocks(text string) []string {
	var out []string
	for len(text) > blockBytes {
		at := blockBytes
		for i := blockBytes; i > blockBytes-256; i-- {
			if text[i] == ' ' || text[i] == '\n' {
				at = i
				break
			}
		}
		for at > 0 && !utf8.RuneStart(text[at]) {
			at--
		}
		if at == 0 {
			at = blockBytes
		}
		out = append(out, text[:at])
		text = text[at:]
	}
	return append(out, text)
}

// message returns the tokens of a host's message as the model gets it: its texts, thinking, calls
// with their arguments, pictures at a fixed cost, the frame, and the time the host writes before a
// user's words. Content of an unknown form counts as its JSON.
func (c *counter) message(m *message, raw json.RawMessage) int {
	if m == nil {
		return perMessage + c.count(string(raw))
	}
	n := perMessage + c.count(m.plain) + c.count(m.other) + c.count(string(m.odd))
	if m.role == "user" && !m.at.IsZero() {
		n += perStamp
	}
	for _, b := range m.blocks {
		switch {
		case b.isCall():
			n += perCall + c.count(b.Name) + c.count(string(b.Arguments))
		case b.image() != "":
			n += perImage
		case b.isThinking():
			n += c.count(b.Thinking) + c.count(b.Text)
		case b.Type == "text":
			n += c.count(b.Text)
		default:
			n += c.count(string(b.raw))
		}
	}
	return n
}

// Estimate is the host's own estimate of messages: a quarter of the characters of what is sent,
// rounded up, and a fixed cost for a picture. It is quick and wrong for languages other than English.
func Estimate(messages []json.RawMessage) int {
	chars := 0
	for _, raw := range messages {
		m, err := decode(raw)
		if err != nil {
			chars += len(raw)
			continue
		}
		n := utf8.RuneCountInString(m.plain)
		for _, b := range m.blocks {
			if b.image() != "" {
				n += perImage * 4
				continue
			}
			n += utf8.RuneCountInString(b.Text) + utf8.RuneCountInString(b.Thinking) + len(b.Name) + len(b.Arguments)
		}
		if n == 0 {
			n = utf8.RuneCountInString(m.said) + utf8.RuneCountInString(m.tool)
		}
		chars += n
	}
	return (chars + 3) / 4
}
