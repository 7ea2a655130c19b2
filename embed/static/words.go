package static

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// MaxWord is the length in bytes above which a run of letters is no word: it is counted as unknown.
const MaxWord = 64

// scanner walks the words of a text without allocating: runs of letters, digits and marks, in lower case. A Han, kana
// or hangul letter is a word of its own, so that Coverage is honest about scripts written without spaces.
type scanner struct {
	text string
	pos  int
	buf  [MaxWord]byte
}

// next returns the next word, valid until the following call; an empty word is one longer than MaxWord.
func (s *scanner) next() (word []byte, ok bool) {
	n, long := 0, false
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c < utf8.RuneSelf {
			lower := asciiWord[c]
			if lower == 0 {
				if n > 0 || long {
					break
				}
				s.pos++
				continue
			}
			s.pos++
			if n == MaxWord {
				long = true
				continue
			}
			s.buf[n] = lower
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s.text[s.pos:])
		if alone := unspaced(r); alone || !wordRune(r) {
			if n > 0 || long {
				break
			}
			s.pos += size
			if alone {
				return s.buf[:utf8.EncodeRune(s.buf[:], r)], true
			}
			continue
		}
		s.pos += size
		r = unicode.ToLower(r)
		if n+utf8.RuneLen(r) > MaxWord {
			long = true
			continue
		}
		n += utf8.EncodeRune(s.buf[n:], r)
	}
	if long {
		return nil, true
	}
	return s.buf[:n], n > 0
}

// asciiWord maps an ASCII letter or digit to its lower case and everything else to 0.
var asciiWord = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			t[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}()

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

func unspaced(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// Words yields the words of text as the table would look them up, in lower case. Overlong ones are left out.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := (scanner{text: text}); ; {
			w, ok := s.next()
			if !ok {
				return
			}
			if len(w) > 0 && !yield(string(w)) {
				return
			}
		}
	}
}
