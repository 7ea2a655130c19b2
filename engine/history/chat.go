package history

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"hark/engine"
)

// chatLine is one line of the chat format. Only role and content are needed.
type chatLine struct {
	ID         string          `json:"id"`
	Session    string          `json:"session"`
	Role       string          `json:"role"`
	Sender     string          `json:"sender"`
	Timestamp  stamp           `json:"timestamp"`
	Edited     stamp           `json:"edited"`  // when this form was written
	Content    json.RawMessage `json:"content"` // text, or a list of content blocks
	ToolCalls  []chatCall      `json:"toolCalls"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
}

// chatCall is one tool call of an assistant's message.
type chatCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// chatMessage is a message as the host stores it, made from a line of the chat format.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Timestamp  int64           `json:"timestamp,omitempty"` // Unix milliseconds
	EditedAt   int64           `json:"editedAt,omitempty"`  // likewise
	Host       *chatHost       `json:"__openclaw,omitempty"`
}

// chatHost is what the host notes about a message beside it.
type chatHost struct {
	SenderName string `json:"senderName"`
}

// block is one content block of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// chat reads the chat format: every line is one message, in the order it was said.
func (d *decoding) chat(data []byte) {
	seen := said{equal: map[string]int{}, ids: map[string]named{}}
	for n, line := range lines(data) {
		line, reason := d.usable(line)
		if reason != "" {
			d.bad(n, reason)
			continue
		}
		var c chatLine
		if err := json.Unmarshal(line, &c); err != nil {
			d.bad(n, explain(err))
			continue
		}
		if reason := d.say(n, c, seen); reason != "" {
			d.bad(n, reason)
		}
	}
}

// said is what a file has said so far, by session and identity.
type said struct {
	equal map[string]int // lines without an id that are equal, so that a second "ok" is not the first
	ids   map[string]named
}

// named is a line that has an id of its own.
type named struct {
	line int
	hash string
}

// say adds one line of chat to its session.
func (d *decoding) say(line int, c chatLine, seen said) (reason string) {
	if c.Role == "" {
		return `the message has no "role"`
	}
	if c.Timestamp.bad != "" {
		return "the timestamp " + strconv.Quote(c.Timestamp.bad) + " is neither RFC 3339 (2026-03-01T18:00:00Z) nor Unix time"
	}
	role, ok := chatRole(c.Role)
	if !ok {
		count(&d.counts.unknown, c.Role)
		d.file.Skipped++
		return ""
	}
	content, empty, reason := c.content()
	if reason != "" {
		return reason
	}
	if empty {
		d.counts.empty++
		d.file.Skipped++
		return ""
	}
	msg := chatMessage{Role: role, Content: content, ToolCallID: c.ToolCallID, ToolName: c.ToolName}
	if c.Sender != "" {
		msg.Host = &chatHost{SenderName: c.Sender}
	}
	if !c.Timestamp.IsZero() {
		msg.Timestamp = c.Timestamp.UnixMilli()
	}
	if !c.Edited.IsZero() {
		msg.EditedAt = c.Edited.UnixMilli()
	}
	raw, err := encode(msg)
	if err != nil {
		return "the content is not valid JSON"
	}
	key := d.chatKey(c.Session)
	s := d.session(key, key) // the format has no session ids
	id, again := d.chatID(line, c.ID, key, digest([]byte(key), raw), seen)
	if again {
		d.file.Skipped++
		return ""
	}
	d.dated(c.Timestamp)
	s.Entries = append(s.Entries, engine.HistoryEntry{
		EntryID: id, Seq: int64(line), Role: role, CreatedAt: c.Timestamp.text(), Message: raw,
	})
	return ""
}

// chatID is the id of a line: its own where no other message of the file's session has it. One that is
// used again names another message, since a file that was written anew has the last form of each only;
// the same message under the same id is there twice, and again.
func (d *decoding) chatID(line int, id, key, hash string, seen said) (unique string, again bool) {
	if id == "" {
		seen.equal[hash]++
		if n := seen.equal[hash]; n > 1 {
			return "chat-" + hash + "-" + strconv.Itoa(n), false
		}
		return "chat-" + hash, false
	}
	first, used := seen.ids[key+"\x00"+id]
	unique = id
	for n := 2; ; n++ {
		before, taken := seen.ids[key+"\x00"+unique]
		if !taken {
			break
		}
		if before.hash == hash {
			d.warn(line, "the message of line %d again, id and all; skipped", before.line)
			return unique, true
		}
		unique = id + "#" + strconv.Itoa(n)
	}
	if used {
		d.warn(line, "the id %q is that of line %d, which says something else; both are kept, this one as %q", clip(id), first.line, clip(unique))
	}
	seen.ids[key+"\x00"+unique] = named{line, hash}
	return unique, false
}

// content builds the content of a message: text stays text, tool calls become blocks after it.
func (c chatLine) content() (content json.RawMessage, empty bool, reason string) {
	var blocks []json.RawMessage
	text := ""
	switch {
	case len(c.Content) == 0 || string(c.Content) == "null":
	case c.Content[0] == '"':
		if err := json.Unmarshal(c.Content, &text); err != nil {
			return nil, false, explain(err)
		}
	case c.Content[0] == '[':
		if err := json.Unmarshal(c.Content, &blocks); err != nil {
			return nil, false, explain(err)
		}
	default:
		return nil, false, `the field "content" has to be text or a list of content blocks`
	}
	if len(c.ToolCalls) == 0 {
		isEmpty := strings.TrimSpace(text) == "" && len(blocks) == 0
		if blocks == nil && len(c.Content) > 0 && c.Content[0] == '"' {
			return c.Content, isEmpty && c.ToolCallID == "", ""
		}
		if isEmpty {
			return json.RawMessage("[]"), c.ToolCallID == "", ""
		}
		return c.Content, false, ""
	}
	var add []any
	for _, b := range blocks {
		add = append(add, b)
	}
	if text != "" {
		add = append(add, block{Type: "text", Text: text})
	}
	for _, call := range c.ToolCalls {
		add = append(add, block{Type: "toolCall", ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	out, err := encode(add)
	if err != nil {
		return nil, false, "the tool calls are not valid JSON"
	}
	return out, false, ""
}

// chatRole maps the role names people use to the host's.
func chatRole(role string) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(role)) {
	case "user", "human":
		return "user", true
	case "assistant", "ai", "bot", "model", "agent":
		return "assistant", true
	case "tool", "toolresult", "tool_result", "function":
		return "toolResult", true
	case "system", "developer":
		return "system", true
	}
	return "", false
}

// chatKey is the session key of a chat line.
func (d *decoding) chatKey(session string) string {
	if d.opts.Session != "" {
		return d.opts.Session
	}
	session = strings.TrimSpace(session)
	if session == "" {
		session = sessionIDOf(d.file.Path)
	}
	return KeyFor(d.opts.Agent, session)
}

// KeyFor returns the session key for a name, in small letters as hosts compare them: the name itself where it is a whole key of the host,
// agent:<agent>:<name> where it is the rest of one (main, telegram:direct:42), and otherwise
// agent:<agent>:explicit:<name>.
func KeyFor(agent, name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case strings.HasPrefix(name, "agent:"):
		return name
	case engine.ParseKey(name).Audience != engine.Unknown:
		return "agent:" + agent + ":" + name
	}
	return "agent:" + agent + ":explicit:" + name
}

// encode writes JSON without escaping what need not be escaped.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
