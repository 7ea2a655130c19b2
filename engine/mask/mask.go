// Package mask takes secrets out of text before it is stored: keys of providers, bearer and basic
// credentials, JSON web tokens, private keys, cookies, signatures and passwords in addresses,
// passwords on command lines, and values assigned to names that say they are secret, in a dozen
// languages. Each is replaced in place by its kind, like "[masked: github token]".
//
// It reads a text once and looks closer only where a long word, a colon or an equals sign stands,
// so that a usual message costs a few microseconds. It is no scanner of repositories: what looks
// like a hash, an id, a cursor, a path or code stays, and what is told in prose ("the code of the
// gate is 4471") stays too, because it is what a memory is asked for.
//
// Beside the rules here stand those of gitleaks (kept.go), which is kept by others and knows about
// 220 forms. Its file of rules is imported and its scanner is not: that one reads 9 MB of short
// messages and 0.05 MB of a long dump in a second, starts in 250 ms and brings 63 modules and 7 MB,
// where the rules alone bring 1.8 MB and are tried only where one of their words stands.
package mask

import (
	"strings"
)

// Finding is a secret in a text: text[Start:End] is its kind of secret.
type Finding struct {
	Start, End int
	Kind       string
}

// minSecret is the shortest word that is looked at for a key with a known beginning.
const minSecret = 12

// Find lists the secrets in a text, in order and without overlaps. A key that invisible characters,
// full-width letters or line breaks split is found as one.
func Find(text string) []Finding {
	u, folded := unfold(text)
	if !folded {
		return find(text)
	}
	found := find(u.text)
	for i, s := range found {
		found[i] = u.original(text, s)
	}
	return found
}

func find(text string) []Finding {
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
		case c == '/':
			f.googleToken(i)
		case c == '|':
			f.cell(i)
		}
		i = max(i+1, f.done)
	}
	return merge(f.found, kept().find(text))
}

// Text returns the text with every secret replaced by its kind, and how many there were. Masking
// again changes nothing.
func Text(text string) (string, int) {
	return replaced(text, Find(text))
}

// replaced puts labels in the place of what was found.
func replaced(text string, found []Finding) (string, int) {
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

// addLater is add for what is not the next thing in the text; reading goes on where it was.
func (f *finder) addLater(start, end int, kind string) {
	done := f.done
	f.add(start, end, kind)
	f.done = done
}

// word looks at a run of word characters.
func (f *finder) word(start, end int) {
	w := f.text[start:end]
	if inBlob(f.text, start) {
		return
	}
	if size, kind := known(w); size > 0 {
		f.add(start, f.wrapped(start, start+size, end), kind)
		return
	}
	if i := strings.Index(w, "-----BEGIN"); i >= 0 { // it may stand right behind a word
		f.pem(start + i)
		return
	}
	if end < len(f.text) && (f.text[end] == '\n' || f.text[end] == '\r' || f.text[end] == '\\') && f.joined(start, end) {
		return
	}
	switch {
	case len(w) >= 2 && w[0] == '-':
		f.option(start, end)
	case len(w) == 6 && strings.EqualFold(w, "bearer"):
		f.bearer(end)
	case len(w) == 5 && strings.EqualFold(w, "basic"):
		f.basic(end)
	case len(w) >= 8 && len(w) <= 13 && digits(strings.TrimPrefix(w, "bot")):
		f.telegram(start+len(w)-len(strings.TrimPrefix(w, "bot")), end)
	case w == "password" || w == "passwd":
		f.netrc(start, end)
	case w == "Private-Lines" || w == "---":
		f.putty(start, end)
	case end < len(f.text) && (f.text[end] == ' ' || f.text[end] == '\t'):
		f.spaced(start, end)
	}
}

// inBlob reports that what begins at start is the inside of encoded data.
func inBlob(text string, start int) bool {
	if start < 8 || text[start-1] != '/' && text[start-1] != '+' {
		return false
	}
	from := start
	for from > 0 && from > start-64 && (alnum(text[from-1]) || text[from-1] == '+' || text[from-1] == '/') {
		from--
	}
	if from > 0 && strings.IndexByte(".:-_~@", text[from-1]) >= 0 {
		return false // an address or a path
	}
	return start-from >= 8 && text[from] != '/' && turns(text[from:start]) >= 2
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

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

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
