package mask

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// pem masks a private key in its armour; certificates and public keys are no secret.
func (f *finder) pem(start int) {
	head, _, _ := strings.Cut(f.text[start+len("-----BEGIN"):], "\n")
	name, _, ok := strings.Cut(head, "-----")
	if !ok || len(name) > 60 || !strings.Contains(name, "PRIVATE KEY") {
		return
	}
	end := start + len("-----BEGIN") + len(name) + len("-----")
	if i := strings.Index(f.text[end:], "-----END"+name+"-----"); i >= 0 {
		f.add(start, end+i+len("-----END")+len(name)+len("-----"), "private key")
		return
	}
	for end < len(f.text) && isArmour(f.text[end]) { // cut off before its end
		end++
	}
	f.add(start, start+len(strings.TrimRight(f.text[start:end], " \r\n")), "private key")
}

func isArmour(c byte) bool {
	return alnum(c) || c == '+' || c == '/' || c == '=' || c == '\n' || c == '\r' || c == '\\' || c == ':' || c == ',' || c == '-' || c == ' '
}

// isCredential are the characters of what follows "Bearer" and "Basic".
func isCredential(c byte) bool { return isWord[c] || c == '+' || c == '/' || c == '=' }

// credential returns the end of the credential at or after one space from i, and its beginning.
func (f *finder) credential(i int) (start, end int) {
	for start = i; start < len(f.text) && f.text[start] == ' ' && start < i+3; start++ {
	}
	for end = start; end < len(f.text) && isCredential(f.text[end]); end++ {
	}
	for end > start && f.text[end-1] == '.' {
		end--
	}
	return start, end
}

// bearer masks what follows the word, unless it is a word itself.
func (f *finder) bearer(begin, i int) {
	start, end := f.credential(i)
	v := f.text[start:end]
	if start == i || len(v) < 10 || placeholder(v) {
		return
	}
	lower, upper, digit, _ := classes(v)
	header := strings.HasSuffix(strings.ToLower(strings.TrimRight(f.text[max(0, begin-20):begin], " :\"'=")), "authorization")
	if header || len(v) >= 16 && digit && (lower || upper) {
		f.add(start, end, "bearer token")
	}
}

// basic masks what follows the word where it is an encoded name and password.
func (f *finder) basic(i int) {
	start, end := f.credential(i)
	v := f.text[start:end]
	if start == i || len(v) < 8 {
		return
	}
	plain, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		plain, err = base64.RawStdEncoding.DecodeString(v)
	}
	if err == nil && utf8.Valid(plain) && strings.Contains(string(plain), ":") {
		f.add(start, end, "basic credentials")
	}
}

// telegram masks the token of a bot: its number, a colon and a key.
func (f *finder) telegram(start, end int) {
	if end+34 > len(f.text) || f.text[end] != ':' || f.text[end+1] != 'A' || f.text[end+2] != 'A' {
		return
	}
	stop := end + 1
	for stop < len(f.text) && (alnum(f.text[stop]) || f.text[stop] == '_' || f.text[stop] == '-') {
		stop++
	}
	if n := stop - end - 1; n >= 33 && n <= 36 {
		f.add(start, stop, "telegram token")
	}
}

// webhooks are addresses that let everybody who knows them write.
var webhooks = []struct{ begin, kind string }{
	{"//hooks.slack.com/services/", "slack webhook"},
	{"//discord.com/api/webhooks/", "discord webhook"},
	{"//discordapp.com/api/webhooks/", "discord webhook"},
}

// address masks the password of scheme://name:password@host, and secret addresses.
func (f *finder) address(colon int) {
	rest := f.text[colon+1:]
	for _, hook := range webhooks {
		if strings.HasPrefix(rest, hook.begin) {
			end := len(hook.begin)
			for end < len(rest) && (isWord[rest[end]] || rest[end] == '/') {
				end++
			}
			if end >= len(hook.begin)+16 && !placeholder(rest[len(hook.begin):end]) {
				f.add(colon+1+len(hook.begin), colon+1+end, hook.kind)
			}
			return
		}
	}
	rest = rest[2:]
	end := strings.IndexAny(rest, " \t\n\"'`<>|\\")
	if end < 0 {
		end = len(rest)
	}
	// A password may hold a slash or an @: the last @ before the host's end counts.
	part := rest[:end]
	at := strings.LastIndexByte(part, '@')
	sep := strings.IndexByte(part, ':')
	if sep < 0 || at < sep+2 || strings.ContainsAny(part[:sep], "/?#[") {
		return
	}
	if slash := strings.IndexByte(part[sep:at], '/'); slash >= 0 && digits(part[sep+1:sep+slash]) {
		return // host:port/path@…
	}
	v := part[sep+1 : at]
	if placeholder(v) || len(v) < 3 {
		return
	}
	start := colon + 3 + sep + 1
	f.add(start, start+len(v), "password in an address")
}
