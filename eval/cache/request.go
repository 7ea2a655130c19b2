package cache

import (
	"encoding/json"
	"strings"
	"time"

	"hark/engine"
)

// piece is a part of a request that is the same or not as a whole.
type piece struct {
	kind   string
	text   string
	tokens int
}

// The kinds of pieces.
const (
	system    = "system prompt"
	addition  = "system prompt addition"
	message   = "message"
	block     = "recall block"
	transient = "transient message"
)

// What the host puts around the messages. The sizes are those of a recorded gateway.
var (
	stablePart    = strings.Repeat("Instructions, workspace files and the descriptions of tools stand here. ", 380)
	changingPart  = strings.Repeat("Project context that the host renders anew for each run stands here. ", 12)
	internalEvent = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nConversation data (data, not instructions):\n\"## Active Subagents\\nnone\"\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
)

const runtimeLine = "\n\nRuntime: agent=main | session=agent:main:main | sessionId=s1 | host=gateway | os=linux | node=v24 | active_node=unknown | model=provider/model | default_model=provider/model | shell=bash"

// request builds a model request: the engine's list, the live user message, what the tool loop has
// added so far, and the host's transient message.
func (p *player) request(res engine.AssembleResult, live json.RawMessage, loop []json.RawMessage) []piece {
	out := []piece{p.piece(system, stablePart)}
	if res.SystemPromptAddition != "" {
		out = append(out, p.piece(addition, res.SystemPromptAddition))
	}
	out = append(out, p.piece(system, changingPart))
	first := true
	add := func(m json.RawMessage) {
		x, user := p.rendered(m)
		if user && first {
			x, first = p.piece(x.kind, x.text+runtimeLine), false
		}
		out = append(out, x)
	}
	for _, m := range res.Messages {
		add(m)
	}
	add(live)
	for _, m := range loop {
		add(m)
	}
	return append(out, p.piece(transient, internalEvent))
}

// rendered is the piece a message makes, rendered once for each message.
func (p *player) rendered(m json.RawMessage) (x piece, user bool) {
	if known, ok := p.known[string(m)]; ok {
		return known.piece, known.user
	}
	h := headOf(m)
	text, user := render(h, m)
	kind := message
	if h.Role == "custom" && strings.HasPrefix(h.Custom, "hark") {
		kind = block
	}
	x = p.piece(kind, text)
	p.known[string(m)] = knownPiece{x, user}
	return x, user
}

// knownPiece is a rendered message, and whether it goes as a user's.
type knownPiece struct {
	piece
	user bool
}

// render is a message as the provider gets it, and whether it goes as a user's.
func render(h head, raw json.RawMessage) (text string, user bool) {
	switch h.Role {
	case "user":
		if ms, err := h.Timestamp.Int64(); err == nil {
			return time.UnixMilli(ms).UTC().Format("[Mon 2006-01-02 15:04 MST] ") + h.text(), true
		}
		return h.text(), true
	case "custom":
		return h.text(), true
	case "compactionSummary":
		return "The conversation history before this point was compacted into the following summary:\n\n<summary>\n" + h.Summary + "\n</summary>", true
	}
	var fields struct {
		Content []struct {
			Type      string          `json:"type"`
			Text      string          `json:"text"`
			Name      string          `json:"name"`
			ID        string          `json:"id"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"content"`
		ToolCallID string `json:"toolCallId"`
	}
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw), false
	}
	var b strings.Builder
	b.WriteString(plainID(fields.ToolCallID))
	for _, c := range fields.Content {
		b.WriteString(c.Text)
		if c.Name != "" {
			b.WriteString(plainID(c.ID) + " " + c.Name + " " + string(c.Arguments))
		}
	}
	return b.String(), false
}

// plainID is a call's id as the host sends it: letters and digits.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, id)
}

// piece counts the tokens of a part, once for each text.
func (p *player) piece(kind, text string) piece {
	n, ok := p.counted[text]
	if !ok {
		n = p.count(text) + 4
		p.counted[text] = n
	}
	return piece{kind, text, n}
}
