package memorybridge

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Decode makes text of a file's bytes: valid UTF-8, lines ended by \n, without NUL. UTF-8 is taken as
// it is, UTF-16 is recognised by its mark or its zeros, anything else is read as Windows-1252, of
// which Latin-1 is a part. What is no text gives ok false.
func Decode(data []byte) (text string, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte{0xEF, 0xBB, 0xBF}):
		data = data[3:]
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		if out, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(data); err == nil {
			data = out
		}
	default:
		if order, wide := zeros(data); wide {
			if out, err := unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Bytes(data); err == nil {
				data = out
			}
		}
	}
	if !utf8.Valid(data) {
		data = legacy(data)
	}
	if binary(data) {
		return "", false
	}
	text = string(data)
	if strings.ContainsRune(text, '\r') {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		if !strings.Contains(text, "\n") {
			text = strings.ReplaceAll(text, "\r", "\n")
		}
	}
	return strings.ReplaceAll(text, "\x00", " "), true
}

// legacy reads bytes that are not UTF-8. Where a few bytes of a UTF-8 text are damaged, only those
// are replaced.
func legacy(data []byte) []byte {
	bad, multi := 0, 0
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			bad++
		case n > 1:
			multi++
		}
		i += max(n, 1)
	}
	if multi > bad {
		return bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	return out
}

// zeros recognises UTF-16 without a mark: in European text every other byte is zero.
func zeros(data []byte) (order unicode.Endianness, wide bool) {
	head := data[:min(len(data), 4096)&^1]
	var even, odd int
	for i := 0; i < len(head); i += 2 {
		if head[i] == 0 {
			even++
		}
		if head[i+1] == 0 {
			odd++
		}
	}
	pairs := len(head) / 2
	switch {
	case pairs < 4:
	case odd > pairs*7/10 && even <= pairs/10:
		return unicode.LittleEndian, true
	case even > pairs*7/10 && odd <= pairs/10:
		return unicode.BigEndian, true
	}
	return unicode.LittleEndian, false
}

// binary reports data that nobody wrote as text: one control character in ten or more.
func binary(data []byte) bool {
	head := data[:min(len(data), 64<<10)]
	control := 0
	for _, b := range head {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' {
			control++
		}
	}
	return control*10 > len(head)
}
