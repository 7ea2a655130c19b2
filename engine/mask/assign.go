package mask

import (
	"bytes"
	"strings"
)

// weight says how much the name of a value tells about it.
type weight uint8

const (
	nothing weight = iota
	token          // also a word of grammars and counters: the value has to look random
	secret         // a password or key: the value has to look like one
)

// assigned looks at a value behind = or :, and at the name before it.
func (f *finder) assigned(at int) {
	name, quoted, from := f.nameBefore(at)
	w := weigh(name)
	if w == nothing {
		return
	}
	i := at + 1
	declared := false
	if f.text[at] == ':' && i < len(f.text) && f.text[i] == '=' {
		declared = true
		i++
	}
	if i < len(f.text) && (f.text[i] == '=' || f.text[i] == '>' || f.text[i] == '~') {
		return // a comparison
	}
	spaced := i
	for i < len(f.text) && i < spaced+3 && (f.text[i] == ' ' || f.text[i] == '\t') {
		i++
	}
	spacedBy := i - spaced
	if i >= len(f.text) || f.text[i] == '\n' {
		return
	}
	escaped := 0 // in a JSON text within a JSON text
	for i+escaped < len(f.text) && f.text[i+escaped] == '\\' {
		escaped++
	}
	if c := f.text[min(i+escaped, len(f.text)-1)]; c == '"' || c == '\'' || c == '`' {
		f.quotedValue(name, w, i+escaped+1, c)
		return
	}
	end := i
	for end < len(f.text) && !strings.ContainsRune(" \t\n\r\"'`,;|&)", rune(f.text[end])) {
		end++
	}
	v := strings.TrimRight(f.text[i:end], ".]}")
	if v == "" {
		return
	}
	// NAME=value, as a shell, a file of settings or an address has it; name: value and name = value
	// on a line of their own. In code a text would be in quotes.
	env := f.text[at] == '=' && spacedBy == 0
	alone := !declared && !isExpression(v) && lineStart(f.text, from) && restEmpty(f.text[end:])
	if quoted {
		env = env && looksRandom(v)
	}
	if !alone && !env && (!quoted || !looksRandom(v)) {
		return
	}
	f.value(name, w, i, i+len(v), env && isUpper(name))
}

// quotedValue looks at a value in quotes.
func (f *finder) quotedValue(name string, w weight, start int, quote byte) {
	end := start
	for end < len(f.text) && f.text[end] != quote && f.text[end] != '\n' && f.text[end] != '\\' {
		end++
	}
	if end-start > 0 && end < len(f.text) && f.text[end] != '\n' {
		f.value(name, w, start, end, isUpper(name))
	}
}

// value masks text[start:end] if it looks like what the name promises. Sure means that the name is
// one of the environment's.
func (f *finder) value(name string, w weight, start, end int, sure bool) {
	v := f.text[start:end]
	if size, _ := known(v); size > 0 || hasScheme(v) {
		return // found by its own form
	}
	if len(v) < 4 || placeholder(v) || isCode(v) || strings.HasPrefix(strings.ToLower(v), strings.ToLower(name)) {
		return
	}
	lower, upper, digit, other := classes(v)
	letter := lower || upper
	switch {
	case sure && w == secret && len(v) >= 6 && !isWordList(v):
	case sure && w == token && len(v) >= 8 && digit && letter:
	case w == secret && len(v) >= 8 && (digit && letter || other && digit || other && lower && upper):
	case w == token && looksRandom(v):
	default:
		return
	}
	f.add(start, end, "secret value")
}

// hasScheme reports the value of an Authorization header.
func hasScheme(v string) bool {
	scheme, _, ok := strings.Cut(v, " ")
	return ok && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "basic"))
}

// looksRandom reports a value that is no word, name, number or date: long, with digits and letters.
func looksRandom(v string) bool {
	lower, upper, digit, _ := classes(v)
	return len(v) >= 16 && digit && (lower || upper) && distinct(v) >= 8
}

// isCode reports expressions, paths and addresses: the secret is not in them.
func isCode(v string) bool {
	if strings.ContainsAny(v, "()") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") ||
		strings.HasPrefix(v, "$") || strings.Contains(v, "://") || strings.Contains(v, " ") && !strings.ContainsAny(v, "0123456789") {
		return true
	}
	for _, begin := range [...]string{"process.env", "os.", "env.", "config.", "settings.", "self.", "this.", "secrets.", "var.", "data.", "vault:", "ref+", "arn:aws:", "projects/", "op:"} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return false
}

// isWordList reports the values of flags that are named like secrets.
func isWordList(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "none", "null", "undefined", "optional", "required", "string", "disabled", "enabled", "default", "secret", "bearer":
		return true
	}
	return false
}

func isUpper(name string) bool {
	lower, upper, _, _ := classes(name)
	return upper && !lower
}

// nameBefore returns the name that ends before at, whether it was in quotes and where it begins.
func (f *finder) nameBefore(at int) (name string, quoted bool, from int) {
	end := at
	for end > 0 && end > at-3 && f.text[end-1] == ' ' {
		end--
	}
	for end > 0 && (f.text[end-1] == '"' || f.text[end-1] == '\'' || f.text[end-1] == '\\' || f.text[end-1] == ']') {
		end--
		quoted = true
	}
	start := end
	for start > 0 && start > end-64 && (alnum(f.text[start-1]) || f.text[start-1] == '_' || f.text[start-1] == '-' || f.text[start-1] == '.') {
		start--
	}
	return f.text[start:end], quoted, start
}

// lineStart reports that only what opens a setting stands before i on its line.
func lineStart(text string, i int) bool {
	before := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
	before = strings.TrimLeft(before, " \t-+>#{,")
	return before == "" || before == "export " || before == "set " || before == "ENV "
}

// isExpression reports what code assigns: a.b, a[1] and names that end like the field they go to.
func isExpression(v string) bool {
	if strings.Contains(v, "[") {
		return true
	}
	for part := range strings.SplitSeq(v, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' || strings.Trim(part, wordBytes) != "" {
			return false
		}
	}
	return strings.Contains(v, ".") || weigh(v) != nothing
}

const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// restEmpty reports that nothing but an ending stands behind a value on its line.
func restEmpty(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimLeft(line, " \t;}\r")
	return line == "" || line[0] == '#' || strings.HasPrefix(line, "//")
}

// secretNames end the names of values that are secret.
var secretNames = []struct {
	end string
	w   weight
}{
	{"password", secret}, {"passwd", secret}, {"passphrase", secret}, {"passcode", secret},
	{"secret", secret}, {"clientsecret", secret}, {"secretkey", secret}, {"secretkeybase", secret}, {"secretaccesskey", secret},
	{"apikey", secret}, {"accesskey", secret}, {"privatekey", secret}, {"encryptionkey", secret}, {"signingkey", secret},
	{"authkey", secret}, {"accountkey", secret}, {"sharedaccesskey", secret}, {"masterkey", secret}, {"apisecret", secret},
	{"appsecret", secret}, {"credential", secret}, {"credentials", secret}, {"licensekey", token}, {"xapikey", secret}, {"dbpass", secret},
	{"token", token}, {"authorization", token}, {"sessionkey", token}, {"webhookkey", token}, {"subscriptionkey", secret},
}

// weigh judges a name by how it ends, and names of the environment by any of their words.
func weigh(name string) weight {
	if len(name) < 3 {
		return nothing
	}
	switch name[len(name)-1] | 0x20 {
	case 'd', 'e', 't', 'y', 'n', 'l', 's':
	default:
		return envWeight(name)
	}
	var buf [64]byte // as long as a name is read
	n := 0
	for i := range min(len(name), len(buf)) {
		if c := name[i]; alnum(c) {
			buf[n] = c
			if c < 'a' && c > '9' {
				buf[n] += 'a' - 'A'
			}
			n++
		}
	}
	flat := buf[:n]
	if bytes.Contains(flat, []byte("public")) {
		return nothing
	}
	for i := range secretNames {
		if end := secretNames[i].end; len(flat) >= len(end) && string(flat[len(flat)-len(end):]) == end {
			return secretNames[i].w
		}
	}
	if name == "pwd" || name == "PWD" || strings.HasSuffix(name, "_pwd") || strings.HasSuffix(name, "_PWD") || strings.HasSuffix(name, "Pwd") {
		return secret
	}
	if strings.HasSuffix(name, "_PASS") || strings.HasSuffix(name, "_pass") {
		return secret
	}
	return envWeight(name)
}

// envWeight finds a secret's word inside a name like STRIPE_SECRET_LIVE or API_TOKEN_2.
func envWeight(name string) weight {
	if !isUpper(name) {
		return nothing
	}
	last := name[strings.LastIndexByte(name, '_')+1:]
	switch last {
	case "FILE", "PATH", "URL", "URI", "NAME", "ID", "TTL", "DIR", "TYPE", "LENGTH", "COUNT", "MAX", "MIN", "LIMIT", "SIZE", "HASH", "EXPIRY", "VERSION", "REGION", "ARN", "TOKENS", "ENABLED":
		return nothing
	}
	for _, word := range [...]string{"SECRET", "PASSWORD", "API_KEY", "TOKEN"} {
		if i := strings.Index(name, word); i >= 0 && (i+len(word) == len(name) || name[i+len(word)] == '_') {
			if word == "TOKEN" {
				return token
			}
			return secret
		}
	}
	return nothing
}

// flag masks the value of an option like --password.
func (f *finder) flag(start, end int) {
	name := strings.TrimLeft(f.text[start:end], "-")
	w := weigh(name)
	if w == nothing || end >= len(f.text) || f.text[end] != ' ' {
		return
	}
	i := end + 1
	stop := i
	for stop < len(f.text) && !strings.ContainsRune(" \t\n\r;|&", rune(f.text[stop])) {
		stop++
	}
	for i < stop && (f.text[i] == '"' || f.text[i] == '\'') {
		i++
	}
	for stop > i && (f.text[stop-1] == '"' || f.text[stop-1] == '\'') {
		stop--
	}
	if stop-i < 4 || f.text[i] == '-' {
		return
	}
	f.value(name, w, i, stop, false)
}
