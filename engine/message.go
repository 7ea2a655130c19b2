package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hark/engine/mask"
)

// Limits of what is kept of one message for search, in bytes. Tool text is long and repeats itself;
// its beginning and end say what it was.
const (
	maxToolText = 4000
	maxCaption  = 2000
	maxSaidText = 200_000
)

// wireMessage is the part of a host's message that is decoded. Fields of an unexpected type are
// left empty: a message is never refused for its shape.
type wireMessage struct {
	Role           string          `json:"role"`
	Content        json.RawMessage `json:"content"`
	Timestamp      json.RawMessage `json:"timestamp"`
	IdempotencyKey string          `json:"idempotencyKey"`
	ResponseID     string          `json:"responseId"`
	ToolCallID     string          `json:"toolCallId"`
	ToolName       string          `json:"toolName"`
	StopReason     string          `json:"stopReason"`
	CustomType     string          `json:"customType"`
	Summary        string          `json:"summary"`
	Command        string          `json:"command"`
	Output         string          `json:"output"`
	Name           string          `json:"name"`
	Model          string          `json:"model"`
	EditedAt       json.RawMessage `json:"editedAt"`
	Usage          struct {
		Input      Tokens `json:"input"` // what no cache held
		CacheRead  Tokens `json:"cacheRead"`
		CacheWrite Tokens `json:"cacheWrite"`
	} `json:"usage"`
	OpenClaw struct {
		SenderIsOwner *bool  `json:"senderIsOwner"`
		SenderName    string `json:"senderName"`
	} `json:"__openclaw"`
}

// block is one element of a message's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Data      string          `json:"data"`
	MimeType  string          `json:"mimeType"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Source    struct {
		Data      string `json:"data"`
		MediaType string `json:"media_type"`
	} `json:"source"`

	raw json.RawMessage
}

// message is a decoded host message.
type message struct {
	role    string // "user", "assistant", "tool", "system", "summary", "custom" or "" for what is unknown
	said    string // what a person or the assistant said; cleaned
	tool    string // tool calls or a tool's output, capped
	caption string // placeholders of images
	whole   string // type, size and hash of a tool's output of which tool holds an excerpt
	calls   []string
	result  string // id of the call this answers
	at      time.Time
	edited  time.Time // when this form of it was written; zero where it does not say
	sender  string
	owner   *bool
	idem    string
	reply   string // id of the provider's response
	stop    string
	custom  string
	binary  bool // carries images or data URIs
	masked  int  // secrets that were taken out of said and tool
	machine bool // a user message no person wrote
	echo    bool // what a memory tool answered: copies of what is kept where it was said
	blocks  []block
	plain   string          // content where it is one string
	other   string          // what a summary or a shell command holds instead of content
	odd     json.RawMessage // content of no known form
	model   string
	billed  int // tokens of the request that this message answers, as its provider counted them; 0 where not known
	cached  int // of these, what a cache held
}

var errNotMessage = errors.New("not a message object")

// decode reads a host's message. It fails only for what is no JSON object. Secrets are masked, before
// anything is shortened, so that no part of one remains.
func decode(raw json.RawMessage) (message, error) { return decodeAs(raw, mask.Text) }

// decodeOpen is decode with the secrets left in, for stores whose owner wants them.
func decodeOpen(raw json.RawMessage) (message, error) {
	return decodeAs(raw, func(text string) (string, int) { return text, 0 })
}

func decodeAs(raw json.RawMessage, cover func(string) (string, int)) (message, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return message{}, errNotMessage
	}
	var w wireMessage
	if err := lenient(trimmed, &w); err != nil {
		return message{}, fmt.Errorf("%w: %w", errNotMessage, err)
	}
	m := message{
		role: roleOf(w.Role), result: w.ToolCallID, idem: w.IdempotencyKey, reply: w.ResponseID, stop: w.StopReason,
		custom: w.CustomType, owner: w.OpenClaw.SenderIsOwner, sender: plainLine(w.OpenClaw.SenderName),
		at: parseTime(w.Timestamp), edited: parseTime(w.EditedAt), model: w.Model, other: w.Summary + w.Command + w.Output,
	}
	if u := float64(w.Usage.Input + w.Usage.CacheRead + w.Usage.CacheWrite); u > 0 && u < 1e9 {
		m.billed, m.cached = int(u), int(max(w.Usage.CacheRead, 0))
	}
	m.plain, m.blocks = contentOf(w.Content)
	if c := bytes.TrimSpace(w.Content); len(c) > 0 && !bytes.ContainsRune([]byte(`"[n`), rune(c[0])) {
		m.odd = c
	}
	m.extract(w, cover)
	if name, n := cover(m.sender); n > 0 {
		m.sender, m.masked = name, m.masked+n
	}
	return m, nil
}

// lenient decodes data and ignores fields of the wrong type.
func lenient(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// roleOf maps the host's roles, and the names other hosts use, to the ones the index knows.
func roleOf(role string) string {
	switch strings.ToLower(role) {
	case "user", "human":
		return "user"
	case "assistant", "ai", "model":
		return "assistant"
	case "toolresult", "tool", "function", "bashexecution":
		return "tool"
	case "system", "developer":
		return "system"
	case "compactionsummary", "branchsummary":
		return "summary"
	case "custom":
		return "custom"
	}
	return ""
}

func contentOf(raw json.RawMessage) (string, []block) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", nil
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", nil
		}
		return s, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil
	}
	blocks := make([]block, 0, len(parts))
	for _, part := range parts {
		var b block
		if part = bytes.TrimSpace(part); len(part) > 0 && part[0] == '"' {
			b.Type = "text"
			_ = json.Unmarshal(part, &b.Text)
		} else if lenient(part, &b) != nil {
			continue
		}
		b.raw = part
		blocks = append(blocks, b)
	}
	return "", blocks
}

// extract fills the texts of m, with cover over its secrets.
func (m *message) extract(w wireMessage, cover func(string) (string, int)) {
	hide := func(text string) string {
		text, n := cover(text)
		m.masked += n
		return text
	}
	texts := make([]string, 0, len(m.blocks)+1)
	if m.plain != "" {
		texts = append(texts, m.plain)
	}
	var calls, captions []string
	for _, b := range m.blocks {
		switch {
		case b.isCall():
			m.calls = append(m.calls, b.ID)
			calls = append(calls, callText(b))
		case b.image() != "":
			m.binary = true
			data, mime := b.image(), b.MimeType
			if mime == "" {
				mime = b.Source.MediaType
			}
			captions = append(captions, placeholder("image", mime, data))
		case b.isThinking():
		case b.Text != "":
			texts = append(texts, b.Text)
		}
	}
	if w.Summary != "" {
		texts = append(texts, w.Summary)
	}
	if w.Command != "" || w.Output != "" {
		texts = append(texts, "$ "+w.Command, w.Output)
	}
	text, binary := sanitize(strings.Join(texts, "\n"))
	m.binary = m.binary || binary
	m.caption = excerpt(hide(strings.Join(captions, "\n")), maxCaption)

	switch m.role {
	case "tool":
		m.echo = isMemoryTool(w.ToolName)
		if w.ToolName != "" {
			text = plainLine(w.ToolName) + ": " + text
		}
		full := hide(strings.TrimSpace(text))
		if m.tool = excerpt(full, maxToolText); len(full) > maxToolText {
			sum := sha256.Sum256([]byte(full))
			m.whole = fmt.Sprintf("[text, %d bytes, sha256 %s]", len(full), hex.EncodeToString(sum[:6]))
		}
	case "user":
		cleaned := clean(text)
		m.said, m.machine = excerpt(hide(cleaned.text), maxSaidText), cleaned.machine
		if m.sender == "" {
			m.sender = cleaned.sender
		}
	default:
		m.said = excerpt(hide(stripHost(text)), maxSaidText)
		callsText, binary := sanitize(strings.Join(calls, "\n"))
		m.tool, m.binary = excerpt(hide(callsText), maxToolText), m.binary || binary
	}
}

// isMemoryTool reports whether a tool shows what is remembered. Its answers are not stored again: they
// would be found before what they quote, and outlive it when that is forgotten.
func isMemoryTool(name string) bool {
	switch name {
	case "memory_search", "memory_get", "hark_search", "hark_open", "hark_forget":
		return true
	}
	return false
}

// text is what a row of the message is searched by.
func (m *message) text() string {
	if m.said == "" {
		return m.tool
	}
	return m.said
}

func (b block) isCall() bool {
	switch b.Type {
	case "toolCall", "tool_use", "toolUse", "tool_call", "functionCall":
		return true
	}
	return false
}

func (b block) isThinking() bool {
	return b.Type == "thinking" || b.Type == "redacted_thinking" || b.Type == "reasoning"
}

// image returns the encoded picture of an image block, or "".
func (b block) image() string {
	if b.Type != "image" && b.Type != "audio" && b.Type != "document" && b.Type != "file" {
		return ""
	}
	if b.Data != "" {
		return b.Data
	}
	return b.Source.Data
}

// callText renders a tool call for search: name and compact arguments, no id, because hosts rewrite ids.
func callText(b block) string {
	args := "{}"
	if len(b.Arguments) > 0 {
		var buf bytes.Buffer
		if json.Compact(&buf, b.Arguments) == nil {
			args = buf.String()
		}
	}
	return b.Name + " " + args
}

// placeholder stands for data that is neither stored nor searched.
func placeholder(kind, mime, data string) string {
	sum := sha256.Sum256([]byte(data))
	if mime == "" {
		mime = "unknown type"
	}
	return fmt.Sprintf("[%s %s, %d bytes, sha256 %s]", kind, plainLine(mime), len(data)*3/4, hex.EncodeToString(sum[:6]))
}
