package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/recall"
)

// record is what children said: the reference a store is compared with.
type record struct {
	turns     map[string]*unit // by key: turns and histories
	order     []string         // keys in the order in which they were tried
	forgets   map[string]bool  // session → its forgetting was acknowledged
	preloaded int
}

// unit is a turn or a history.
type unit struct {
	session      string
	entries      int  // of a history; 0 is a turn
	acknowledged bool // it has to be there
	doubtful     bool // its forgetting was tried and not acknowledged: it may be there or not
	forgotten    bool // it must not be there
}

func newRecord() record { return record{turns: map[string]*unit{}, forgets: map[string]bool{}} }

// line takes in what a child said; it returns what is not as it should be.
func (r *record) line(text string) (wrong string, blocked bool) {
	f := strings.SplitN(text, " ", 4)
	if len(f) < 3 || f[0] == "opened" {
		return "", false
	}
	verb, what, key := f[0], f[1], f[2]
	switch verb {
	case "wrong":
		return text, false
	case "blocked":
		return text, true
	case "try":
		if what == "forget" {
			r.forget("agent:main:explicit:"+key, func(u *unit) { u.doubtful = true })
			return "", false
		}
		u := &unit{session: tortureSession(key)}
		if what == "history" {
			u.entries = historyEntries
		}
		if r.turns[key] == nil {
			r.turns[key] = u
			r.order = append(r.order, key)
		}
	case "ok":
		if what == "forget" {
			r.forgets["agent:main:explicit:"+key] = true
			r.forget("agent:main:explicit:"+key, func(u *unit) { u.forgotten, u.doubtful = u.forgotten || u.acknowledged, false })
		} else if u := r.turns[key]; u != nil {
			u.acknowledged = true
		}
	}
	return "", false
}

func (r *record) forget(session string, do func(*unit)) {
	for _, key := range r.order {
		if u := r.turns[key]; u.session == session {
			do(u)
		}
	}
}

// texts are the texts of a unit.
func (u *unit) texts(key string) []string {
	mark := strings.ReplaceAll(key, ".", "x")
	if u.entries == 0 {
		return []string{
			fmt.Sprintf("marker%su the parcel for the harbour office is ready", mark),
			fmt.Sprintf("marker%sa noted, the courier comes in the morning", mark),
		}
	}
	out := make([]string, u.entries)
	for i := range out {
		out[i] = fmt.Sprintf("marker%sh%d from an older talk", mark, i)
	}
	return out
}

// verify opens the store and compares it with the record.
func (t *torturer) verify(ctx context.Context, after string) error {
	start := time.Now()
	store, err := index.Open(ctx, t.store, &index.Options{Log: t.logger()})
	took := time.Since(start)
	if err != nil {
		t.incident(&t.report.Wrong, "after %s the store does not open: %v", after, err)
		return err
	}
	t.opens = append(t.opens, millis(took))
	if took > tortureOpen {
		t.incident(&t.report.Blocked, "after %s opening took %v", after, took)
	}
	emb, err := embed.New(embed.Config{Provider: "builtin"}, t.logger())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	e, err := engine.New(store, renamed{emb, "torture-0"}, nil, t.logger())
	if err != nil {
		return errors.Join(err, store.Close())
	}
	wait, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err = t.compare(wait, store, e)
	if err = errors.Join(err, e.Close()); err != nil {
		return errors.Join(err, store.Close())
	}
	return t.check(wait, store)
}

// check compares rows and indexes, and once more after the opening that repairs; it closes the store.
func (t *torturer) check(ctx context.Context, store *index.Store) error {
	r, err := store.Check(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if r.OK() {
		return nil
	}
	t.report.Repaired++
	if store, err = index.Open(ctx, t.store, &index.Options{Log: t.logger()}); err != nil {
		return err
	}
	again, err := store.Check(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if !again.OK() {
		t.incident(&t.report.Wrong, "%d differences are not repaired, first: %s", again.Problems, again.Differences[0])
	}
	return nil
}

func (t *torturer) compare(ctx context.Context, store *index.Store, e *engine.Engine) error {
	// Before anything has caught up, words answer.
	if key := t.sample(); key != "" {
		t.findable(ctx, store, key, "right after opening")
	}
	if err := e.Settle(ctx); err != nil {
		t.incident(&t.report.Blocked, "an accepted history is not stored: %v", err)
	}
	if err := t.count(ctx, store); err != nil {
		return err
	}
	if err := t.again(ctx, e); err != nil {
		return err
	}
	if err := e.Embed(ctx, nil); err != nil {
		t.incident(&t.report.Wrong, "pending vectors are not made: %v", err)
	}
	if err := store.Settle(ctx); err != nil {
		t.incident(&t.report.Blocked, "the index of words does not settle: %v", err)
	}
	if key := t.sample(); key != "" {
		t.findable(ctx, store, key, "when settled")
	}
	st, err := store.Status(ctx)
	if err != nil {
		return err
	}
	t.report.Messages = st.Rows
	for _, text := range st.Errors {
		if strings.Contains(text, "set aside") || strings.Contains(text, "again") {
			t.report.Repaired++
			break
		}
	}
	return nil
}

// sample is the key of an acknowledged turn, "" where there is none.
func (t *torturer) sample() string {
	for range 20 {
		if len(t.record.order) == 0 {
			return ""
		}
		key := t.record.order[t.rand.IntN(len(t.record.order))]
		if u := t.record.turns[key]; u.acknowledged && !u.doubtful && !u.forgotten && u.entries == 0 {
			return key
		}
	}
	return ""
}

// findable looks for a turn by its word.
func (t *torturer) findable(ctx context.Context, store *index.Store, key, when string) {
	word := "marker" + strings.ReplaceAll(key, ".", "x") + "u"
	start := time.Now()
	res, err := recall.NewSearcher(store, nil, nil, t.logger()).Search(ctx, recall.Request{
		Question: recall.Question{Text: word}, Filter: index.Filter{AllScopes: true}, K: 3,
	})
	if took := time.Since(start); took > tortureOpen {
		t.incident(&t.report.Blocked, "a search took %v", took)
	}
	if err != nil {
		t.incident(&t.report.Wrong, "search %s: %v", when, err)
		return
	}
	for _, h := range res.Hits {
		if strings.Contains(h.Message.Text, word) {
			return
		}
	}
	t.incident(&t.report.Lost, "%s is not found by its word %s", key, when)
}

// count reads every row and counts what is missing, twice there, or back.
func (t *torturer) count(ctx context.Context, store *index.Store) error {
	have := map[string]int{}
	sessions, err := store.Sessions(ctx)
	if err != nil {
		return err
	}
	preloaded := 0
	for _, s := range sessions {
		if strings.Contains(s.Session, ":preload") {
			preloaded += s.Messages
			continue
		}
		rows, err := store.Session(ctx, s.Session, 0, 0)
		if err != nil {
			return err
		}
		for _, m := range rows {
			have[m.Text]++
		}
	}
	if preloaded != t.record.preloaded {
		t.incident(&t.report.Lost, "%d of %d preloaded messages", preloaded, t.record.preloaded)
	}
	for _, key := range t.record.order {
		t.countUnit(key, have)
	}
	for text, n := range have {
		t.incident(&t.report.Wrong, "%d × %q belongs to nothing that was tried", n, text)
	}
	return nil
}

func (t *torturer) countUnit(key string, have map[string]int) {
	u := t.record.turns[key]
	missing, back := 0, 0
	texts := u.texts(key)
	for _, text := range texts {
		n := have[text]
		delete(have, text)
		switch {
		case n > 1:
			t.incident(&t.report.Doubled, "%q is there %d times", text, n)
		case n == 1 && u.forgotten:
			back++
		case n == 0:
			missing++
		}
	}
	switch {
	case back > 0:
		t.incident(&t.report.Back, "%d messages of %s were forgotten", back, key)
	case missing > 0 && u.acknowledged && !u.forgotten && !u.doubtful:
		t.incident(&t.report.Lost, "%d of %d messages of %s", missing, len(texts), key)
	case missing > 0 && missing < len(texts) && u.entries == 0:
		t.incident(&t.report.Wrong, "%s is there in part", key)
	}
	if u.doubtful { // now it is known
		u.doubtful = false
		if missing == len(texts) && u.acknowledged { // what never was stored was not forgotten
			u.forgotten = true
		}
	}
	if !u.acknowledged && missing == 0 { // it was stored, and the answer did not get out
		u.acknowledged = true
	}
}

// again does what a host does after a crash: it repeats the last turns, with and without an answer.
func (t *torturer) again(ctx context.Context, e *engine.Engine) error {
	last := t.record.order[max(0, len(t.record.order)-8):]
	for _, key := range last {
		u := t.record.turns[key]
		if u.entries > 0 || t.record.forgets[u.session] {
			continue
		}
		res, err := e.CommitTurn(ctx, tortureTurn(key))
		switch {
		case err != nil:
			t.incident(&t.report.Wrong, "the turn %s again: %v", key, err)
		case u.acknowledged && res.Status != engine.Duplicate:
			t.incident(&t.report.Lost, "the receipt of %s", key)
		}
		u.acknowledged = err == nil
	}
	return nil
}
