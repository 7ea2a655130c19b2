package engine

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hark/engine/mask"
	"hark/index"
)

// Exported is a message as "hark export" writes it: everything that makes it the same message, with
// the same id, in another store. Times are in milliseconds.
type Exported struct {
	ID         string          `json:"id"`
	Keys       []string        `json:"keys"` // its identities, most reliable first
	Session    string          `json:"session"`
	SessionID  string          `json:"session_id,omitempty"`
	Scope      string          `json:"scope"`
	Kind       string          `json:"kind"` // "said", "tool", "summary" or "noise"
	Role       string          `json:"role"`
	Sender     string          `json:"sender,omitempty"`
	Time       time.Time       `json:"time"`
	Mark       string          `json:"mark,omitempty"`  // fingerprint of this form of the message
	Said       time.Time       `json:"said,omitzero"`   // what this form says of its time, where that is not Time
	Edited     time.Time       `json:"edited,omitzero"` // when this form was written, where that is known
	TimeSource string          `json:"time_source"`     // "message", "event" or "ingest"
	Text       string          `json:"text"`
	Caption    string          `json:"caption,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// Forgotten marks one identity of a message that was forgotten, so that the store which takes the mark in
// keeps the message out when a host or a file delivers it again. It says nothing about the message: see
// index.Mark for what the hash is of.
type Forgotten struct {
	Hash string    `json:"forgotten"` // 32 hexadecimal digits
	Salt string    `json:"salt"`      // 32 hexadecimal digits
	Gone time.Time `json:"at,omitzero"`
}

func (f Forgotten) mark() (m index.Mark, err error) {
	m.Gone = f.Gone
	if m.Hash, err = hex.DecodeString(f.Hash); err == nil {
		m.Salt, err = hex.DecodeString(f.Salt)
	}
	return m, err
}

// The words for kinds and sources of time in an export, by their number.
var (
	kindWords   = [...]string{index.Said: "said", index.Tool: "tool", index.Summary: "summary", index.Noise: "noise"}
	sourceWords = [...]string{index.FromMessage: "message", index.FromEvent: "event", index.FromIngest: "ingest"}
)

// ExportPage is a page of an export, and where the next one begins.
type ExportPage struct {
	Messages []Exported `json:"messages"`
	Session  string     `json:"session,omitempty"` // "" at the end
	After    int64      `json:"after,omitempty"`
}

// maxExportBytes bounds a page, beyond which it ends after the message that went over.
const maxExportBytes = 4 << 20

// Export reads a page of what is stored, by session and time. The first page begins at session "" and
// after 0, each other one where the page before it says. With only, one session is read.
func (e *Engine) Export(ctx context.Context, only, session string, after int64) (ExportPage, error) {
	page := ExportPage{Messages: []Exported{}}
	if err := e.Settle(ctx); err != nil {
		return page, err
	}
	list, err := e.store.Sessions(ctx)
	if err != nil {
		return page, fmt.Errorf("list sessions: %w", err)
	}
	if only != "" {
		name := e.findSession(list, only)
		list = slices.DeleteFunc(list, func(s index.SessionInfo) bool { return s.Session != name })
	}
	size := 0
	for _, s := range list {
		if s.Session < session {
			continue
		}
		if s.Session != session {
			session, after = s.Session, 0
		}
		for {
			if len(page.Messages) >= selectChunk || size > maxExportBytes {
				page.Session, page.After = session, after
				return page, nil
			}
			rows, err := e.store.Session(ctx, session, after, 100)
			if err != nil {
				return page, fmt.Errorf("read session: %w", err)
			}
			for _, m := range rows {
				after = m.Seq
				size += len(m.Text) + len(m.Raw)
				page.Messages = append(page.Messages, exported(m))
			}
			if len(rows) < 100 {
				break
			}
		}
	}
	return page, nil
}

// ExportForgotten reads a page of the marks of what was forgotten here, or elsewhere as an import told, after
// the given one (nil: from the beginning). An empty page is the end.
func (e *Engine) ExportForgotten(ctx context.Context, after *Forgotten) ([]Forgotten, error) {
	var from *index.Mark
	if after != nil {
		m, err := after.mark()
		if err != nil {
			return nil, fmt.Errorf("read what was forgotten: %w", err)
		}
		from = &m
	}
	marks, err := e.store.Marks(ctx, from, selectChunk)
	if err != nil {
		return nil, fmt.Errorf("read what was forgotten: %w", err)
	}
	out := make([]Forgotten, len(marks))
	for i, m := range marks {
		out[i] = Forgotten{hex.EncodeToString(m.Hash), hex.EncodeToString(m.Salt), m.Gone}
	}
	return out, nil
}

// RestoreForgotten takes in marks of an export and returns how many were new. They keep out what is not
// stored yet; what is stored already stays.
func (e *Engine) RestoreForgotten(ctx context.Context, list []Forgotten) (int, error) {
	marks := make([]index.Mark, len(list))
	for i, f := range list {
		m, err := f.mark()
		if err != nil {
			return 0, fmt.Errorf("restore: mark %d of what was forgotten: %w", i+1, err)
		}
		marks[i] = m
	}
	e.ingest.Lock()
	defer e.ingest.Unlock()
	n, err := e.store.AddMarks(ctx, marks)
	if err != nil {
		return n, fmt.Errorf("restore: %w", err)
	}
	return n, nil
}

func exported(m index.Message) Exported {
	said := m.Version.Said
	if m.TimeSource == index.FromMessage && said.Equal(m.Time) {
		said = time.Time{}
	}
	return Exported{
		ID: m.ID, Keys: slices.DeleteFunc(slices.Clone(m.Keys), local), Mark: m.Version.Mark, Said: said, Edited: m.Version.Edited, Session: m.Session, SessionID: m.SessionID, Scope: m.Scope, Kind: kindWords[m.Kind], Role: m.Role,
		Sender: m.Sender, Time: m.Time.UTC(), TimeSource: sourceWords[m.TimeSource], Text: m.Text, Caption: m.Caption, Raw: m.Raw,
	}
}

// message is the row an exported message becomes.
func (x Exported) message() (index.Message, error) {
	kind, source := slices.Index(kindWords[:], x.Kind), slices.Index(sourceWords[:], x.TimeSource)
	switch {
	case kind < 0:
		return index.Message{}, fmt.Errorf("unknown kind %q", x.Kind)
	case source < 0:
		return index.Message{}, fmt.Errorf("unknown time source %q", x.TimeSource)
	case len(x.Keys) == 0 || slices.Contains(x.Keys, "") || x.Session == "" || x.Scope == "" || x.Time.IsZero():
		return index.Message{}, errors.New("keys, session, scope or time is missing")
	}
	if plausible(x.Time).IsZero() {
		return index.Message{}, fmt.Errorf("no message can be of the time %v", x.Time)
	}
	v := index.Version{Mark: x.Mark, Said: x.Said, Edited: x.Edited}
	if v.Said.IsZero() && index.TimeSource(source) == index.FromMessage {
		v.Said = x.Time
	}
	return index.Message{
		Version: v, Keys: slices.Clone(x.Keys), Session: canonicalKey(x.Session), SessionID: x.SessionID, Scope: x.Scope, Kind: index.Kind(kind), Role: x.Role,
		Sender: plainLine(x.Sender), Time: x.Time, TimeSource: index.TimeSource(source), Text: x.Text, Caption: x.Caption, Raw: x.Raw,
	}, nil
}

// Restore stores exported messages, in one transaction and under the ids they had. What is stored
// already, and what was forgotten here, counts as duplicate. Of rows that are no messages of this
// agent nothing is stored.
func (e *Engine) Restore(ctx context.Context, messages []Exported) (index.Appended, error) {
	rows := make([]index.Message, 0, len(messages))
	for i, x := range messages {
		m, err := x.message()
		if err != nil {
			return index.Appended{}, fmt.Errorf("restore: message %d: %w", i+1, err)
		}
		if agent := ParseKey(m.Session).Agent; agent != "" && agent != e.scopes.agent && !strings.HasPrefix(m.Scope, "agent:"+agent+"/") {
			return index.Appended{}, fmt.Errorf("restore: message %d is of agent %q, and this is the store of %q", i+1, agent, e.opts.AgentID)
		}
		if !e.opts.KeepSecrets {
			m.Text, _ = mask.Text(m.Text)
			m.Caption, _ = mask.Text(m.Caption)
			m.Sender, _ = mask.Text(m.Sender)
			m.Raw, _ = mask.JSON(m.Raw)
		}
		rows = append(rows, m)
	}
	done, err := e.restore(ctx, rows)
	e.embed(ctx, rows, done)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	return done, nil
}

func (e *Engine) restore(ctx context.Context, rows []index.Message) (index.Appended, error) {
	e.ingest.Lock()
	defer e.ingest.Unlock()
	r := e.resolver("", delivery{partial: true})
	if err := r.restore(ctx, rows); err != nil {
		return index.Appended{}, err
	}
	return e.append(ctx, rows, nil, maxBatch)
}
