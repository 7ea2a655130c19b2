package engine

import (
	"context"
	"encoding/json"
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

// recallCall is what recall is asked with.
type recallCall struct {
	scope    Scope
	question asked
	messages []*measure
	start    int // the kept messages are messages[start:]
	room     int // tokens
}

// recalled is a block, and the turn it was made for. The zero value is no block.
type recalled struct {
	message json.RawMessage
	tokens  int

	turn  string
	rows  []int64
	texts []string // prints of the rows' texts: a changed or forgotten row ends the block
	items []TraceItem
}

// recall finds, packs and renders what bears on the question. Whatever fails is in the trace, and
// there is no block then.
func (e *Engine) recall(ctx context.Context, c recallCall, tr *Trace) recalled {
	t := &tr.Recall
	if e.opts.RecallTokens <= 0 {
		t.Reason = "recall is off"
		return recalled{}
	}
	if may, why := c.scope.mayRecall(); !may {
		t.Reason = why
		return recalled{}
	}
	t.Cap = max(c.room, 0)
	if c.room < minBlock {
		t.Reason = "no room left in the budget"
		return recalled{}
	}
	q := recall.Ask(c.question.prompt, c.question.previous)
	t.Question, t.Context, t.Reason = q.Text, q.Context, q.Reason
	if q.Text == "" {
		if c.question.reason != "" {
			t.Reason = c.question.reason
		}
		return recalled{}
	}
	turn := textPrint(c.question.prompt) + "/" + textPrint(c.question.previous) + "/" + precedes(c)
	if block, ok := e.again(ctx, c.scope.Session, turn); ok && block.tokens <= c.room {
		t.Ran, t.Cached, t.Items, t.Hits = true, true, block.items, len(block.items)
		return block
	}
	block := e.find(ctx, c, q, tr)
	block.turn = turn
	e.mu.Lock()
	if len(e.blocks) >= maxRemembered {
		clear(e.blocks)
	}
	delete(e.blocks, c.scope.Session)
	if block.message != nil {
		e.blocks[c.scope.Session] = block
	}
	e.mu.Unlock()
	return block
}

// precedes identifies the message before the running turn, so that the same words asked again in a
// later turn are another question.
func precedes(c recallCall) string {
	end := len(c.messages)
	if c.question.live >= 0 {
		end = c.question.live
	}
	if end == 0 {
		return ""
	}
	m := c.messages[end-1]
	return m.role + m.print
}

// again returns the block of the running turn, if its records are still what they were.
func (e *Engine) again(ctx context.Context, session, turn string) (recalled, bool) {
	e.mu.Lock()
	block, ok := e.blocks[session]
	e.mu.Unlock()
	if !ok || block.turn != turn {
		return recalled{}, false
	}
	rows, err := e.store.Get(ctx, block.rows...)
	if err != nil || len(rows) != len(block.rows) {
		return recalled{}, false
	}
	for i, m := range rows {
		if textPrint(m.Text) != block.texts[i] {
			return recalled{}, false
		}
	}
	return block, true
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
		Question: q, Filter: c.scope.filter(kinds), Exclude: shown.rows,
		Now: e.opts.Clock(), Location: e.opts.Location,
	})
	t.Took = time.Since(started)
	if err != nil {
		t.Reason = "search failed: " + err.Error()
		e.log.Warn("recall failed", "error", err)
		return recalled{}
	}
	t.Ran, t.Confidence, t.Search = true, res.Confidence, res.Trace
	hits := slices.DeleteFunc(res.Hits, func(h recall.Hit) bool {
		return shown.shows(h.Message) || textPrint(h.Message.Text) == textPrint(c.question.prompt)
	})
	t.Hits, t.OnScreen = len(hits), len(shown.rows)+len(res.Hits)-len(hits)
	if len(hits) == 0 {
		t.Reason = "nothing stored matches"
		return recalled{}
	}
	room := min(c.room, res.Budget(c.room))
	hits = t.dropWeak(hits)
	if few := e.few(); few && room < fewRoom {
		// The confidence was learned from stores in which the rarity of a word tells something.
		room = min(c.room, fewRoom)
		hits = slices.DeleteFunc(hits, func(h recall.Hit) bool { return len(h.Matched) == 0 })
		if len(hits) == 0 {
			t.Reason = "nothing stored shares a word with this"
			return recalled{}
		}
	}
	frame := e.tokens.count(e.renderBlock(nil)) + perMessage + 8 // 8: joints between counted parts
	if room < frame {
		t.Reason = "nothing stored is likely to answer this"
		return recalled{}
	}
	return e.pack(hits, room-frame, t)
}

func (e *Engine) few() bool {
	v := e.store.View()
	defer v.Close()
	return v.Stats().Messages < fewMessages
}

// dropWeak leaves out hits far below the best one.
func (t *RecallTrace) dropWeak(hits []recall.Hit) []recall.Hit {
	least := hits[0].Score * weakest
	for i, h := range hits {
		if h.Score >= least {
			continue
		}
		for _, weak := range hits[i:] {
			t.Dropped = append(t.Dropped, TraceDrop{ID: weak.Message.ID, Reason: "far below the best match"})
		}
		return hits[:i]
	}
	return hits
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
	var newest time.Time
	for _, it := range items {
		m := it.Hit.Message
		texts = append(texts, renderItem(it, e.opts.Location))
		block.rows = append(block.rows, m.Seq)
		block.texts = append(block.texts, textPrint(m.Text))
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
