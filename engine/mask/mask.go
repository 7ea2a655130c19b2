// Package mask takes secrets out of text before it is stored: keys of providers, bearer and basic
// credentials, JSON web tokens, private keys, passwords in addresses and values assigned to names
// that say they are secret. Each is replaced in place by its kind, like "[masked: github token]".
//
// It reads a text once and looks closer only where a long word, a colon or an equals sign stands,
// so that a usual message costs a few microseconds. It is no scanner of repositories: what looks
// like a hash, an id, a path or code stays, and passwords told in prose ("the code of the gate
// is …") stay too, because they are what a memory is asked for.
package mask

import (
	"slices"
	"strings"
)

// Finding is a secret in a text: text[Start:End] is its kind of secret.
type Finding struct {
	Start, End int
	Kind       string
}

// minSecret is the shortest word that is looked at for a key with a known beginning.
const minSecret = 12

// Find lists the secrets in a text, in order and without overlaps.
func Find(text string) []Finding {
	f := finder{text: text}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case isWord[c]:
			end := i + 1
			for end < len(text) && isWord[text[end]] {
				end++
			}
			f.word(i, end)
			i = max(end, f.done)
			continue
		case c == '=':
			f.assigned(i)
		case c == ':':
			if strings.HasPrefix(text[i:], "://") {
				f.address(i)
			} else {
				f.assigned(i)
			}
		}
		i = max(i+1, f.done)
	}
	return f.found
}

// Text returns the text with every secret replaced by its kind, and how many there were. Masking
// again changes nothing.
func Text(text string) (string, int) {
	found := Find(text)
	if len(found) == 0 {
		return text, 0
	}
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.Start])
		b.WriteString(Label(s.Kind))
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String(), len(found)
}

// Label is what stands in place of a secret.
func Label(kind string) string { return "[masked: " + kind + "]" }

// finder is one reading of a text.
type finder struct {
	text  string
	done  int // everything before is decided
	found []Finding
}

// add notes a secret, which is after the ones before it unless it overlaps the last.
func (f *finder) add(start, end int, kind string) {
	if n := len(f.found); n > 0 && start < f.found[n-1].End {
		return
	}
	f.found = append(f.found, Finding{start, end, kind})
	f.done = end
}

// word looks at a run of word characters.
func (f *finder) word(start, end int) {
	w := f.text[start:end]
	if size, kind := known(w); size > 0 {
		f.add(start, start+size, kind)
		return
	}
	if i := strings.Index(w, "-----BEGIN"); i >= 0 { // it may stand right behind a word
		f.pem(start + i)
		return
	}
	switch {
	case len(w) >= 6 && w[0] == '-' && w[1] == '-':
		f.flag(start, end)
	case len(w) == 6 && strings.EqualFold(w, "bearer"):
		f.bearer(start, end)
	case len(w) == 5 && strings.EqualFold(w, "basic"):
		f.basic(end)
	case len(w) >= 8 && len(w) <= 10 && digits(w):
		f.telegram(start, end)
	}
}

// known returns how much of a word is a key that its own form gives away, and of what kind.
func known(w string) (size int, kind string) {
	if len(w) < minSecret {
		return 0, ""
	}
	for _, n := range byFirst[w[0]] {
		if size := rules[n].match(w); size > 0 {
			return size, rules[n].kind
		}
	}
	return odd(w)
}

// isWord are the characters that keys of providers are made of.
var isWord = func() (t [256]bool) {
	for c := range t {
		t[c] = alnum(byte(c)) || c == '_' || c == '-' || c == '.' || c == '~'
	}
	return t
}()

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func hex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// distinct counts the different bytes of s.
func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}

// kinds of characters that occur in s: small and capital letters, digits, others.
func classes(s string) (lower, upper, digit, other bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= '0' && c <= '9':
			digit = true
		default:
			other = true
		}
	}
	return lower, upper, digit, other
}

// placeholder says that a value stands for a secret that is somewhere else.
func placeholder(v string) bool {
	if strings.ContainsAny(v, "<>{}$*…") && !strings.HasSuffix(v, "$") && !strings.HasSuffix(v, "*") || strings.Contains(v, "***") || v[0] == '%' || v[0] == '[' || v[0] == '@' {
		return true
	}
	low := strings.ToLower(v)
	return distinct(low) < 3 || slices.ContainsFunc([]string{"your", "changeme", "change_me", "change-me", "xxxx", "redacted", "replace", "masked", "...", "placeholder"},
		func(p string) bool { return strings.Contains(low, p) })
}
