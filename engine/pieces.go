package engine

import (
	"hash/maphash"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// A tokenizer of the o200k family first splits a text into pieces (a word with the space before it,
// up to three digits, a run of signs) and then encodes each piece by itself. Pieces repeat, so their
// token counts are remembered, and counting a text is for the most part splitting it. That is what
// makes a history of megabytes countable exactly while a host waits.

// pieceCache remembers the tokens of pieces by their hash: a table of fixed size without locks,
// in which a newer piece takes the place of an older one. It keeps no text.
type pieceCache struct {
	seed  maphash.Seed
	slots [1 << 16]atomic.Uint64 // the hash without its last byte, then the count
}

// longestPiece bounds what is remembered, in bytes; its tokens fit the last byte of a slot.
const longestPiece = 255

// hashBits are the bits of a hash that a slot keeps; its number tells the first sixteen, so that
// all of them are compared.
const hashBits = 1<<56 - 1

func (p *pieceCache) count(piece string, compute func(string) int) int {
	if len(piece) > longestPiece {
		return compute(piece)
	}
	h := maphash.String(p.seed, piece)
	slot := &p.slots[h>>48]
	if v := slot.Load(); v != 0 && v>>8 == h&hashBits {
		return int(v & 0xff)
	}
	n := compute(piece)
	slot.Store(h&hashBits<<8 | uint64(n&0xff))
	return n
}

// kind is what the splitting pattern distinguishes of a character.
type kind uint8

const (
	sign    kind = iota // neither letter, digit nor white space
	upper               // Lu, Lt: begins a word
	lower               // Ll: continues a word
	either              // Lm, Lo: both
	mark                // M: both, and a sign where no letter is near
	digit               // N
	blank               // white space other than line ends
	newline             // \r, \n
)

// kindOf returns the kind of the character at the start of text, and its length.
func kindOf(text string) (kind, int) {
	c := text[0]
	switch {
	case c >= utf8.RuneSelf:
	case c >= 'a' && c <= 'z':
		return lower, 1
	case c >= 'A' && c <= 'Z':
		return upper, 1
	case c >= '0' && c <= '9':
		return digit, 1
	case c == '\n' || c == '\r':
		return newline, 1
	case c == ' ' || c >= '\t' && c <= '\r':
		return blank, 1
	default:
		return sign, 1
	}
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r >= 0x4e00 && r <= 0x9fff || r >= 0x3041 && r <= 0x3096 || r >= 0xac00 && r <= 0xd7a3:
		return either, size
	case unicode.Is(unicode.Ll, r):
		return lower, size
	case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
		return upper, size
	case unicode.IsLetter(r):
		return either, size
	case unicode.IsMark(r):
		return mark, size
	case unicode.IsNumber(r):
		return digit, size
	case unicode.IsSpace(r):
		return blank, size
	}
	return sign, size
}

// pieceLen returns the length of the first piece of text, which is not empty.
func pieceLen(text string) int {
	k, size := kindOf(text)
	if k != newline && k != digit {
		if k == sign || k == blank || k == mark {
			if n := wordLen(text[size:]); n > 0 {
				return size + n
			}
		}
		if n := wordLen(text); n > 0 {
			return n
		}
	}
	switch {
	case k == digit:
		return digitsLen(text)
	case k == sign:
		return signsLen(text)
	case text[0] == ' ' && len(text) > 1:
		if n := signsLen(text[1:]); n > 0 {
			return 1 + n
		}
	}
	return blanksLen(text)
}

// wordLen is the length of the word at the start of text, 0 where there is none: capitals, then
// small letters, then a contraction; letters without case count as both.
func wordLen(text string) int {
	capitals, caseless := 0, 0 // ends of the run of capitals, and of its last letter without case
	for capitals < len(text) {
		k, size := kindOf(text[capitals:])
		if k != upper && k != either && k != mark {
			break
		}
		capitals += size
		if k != upper {
			caseless = capitals
		}
	}
	end := capitals
	for end < len(text) {
		k, size := kindOf(text[end:])
		if k != lower && k != either && k != mark {
			break
		}
		end += size
	}
	if end == capitals && caseless > 0 {
		end = caseless // the pattern wants a small letter last, and goes back to the last one
	}
	if end == 0 {
		return 0
	}
	return end + contraction(text[end:])
}

// contraction is the length of an English one at the start of text.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	second := text[1] | 0x20
	switch second {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch third := text[2] | 0x20; {
	case second == 'r' && third == 'e', second == 'v' && third == 'e', second == 'l' && third == 'l':
		return 3
	}
	return 0
}

func digitsLen(text string) int {
	end := 0
	for range 3 {
		if end == len(text) {
			break
		}
		k, size := kindOf(text[end:])
		if k != digit {
			break
		}
		end += size
	}
	return end
}

// signsLen is the length of a run of signs, with line ends and slashes after it.
func signsLen(text string) int {
	end := 0
	for end < len(text) {
		k, size := kindOf(text[end:])
		if k != sign && k != mark {
			break
		}
		end += size
	}
	if end == 0 {
		return 0
	}
	for end < len(text) && (text[end] == '\r' || text[end] == '\n' || text[end] == '/') {
		end++
	}
	return end
}

// blanksLen is the length of a run of white space: up to its last line end, else without its last
// character where a word follows that takes it along.
func blanksLen(text string) int {
	end, line, last := 0, 0, 0
	for end < len(text) {
		k, size := kindOf(text[end:])
		if k != blank && k != newline {
			break
		}
		end += size
		last = size
		if k == newline {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end < len(text) && end > last:
		return end - last
	}
	return max(end, 1)
}
