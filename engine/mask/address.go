package mask

import (
	"strings"
)

// telegram masks the token of a bot: its number, a colon and a key.
func (f *finder) telegram(start, end int) {
	if end+34 > len(f.text) || f.text[end] != ':' || f.text[end+1] != 'A' {
		return
	}
	stop := end + 1
	for stop < len(f.text) && (alnum(f.text[stop]) || f.text[stop] == '_' || f.text[stop] == '-') {
		stop++
	}
	if n := stop - end - 1; n >= 33 && n <= 36 && turns(f.text[end+1:stop]) >= 3 {
		f.add(start, stop, "telegram token")
	}
}

// googleToken masks a refresh token of Google's: 1//0 and a key.
func (f *finder) googleToken(at int) {
	if at == 0 || f.text[at-1] != '1' || at > 1 && isWord[f.text[at-2]] || !strings.HasPrefix(f.text[at:], "//0") {
		return
	}
	end := at + 3
	for end < len(f.text) && (alnum(f.text[end]) || f.text[end] == '-' || f.text[end] == '_') {
		end++
	}
	if end-at >= 20 && turns(f.text[at+3:end]) >= 2 {
		f.add(at-1, end, "google token")
	}
}

// webhooks are addresses that let everybody who knows them write.
var webhooks = []struct{ begin, kind string }{
	{"//hooks.slack.com/services/", "slack webhook"},
	{"//hooks.slack.com/workflows/", "slack webhook"},
	{"//hooks.slack.com/triggers/", "slack webhook"},
	{"//discord.com/api/webhooks/", "discord webhook"},
	{"//discordapp.com/api/webhooks/", "discord webhook"},
	{"//ptb.discord.com/api/webhooks/", "discord webhook"},
	{"//canary.discord.com/api/webhooks/", "discord webhook"},
	{"//hooks.zapier.com/hooks/catch/", "zapier webhook"},
	{"//maker.ifttt.com/trigger/", "ifttt webhook"},
	{"//chat.googleapis.com/v1/spaces/", "google chat webhook"},
	{"//open.feishu.cn/open-apis/bot/v2/hook/", "feishu webhook"},
	{"//qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", "wecom webhook"},
	{"//oapi.dingtalk.com/robot/send?access_token=", "dingtalk webhook"},
}

// address masks the password or token of scheme://name:password@host, the secrets of its query, and
// addresses that are secret themselves.
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
	f.userinfo(colon+3, rest[:end])
	if q := strings.IndexByte(rest[:end], '?'); q >= 0 {
		f.query(colon+3+q+1, rest[q+1:end])
	}
}

// userinfo masks what stands before the host: a password may hold a slash or an @, so the last @
// before the host's end counts.
func (f *finder) userinfo(start int, part string) {
	at := strings.LastIndexByte(part, '@')
	if again := strings.Index(part, "://"); again >= 0 && again < at { // a list of addresses
		at = strings.IndexByte(part, '@')
	}
	sep := strings.IndexByte(part, ':')
	if at > 0 && (sep < 0 || sep > at) {
		v := part[:at]
		if size, _ := known(v); size == 0 && !strings.ContainsAny(v, "/?#") && looksRandom(v) && !placeholder(v) {
			f.add(start, start+at, "token in an address")
		}
		return
	}
	if sep < 0 || at < sep+2 || strings.ContainsAny(part[:sep], "/?#[") {
		return
	}
	if slash := strings.IndexByte(part[sep:at], '/'); slash >= 0 && digits(part[sep+1:sep+slash]) {
		return // host:port/path@…
	}
	v, host := part[sep+1:at], part[at+1:]
	if placeholder(v) || len(v) < 3 || worded(v) && !knownPair(part[:sep], v) || v == part[:sep] && isLocal(host) {
		return
	}
	f.add(start+sep+1, start+sep+1+len(v), "password in an address")
}

// isLocal reports a host of examples and of one machine.
func isLocal(host string) bool {
	for _, begin := range [...]string{"localhost", "127.", "0.0.0.0", "[::1]", "host", "example", "db", "postgres", "mysql", "redis", "server", "hostname", "::1"} {
		if strings.HasPrefix(host, begin) {
			return true
		}
	}
	return strings.Contains(host, "example.")
}

// knownPair reports a name and password that are used as they are: admin:admin, root:root.
func knownPair(name, v string) bool { return name == v && name != "user" && name != "username" }

// signed are the parameters of an address that are a signature or key, whatever else they are called for.
var signed = []string{"sig", "signature", "x-amz-signature", "x-goog-signature", "x-amz-security-token", "x-oss-signature", "x-amz-credential-key", "key", "auth", "hmac", "ossaccesskeyid-signature", "policy-signature", "sas", "code_verifier", "apikey", "appid-key", "pwd", "pass"}

// query masks the secrets among the parameters of an address.
func (f *finder) query(i int, query string) {
	if hash := strings.IndexByte(query, '#'); hash >= 0 && !strings.Contains(query[hash:], "=") {
		query = query[:hash]
	}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == '#' || r == ';' }) {
		start := i + strings.Index(f.text[i:], pair)
		i = start + len(pair)
		name, v, ok := strings.Cut(pair, "=")
		if end := strings.IndexAny(v, ")]}"); end >= 0 {
			v = v[:end]
		}
		v = strings.TrimRight(v, ".,")
		if !ok || len(v) < 8 || placeholder(v) || worded(v) {
			continue
		}
		at := start + len(name) + 1
		low := strings.ToLower(name)
		if size, _ := known(v); size > 0 {
			continue
		}
		for _, s := range signed {
			if low == s && (looksRandom(v) || len(v) >= 16 && turns(v) >= 3) {
				f.addLater(at, at+len(v), "signature or key in an address")
			}
		}
		if w := weigh(name); w == secret && likePassword(v) || w == token && len(v) >= 8 && likePassword(v) {
			f.addLater(at, at+len(v), "secret value")
		}
	}
}
