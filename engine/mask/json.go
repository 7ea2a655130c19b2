package mask

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON masks the strings of a JSON text. Everything else keeps its bytes; a text without secrets is
// returned as it is. What is no JSON is masked as text.
func JSON(raw json.RawMessage) (json.RawMessage, int) {
	if len(raw) == 0 {
		return raw, 0
	}
	if !json.Valid(raw) {
		out, n := Text(string(raw))
		return json.RawMessage(out), n
	}
	var b bytes.Buffer
	n, at := 0, 0
	name := ""
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end++
		lit := raw[i:end]
		next := end
		for next < len(raw) && (raw[next] == ' ' || raw[next] == '\t' || raw[next] == '\n' || raw[next] == '\r') {
			next++
		}
		isName := next < len(raw) && raw[next] == ':'
		if len(lit) > 5 {
			if out, found := literal(lit, name); found > 0 {
				b.Write(raw[at:i])
				b.Write(out)
				n, at = n+found, end
			}
		}
		name = ""
		if isName && len(lit) < 66 {
			name = string(lit[1 : len(lit)-1])
		}
		i = end - 1
	}
	if n == 0 {
		return raw, 0
	}
	b.Write(raw[at:])
	return b.Bytes(), n
}

// literal masks one string literal, which may be the value of a name.
func literal(lit []byte, name string) ([]byte, int) {
	text := string(lit[1 : len(lit)-1])
	if strings.IndexByte(text, '\\') >= 0 && json.Unmarshal(lit, &text) != nil {
		return lit, 0
	}
	masked, n := Text(text)
	if n == 0 && name != "" && text != "" {
		masked, n = member(name, text)
	}
	if n == 0 {
		return lit, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(masked) != nil {
		return lit, 0
	}
	return bytes.TrimSpace(b.Bytes()), n
}

// member masks the value of a name as it would be masked in the text of the JSON.
func member(name, text string) (string, int) {
	f := finder{text: text}
	switch {
	case strings.EqualFold(name, "authorization") || strings.EqualFold(name, "proxy-authorization"):
		f.authorization(0)
	case isCookie(name):
		f.cookies(0)
	case name == "auth" && isBasic(text):
		f.add(0, len(text), "basic credentials")
	case weigh(name) != nothing && !strings.Contains(text, "\n"):
		where := inText
		if isUpper(name) {
			where = atOption
		}
		f.value(name, weigh(name), 0, len(text), where)
	}
	return replaced(text, f.found)
}
