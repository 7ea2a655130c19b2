package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"runtime"
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
	words   string // of a user message: the cleaned text, shortened; see wordsOf
	odd     bool   // no message object
	madeUp  bool   // a result the host made up for a call without one
	picture bool
	model   string // that wrote it, and the tokens its provider counted of the request
	billed  int
	cached  int // of them, what a cache held

	wordless bool // words is not known
}

// maxMeasures bounds the cache of measures, maxWords the text kept in one.
const (
	maxMeasures = 50_000
	maxWords    = 2000
)

// isUser reports a message that a model sees as a person's turn.
func (m *measure) isUser() bool { return m.role == "user" }

// measureAll decodes and counts messages, each kind of bytes once.
func (e *Engine) measureAll(raws []json.RawMessage) []*measure {
	return e.measureOf(context.Background(), "", raws)
}

// measureOf is measureAll for the history of a session, of which the store may know the measures.
func (e *Engine) measureOf(ctx context.Context, session string, raws []json.RawMessage) []*measure {
	out := make([]*measure, len(raws))
	keys := make([]uint64, len(raws))
	for i, raw := range raws {
		keys[i] = maphash.Bytes(e.tokens.seed, raw)
	}
	var fresh []int
	e.mu.Lock()
	for i, key := range keys {
		if out[i] = e.seen[key]; out[i] == nil {
			fresh = append(fresh, i)
		}
	}
	e.mu.Unlock()
	if len(fresh) == 0 {
		return out
	}
	rest := e.knownMeasures(ctx, session, raws, fresh, out)
	inParallel(len(rest), func(n int) { out[rest[n]] = e.measureOne(raws[rest[n]]) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if session != "" {
		if len(e.unwritten) >= maxRemembered {
			clear(e.unwritten)
		}
		for _, i := range rest {
			e.unwritten[session] += len(raws[i])
		}
	}
	if len(e.seen)+len(fresh) > maxMeasures {
		clear(e.seen)
	}
	for _, i := range fresh {
		e.seen[keys[i]] = out[i]
	}
	return out
}

// inParallel calls do for 0 to n-1, at once where there are many. do must not panic.
func inParallel(n int, do func(i int)) {
	const share = 8
	if n <= share {
		for i := range n {
			do(i)
		}
		return
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += share {
		g.Go(func() error {
			for i := from; i < min(from+share, n); i++ {
				do(i)
			}
			return nil
		})
	}
	_ = g.Wait() // do returns no error
}

func (e *Engine) measureOne(raw json.RawMessage) *measure {
	m, err := decode(raw)
	if err != nil {
		return &measure{odd: true, tokens: e.tokens.message(nil, raw), print: textPrint(string(raw))}
	}
	out := &measure{
		role: m.role, calls: m.calls, result: m.result, stop: m.stop, custom: m.custom, machine: m.machine,
		owner: m.owner, ms: m.millis(), tokens: e.tokens.message(&m, raw), print: m.fingerprint(),
		model: m.model, billed: m.billed, cached: m.cached,
	}
	for _, b := range m.blocks {
		out.picture = out.picture || b.image() != ""
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
		out.words = shortWords(&m)
	}
	return out
}

func shortWords(m *message) string { return strings.Clone(cutRunes(m.said, maxWords)) }

// textPrint identifies a text whatever its white space.
func textPrint(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:12])
}
