package mask

import (
	"slices"
	"strings"
)

// placeholder says that a value stands for a secret that is somewhere else.
func placeholder(v string) bool {
	if v == "" || strings.ContainsAny(v, "<>{}$*…") && !strings.HasSuffix(v, "$") && !strings.HasSuffix(v, "*") && !strings.HasPrefix(v, "$argon") ||
		strings.Contains(v, "***") || v[0] == '[' || v[0] == '@' && !strings.ContainsAny(v, "0123456789") || v[0] == '%' && v[len(v)-1] == '%' {
		return true
	}
	low := strings.ToLower(v)
	return distinct(low) < 3 || slices.ContainsFunc([]string{"your", "changeme", "change_me", "change-me", "xxxx", "redacted", "replace_", "replace-", "replaceme", "masked", "...", "placeholder", "dummy", "insert_", "insert-"},
		func(p string) bool { return strings.Contains(low, p) })
}

// worded reports a value made of the words by which examples name a secret: valid_token, mySecretKey.
func worded(v string) bool {
	if len(v) > 48 {
		return false
	}
	rest := strings.ToLower(strings.Trim(v, separators))
	for rest != "" {
		n := 0
		for _, word := range exampleWords {
			if len(word) > n && strings.HasPrefix(rest, word) {
				n = len(word)
			}
		}
		if n == 0 {
			return false
		}
		rest = strings.TrimLeft(rest[n:], separators)
	}
	return true
}

// separators stand between the words of a name.
const separators = "_-./: "

// exampleWords are what names and examples of secrets are put together from.
var exampleWords = []string{
	"my", "your", "the", "a", "an", "some", "any", "this", "is", "here", "goes", "in", "for", "of", "to", "not", "no",
	"valid", "invalid", "expired", "wrong", "correct", "right", "bad", "good", "new", "old", "current", "random", "real",
	"secret", "secrets", "key", "keys", "token", "tokens", "password", "passwords", "passwd", "passphrase", "pass", "pwd", "credential", "credentials",
	"test", "testing", "example", "sample", "demo", "default", "placeholder", "value", "string", "str", "text", "none", "null", "nil", "empty", "missing", "required", "optional",
	"access", "api", "auth", "authorization", "authentication", "oauth", "user", "username", "name", "admin", "root", "guest", "client", "app", "application", "bot", "session", "refresh", "bearer", "basic", "jwt", "csrf", "id", "hash", "hashed",
	"db", "database", "account", "service", "server", "private", "public", "super", "secure", "strong", "very", "shared", "master", "signing", "encryption", "webhook", "environment", "env", "variable", "config",
	"github", "gitlab", "slack", "openai", "anthropic", "google", "aws", "stripe", "telegram", "discord", "azure", "foo", "bar", "baz", "from", "vault", "file", "set", "get", "see", "with", "and", "or", "only", "type", "field", "header", "input", "data", "scheme", "description", "read", "write", "local", "flag", "flags", "option", "options", "argument", "arguments", "apply", "encoded", "base64url", "base64", "hex", "prompt",
}

// looksRandom reports a value that is no word, name, number or date: long, with digits and letters
// that change places.
func looksRandom(v string) bool {
	lower, upper, digit, _ := classes(v)
	return len(v) >= 16 && digit && (lower || upper) && distinct(v) >= 8 && turns(v) >= 2
}

// turns counts how often letters and digits change places in v; a change from small letters to
// capitals counts where no word begins with it.
func turns(v string) int {
	n := 0
	for i := 1; i < len(v); i++ {
		a, b := v[i-1], v[i]
		if alnum(a) && alnum(b) && (a <= '9') != (b <= '9') {
			n++
		}
		if a >= 'A' && a <= 'Z' && b >= 'a' && b <= 'z' && i+1 < len(v) && v[i+1] >= 'A' && v[i+1] <= 'Z' {
			n++
		}
	}
	return n
}

// likePassword reports what people and programs take for passwords and keys: no word and no number.
func likePassword(v string) bool {
	lower, upper, digit, other := classes(v)
	letter := lower || upper
	return len(v) >= 6 && (digit && letter || other && digit && distinct(v) > 3 || other && lower && upper && !worded(v) && strings.ContainsAny(v, "!@#%^&*+=/?~"))
}

// isCode reports expressions, paths and addresses: the secret is not in them.
func isCode(v string) bool {
	if strings.HasPrefix(v, "/") && !strings.HasSuffix(v, "=") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") ||
		strings.HasPrefix(v, "$") && !strings.HasPrefix(v, "$2") || strings.HasPrefix(v, "\\") || strings.Contains(v, "://") || strings.HasSuffix(v, "/aws4_request") {
		return true
	}
	if call := strings.IndexAny(v, "(["); call >= 0 && (call == 0 || strings.Trim(v[:call], wordBytes+".") == "") {
		return true
	}
	if strings.Contains(v, "?.") || strings.Contains(v, "===") || v[0] == '!' && strings.Contains(v, ".") || strings.HasPrefix(v, "-----BEGIN") {
		return true
	}
	low := strings.ToLower(v)
	for _, begin := range [...]string{"process.env", "os.", "env.", "env:", "env(", "import.meta", "config.", "settings.", "self.", "this.", "secrets.", "var.", "vars.", "data.", "local.", "module.", "vault:", "ref+", "arn:aws:", "projects/", "op:", "file:", "sops:", "ssm:", "sm:", "keychain:", "secretref:", "system.getenv", "deno.env", "sys.argv", "args.", "options.", "opts.", "props.", "params.", "req.", "request.", "ctx.", "cfg.", "conf.", "keyring."} {
		if strings.HasPrefix(low, begin) {
			return true
		}
	}
	return false
}

const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

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
	return strings.Contains(v, ".") && turns(v) < 3 || weigh(v) != nothing
}

// isWordList reports the values of flags that are named like secrets.
func isWordList(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "none", "null", "undefined", "optional", "required", "string", "disabled", "enabled", "default", "secret", "bearer", "yes", "auto", "always", "never", "prompt", "stdin", "password", "token":
		return true
	}
	return false
}
