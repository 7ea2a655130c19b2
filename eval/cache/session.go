package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hark/engine"
)

// Session is a conversation to play.
type Session struct {
	Name   string
	Key    string                     // the host's session key
	Budget int                        // tokens, as the host gives them to the engine
	Memory []engine.IngestBatchParams // earlier conversations, stored before the first turn
	Turns  []Turn
}

// Turn is one user message and what followed.
type Turn struct {
	Prompt   string
	Messages []json.RawMessage // the user message, calls and results, the answer
	Compact  bool              // the host compacts the history before this turn
	History  []json.RawMessage // what the host gives as history; nil: what was said so far
}

// ErrNoTurns means that a file holds no conversation that can be played.
var ErrNoTurns = errors.New("no turns: expected messages of users and assistants, or a recording of the host's calls")

// FromMessages splits a transcript into turns. Messages before the first user message are left out.
func FromMessages(name string, messages []json.RawMessage, budget int) (*Session, error) {
	s := &Session{Name: name, Key: "agent:main:main", Budget: budget}
	for _, m := range messages {
		h := headOf(m)
		if h.Role == "user" {
			s.Turns = append(s.Turns, Turn{Prompt: h.text()})
		}
		if n := len(s.Turns); n > 0 {
			s.Turns[n-1].Messages = append(s.Turns[n-1].Messages, m)
		}
	}
	if len(s.Turns) == 0 {
		return nil, ErrNoTurns
	}
	return s, nil
}

// uncached is the session as a provider without a cache would have billed it: engines may look.
func (s *Session) uncached() *Session {
	bill := func(messages []json.RawMessage) []json.RawMessage {
		if messages == nil {
			return nil
		}
		out := make([]json.RawMessage, len(messages))
		for i, m := range messages {
			if out[i] = m; headOf(m).Role == "assistant" {
				out[i] = withUsage(m)
			}
		}
		return out
	}
	c := *s
	c.Turns = make([]Turn, len(s.Turns))
	for i, t := range s.Turns {
		t.Messages, t.History = bill(t.Messages), bill(t.History)
		c.Turns[i] = t
	}
	return &c
}

// withUsage is a message whose request was billed in full.
func withUsage(m json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(m, &fields) != nil {
		return m
	}
	fields["usage"] = json.RawMessage(`{"input":10000,"cacheRead":0}`)
	out, err := json.Marshal(fields)
	if err != nil {
		return m
	}
	return out
}

// call is a line of a recording of the host's calls.
type call struct {
	Ev     string `json:"ev"`
	Method string `json:"method"`
	Params struct {
		SessionKey  string            `json:"sessionKey"`
		Messages    []json.RawMessage `json:"messages"`
		Prompt      string            `json:"prompt"`
		TokenBudget engine.Tokens     `json:"tokenBudget"`
	} `json:"params"`
}

// FromRecording reads the turns of every session in a recording of the host's calls: those that
// were assembled and committed. Sessions are in the order of their first turn.
func FromRecording(r io.Reader) ([]*Session, error) {
	var out []*Session
	at := map[string]*Session{}
	pending := map[string]*Turn{}
	compacted := map[string]bool{}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 256<<20)
	for line := 1; sc.Scan(); line++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var c call
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		key := c.Params.SessionKey
		switch c.Method {
		case "compact":
			compacted[key] = true
		case "assemble":
			pending[key] = &Turn{Prompt: c.Params.Prompt, History: c.Params.Messages, Compact: compacted[key]}
			if at[key] == nil {
				at[key] = &Session{Name: key, Key: key, Budget: int(c.Params.TokenBudget)}
			}
		case "commitTurn":
			turn := pending[key]
			if turn == nil || len(c.Params.Messages) == 0 {
				continue
			}
			turn.Messages = c.Params.Messages
			s := at[key]
			if len(s.Turns) == 0 {
				out = append(out, s)
			}
			s.Turns = append(s.Turns, *turn)
			delete(pending, key)
			delete(compacted, key)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, ErrNoTurns
	}
	return out, nil
}

// head is what the host's rendering needs of a message.
type head struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Timestamp json.Number     `json:"timestamp"`
	Summary   string          `json:"summary"`
	Custom    string          `json:"customType"`
}

func headOf(raw json.RawMessage) head {
	var h head
	_ = json.Unmarshal(raw, &h) // what is no message has no role
	return h
}

// text is the text of the content.
func (h head) text() string {
	var s string
	if json.Unmarshal(h.Content, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(h.Content, &blocks) != nil {
		return ""
	}
	for i, b := range blocks {
		if i > 0 && b.Text != "" && s != "" {
			s += "\n"
		}
		s += b.Text
	}
	return s
}
