package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// maxCursor bounds a host's cursor, which is opaque to Hark, in bytes.
const maxCursor = 64 << 10

// storedCursor is the layout of a cursor in the agent's state.
type storedCursor struct {
	SessionID  string `json:"sessionId"`
	SessionKey string `json:"sessionKey"`
	Cursor     string `json:"cursor"`
}

func cursorKey(sessionID, sessionKey string) string {
	sum := sha256.Sum256([]byte(sessionKey + "\x00" + sessionID))
	return "cursor/" + hex.EncodeToString(sum[:16])
}

func (a *Agent) setCursor(ctx context.Context, sessionID, sessionKey, cursor string) error {
	if len(cursor) > maxCursor {
		return &Error{Code: CodeBadRequest, Message: "the cursor is too long"}
	}
	value, err := json.Marshal(storedCursor{sessionID, sessionKey, cursor})
	if err != nil {
		return err
	}
	return a.SetState(ctx, cursorKey(sessionID, sessionKey), value)
}

// cursorOf returns the cursor after the last page that was stored, "" for none.
func (a *Agent) cursorOf(ctx context.Context, sessionID, sessionKey string) (string, error) {
	value, err := a.State(ctx, cursorKey(sessionID, sessionKey))
	if err != nil || len(value) == 0 {
		return "", err
	}
	// A damaged value reads as none: the history is gone through again, and what is stored recognised.
	var c storedCursor
	_ = json.Unmarshal(value, &c)
	return c.Cursor, nil
}

// cursor serves GET /v1/agents/{agent}/cursor?session=KEY&sessionId=ID.
func (s *Server) cursor(w http.ResponseWriter, r *http.Request) {
	name, err := agentName(r.PathValue("agent"))
	if err != nil {
		s.answer(w, r, "", "cursor", nil, err)
		return
	}
	q := r.URL.Query()
	value, err := s.run(w, r, name, "cursor", func(ctx context.Context, _ json.RawMessage) (any, error) {
		agent, err := s.agents.get(ctx, name, true)
		if err != nil {
			return nil, err
		}
		cursor, err := agent.cursorOf(ctx, q.Get("sessionId"), q.Get("session"))
		return CursorResponse{cursor}, err
	})
	s.answer(w, r, name, "cursor", value, err)
}
