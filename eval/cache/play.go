package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"hark/engine"
)

// Request is one model request of a played session.
type Request struct {
	Turn    int    `json:"turn"` // from 1
	Call    int    `json:"call"` // within the turn, from 1
	Tokens  int    `json:"tokens"`
	Same    int    `json:"same"`              // tokens of the part that begins like the request before
	Recall  int    `json:"recall"`            // tokens of recall blocks in it
	Break   string `json:"break"`             // what ended the common beginning
	Early   bool   `json:"early,omitempty"`   // before the block of the turn before, or without one before its end
	Cut     bool   `json:"cut,omitempty"`     // the engine moved the start of its window
	Compact bool   `json:"compact,omitempty"` // the host compacted before it
}

// Share is the part of the request that begins like the one before.
func (r Request) Share() float64 {
	if r.Tokens == 0 {
		return 0
	}
	return float64(r.Same) / float64(r.Tokens)
}

// Prices are what tokens cost; only their relation matters.
type Prices struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached"`
}

// Cost is what the request costs.
func (p Prices) Cost(r Request) float64 {
	return p.Input*float64(r.Tokens-r.Same) + p.Cached*float64(r.Same)
}

// Run is a session as one engine served it.
type Run struct {
	Engine   string        `json:"engine"`
	Requests []Request     `json:"requests"`
	Blocks   int           `json:"blocks"` // turns with a block
	Cuts     int           `json:"cuts"`   // of the window, but for those after a compaction
	Took     time.Duration `json:"-"`      // in Assemble
}

// Cost sums the requests.
func (r *Run) Cost(p Prices) (sum float64) {
	for _, q := range r.Requests {
		sum += p.Cost(q)
	}
	return sum
}

// Tokens sums the tokens of all requests.
func (r *Run) Tokens() (sum int) {
	for _, q := range r.Requests {
		sum += q.Tokens
	}
	return sum
}

type player struct {
	count   func(string) int
	counted map[string]int // tokens by text
	known   map[string]knownPiece
	before  []piece
	history []json.RawMessage
	run     *Run
}

// Compactor is the host's compaction, for engines that are played: it always succeeds.
type Compactor struct{}

// Compact implements engine.Runtime.
func (Compactor) Compact(context.Context, engine.CompactParams) (engine.CompactResult, error) {
	return engine.CompactResult{OK: true, Compacted: true}, nil
}

// Play serves the session by an engine, which has the session's memory. The history given to the
// engine is the host's: every turn is committed, and each turn's words are a call of Assemble.
func Play(ctx context.Context, s *Session, name string, e engine.ContextEngine) (*Run, error) {
	count, err := engine.TokenCounter()
	if err != nil {
		return nil, err
	}
	p := &player{count: count, counted: map[string]int{}, known: map[string]knownPiece{}, run: &Run{Engine: name}}
	for i, t := range s.Turns {
		if len(t.Messages) == 0 {
			return nil, fmt.Errorf("turn %d has no messages", i+1)
		}
		if err := p.turn(ctx, s, i, t, e); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return p.run, nil
}

func (p *player) turn(ctx context.Context, s *Session, i int, t Turn, e engine.ContextEngine) error {
	if t.Compact {
		if t.History == nil {
			p.history = compacted(p.history)
		}
		if _, err := e.Compact(ctx, engine.CompactParams{SessionID: "s1", SessionKey: s.Key}); err != nil {
			return err
		}
	}
	if t.History != nil {
		p.history = t.History
	}
	start := time.Now()
	res, err := e.Assemble(ctx, engine.AssembleParams{
		SessionID: "s1", SessionKey: s.Key, Messages: p.history, Prompt: t.Prompt, TokenBudget: engine.Tokens(s.Budget), Model: "gpt-5",
	})
	if err != nil {
		return err
	}
	p.run.Took += time.Since(start)
	cut := res.Trace != nil && res.Trace.Window.Anchored
	if cut && !t.Compact {
		p.run.Cuts++
	}
	if res.Trace != nil && len(res.Trace.Recall.Items) > 0 {
		p.run.Blocks++
	}
	live, loop := t.Messages[0], t.Messages[1:]
	number := 0
	for at, m := range loop {
		if headOf(m).Role != "assistant" {
			continue
		}
		number++
		p.ask(p.request(res, live, loop[:at]), Request{Turn: i + 1, Call: number, Cut: cut && number == 1, Compact: t.Compact && number == 1})
	}
	_, err = e.CommitTurn(ctx, engine.CommitTurnParams{AdvancementKey: fmt.Sprint("turn-", i), SessionID: "s1", SessionKey: s.Key, Messages: t.Messages})
	p.history = append(slices.Clip(p.history), t.Messages...)
	return err
}

// ask compares a request with the one before it.
func (p *player) ask(now []piece, r Request) {
	same := 0
	for same < min(len(now), len(p.before)) && now[same].text == p.before[same].text {
		r.Same += now[same].tokens
		same++
	}
	for _, x := range now {
		r.Tokens += x.tokens
		if x.kind == block {
			r.Recall += x.tokens
		}
	}
	edge := max(len(p.before)-1, 0) // the transient message, else the last block
	for i, x := range slices.Backward(p.before) {
		if x.kind == block {
			edge = min(edge, i)
			break
		}
	}
	r.Early = same < edge && !r.Cut && !r.Compact
	r.Break = p.why(same, r)
	p.before = now
	p.run.Requests = append(p.run.Requests, r)
}

func (p *player) why(same int, r Request) string {
	switch {
	case p.before == nil:
		return "first request"
	case r.Compact:
		return "the host compacted"
	case r.Cut:
		return "the window was cut"
	case same >= len(p.before):
		return "nothing"
	}
	switch was := p.before[same]; was.kind {
	case transient:
		return "the host's transient message went"
	case block:
		return "the recall block went with its turn"
	default:
		return "another " + was.kind
	}
}

// keepTail is what the host's compaction keeps, as it estimates it, in tokens.
const keepTail = 20_000

// compacted is the history after the host's compaction: a summary and the last turns.
func compacted(history []json.RawMessage) []json.RawMessage {
	from := len(history)
	for i := len(history) - 1; i >= 0 && engine.Estimate(history[i:]) <= keepTail; i-- {
		if headOf(history[i]).Role == "user" {
			from = i
		}
	}
	if from == 0 {
		return history
	}
	at := int64(0)
	if from > 0 {
		at, _ = headOf(history[from-1]).Timestamp.Int64()
	}
	summary := fmt.Sprintf(`{"role":"compactionSummary","summary":%q,"tokensBefore":%d,"timestamp":%d}`,
		"## Decisions\nThe earlier part of the conversation, in brief.\n\n## Open TODOs\nnone\n\n## Exact identifiers\nnone", engine.Estimate(history), at)
	return append([]json.RawMessage{json.RawMessage(summary)}, history[from:]...)
}

// Added is what a run costs more than another, as a share of the other's cost.
func Added(run, base *Run, p Prices) float64 {
	cost := base.Cost(p)
	if cost == 0 {
		return math.NaN()
	}
	return (run.Cost(p) - cost) / cost
}
