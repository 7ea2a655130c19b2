package mask

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

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
func (f *finder) bearer(i int) {
	start, end := f.credential(i)
	v := f.text[start:end]
	if start == i || len(v) < 10 || placeholder(v) || worded(v) {
		return
	}
	if looksRandom(v) {
		f.add(start, end, "bearer token")
	}
}

// basic masks what follows the word where it is an encoded name and password.
func (f *finder) basic(i int) {
	if start, end := f.credential(i); start > i && isBasic(f.text[start:end]) {
		f.add(start, end, "basic credentials")
	}
}

// isBasic reports an encoded name and password.
func isBasic(v string) bool {
	if len(v) < 8 {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		plain, err = base64.RawStdEncoding.DecodeString(v)
	}
	return err == nil && utf8.Valid(plain) && strings.Contains(string(plain), ":")
}

// dockerAuth masks the name and password of a registry, as Docker keeps them.
func (f *finder) dockerAuth(i int) {
	start := f.skip(i, "\"'\\")
	end := start
	for end < len(f.text) && isCredential(f.text[end]) {
		end++
	}
	if isBasic(f.text[start:end]) {
		f.add(start, end, "basic credentials")
	}
}

// authorization masks the credential of the header, whatever its scheme.
func (f *finder) authorization(i int) {
	for i < len(f.text) && strings.IndexByte("\"'\\`", f.text[i]) >= 0 {
		i++
	}
	start := i
	var end int
	scheme := ""
	for {
		for end = start; end < len(f.text) && (isCredential(f.text[end]) || f.text[end] == ':' || f.text[end] == '!' || f.text[end] == '@'); end++ {
		}
		v := f.text[start:end]
		if scheme != "" || end >= len(f.text) || f.text[end] != ' ' || !isScheme(v) {
			break
		}
		scheme = v
		start = f.skipSpace(end)
	}
	end -= len(f.text[start:end]) - len(strings.TrimRight(f.text[start:end], ".:"))
	v := f.text[start:end]
	if strings.EqualFold(scheme, "aws4-hmac-sha256") || strings.EqualFold(scheme, "digest") {
		f.signatures(start)
		return
	}
	kind := "authorization"
	switch {
	case strings.EqualFold(scheme, "bearer"):
		kind = "bearer token"
	case strings.EqualFold(scheme, "basic"):
		if kind = "basic credentials"; !isBasic(v) && !looksRandom(v) {
			return
		}
	}
	if len(v) < 4 || placeholder(v) || isCode(v) || worded(v) || scheme == "" && !looksRandom(v) && !likePassword(v) {
		return
	}
	if _, _, digit, _ := classes(v); !digit && strings.ToLower(v) == v && strings.Contains(v, ".") || !digit && len(v) < 20 && (scheme == "" || strings.ToLower(v) == v && !endsLine(f.text[end:])) {
		return // words about authorization
	}
	f.add(start, end, kind)
}

// endsLine reports a quote or the end of the line, as behind a header's value.
func endsLine(rest string) bool {
	return rest == "" || strings.IndexByte("\r\n\"'`\\", rest[0]) >= 0
}

// isScheme reports the word before a credential.
func isScheme(v string) bool {
	switch strings.ToLower(v) {
	case "bearer", "token", "basic", "apikey", "api-key", "bot", "oauth", "digest", "geniekey", "key", "jwt", "aws4-hmac-sha256", "splunk", "negotiate", "ntlm", "sharedaccesssignature", "sso-key", "klaviyo-api-key", "app-token", "pve-token", "discogs":
		return true
	}
	return false
}

// signatures masks Signature=… in the header of a signed request.
func (f *finder) signatures(i int) {
	line, _, _ := strings.Cut(f.text[i:], "\n")
	at := strings.Index(line, "Signature=")
	if at < 0 {
		if at = strings.Index(line, `response="`); at < 0 {
			return
		}
	}
	start := i + at + len("Signature=")
	end := start
	for end < len(f.text) && isCredential(f.text[end]) {
		end++
	}
	if end-start >= 16 {
		f.add(start, end, "signature")
	}
}

func isCookie(name string) bool {
	return strings.EqualFold(name, "cookie") || strings.EqualFold(name, "set-cookie") || strings.EqualFold(name, "cookie2")
}

// cookies masks the values of a header's cookies that are no words and no numbers of an order.
func (f *finder) cookies(i int) {
	line, _, _ := strings.Cut(f.text[i:], "\n")
	if end := strings.IndexAny(line, "\"'`"); end >= 0 {
		line = line[:end]
	}
	for pair := range strings.SplitSeq(line, ";") {
		start := i
		i += len(pair) + 1
		name, v, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		v = strings.TrimRight(v, " \r")
		if !ok || len(v) < 6 || placeholder(v) || worded(v) || isAttribute(name) || strings.Contains(strings.TrimSpace(pair), " ") {
			continue
		}
		low := strings.ToLower(name)
		if size, _ := known(v); size > 0 {
			f.add(start+strings.IndexByte(pair, '=')+1, start+strings.IndexByte(pair, '=')+1+len(v), "cookie")
			continue
		}
		if looksRandom(v) || likePassword(v) && (strings.Contains(low, "sess") || strings.Contains(low, "sid") || strings.Contains(low, "auth") || strings.Contains(low, "token") || strings.Contains(low, "jwt") || strings.Contains(low, "csrf") || strings.Contains(low, "remember")) {
			at := start + strings.IndexByte(pair, '=') + 1
			f.add(at, at+len(v), "cookie")
		}
	}
}

func isAttribute(name string) bool {
	switch strings.ToLower(name) {
	case "path", "domain", "expires", "max-age", "samesite", "version", "priority", "lang", "locale", "theme", "tz":
		return true
	}
	return false
}
