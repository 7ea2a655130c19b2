package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rewriteJSON5 rewrites what JSON5 allows and hujson does not: unquoted keys, strings in single
// quotes with their escapes and continued lines, hexadecimal numbers, a plus sign, a point at either
// end of a number, Infinity and NaN (which become null), and the wider white space. Comments and
// trailing commas stay.
func rewriteJSON5(data []byte) ([]byte, error) {
	r := &rewriter{in: strings.TrimPrefix(string(data), "\uFEFF")}
	for r.at < len(r.in) {
		if err := r.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", 1+strings.Count(r.in[:min(r.at, len(r.in))], "\n"), err)
		}
	}
	return r.out.Bytes(), nil
}

// memberOf reads a member of a JSON object by its exact name, which encoding/json does not insist on;
// nil where there is none, or null.
func memberOf(object json.RawMessage, name string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if len(object) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, fmt.Errorf("the object that holds %q: %w", name, err)
	}
	if value := members[name]; string(value) != "null" {
		return value, nil
	}
	return nil, nil
}

type rewriter struct {
	in  string
	at  int
	out bytes.Buffer
}

func (r *rewriter) next() error {
	c := r.in[r.at]
	switch {
	case strings.HasPrefix(r.in[r.at:], "//"):
		r.copyUntil("\n", 0)
		if r.at == len(r.in) {
			r.out.WriteByte('\n') // hujson wants a comment's line ended
		}
	case strings.HasPrefix(r.in[r.at:], "/*"):
		r.copyUntil("*/", 2)
	case c == '"' || c == '\'':
		return r.quoted(c)
	case c == '+' || c == '-' || c == '.' || c >= '0' && c <= '9':
		return r.number()
	case c < utf8.RuneSelf && !isWordByte(c):
		if c == '\v' || c == '\f' {
			c = ' '
		}
		r.out.WriteByte(c)
		r.at++
	default:
		return r.word()
	}
	return nil
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '\\' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (r *rewriter) copyUntil(end string, from int) {
	n := len(r.in) - r.at
	if i := strings.Index(r.in[r.at+from:], end); i >= 0 {
		n = from + i + len(end)
	}
	r.out.WriteString(strings.ToValidUTF8(r.in[r.at:r.at+n], "\uFFFD"))
	r.at += n
}

// word copies a literal, or quotes a key.
func (r *rewriter) word() error {
	start := r.at
	for r.at < len(r.in) {
		c, size := utf8.DecodeRuneInString(r.in[r.at:])
		if c < utf8.RuneSelf && !isWordByte(byte(c)) || c >= utf8.RuneSelf && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && c != '\u200c' && c != '\u200d' {
			break
		}
		r.at += size
	}
	word := r.in[start:r.at]
	if word == "" {
		c, size := utf8.DecodeRuneInString(r.in[r.at:])
		if !unicode.IsSpace(c) && c != '\uFEFF' {
			return fmt.Errorf("unexpected character %q", c)
		}
		r.out.WriteByte(' ')
		r.at += size
		return nil
	}
	if r.isKey() {
		return r.key(word)
	}
	switch word {
	case "true", "false", "null":
		r.out.WriteString(word)
	case "Infinity", "NaN":
		r.out.WriteString("null")
	default:
		return fmt.Errorf("unexpected word %q: is it missing quotes?", word)
	}
	return nil
}

func (r *rewriter) key(word string) error {
	if strings.Contains(word, `\`) {
		plain, err := strconv.Unquote(`"` + word + `"`)
		if err != nil {
			return fmt.Errorf("key %s: %w", word, err)
		}
		word = plain
	}
	r.out.Write(encodeText(word))
	return nil
}

// isKey looks for the colon after a word, over white space and comments.
func (r *rewriter) isKey() bool {
	rest := r.in[r.at:]
	for {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		switch {
		case strings.HasPrefix(rest, "//"):
			_, after, ok := strings.Cut(rest, "\n")
			if !ok {
				return false
			}
			rest = after
		case strings.HasPrefix(rest, "/*"):
			_, after, ok := strings.Cut(rest[2:], "*/")
			if !ok {
				return false
			}
			rest = after
		default:
			return strings.HasPrefix(rest, ":")
		}
	}
}

// quoted rewrites a string of either quote as a JSON string.
func (r *rewriter) quoted(quote byte) error {
	var text strings.Builder
	for i := r.at + 1; i < len(r.in); {
		c := r.in[i]
		switch {
		case c == quote:
			r.at = i + 1
			r.out.WriteByte('"')
			r.out.WriteString(text.String())
			r.out.WriteByte('"')
			return nil
		case c == '\n':
			return fmt.Errorf("a string does not end on its line")
		case c == '\\':
			n, err := escape(&text, r.in[i:])
			if err != nil {
				return err
			}
			i += n
		case c == '"':
			text.WriteString(`\"`)
			i++
		case c < ' ':
			fmt.Fprintf(&text, `\u%04x`, c)
			i++
		default:
			_, size := utf8.DecodeRuneInString(r.in[i:])
			text.WriteString(strings.ToValidUTF8(r.in[i:i+size], "\uFFFD"))
			i += size
		}
	}
	return fmt.Errorf("a string has no end")
}

// escape writes the JSON form of the escape at the start of s and returns its length.
func escape(text *strings.Builder, s string) (int, error) {
	if len(s) < 2 {
		return 0, fmt.Errorf("a string ends in a backslash")
	}
	switch c := s[1]; c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		text.WriteString(s[:2])
	case 'u':
		if len(s) < 6 {
			return 0, fmt.Errorf(`\u is cut off`)
		}
		text.WriteString(s[:6])
		return 6, nil
	case 'x':
		if len(s) < 4 {
			return 0, fmt.Errorf(`\x is cut off`)
		}
		text.WriteString(`\u00` + s[2:4])
		return 4, nil
	case 'v':
		text.WriteString(`\u000b`)
	case '0':
		text.WriteString(`\u0000`)
	case '\n':
	case '\r':
		if len(s) > 2 && s[2] == '\n' {
			return 3, nil
		}
	default:
		_, size := utf8.DecodeRuneInString(s[1:])
		text.WriteString(strings.ToValidUTF8(s[1:1+size], "\uFFFD"))
		return 1 + size, nil
	}
	return 2, nil
}

// number rewrites a number, and a key made of digits.
func (r *rewriter) number() error {
	start := r.at
	for r.at < len(r.in) && (isWordByte(r.in[r.at]) || strings.IndexByte("+-.", r.in[r.at]) >= 0) {
		r.at++
	}
	word := r.in[start:r.at]
	if r.isKey() {
		return r.key(word)
	}
	sign := ""
	digits := word
	switch word[0] {
	case '+':
		digits = word[1:]
	case '-':
		sign, digits = "-", word[1:]
	}
	switch {
	case digits == "Infinity" || digits == "NaN":
		sign, digits = "", "null"
	case len(digits) > 2 && (strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X")):
		n, err := strconv.ParseUint(digits[2:], 16, 64)
		if err != nil {
			return fmt.Errorf("number %s: %w", word, err)
		}
		digits = strconv.FormatUint(n, 10)
	default:
		if strings.HasPrefix(digits, ".") {
			digits = "0" + digits
		}
		if i := strings.IndexByte(digits, '.'); i >= 0 && (i+1 == len(digits) || digits[i+1] < '0' || digits[i+1] > '9') {
			digits = digits[:i] + digits[i+1:]
		}
	}
	r.out.WriteString(sign + digits)
	return nil
}
