package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// measure is what Assemble needs to know of one host message. It is kept between calls, because a
// host sends the same history again and again; it holds no text but that of a person's short words.
type measure struct {
	role    string
	calls   []string
	result  string
	stop    string
	custom  string
	machine bool
	owner   *bool
	ms      int64
	tokens  int
	print   string // fingerprint
	text    string // print of the text alone
	words   string // of a user message: the cleaned text, shortened
	odd     bool   // no message object
	rough   bool   // tokens are a guess
	madeUp  bool   // a result the host made up for a call without one
}

// maxMeasures bounds the cache of measures, maxWords the text kept in one.
const (
	maxMeasures = 50_000
	maxWords    = 2000
)

// isUser reports a message that a model sees as a person's turn.
func (m *measure) isUser() bool { return m.role == "user" }

// measureAll decodes and counts messages, each kind of bytes once. It counts from the end until
// more than enough tokens are there; what lies before can only be cut off and is counted roughly.
func (e *Engine) measureAll(raws []json.RawMessage, enough int) []*measure {
	out := make([]*measure, len(raws))
	keys := make([]uint64, len(raws))
	for i, raw := range raws {
		keys[i] = maphash.Bytes(e.tokens.seed, raw)
	}
	e.mu.Lock()
	for i, key := range keys {
		out[i] = e.seen[key]
	}
	e.mu.Unlock()
	const chunk = 64
	var fresh []int
	sum := 0
	for end := len(raws); end > 0; end -= chunk {
		start := max(end-chunk, 0)
		var missing []int
		for i := start; i < end; i++ {
			if out[i] == nil || out[i].rough && sum <= enough {
				missing = append(missing, i)
			}
		}
		e.measureSome(raws, missing, out, sum > enough)
		fresh = append(fresh, missing...)
		for i := start; i < end; i++ {
			sum += out[i].tokens
		}
	}
	if len(fresh) == 0 {
		return out
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen)+len(fresh) > maxMeasures {
		clear(e.seen)
	}
	for _, i := range fresh {
		e.seen[keys[i]] = out[i]
	}
	return out
}

// measureSome fills out at the given indexes, in parallel where it is worth it.
func (e *Engine) measureSome(raws []json.RawMessage, indexes []int, out []*measure, rough bool) {
	const share = 8
	if len(indexes) <= share {
		for _, i := range indexes {
			out[i] = e.measureOne(raws[i], rough)
		}
		return
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for part := range slices.Chunk(indexes, share) {
		g.Go(func() error {
			for _, i := range part {
				out[i] = e.measureOne(raws[i], rough)
			}
			return nil
		})
	}
	_ = g.Wait() // measuring cannot fail
}

// recount replaces rough measures in place and returns the tokens of all.
func (e *Engine) recount(raws []json.RawMessage, ms []*measure) (tokens int) {
	for i, m := range ms {
		if m.rough {
			ms[i] = e.measureOne(raws[i], false)
		}
		tokens += ms[i].tokens
	}
	return tokens
}

func (e *Engine) measureOne(raw json.RawMessage, rough bool) *measure {
	m, err := decode(raw)
	if err != nil {
		return &measure{odd: true, tokens: e.tokens.message(nil, raw)}
	}
	out := &measure{
		role: m.role, calls: m.calls, result: m.result, stop: m.stop, custom: m.custom, machine: m.machine,
		owner: m.owner, ms: m.millis(), tokens: perMessage + len(raw)/4, print: m.fingerprint(), rough: rough,
	}
	if !rough {
		out.tokens = e.tokens.message(&m, raw)
	}
	text := m.said
	if text == "" {
		text = m.tool
	}
	out.text = textPrint(text)
	if m.result != "" {
		_, body, _ := strings.Cut(m.tool, ": ")
		out.madeUp = isMadeUp(m.tool) || isMadeUp(body)
	}
	if m.role == "user" {
		out.words = strings.Clone(cutRunes(m.said, maxWords))
	}
	return out
}

// textPrint identifies a text whatever its white space.
func textPrint(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:12])
}
