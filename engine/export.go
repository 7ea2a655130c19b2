package engine

import (
	"context"
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
	TimeSource string          `json:"time_source"` // "message", "event" or "ingest"
	Text       string          `json:"text"`
	Caption    string          `json:"caption,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
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

func exported(m index.Message) Exported {
	return Exported{
		ID: m.ID, Keys: m.Keys, Session: m.Session, SessionID: m.SessionID, Scope: m.Scope, Kind: kindWords[m.Kind], Role: m.Role,
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
	case len(x.Keys) == 0 || x.Session == "" || x.Scope == "" || x.Time.IsZero():
		return index.Message{}, errors.New("keys, session, scope or time is missing")
	}
	return index.Message{
		Keys: x.Keys, Session: canonicalKey(x.Session), SessionID: x.SessionID, Scope: x.Scope, Kind: index.Kind(kind), Role: x.Role,
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
	done, err := e.append(ctx, rows, nil, maxBatch)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	return done, nil
}
