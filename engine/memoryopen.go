package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hark/index"
)

const (
	openAround    = 3
	maxOpenAround = 50
	openTokens    = 2000
	openPage      = 500
)

// Open returns a message with those before and after it in its session, as far as the requester may
// see them and MaxTokens have room. The message itself comes first when there is not room for all;
// index.ErrNotFound is an id that is not there, or not for the requester.
func (m *Memory) Open(ctx context.Context, p OpenParams) (Opened, error) {
	s := m.seen(ctx, p.Requester)
	msg, ok, err := m.message(ctx, s, p.ID)
	if err != nil {
		return Opened{}, err
	}
	if !ok {
		return Opened{}, fmt.Errorf("message %q: %w", strings.ToValidUTF8(p.ID[:min(len(p.ID), 40)], ""), index.ErrNotFound)
	}
	rows, at, err := m.around(ctx, s, msg, around(p.Before), around(p.After))
	if err != nil {
		return Opened{}, err
	}
	room := p.MaxTokens
	if room <= 0 {
		room = openTokens
	}
	out := Opened{Messages: m.fit(rows, at, room), Session: msg.Session}
	return out, nil
}

func around(n *int) int {
	if n == nil {
		return openAround
	}
	return max(0, min(*n, maxOpenAround))
}

// around reads what was said around a message, and where in it the message is.
func (m *Memory) around(ctx context.Context, s seen, msg index.Message, before, after int) (rows []index.Message, at int, err error) {
	var prev []index.Message
	for last := int64(0); ; {
		page, err := m.engine.store.Session(ctx, msg.Session, last, openPage)
		if err != nil {
			return nil, 0, err
		}
		for i, row := range page {
			last = row.Seq
			if row.Seq != msg.Seq {
				if i := len(prev) - before; s.shows(row) {
					prev = append(prev[max(0, i):], row)
				}
				continue
			}
			if len(prev) > before {
				prev = prev[len(prev)-before:]
			}
			rows, err = m.following(ctx, s, page[i+1:], row, after)
			return append(append(prev, msg), rows...), len(prev), err
		}
		if len(page) < openPage {
			return []index.Message{msg}, 0, nil // it went meanwhile
		}
	}
}

// following reads what was said after a row, of which page holds the beginning.
func (m *Memory) following(ctx context.Context, s seen, page []index.Message, row index.Message, n int) ([]index.Message, error) {
	var out []index.Message
	last := row.Seq
	for {
		for _, r := range page {
			if len(out) == n {
				return out, nil
			}
			last = r.Seq
			if s.shows(r) {
				out = append(out, r)
			}
		}
		if len(out) == n {
			return out, nil
		}
		var err error
		if page, err = m.engine.store.Session(ctx, row.Session, last, openPage); err != nil || len(page) == 0 {
			return out, err
		}
	}
}

// shows reports whether a row is worth showing around a message.
func (s seen) shows(m index.Message) bool {
	return s.admits(m) && strings.TrimSpace(m.Text) != ""
}

// fit takes in the message itself, then those around it from near to far, as long as there is room.
func (m *Memory) fit(rows []index.Message, at, room int) []OpenedMessage {
	const header = 12 // tokens of date, role and id as a model sees them
	order := []int{at}
	for d := 1; d < len(rows); d++ {
		if at-d >= 0 {
			order = append(order, at-d)
		}
		if at+d < len(rows) {
			order = append(order, at+d)
		}
	}
	shown := map[int]OpenedMessage{}
	for _, i := range order {
		row := rows[i]
		msg := OpenedMessage{ID: row.ID, Role: row.Role, Speaker: row.Sender, Date: row.Time.UTC(), Text: row.Text}
		cost := m.engine.tokens.count(msg.Text) + header
		if cost > room {
			if i != at && room < 60 {
				break
			}
			msg.Text, msg.Cut = m.head(msg.Text, room-header), true
			cost = m.engine.tokens.count(msg.Text) + header
		}
		room -= cost
		shown[i] = msg
		if msg.Cut {
			break
		}
	}
	keys := make([]int, 0, len(shown))
	for i := range shown {
		keys = append(keys, i)
	}
	slices.Sort(keys)
	out := make([]OpenedMessage, 0, len(keys))
	for _, i := range keys {
		out = append(out, shown[i])
	}
	return out
}

// head is the beginning of a text that fits into tokens, with an ellipsis.
func (m *Memory) head(text string, tokens int) string {
	runes := []rune(text)
	low, high := 0, len(runes)
	for low < high {
		mid := (low + high + 1) / 2
		if m.engine.tokens.count(string(runes[:mid])) < max(tokens, 1) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return strings.TrimSpace(string(runes[:low])) + " …"
}

// ForgetOne forgets a message the requester may see, for good; see Engine.Forget. Without Confirm it
// only says which message it is.
func (m *Memory) ForgetOne(ctx context.Context, p ForgetOneParams) (ForgottenOne, error) {
	s := m.seen(ctx, p.Requester)
	msg, ok, err := m.message(ctx, s, p.ID)
	if err != nil || !ok {
		return ForgottenOne{}, err
	}
	out := ForgottenOne{Found: true, Preview: &ForgetPreview{Role: msg.Role, Date: msg.Time.UTC(), Chars: len([]rune(msg.Text))}}
	if !p.Confirm {
		return out, nil
	}
	n, err := m.engine.Forget(ctx, Forgetting{Rows: []int64{msg.Seq}})
	out.Forgotten = n > 0
	return out, err
}
