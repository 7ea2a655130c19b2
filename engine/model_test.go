package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/index"
)

// conversation is the simple reference: what a host has of one session, and so what is memory.
type conversation struct {
	key     string
	id      string // session id, which rotates
	entries []talk // every one there ever was, in order
	active  []int  // indexes of entries: the branch that counts, of this transcript
	earlier []int  // of transcripts before a reset
	clock   int64
	turns   []CommitTurnParams
	prefix  string // of entry ids, which a rewrite changes

	generation int
	forgot     bool
}

// talk is one message of the reference.
type talk struct {
	role, text string
	at         int64
	transcript string // session id it belongs to
	aborted    bool
	parent     int      // index, -1 at the root
	forms      []string // texts before it was edited
	gone       bool     // forgotten
}

// wire is the message as the host writes it; decorated as it shows it to a model.
func (c *conversation) wire(i int, decorated bool) json.RawMessage {
	m := c.entries[i]
	switch {
	case m.role == "user" && decorated:
		return user("[Telegram Ann id:42 +2h 2026-11-30 10:02] "+m.text, m.at)
	case m.role == "user":
		return raw(fmt.Sprintf(`{"role":"user","content":%s,"timestamp":%d,"idempotencyKey":"run-%d:user"}`, encodeText(m.text), m.at, i))
	case m.aborted:
		return raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"aborted","timestamp":%d}`, encodeText(m.text), m.at))
	}
	return raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop","responseId":"r%d","timestamp":%d}`, encodeText(m.text), i, m.at))
}

func (c *conversation) entryID(i int) string { return fmt.Sprintf("%s%d", c.prefix, i) }

// phrases repeat themselves on purpose.
var phrases = []string{"ok", "yes", "again please", "the tent is in the cellar", "the canoe is in the barn", "what about the second one?"}

func (c *conversation) say(role, text string, aborted bool) int {
	c.clock += 1000 + int64(len(c.entries)*137%700)
	if c.clock%1000 == 0 {
		c.clock++ // or nothing would tell its copies in minutes
	}
	parent := -1
	if len(c.active) > 0 {
		parent = c.active[len(c.active)-1]
	}
	c.entries = append(c.entries, talk{role: role, text: text, at: c.clock, transcript: c.id, aborted: aborted, parent: parent})
	c.active = append(c.active, len(c.entries)-1)
	return len(c.entries) - 1
}

func (c *conversation) page(from, to int) []HistoryEntry {
	var out []HistoryEntry
	for n := from; n < to; n++ {
		i := c.active[n]
		h := HistoryEntry{EntryID: c.entryID(i), Seq: int64(n + 1), Message: c.wire(i, false), CreatedAt: "2026-11-30T10:00:00Z"}
		if p := c.entries[i].parent; p >= 0 && c.entries[p].transcript == c.entries[i].transcript {
			h.ParentID = c.entryID(p)
		}
		out = append(out, h)
	}
	return out
}

// memory is what shall be memory of the session: role and text of each message, in order of time.
func (c *conversation) memory() (rows, recallable []string) {
	for i, m := range c.entries {
		if m.gone {
			continue
		}
		line := fmt.Sprintf("%d %s %s", m.at, m.role, m.text)
		rows = append(rows, line)
		if m.aborted || i+1 < len(c.entries) && m.role == "user" && c.entries[i+1].aborted && c.entries[i+1].parent == i {
			continue
		}
		if slices.Contains(c.active, i) || slices.Contains(c.earlier, i) {
			recallable = append(recallable, line)
		}
	}
	return rows, recallable
}

// copyStep is the step of modelSteps that delivers a copy of another precision.
const copyStep = 14

// modelStep is one thing that can happen to a session.
type modelStep func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error

// turns makes a turn and its commit.
func modelTurn(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error {
	parent := ""
	if len(c.active) > 0 {
		if p := c.active[len(c.active)-1]; c.entries[p].transcript == c.id {
			parent = c.entryID(p)
		}
	}
	u := c.say("user", phrases[rng.IntN(len(phrases))], false)
	a := c.say("assistant", phrases[rng.IntN(len(phrases))], false)
	key := fmt.Sprint(c.key, "/", u)
	p := CommitTurnParams{AdvancementKey: key, SessionID: c.id, SessionKey: c.key, Messages: []json.RawMessage{c.wire(u, false), c.wire(a, false)}}
	anchor := EntryAnchor{AgentID: "main", SessionID: c.id, SessionKey: c.key, Generation: fmt.Sprint("g", c.generation), EntryID: c.entryID(u), ActiveMessagePosition: len(c.active) - 2, IdempotencyKey: fmt.Sprintf("run-%d:user", u)}
	if parent != "" {
		anchor.EffectiveParentID = &parent
	}
	p.Admission = Admission{EntryAnchor: anchor, LogicalTurnID: key, Role: "user"}
	p.Terminal = EntryAnchor{AgentID: "main", SessionID: c.id, Generation: fmt.Sprint("g", c.generation), EntryID: c.entryID(a), ActiveMessagePosition: len(c.active) - 1}
	c.turns = append(c.turns, p)
	_, err := e.CommitTurn(ctx, p)
	return err
}

func modelSteps() []modelStep {
	replay := func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error {
		if len(c.turns) == 0 {
			return nil
		}
		res, err := e.CommitTurn(ctx, c.turns[rng.IntN(len(c.turns))])
		if err == nil && res.Status != Duplicate {
			err = fmt.Errorf("a replayed turn was %s", res.Status)
		}
		return err
	}
	all := func(c *conversation, decorated bool) (out []json.RawMessage) {
		for _, i := range c.active {
			out = append(out, c.wire(i, decorated))
		}
		return out
	}
	reread := func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error {
		size := 1 + rng.IntN(5)
		for from := 0; from < len(c.active); from += size {
			to := min(from+size, len(c.active))
			_, err := e.Bootstrap(ctx, BootstrapParams{SessionID: c.id, SessionKey: c.key, History: c.page(from, to), Complete: to == len(c.active)})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return []modelStep{
		modelTurn, modelTurn, modelTurn, replay, reread,
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // an edit, and the transcript read again
			if len(c.active) == 0 {
				return nil
			}
			i := c.active[len(c.active)-2] // the last user message
			c.entries[i].forms = append(c.entries[i].forms, c.entries[i].text)
			c.entries[i].text += " (edited)"
			c.turns = nil // their bytes are old
			return reread(ctx, e, c, rand.New(rand.NewPCG(1, 1)))
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // back, and another way on
			here := 0 // of this transcript: what went on under another id is not gone back to
			for _, i := range slices.Backward(c.active) {
				if c.entries[i].transcript != c.id {
					break
				}
				here++
			}
			if here < 4 || c.forgot { // where a branch began may be forgotten, and then nothing tells of it
				return nil
			}
			c.active = c.active[:len(c.active)-2*(1+rng.IntN(here/2-1))]
			if rng.IntN(2) == 0 {
				if err := reread(ctx, e, c, rng); err != nil {
					return err
				}
			}
			return modelTurn(ctx, e, c, rng)
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // afterTurn, in either form
			return e.AfterTurn(ctx, AfterTurnParams{SessionID: c.id, SessionKey: c.key, Messages: all(c, rng.IntN(2) == 0), PrePromptMessageCount: rng.IntN(len(c.active) + 2)})
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error {
			_, err := e.IngestBatch(ctx, IngestBatchParams{SessionID: c.id, SessionKey: strings.ToUpper(c.key), Messages: all(c, rng.IntN(2) == 0)})
			return err
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error {
			if len(c.active) == 0 {
				return nil
			}
			_, err := e.Ingest(ctx, IngestParams{SessionID: c.id, Message: c.wire(c.active[rng.IntN(len(c.active))], false)})
			return err
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // rewritten, under other entry ids
			c.prefix += "w"
			return reread(ctx, e, c, rng)
		},
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // a reset: another transcript
			c.earlier, c.active = append(c.earlier, c.active...), nil
			c.id += "r"
			c.turns = nil
			return nil
		},
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // an aborted turn
			c.say("user", "do it", false)
			c.say("assistant", "I beg", true)
			return e.AfterTurn(ctx, AfterTurnParams{SessionID: c.id, SessionKey: c.key, Messages: all(c, false), PrePromptMessageCount: len(c.active) - 2})
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // an older form of an edited message
			var edited []int
			for n, i := range c.active {
				if len(c.entries[i].forms) > 0 {
					edited = append(edited, n)
				}
			}
			if len(edited) == 0 {
				return nil
			}
			if err := reread(ctx, e, c, rng); err != nil {
				return err
			}
			n := edited[rng.IntN(len(edited))]
			m := &c.entries[c.active[n]]
			text := m.text
			defer func() { m.text = text }()
			m.text = m.forms[rng.IntN(len(m.forms))]
			if rng.IntN(2) == 0 {
				return e.AfterTurn(ctx, AfterTurnParams{SessionID: c.id, SessionKey: c.key, Messages: []json.RawMessage{c.wire(c.active[n], false)}})
			}
			_, err := e.Bootstrap(ctx, BootstrapParams{SessionID: c.id, SessionKey: c.key, History: c.page(n, n+1)})
			return err
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // a copy of another precision
			if err := reread(ctx, e, c, rng); err != nil {
				return err
			}
			p := precisions[rng.IntN(len(precisions))]
			var ms []json.RawMessage
			for _, i := range c.active {
				stamp := p.write(c.entries[i].at)
				if stamp != "" {
					stamp = `,"timestamp":` + stamp
				}
				ms = append(ms, raw(fmt.Sprintf(`{"role":%q,"content":%s%s}`, c.entries[i].role, encodeText(c.entries[i].text), stamp)))
			}
			_, err := e.IngestBatch(ctx, IngestBatchParams{SessionID: c.id, SessionKey: c.key, Messages: ms})
			return err
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // the session's own export
			return carry(ctx, e, e, c.key)
		},
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // the transcript gets another generation
			c.generation++
			return nil
		},
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // the session id rotates, the conversation goes on
			c.id += "c"
			c.turns = nil
			return nil
		},
		func(ctx context.Context, e *Engine, c *conversation, rng *rand.Rand) error { // one message, or all before a time
			if len(c.entries) == 0 || rng.IntN(4) > 0 {
				return nil
			}
			if err := reread(ctx, e, c, rng); err != nil {
				return err
			}
			i := rng.IntN(len(c.entries))
			f := Forgetting{Session: c.key, Before: time.UnixMilli(c.entries[i].at + 1)}
			from := 0
			if rng.IntN(2) == 0 {
				from = i
			}
			rows, err := e.Selected(ctx, f)
			if err != nil {
				return err
			}
			var seqs []int64
			for _, m := range rows {
				if m.Time.UnixMilli() >= c.entries[from].at && m.Kind != index.Summary {
					seqs = append(seqs, m.Seq)
				}
			}
			for n := from; n <= i; n++ {
				c.entries[n].gone = true
			}
			c.forgot = true
			if len(seqs) == 0 {
				return nil
			}
			_, err = e.store.Forget(ctx, index.Selection{Seqs: seqs, At: fixedClock()}) // what waits for the files is not of interest here
			return err
		},
		func(ctx context.Context, e *Engine, c *conversation, _ *rand.Rand) error { // a compaction
			_, err := e.Compact(ctx, CompactParams{SessionID: c.id, SessionKey: c.key})
			return err
		},
	}
}

// carry brings what is stored of a session, and marks of all that was forgotten, into a store.
func carry(ctx context.Context, from, to *Engine, key string) error {
	for after := (*Forgotten)(nil); from != to; {
		page, err := from.ExportForgotten(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		if _, err := to.RestoreForgotten(ctx, page); err != nil {
			return err
		}
		after = &page[len(page)-1]
	}
	page, err := from.Export(ctx, key, "", 0)
	if err != nil {
		return err
	}
	_, err = to.Restore(ctx, page.Messages)
	return err
}

// However the messages of sessions arrive, in random order and again and again, with edits, cut
// branches, resets, rewritten transcripts, decorated copies and restarts, the store holds what the
// reference holds: each message once, and as memory what is on the branch that counts.
func TestModel(t *testing.T) {
	sequences, perStore := 10_000, 250
	if testing.Short() || raceDetector {
		sequences = 500
	}
	base, err := os.MkdirTemp(memoryDir(), "hark-model")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	for n := 0; n < sequences; n += perStore {
		dir := fmt.Sprintf("%s/%d", base, n)
		modelStore(t, dir, uint64(n), min(perStore, sequences-n))
		os.RemoveAll(dir)
		if t.Failed() {
			return
		}
	}
}

// memoryDir is where files cost no disk, "" where there is no such place.
func memoryDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// modelStore runs sequences over one store, which is closed and opened again on the way.
func modelStore(t *testing.T, dir string, seed uint64, sequences int) {
	t.Helper()
	steps := modelSteps()
	opts := &Options{Runtime: summarizing{"what happened so far"}}
	e, done := openAt(t, dir, nil, opts)
	other, otherDone := openAt(t, dir+"-other", nil, &Options{Runtime: summarizing{"what happened so far"}})
	defer otherDone()
	for n := range sequences {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		c := &conversation{key: fmt.Sprintf("agent:main:explicit:m%d", n), id: "t", prefix: "e", clock: day}
		var trail []int
		for range 2 + rng.IntN(7) {
			step := rng.IntN(len(steps))
			trail = append(trail, step)
			if err := steps[step](t.Context(), e, c, rng); err != nil {
				t.Errorf("seed %d/%d, steps %v: %v", seed, n, trail, err)
			}
		}
		if n%100 == 50 {
			done()
			e, done = openAt(t, dir, nil, opts)
		}
		// What never arrived is brought by the page that every turn begins with.
		if err := steps[4](t.Context(), e, c, rng); err != nil {
			t.Error(err)
		}
		compareModel(t, e, c, fmt.Sprintf("seed %d/%d, steps %v", seed, n, trail))
		if n%5 == 0 && len(c.entries) > 0 { // it goes on in another store, where the source is read again
			if err := carry(t.Context(), e, other, c.key); err != nil {
				t.Error(err)
			}
			for _, step := range []int{4, copyStep, 4} {
				if err := steps[step](t.Context(), other, c, rng); err != nil {
					t.Error(err)
				}
			}
			compareModel(t, other, c, fmt.Sprintf("elsewhere, seed %d/%d, steps %v", seed, n, trail))
		}
		if t.Failed() {
			break
		}
	}
	done()
}

func compareModel(t *testing.T, e *Engine, c *conversation, where string) {
	t.Helper()
	ms, err := e.store.Session(t.Context(), c.key, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var rows, recallable []string
	for _, m := range ms {
		line := fmt.Sprintf("%d %s %s", m.Time.UnixMilli(), m.Role, m.Text)
		if m.Kind == index.Summary {
			continue
		}
		rows = append(rows, line)
		if m.Kind == index.Said {
			recallable = append(recallable, line)
		}
	}
	wantRows, wantRecall := c.memory()
	if !slices.Equal(rows, wantRows) {
		t.Errorf("%s: rows\n%s\nwant\n%s", where, strings.Join(rows, "\n"), strings.Join(wantRows, "\n"))
	}
	if !slices.Equal(recallable, wantRecall) {
		t.Errorf("%s: memory\n%s\nwant\n%s\nrows\n%s", where, strings.Join(recallable, "\n"), strings.Join(wantRecall, "\n"), strings.Join(rows, "\n"))
	}
}
