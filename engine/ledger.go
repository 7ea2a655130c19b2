package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"hark/index"
	"hark/recall"
)

// A recall block goes with its turn, and the next request differs from there on; or it stays where it
// was, byte for byte, until the window is cut anew or the host compacts. Then all go at once, and what
// a kept block shows is not recalled again meanwhile. Blocks stay where much was read after them, or all
// with Options.KeepBlocks: docs/prompt-cache.md has the measurements.

// longLoop is how many times its own tokens a turn has read after its block, in the tool loop, for the
// block to stay: when it goes, all of that is billed in full once more; when it stays, the block is billed
// at the price of cached tokens in every request until the next cut. At a tenth of the full price both
// are the same after 72 requests. Added cost on sessions with long outputs, by hark eval cache: 12.9 %
// where all blocks go, 7.1 where all stay, 6.5 at 7 times, 9.4 at 12; with short ones 5.8, 17.8, 5.8, 5.8,
// and 8.4 at 4 times.
const longLoop = 8

// staysUpTo is the share of the limit that a history with its blocks may take for another one to stay: near
// the next cut they would have to make room before it.
const staysUpTo = 0.85

// uncached is from how many answers on it is believed that a provider has no cache, where none of them
// had anything from it.
const uncached = 3

// ledger is what a session's requests showed, as it is stored: the block of the running turn, and
// those of earlier turns that are kept in place. It holds no text but says how to render a block
// again from its rows, so that a forgotten row takes every block with it that showed it. A ledger
// is a value; its slices are not changed in place.
type ledger struct {
	Scope string  `json:"scope,omitempty"` // fingerprint of what the session might see
	Now   *entry  `json:"now,omitempty"`
	Kept  []entry `json:"kept,omitempty"` // oldest first
}

// entry is one block. Without parts it records that nothing was recalled.
type entry struct {
	Turn   string `json:"turn"`
	Words  string `json:"words"`  // print of the user message the block stands before
	Before string `json:"before"` // print of the message before both, "" at the beginning
	Parts  []part `json:"parts,omitempty"`
	Sum    string `json:"sum,omitempty"` // of the rendered message

	Version string `json:"version,omitempty"` // of the store, when it was searched
	Tokens  int    `json:"tokens,omitempty"`
}

// part is one record of a block: a row, and for an excerpt the bytes of its text.
type part struct {
	Row     int64 `json:"row"`
	Excerpt bool  `json:"excerpt,omitempty"`
	From    int   `json:"from,omitempty"`
	To      int   `json:"to,omitempty"`
}

// keptBlock is a block of an earlier turn, and the index of the user message it stands before.
type keptBlock struct {
	recalled
	at    int
	entry entry
}

const ellipsis = "\u2026"

func partOf(it recall.Item) part {
	p := part{Row: it.Hit.Message.Seq, Excerpt: it.Excerpt}
	if !it.Excerpt {
		return p
	}
	core := strings.TrimSuffix(strings.TrimPrefix(it.Text, ellipsis+" "), " "+ellipsis)
	if at := strings.Index(it.Hit.Message.Text, core); at >= 0 {
		p.From, p.To = at, at+len(core)
	}
	return p
}

// item makes the record of a part as it was shown, of its row.
func (p part) item(m index.Message) (recall.Item, bool) {
	it := recall.Item{Hit: recall.Hit{Message: m}, Excerpt: p.Excerpt}
	if !p.Excerpt {
		if it.Text = strings.TrimSpace(m.Text); it.Text == "" {
			it.Text = strings.TrimSpace(m.Caption)
		}
		return it, it.Text != ""
	}
	if p.From < 0 || p.To > len(m.Text) || p.From >= p.To {
		return it, false
	}
	it.Text = m.Text[p.From:p.To]
	if strings.TrimSpace(m.Text[:p.From]) != "" {
		it.Text = ellipsis + " " + it.Text
	}
	if strings.TrimSpace(m.Text[p.To:]) != "" {
		it.Text += " " + ellipsis
	}
	return it, true
}

func sum(message json.RawMessage) string {
	if message == nil {
		return ""
	}
	h := sha256.Sum256(message)
	return hex.EncodeToString(h[:12])
}

// ledgerOf reads a session's ledger, from the store where this engine has not seen the session yet.
// What was recalled under another scope is not part of it.
func (e *Engine) ledgerOf(ctx context.Context, sc Scope) ledger {
	e.mu.Lock()
	book, ok := e.ledgers[sc.Session]
	e.mu.Unlock()
	if !ok {
		value, err := e.states.get(ctx, "recall", sc.Session)
		if err != nil || len(value) == 0 || json.Unmarshal(value, &book) != nil {
			book = ledger{}
		}
		e.remember(sc.Session, book)
	}
	if scope := e.fingerprint(sc); book.Scope != scope {
		return ledger{Scope: scope}
	}
	return book
}

// fingerprint identifies what a session may see.
func (e *Engine) fingerprint(sc Scope) string {
	f := sc.filter(nil)
	scopes := slices.Sorted(slices.Values(f.Scopes))
	data, _ := json.Marshal([]any{scopes, f.Session, f.AllScopes, e.opts.RecallTools, e.mayNotRecall(sc)})
	return textPrint(string(data))
}

// saveLedger stores a session's ledger; losing it costs a block's bytes, not a turn.
func (e *Engine) saveLedger(session string, book ledger) {
	e.remember(session, book)
	var value []byte
	if book.Now != nil || len(book.Kept) > 0 {
		value, _ = json.Marshal(book)
	}
	e.states.set("recall", session, value)
}

func (e *Engine) remember(session string, book ledger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ledgers) >= maxRemembered {
		clear(e.ledgers)
	}
	e.ledgers[session] = book
}

// again renders a block from its rows; ok is false if that does not give the bytes that were sent:
// a row was changed or forgotten since.
func (e *Engine) again(ctx context.Context, en entry) (block recalled, ok bool) {
	rows := make([]int64, len(en.Parts))
	for i, p := range en.Parts {
		rows[i] = p.Row
	}
	ms, err := e.store.Get(ctx, rows...)
	if err != nil || len(ms) != len(rows) {
		return recalled{}, false
	}
	var texts []string
	var newest time.Time
	for i, m := range ms {
		it, ok := en.Parts[i].item(m)
		if !ok || m.Seq != en.Parts[i].Row || m.Kind != index.Said && m.Kind != index.Tool { // cut off since
			return recalled{}, false
		}
		texts = append(texts, renderItem(it, e.opts.Location))
		block.items = append(block.items, TraceItem{ID: m.ID, Session: m.Session, Role: m.Role, Sender: m.Sender, Time: m.Time, Excerpt: it.Excerpt})
		if m.Time.After(newest) {
			newest = m.Time
		}
	}
	content := e.renderBlock(texts)
	block.message, block.parts = customMessage(content, newest), en.Parts
	block.tokens = e.tokens.count(content) + perMessage
	return block, sum(block.message) == en.Sum
}

// stays reports that the block of a turn that is over stays in place.
func (e *Engine) stays(en entry, ms []*measure, w window, limit int) bool {
	if e.opts.KeepBlocks {
		return true
	}
	if float64(w.tokens+en.Tokens+e.opts.RecallTokens) > staysUpTo*float64(limit) {
		return false
	}
	at := standsAt(ms, en, 0)
	return en.Tokens > 0 && at >= 0 && readAfter(ms, at) >= longLoop*en.Tokens && caches(ms)
}

// caches reports that the provider bills what it has read before at less, as far as its bills tell.
func caches(ms []*measure) bool {
	bills := 0
	for _, m := range ms {
		if m.cached > 0 {
			return true
		}
		if m.billed > 0 {
			bills++
		}
	}
	return bills < uncached
}

// readAfter returns the tokens that a turn's last request had from its user message on.
func readAfter(ms []*measure, at int) (tokens int) {
	sum := ms[at].tokens
	for _, m := range ms[at+1:] {
		if m.isUser() {
			break
		}
		if sum += m.tokens; m.result != "" {
			tokens = sum
		}
	}
	return tokens
}

// keptBlocks returns the blocks of earlier turns that can stand where they stood, oldest first, and
// puts them into the ledger: the running turn's predecessor joins them here, if it stays.
func (e *Engine) keptBlocks(ctx context.Context, book *ledger, join bool, ms []*measure, from int) []keptBlock {
	all := book.Kept
	if join {
		all = append(slices.Clip(all), *book.Now)
	}
	var out []keptBlock
	book.Kept = nil
	for _, en := range all {
		at := standsAt(ms, en, from)
		if at < 0 {
			continue
		}
		if block, ok := e.again(ctx, en); ok {
			out = append(out, keptBlock{recalled: block, at: at, entry: en})
			book.Kept = append(book.Kept, en)
			from = at + 1
		}
	}
	return out
}

// standsAt finds the user message a block stands before, -1 where the host no longer sends it.
func standsAt(ms []*measure, en entry, from int) int {
	for i := from; i < len(ms); i++ {
		if !ms[i].isUser() || ms[i].text != en.Words {
			continue
		}
		if i == 0 && en.Before == "" || i > 0 && printOf(ms[i-1]) == en.Before {
			return i
		}
	}
	return -1
}

func printOf(m *measure) string { return m.role + m.print }

// precedes identifies the message before the running turn, so that the same words asked again in a
// later turn are another question.
func precedes(ms []*measure, q asked) string {
	end := len(ms)
	if q.live >= 0 {
		end = q.live
	}
	if end == 0 {
		return ""
	}
	return printOf(ms[end-1])
}

// turnOf identifies the turn a question belongs to.
func turnOf(ms []*measure, q asked) string {
	return textPrint(q.prompt) + "/" + textPrint(q.previous) + "/" + precedes(ms, q)
}
