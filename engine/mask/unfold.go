package mask

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// unfolded is a text as a program would read it: without the characters that nobody sees and that
// may split a key, and with full-width letters and signs in their usual form.
type unfolded struct {
	text  string
	steps []step
}

// step says that from the byte at of the unfolded text on, the original is shift bytes further.
type step struct{ at, shift int }

// unfold reports false where the text is read as it stands.
func unfold(text string) (unfolded, bool) {
	first := -1
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0xc2 && mayFold(text[i:]) {
			first = i
			break
		}
	}
	if first < 0 {
		return unfolded{}, false
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:first])
	u := unfolded{}
	for i := first; i < len(text); {
		c := text[i]
		if c < 0xc2 || !mayFold(text[i:]) {
			b.WriteByte(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case invisible(r):
		case r == '\u3000' || r == '\u00a0':
			b.WriteByte(' ')
		case r >= '\uff01' && r <= '\uff5e':
			b.WriteByte(byte(r - '\uff01' + '!'))
		default:
			b.WriteString(text[i-size : i])
			continue
		}
		u.steps = append(u.steps, step{b.Len(), i - b.Len()})
	}
	u.text = b.String()
	return u, len(u.steps) > 0
}

// mayFold is a quick look at the bytes of a character.
func mayFold(s string) bool {
	switch s[0] {
	case 0xc2:
		return len(s) > 1 && (s[1] == 0xad || s[1] == 0xa0)
	case 0xe2:
		return len(s) > 1 && (s[1] == 0x80 || s[1] == 0x81)
	case 0xe1, 0xf3:
		return true
	case 0xe3:
		return len(s) > 2 && s[1] == 0x80 && s[2] == 0x80
	case 0xef:
		return len(s) > 1 && s[1] >= 0xb8
	}
	return false
}

func invisible(r rune) bool {
	return r >= '\u200b' && r <= '\u200f' || r >= '\u202a' && r <= '\u202e' || r >= '\u2060' && r <= '\u206f' ||
		r == '\u00ad' || r == '\u180e' || r == '\ufeff' || r >= '\ufe00' && r <= '\ufe0f' || r >= 0xe0000 && r <= 0xe0fff
}

// original turns a finding in the unfolded text into one in the original.
func (u unfolded) original(text string, f Finding) Finding {
	last := u.place(f.End - 1)
	size := 1
	if text[last] == 0xef || text[last] == 0xe3 { // a full-width character
		_, size = utf8.DecodeRuneInString(text[last:])
	}
	return Finding{u.place(f.Start), last + size, f.Kind}
}

// place turns a place in the unfolded text into the place in the original.
func (u unfolded) place(at int) int {
	n := sort.Search(len(u.steps), func(i int) bool { return u.steps[i].at > at })
	if n == 0 {
		return at
	}
	return at + u.steps[n-1].shift
}
