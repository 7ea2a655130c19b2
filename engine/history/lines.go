package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// maxLine is the longest line that is read: long enough for any message a host stores, short
// enough that a binary file is told from a history before it is decoded.
const maxLine = 64 << 20

// lines yields the lines of data that are not blank, numbered from 1, without their line ends.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(data) > 0; n++ {
			line, rest, _ := bytes.Cut(data, []byte("\n"))
			data = rest
			line = bytes.TrimSpace(line)
			if len(line) > 0 && !yield(n, line) {
				return
			}
		}
	}
}

// usable checks a line before it is decoded, and makes it valid UTF-8. The reason is "" for a
// line that may be decoded.
func (d *decoding) usable(line []byte) (clean []byte, reason string) {
	d.file.Lines++
	switch {
	case len(line) > maxLine:
		return nil, fmt.Sprintf("the line is longer than %d MB", maxLine>>20)
	case len(bytes.Trim(line, "\x00")) == 0:
		return nil, "the line holds only NUL bytes: the file was cut off while it was written"
	case line[0] == '[':
		return nil, "the line is a JSON array; every line has to be one JSON object"
	case line[0] != '{':
		return nil, "the line is no JSON object"
	}
	if !utf8.Valid(line) {
		d.counts.repaired++
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	return line, ""
}

// explain turns an error of encoding/json into a sentence for somebody who wrote the file.
func explain(err error) string {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ):
		field := typ.Field
		if field == "" {
			return "the line has an unexpected shape: found a JSON " + typ.Value
		}
		return fmt.Sprintf("the field %q cannot be a JSON %s", field, strings.TrimSpace(typ.Value))
	case isCutOff(err):
		return "the JSON ends in the middle: the line is cut off"
	case errors.As(err, &syntax):
		return fmt.Sprintf("not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	return "not valid JSON"
}

// isCutOff reports JSON that ends before it is complete.
func isCutOff(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && strings.Contains(syntax.Error(), "unexpected end")
}

// detect tells the format by the first line that is of one.
func detect(path string, data []byte) (Format, error) {
	const tried = 50 // lines: a damaged head must not hide what the file is
	n := 0
	var cutOff *BadLine
	for at, line := range lines(data) {
		if n++; n > tried {
			break
		}
		var keys struct {
			Type      json.RawMessage `json:"type"`
			Event     json.RawMessage `json:"event"`
			EventJSON json.RawMessage `json:"event_json"`
			Role      json.RawMessage `json:"role"`
			Content   json.RawMessage `json:"content"`
			Session   json.RawMessage `json:"session"`
			ToolCalls json.RawMessage `json:"toolCalls"`
		}
		if err := json.Unmarshal(line, &keys); err != nil {
			if cutOff == nil && line[0] == '{' && bytes.Contains(line, []byte(`"`)) && isCutOff(err) {
				cutOff = &BadLine{path, at, explain(err)}
			}
			continue
		}
		switch {
		case keys.Event != nil || keys.EventJSON != nil:
			return OpenClaw, nil
		case keys.Role != nil && (keys.Content != nil || keys.Session != nil || keys.ToolCalls != nil):
			return Chat, nil
		case keys.Type != nil:
			return OpenClaw, nil
		}
	}
	if n == 0 {
		return Chat, nil // an empty file is an empty file in any format
	}
	if cutOff != nil && n == 1 {
		return "", &RejectedError{path, []BadLine{*cutOff}}
	}
	reason := `this is neither an OpenClaw transcript (lines like {"type":"message",…}) nor a chat history (lines like {"session","role","content",…})`
	if first := bytes.TrimSpace(data); first[0] == '[' {
		reason = "the file is one JSON array: put each element on a line of its own, for example with jq -c '.[]'"
	}
	return "", &FormatError{path, reason}
}
