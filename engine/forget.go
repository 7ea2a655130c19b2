package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hark/index"
)

// Forgetting says what is to be forgotten: the messages that meet every condition set. The zero value
// means none.
type Forgetting struct {
	IDs     []string  `json:"ids,omitempty"`     // public ids, as they are shown anywhere
	Session string    `json:"session,omitempty"` // its key, whole or as it is shown
	Person  string    `json:"person,omitempty"`  // "telegram:42", a name of the identity links, or a display name
	Before  time.Time `json:"before,omitzero"`
	Match   string    `json:"match,omitempty"` // words the message holds, whatever their case and white space
	Rows    []int64   `json:"rows,omitempty"`  // rows of an earlier Selected
	Due     bool      `json:"due,omitempty"`   // what the retention removes next
	All     bool      `json:"all,omitempty"`   // everything; the other conditions have to be empty
}

// selectChunk is how many messages are read at a time.
const selectChunk = 500

// Selected lists what Forget would remove, by session and time. A session that is not stored selects
// nothing; an id that is not is index.ErrNotFound.
func (e *Engine) Selected(ctx context.Context, f Forgetting) ([]index.Message, error) {
	if f.Match != "" && squeeze(f.Match) == "" {
		return nil, errors.New("the words to match hold nothing that is seen") // or it would match everything
	}
	cond := f.any()
	if f.All && cond {
		return nil, fmt.Errorf("everything cannot be combined with other conditions")
	}
	if !f.All && !cond {
		return nil, nil
	}
	if err := e.Settle(ctx); err != nil { // what was accepted belongs to it
		return nil, err
	}
	if f.Due {
		rows, _, err := e.due(ctx)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		if len(f.Rows) > 0 {
			rows = slices.DeleteFunc(rows, func(seq int64) bool { return !slices.Contains(f.Rows, seq) })
		}
		f.Rows = rows
	}
	if len(f.IDs) > 0 || len(f.Rows) > 0 {
		return e.selectedByName(ctx, f)
	}
	list, err := e.store.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	want := ""
	if f.Session != "" {
		if want = e.findSession(list, f.Session); want == "" {
			return nil, nil
		}
	}
	meets := e.condition(f, want)
	var out []index.Message
	for _, s := range list {
		if want != "" && s.Session != want {
			continue
		}
		for after := int64(0); ; {
			rows, err := e.store.Session(ctx, s.Session, after, selectChunk)
			if err != nil {
				return nil, fmt.Errorf("read session: %w", err)
			}
			for _, m := range rows {
				after = m.Seq
				if meets(m) {
					out = append(out, m)
				}
			}
			if len(rows) < selectChunk {
				break
			}
		}
	}
	return out, nil
}

func (f Forgetting) any() bool {
	return f.Due || len(f.IDs) > 0 || len(f.Rows) > 0 || f.Session != "" || f.Person != "" || !f.Before.IsZero() || strings.TrimSpace(f.Match) != ""
}

// selectedByName reads the rows that are named, and keeps those that meet the other conditions.
func (e *Engine) selectedByName(ctx context.Context, f Forgetting) ([]index.Message, error) {
	var rows []index.Message
	for _, id := range f.IDs {
		found, err := e.store.Find(ctx, strings.Trim(strings.TrimPrefix(strings.TrimSpace(id), "id "), " #[]|"))
		if err != nil {
			return nil, fmt.Errorf("find the messages: %w", err)
		}
		rows = append(rows, found...)
	}
	for chunk := range slices.Chunk(f.Rows, selectChunk) {
		found, err := e.store.Get(ctx, chunk...)
		if err != nil {
			return nil, fmt.Errorf("find the messages: %w", err)
		}
		rows = append(rows, found...)
	}
	want := ""
	if f.Session != "" {
		list, err := e.store.Sessions(ctx)
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		if want = e.findSession(list, f.Session); want == "" {
			return nil, nil
		}
	}
	meets := e.condition(f, want)
	seen := map[int64]bool{}
	return slices.DeleteFunc(rows, func(m index.Message) bool {
		again := seen[m.Seq]
		seen[m.Seq] = true
		return again || !meets(m)
	}), nil
}

// findSession finds a stored session by its key, or by what is left of it where it is shown.
func (e *Engine) findSession(list []index.SessionInfo, name string) string {
	name = canonicalKey(name)
	prefix := "agent:" + e.scopes.agent + ":"
	for _, want := range []string{name, prefix + name, prefix + "explicit:" + name} {
		for _, s := range list {
			if canonicalKey(s.Session) == want {
				return s.Session
			}
		}
	}
	return ""
}

// condition tests a row for everything but its name.
func (e *Engine) condition(f Forgetting, session string) func(index.Message) bool {
	person := e.personOf(f.Person)
	match := squeeze(f.Match)
	return func(m index.Message) bool {
		switch {
		case session != "" && m.Session != session,
			!f.Before.IsZero() && !m.Time.Before(f.Before),
			f.Person != "" && !person(m),
			match != "" && !strings.Contains(squeeze(m.Text), match) && !strings.Contains(squeeze(m.Caption), match) &&
				!strings.Contains(squeeze(rawText(m.Raw)), match):
			return false
		}
		return true
	}
}

// rawText is the JSON of a message with its escapes resolved, for a search in all its parts.
func rawText(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte('\n')
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return b.String()
}

// personOf tests whether a row belongs to a person: what was said in their direct conversations, by
// them and to them, and what they said under their name elsewhere.
func (e *Engine) personOf(name string) func(index.Message) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	canonical := name
	if linked, ok := e.scopes.person[name]; ok {
		canonical = linked
	}
	is := func(id string) bool { return id == name || e.scopes.person[id] == canonical }
	return func(m index.Message) bool {
		if m.Sender != "" && strings.EqualFold(m.Sender, name) {
			return true
		}
		a := ParseKey(m.Session)
		return a.Audience == Direct && (is(a.Channel+":"+a.Peer) || is(a.Peer) || a.Account != "" && is(a.Channel+":"+a.Account+":"+a.Peer))
	}
}

// Forget removes messages for good, with all that was derived from them, and returns how many. It
// waits until their words are erased from the files too, as long as ctx allows. They do not come back
// when a host or an import delivers them again.
func (e *Engine) Forget(ctx context.Context, f Forgetting) (int, error) {
	rows, err := e.Selected(ctx, f)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if err := e.forgetStates(ctx, rows); err != nil {
		return 0, fmt.Errorf("forget: %w", err)
	}
	// Histories that could not be read again can hold anything.
	lost, err := e.store.StateKeys(ctx, journalLost)
	for _, name := range lost {
		err = errors.Join(err, e.store.SetState(ctx, journalLost, name, nil))
	}
	if err != nil {
		return 0, fmt.Errorf("forget: %w", err)
	}
	seqs := make([]int64, len(rows))
	for i, m := range rows {
		seqs[i] = m.Seq
	}
	n, err := e.store.Forget(ctx, index.Selection{Seqs: seqs, At: e.opts.Clock()})
	if err != nil {
		return n, err
	}
	e.mu.Lock()
	clear(e.ledgers)
	clear(e.stored)
	e.mu.Unlock()
	e.alikes.Lock()
	clear(e.alike) // of the rows read so far some are gone
	e.alikes.Unlock()
	if err := e.store.Settle(ctx); err != nil {
		return n, fmt.Errorf("the messages are forgotten, and their words are still being erased from the index: %w", err)
	}
	return n, nil
}

// forgetStates drops what is kept beside the rows: of sessions that will have none left, and of texts
// that were restated.
func (e *Engine) forgetStates(ctx context.Context, rows []index.Message) error {
	if !e.states.wait(statesWait) { // or they would come back
		return errors.New("the store is busy: something else has held its files for ten seconds")
	}
	going := map[string]int{}
	drop := map[[2]string]bool{}
	for _, m := range rows {
		going[m.Session]++
		if len(m.Text) >= restatedFrom {
			sum := sha256.Sum256([]byte(m.Text))
			drop[[2]string{"restated", fmt.Sprintf("%x", sum[:12])}] = true
		}
	}
	list, err := e.store.Sessions(ctx)
	if err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, s := range list {
		if going[s.Session] == s.Messages {
			gone[s.Session] = true
		}
	}
	if err := e.forgetMeasures(ctx, slices.Sorted(maps.Keys(going))); err != nil {
		return err
	}
	for session := range gone {
		for _, bucket := range []string{"window", "recall", "cut", "owner"} {
			drop[[2]string{bucket, session}] = true
		}
	}
	for _, bucket := range []string{"lineage", "restated", "wire"} {
		states, err := e.store.States(ctx, bucket)
		if err != nil {
			return err
		}
		for key, value := range states {
			var cursor struct{ SessionKey string }
			if gone[string(value)] || bucket == "wire" && json.Unmarshal(value, &cursor) == nil && gone[canonicalKey(cursor.SessionKey)] {
				drop[[2]string{bucket, key}] = true
			}
		}
	}
	for at := range drop {
		if err := e.store.SetState(ctx, at[0], at[1], nil); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, key := range e.lineages {
		if gone[key] {
			delete(e.lineages, id)
		}
	}
	for session := range gone {
		delete(e.owners, session)
	}
	return nil
}
