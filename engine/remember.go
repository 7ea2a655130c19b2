package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hark/index"
	"hark/recall"
)

// minBlock is the room below which no block is made, in tokens: the head of one takes half of it.
const minBlock = 120

// A store of fewer recallable messages than fewMessages is too small to judge how likely a match is:
// there any match by words is shown, within fewRoom tokens.
const (
	fewMessages = 25
	fewRoom     = 400
)

// weakest is the share of the best match's score below which a match is not shown: room in a
// prompt is not there to be filled. Evidence in 1,200 tokens, and tokens used: two-person chats
// 84.1 (1177) without, 83.9 (1046) at .25, 83.1 (811) at .4; assistant logs 60.3, 59.7, 58.6;
// meetings 20.8, 20.6, 19.2.
const weakest = 0.25

// The reasons of a TraceDrop besides those of recall.
const (
	sameWords = "the question itself"
	noWord    = "shares no word with the question, in a store too small to judge its meaning"
)

// recallCall is what recall is asked with.
type recallCall struct {
	scope    Scope
	question asked
	messages []*measure
	window   window // which of the messages are kept
	room     int    // tokens
	turn     string // "" for a call that is no turn of a session: nothing is remembered of it
	book     ledger
	kept     []keptBlock // blocks of earlier turns that the model still sees
	inspect  bool        // nothing is remembered
	watch    *watching   // nil unless somebody asks why
}

// recalled is a block. The zero value is no block.
type recalled struct {
	message json.RawMessage
	tokens  int
	parts   []part
	items   []TraceItem
	failed  bool // there may be something to recall, but it could not be searched
}

// recall finds, packs and renders what bears on the question. Asked again in the same turn it returns
// the same bytes: always in the host's tool loop, and before it while the store is the same. Whatever fails is in the trace, and there is no block then.
func (e *Engine) recall(ctx context.Context, c recallCall, tr *Trace) recalled {
	t := &tr.Recall
	c.watch.see(c.scope)
	if why := e.mayNotRecall(c.scope); why != "" {
		t.Reason = why
		return recalled{}
	}
	t.Cap = max(c.room, 0)
	q := recall.Ask(c.question.prompt, c.question.previous)
	t.Question, t.Context, t.Reason = q.Text, q.Context, q.Reason
	if q.Text == "" {
		if c.question.reason != "" {
			t.Reason = c.question.reason
		}
		return recalled{}
	}
	if c.room < minBlock {
		t.Reason = "no room left in the budget"
		return recalled{}
	}
	version := e.version()
	// In the host's tool loop the model has seen the block; before it, a repeated question is answered
	// from what is stored by now.
	looping := c.question.live >= 0 && c.question.live < len(c.messages)-1
	if known := c.book.Now; known != nil && c.turn != "" && known.Turn == c.turn && (looping || known.Version == version) {
		if len(known.Parts) == 0 {
			t.Ran, t.Cached, t.Reason = true, true, "nothing was recalled when this turn was first asked about"
			return recalled{}
		}
		if block, ok := e.again(ctx, *known); ok {
			if block.tokens > c.room {
				t.Reason = "no room left in the budget for what was recalled"
				return recalled{}
			}
			t.Ran, t.Cached, t.Items, t.Hits = true, true, block.items, len(block.items)
			return block
		}
	}
	block := e.find(ctx, c, q, tr)
	if !block.failed && !c.inspect && c.turn != "" {
		c.book.Now = &entry{Turn: c.turn, Words: textPrint(c.question.prompt), Before: precedes(c.messages, c.question), Parts: block.parts, Sum: sum(block.message), Version: version, Tokens: block.tokens}
		e.saveLedger(c.scope.Session, c.book)
	}
	return block
}

// mayNotRecall returns why a session recalls nothing, "" where it may.
func (e *Engine) mayNotRecall(sc Scope) string {
	if e.opts.RecallTokens <= 0 {
		return "recall is off"
	}
	_, why := sc.mayRecall()
	return why
}

// find searches, packs and renders.
func (e *Engine) find(ctx context.Context, c recallCall, q recall.Question, tr *Trace) recalled {
	t := &tr.Recall
	ctx, cancel := context.WithTimeout(ctx, e.opts.Deadline)
	defer cancel()
	started := time.Now()
	shown := e.onScreen(ctx, c)
	kinds := []index.Kind{index.Said}
	if e.opts.RecallTools {
		kinds = append(kinds, index.Tool)
	}
	res, err := e.search.Search(ctx, recall.Request{
		Question: q, Filter: c.scope.filter(kinds), Exclude: shown.rows, Asked: e.askedAt(c), Watch: c.watch.list(), Once: true,
	})
	t.Took = time.Since(started)
	if err != nil {
		t.Reason = "search failed: " + err.Error()
		e.log.Warn("recall failed", "error", err)
		return recalled{failed: true}
	}
	t.Ran, t.Confidence, t.Search = true, res.Confidence, res.Trace
	hits := slices.DeleteFunc(res.Hits, func(h recall.Hit) bool {
		var why string
		switch {
		case shown.shows(h.Message):
			why = recall.OnScreen
		case textPrint(h.Message.Text) == textPrint(c.question.prompt):
			why = sameWords
		default:
			return false
		}
		t.Dropped = append(t.Dropped, TraceDrop{ID: h.Message.ID, Reason: why})
		return true
	})
	t.Hits, t.OnScreen = len(hits), len(shown.rows)+len(res.Hits)-len(hits)
	if len(hits) == 0 {
		t.Reason = "nothing stored matches"
		return recalled{}
	}
	room := min(c.room, res.Budget(c.room))
	hits = t.dropWeak(hits)
	if len(hits) == 0 {
		t.Reason = "the window shows better matches already"
		return recalled{}
	}
	if few := e.few(); few && room < fewRoom {
		// The confidence was learned from stores in which the rarity of a word tells something.
		room = min(c.room, fewRoom)
		hits = slices.DeleteFunc(hits, func(h recall.Hit) bool {
			if len(h.Matched) == 0 {
				t.Dropped = append(t.Dropped, TraceDrop{ID: h.Message.ID, Reason: noWord})
			}
			return len(h.Matched) == 0
		})
		if len(hits) == 0 {
			t.Reason = "nothing stored shares a word with this"
			return recalled{}
		}
	}
	t.Room = room
	frame := e.tokens.count(e.renderBlock(nil)) + perMessage + 8 // 8: joints between counted parts
	if room < frame {
		t.Reason = "nothing stored is likely to answer this"
		return recalled{}
	}
	return e.pack(hits, room-frame, t)
}

// askedAt is when the turn's words were said, in the user's zone: what the message itself says where
// it does.
func (e *Engine) askedAt(c recallCall) time.Time {
	q := c.question
	switch {
	case q.live >= 0 && c.messages[q.live].ms > 0:
		return time.UnixMilli(c.messages[q.live].ms).In(e.opts.Location)
	case !q.stamp.IsZero():
		s := q.stamp
		return time.Date(s.Year(), s.Month(), s.Day(), s.Hour(), s.Minute(), 0, 0, e.opts.Location)
	}
	return e.now()
}

// now is the clock in the user's zone.
func (e *Engine) now() time.Time { return e.opts.Clock().In(e.opts.Location) }

// version identifies what is stored, as far as it can be recalled.
func (e *Engine) version() string {
	v := e.store.View()
	defer v.Close()
	st := v.Stats()
	return fmt.Sprintf("%d/%g/%g", st.Messages, st.AvgWords, st.AvgGrams)
}

func (e *Engine) few() bool {
	v := e.store.View()
	defer v.Close()
	return v.Stats().Messages < fewMessages
}

// dropWeak leaves out hits far below the best match, be that among the hits or on screen, by what the legs make of them: what is a
// scrap beside what the model sees already is no answer.
func (t *RecallTrace) dropWeak(hits []recall.Hit) []recall.Hit {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Fused)
	}
	if t.Search != nil { // the best match may be on screen
		for _, c := range t.Search.Candidates {
			best = max(best, c.Score-c.Look)
		}
	}
	var kept []recall.Hit
	for _, h := range hits {
		if h.Fused >= best*weakest {
			kept = append(kept, h)
			continue
		}
		t.Dropped = append(t.Dropped, TraceDrop{ID: h.Message.ID, Reason: "far below the best match"})
	}
	return kept
}

// pack chooses the records that fit and renders the block.
func (e *Engine) pack(hits []recall.Hit, room int, t *RecallTrace) recalled {
	cost := func(it recall.Item) int { return e.tokens.count(renderItem(it, e.opts.Location)) + 1 }
	items, dropped := recall.Pack(hits, recall.PackOptions{Tokens: room, Cost: cost})
	for _, d := range dropped {
		t.Dropped = append(t.Dropped, TraceDrop{ID: d.ID, Reason: d.Reason})
	}
	if len(items) == 0 {
		t.Reason = "no match fits the room for recall"
		return recalled{}
	}
	var block recalled
	var texts []string
	var newest time.Time // what the message is dated with: a clock would change its bytes
	for _, it := range items {
		m := it.Hit.Message
		texts = append(texts, renderItem(it, e.opts.Location))
		block.parts = append(block.parts, partOf(it))
		block.items = append(block.items, TraceItem{
			ID: m.ID, Session: m.Session, Role: m.Role, Sender: m.Sender, Time: m.Time,
			Score: it.Hit.Score, Lexical: it.Hit.Lexical, Dense: it.Hit.Dense, Tokens: cost(it), Excerpt: it.Excerpt, Why: it.Hit.Why,
		})
		if m.Time.After(newest) {
			newest = m.Time
		}
	}
	content := e.renderBlock(texts)
	block.message = customMessage(content, newest)
	block.tokens = e.tokens.count(content) + perMessage
	t.Items = block.items
	return block
}
