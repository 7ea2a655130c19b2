package mask

import (
	"bytes"
	"slices"
	"strings"
)

// weight says how much the name of a value tells about it.
type weight uint8

const (
	nothing weight = iota
	token          // also a word of grammars and counters: the value has to look random
	secret         // a password or key: the value has to look like one
)

// secretNames end the names of values that are secret.
var secretNames = []struct {
	end string
	w   weight
}{
	{"password", secret}, {"passwd", secret}, {"passphrase", secret}, {"passcode", secret}, {"passwort", secret}, {"kennwort", secret},
	{"secret", secret}, {"clientsecret", secret}, {"secretkey", secret}, {"secretkeybase", secret}, {"secretaccesskey", secret},
	{"apikey", secret}, {"accesskey", secret}, {"privatekey", secret}, {"encryptionkey", secret}, {"signingkey", secret},
	{"authkey", secret}, {"accountkey", secret}, {"sharedaccesskey", secret}, {"masterkey", secret}, {"apisecret", secret},
	{"appsecret", secret}, {"credential", secret}, {"credentials", secret}, {"licensekey", token}, {"xapikey", secret}, {"dbpass", secret},
	{"presharedkey", secret}, {"functionskey", secret}, {"recoverykey", secret}, {"secretid", token}, {"storepass", secret}, {"keypass", secret},
	{"token", token}, {"authorization", token}, {"webhookkey", token}, {"subscriptionkey", secret},
	{"userpwd", secret}, {"mysqlpwd", secret}, {"connectionstring", token},
}

// cursors are words before "token" in the names of places in a list, counters and public marks.
var cursors = []string{
	"next", "page", "nextpage", "pagination", "continuation", "continue", "cursor", "sync", "nextsync", "syncnext", "skip", "delta", "resume", "start",
	"marker", "change", "publickey", "client", "clientrequest", "eof", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "special",
	"previous", "previouspage", "prev", "prevpage", "last", "lastevaluated", "idempotency", "list", "iterator", "scroll", "offset", "snapshot", "current", "lookahead", "peek", "string", "number", "image", "cancellation", "cancel",
}

// flatten writes the letters and digits of a name small into buf.
func flatten(buf []byte, name string) []byte {
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
	return buf[:n]
}

// weigh judges a name by how it ends, and names of the environment by any of their words.
func weigh(name string) weight {
	if len(name) < 3 {
		return nothing
	}
	switch name[len(name)-1] | 0x20 {
	case 'd', 'e', 't', 'y', 'n', 'l', 's', 'g':
	default:
		return envWeight(name)
	}
	var buf [64]byte // as long as a name is read
	flat := flatten(buf[:], name)
	if bytes.Contains(flat, []byte("public")) {
		return nothing
	}
	for i := range secretNames {
		end := secretNames[i].end
		if len(flat) < len(end) || string(flat[len(flat)-len(end):]) != end {
			continue
		}
		if end == "token" && slices.ContainsFunc(cursors, func(c string) bool { return isCursor(flat[:len(flat)-len(end)], c) }) {
			return nothing
		}
		return secretNames[i].w
	}
	if len(name) >= 3 && strings.EqualFold(name, "pwd") || strings.HasSuffix(name, "_pwd") || strings.HasSuffix(name, "_PWD") || strings.HasSuffix(name, "Pwd") {
		return secret
	}
	if strings.HasSuffix(name, "_PASS") || strings.HasSuffix(name, "_pass") || strings.HasSuffix(name, "-pass") || name == "PASS" || name == "pass" || strings.HasSuffix(name, "Pass") {
		return secret
	}
	return envWeight(name)
}

// isCursor reports that a name, without "token", is a cursor's or ends with one's word.
func isCursor(stem []byte, cursor string) bool {
	return string(stem) == cursor || len(cursor) >= 8 && bytes.HasSuffix(stem, []byte(cursor)) ||
		(cursor == "next" || cursor == "page" || cursor == "cursor") && bytes.HasSuffix(stem, []byte(cursor))
}

// envWeight finds a secret's word inside a name like STRIPE_SECRET_LIVE or API_TOKEN_2.
func envWeight(name string) weight {
	if !isUpper(name) {
		return nothing
	}
	last := name[strings.LastIndexByte(name, '_')+1:]
	switch last {
	case "FILE", "PATH", "URL", "URI", "NAME", "ID", "TTL", "DIR", "TYPE", "LENGTH", "COUNT", "MAX", "MIN", "LIMIT", "SIZE", "HASH", "EXPIRY", "VERSION", "REGION", "ARN", "TOKENS", "ENABLED", "HEADER", "PREFIX", "ERROR", "REQUIRED",
		"CIPHER", "ALGORITHM", "SOURCE", "SUFFIX", "ALPHABET", "CHARS", "REGEX", "PATTERN", "PROVIDER", "KIND", "MODE", "STATUS", "CODE", "FORMAT", "SCOPE", "SCOPES", "FIELD", "LABEL", "MESSAGE", "ENV", "VAR", "STORE", "POLICY", "ROUNDS", "FOUND":
		return nothing
	}
	for _, word := range [...]string{"SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "TOKEN"} {
		if i := strings.Index(name, word); i >= 0 && (i+len(word) == len(name) || name[i+len(word)] == '_') {
			if word == "TOKEN" {
				return token
			}
			return secret
		}
	}
	return nothing
}

func isUpper(name string) bool {
	lower, upper, _, _ := classes(name)
	return upper && !lower
}

// firstWords make a secret's name with the word after them: "api key", "access token".
var firstWords = []string{
	"api", "access", "auth", "secret", "client", "private", "bot", "app", "application", "pass", "security", "signing", "service", "refresh", "deploy",
	"session", "webhook", "account", "master", "encryption", "license", "personal", "bearer", "recovery", "oauth", "pre-shared", "subscription", "wifi", "login",
}

// foreign are words for a password or a key in other languages, as they end before a colon. What is in
// Latin letters is compared in small letters.
var foreign = []string{
	"密码", "密碼", "口令", "密钥", "密鑰", "令牌", "私钥", "私鑰", "パスワード", "パスコード", "パスフレーズ", "暗証番号", "アクセスキー", "apiキー", "api キー", "シークレット", "シークレットキー", "トークン", "秘密鍵",
	"비밀번호", "암호", "패스워드", "api 키", "토큰", "пароль", "пароля", "ключ api", "api-ключ", "api ключ", "токен", "секретный ключ", "гасло",
	"passwort", "kennwort", "api-schlüssel", "zugangsschlüssel", "contraseña", "contrasena", "clave", "clave api", "clave de api", "clave secreta", "mot de passe", "motdepasse", "mdp", "clé api", "clé d'api", "clé secrète", "jeton",
	"senha", "chave de api", "chave api", "palavra-passe", "parola d'ordine", "chiave api", "password", "wachtwoord", "hasło", "haslo", "heslo", "lösenord", "adgangskode", "passord", "salasana",
	"şifre", "sifre", "parola", "parolă", "jelszó", "κωδικός", "kata sandi", "mật khẩu", "รหัสผ่าน", "كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "лозинка",
}

// foreignByLast lists foreign by the last byte of the words.
var foreignByLast = func() (t [256][]string) {
	for _, word := range foreign {
		last := word[len(word)-1]
		t[last] = append(t[last], word)
	}
	return t
}()

// foreignBefore reports that a word for a secret in another language ends the text, and where it begins.
func foreignBefore(text string) (start int, ok bool) {
	if text == "" {
		return 0, false
	}
	last := text[len(text)-1]
	if last >= 'A' && last <= 'Z' {
		last += 'a' - 'A'
	}
	if len(foreignByLast[last]) == 0 {
		return 0, false
	}
	tail := text[max(0, len(text)-40):]
	low := strings.ToLower(tail)
	if len(low) != len(tail) {
		low = tail
	}
	for _, word := range foreignByLast[last] {
		if !strings.HasSuffix(low, word) {
			continue
		}
		at := len(low) - len(word)
		if at > 0 && word[0] < 0xe3 && (alnum(low[at-1]) || low[at-1] >= 0x80 && low[at-1] < 0xe0) {
			continue // the end of a longer word
		}
		return len(text) - len(word), true
	}
	return 0, false
}
