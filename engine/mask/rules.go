package mask

import "strings"

// charset names the characters that follow the beginning of a key.
type charset uint8

const (
	letters charset = iota // letters and digits
	under                  // and _
	url                    // and _ and -
	dotted                 // and _, - and .
	lowHex                 // 0-9 and a-f
	capital                // 0-9 and A-Z
)

func (cs charset) has(c byte) bool {
	switch cs {
	case lowHex:
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
	case capital:
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
	}
	return alnum(c) || c == '_' && cs >= under && cs <= dotted || c == '-' && (cs == url || cs == dotted) || c == '.' && cs == dotted
}

// rule is a key that is known by its beginning: from least to most characters of one set follow.
type rule struct {
	begin       string
	set         charset
	least, most int // most 0: no bound
	kind        string
	plain       bool // the beginning is also that of words: digits and both cases have to follow
}

// rules are the keys of providers that mark theirs. Longer beginnings come first.
var rules = []rule{
	{begin: "github_pat_", set: under, least: 22, kind: "github token"},
	{begin: "ghp_", set: letters, least: 30, kind: "github token"},
	{begin: "gho_", set: letters, least: 30, kind: "github token"},
	{begin: "ghu_", set: letters, least: 30, kind: "github token"},
	{begin: "ghs_", set: letters, least: 30, kind: "github token"},
	{begin: "ghr_", set: letters, least: 30, kind: "github token"},
	{begin: "glpat-", set: dotted, least: 18, kind: "gitlab token"},
	{begin: "gldt-", set: url, least: 18, kind: "gitlab token"},
	{begin: "glrt-", set: dotted, least: 18, kind: "gitlab token"},
	{begin: "glptt-", set: url, least: 18, kind: "gitlab token"},
	{begin: "glcbt-", set: url, least: 18, kind: "gitlab token"},
	{begin: "sk-ant-", set: url, least: 20, kind: "anthropic key"},
	{begin: "sk-or-", set: url, least: 20, kind: "openrouter key"},
	{begin: "sk-lf-", set: url, least: 20, kind: "langfuse key"},
	{begin: "sk-proj-", set: url, least: 20, kind: "openai key"},
	{begin: "sk-svcacct-", set: url, least: 20, kind: "openai key"},
	{begin: "sk-admin-", set: url, least: 20, kind: "openai key"},
	{begin: "sk-", set: url, least: 24, kind: "api key", plain: true},
	{begin: "sk_live_", set: letters, least: 16, kind: "stripe key"},
	{begin: "sk_test_", set: letters, least: 16, kind: "stripe key"},
	{begin: "rk_live_", set: letters, least: 16, kind: "stripe key"},
	{begin: "rk_test_", set: letters, least: 16, kind: "stripe key"},
	{begin: "whsec_", set: letters, least: 24, kind: "webhook secret"},
	{begin: "sk_", set: lowHex, least: 40, kind: "api key"},
	{begin: "AKIA", set: capital, least: 16, most: 16, kind: "aws access key"},
	{begin: "ASIA", set: capital, least: 16, most: 16, kind: "aws access key"},
	{begin: "ABIA", set: capital, least: 16, most: 16, kind: "aws access key"},
	{begin: "ACCA", set: capital, least: 16, most: 16, kind: "aws access key"},
	{begin: "AIza", set: url, least: 35, most: 35, kind: "google api key"},
	{begin: "GOCSPX-", set: url, least: 20, kind: "google client secret"},
	{begin: "ya29.", set: url, least: 20, kind: "google token"},
	{begin: "xoxb-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxp-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxa-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxr-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxs-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxe-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxe.xox", set: url, least: 16, kind: "slack token"},
	{begin: "xapp-", set: url, least: 16, kind: "slack token"},
	{begin: "hf_", set: letters, least: 30, kind: "hugging face token"},
	{begin: "api_org_", set: letters, least: 30, kind: "hugging face token"},
	{begin: "gsk_", set: letters, least: 40, kind: "groq key"},
	{begin: "xai-", set: letters, least: 40, kind: "xai key"},
	{begin: "pplx-", set: letters, least: 32, kind: "perplexity key"},
	{begin: "r8_", set: letters, least: 32, kind: "replicate token"},
	{begin: "nvapi-", set: url, least: 32, kind: "nvidia key"},
	{begin: "csk-", set: letters, least: 32, kind: "cerebras key"},
	{begin: "tgp_v1_", set: url, least: 32, kind: "together key"},
	{begin: "jina_", set: url, least: 40, kind: "jina key"},
	{begin: "pcsk_", set: under, least: 32, kind: "pinecone key"},
	{begin: "lsv2_", set: under, least: 32, kind: "langsmith key"},
	{begin: "tvly-", set: url, least: 20, kind: "tavily key", plain: true},
	{begin: "fc-", set: lowHex, least: 32, most: 32, kind: "firecrawl key"},
	{begin: "SG.", set: dotted, least: 40, kind: "sendgrid key"},
	{begin: "xkeysib-", set: url, least: 64, kind: "brevo key"},
	{begin: "key-", set: lowHex, least: 32, most: 32, kind: "mailgun key"},
	{begin: "re_", set: under, least: 28, kind: "resend key", plain: true},
	{begin: "SK", set: lowHex, least: 32, most: 32, kind: "twilio key"},
	{begin: "npm_", set: letters, least: 36, most: 36, kind: "npm token"},
	{begin: "pypi-AgE", set: url, least: 40, kind: "pypi token"},
	{begin: "rubygems_", set: lowHex, least: 48, kind: "rubygems key"},
	{begin: "dckr_pat_", set: url, least: 20, kind: "docker token"},
	{begin: "dop_v1_", set: lowHex, least: 64, kind: "digitalocean token"},
	{begin: "doo_v1_", set: lowHex, least: 64, kind: "digitalocean token"},
	{begin: "dor_v1_", set: lowHex, least: 64, kind: "digitalocean token"},
	{begin: "shpat_", set: lowHex, least: 32, kind: "shopify token"},
	{begin: "shpss_", set: lowHex, least: 32, kind: "shopify token"},
	{begin: "shpca_", set: lowHex, least: 32, kind: "shopify token"},
	{begin: "shppa_", set: lowHex, least: 32, kind: "shopify token"},
	{begin: "sq0atp-", set: url, least: 22, kind: "square token"},
	{begin: "sq0csp-", set: url, least: 40, kind: "square token"},
	{begin: "dapi", set: lowHex, least: 32, most: 36, kind: "databricks token"},
	{begin: "lin_api_", set: letters, least: 32, kind: "linear key"},
	{begin: "secret_", set: letters, least: 40, kind: "notion token"},
	{begin: "ntn_", set: letters, least: 40, kind: "notion token"},
	{begin: "figd_", set: url, least: 36, kind: "figma token"},
	{begin: "PMAK-", set: url, least: 40, kind: "postman key"},
	{begin: "glsa_", set: under, least: 32, kind: "grafana token"},
	{begin: "glc_", set: letters, least: 32, kind: "grafana token"},
	{begin: "NRAK-", set: capital, least: 27, kind: "new relic key"},
	{begin: "sntrys_", set: under, least: 32, kind: "sentry token"},
	{begin: "sntryu_", set: lowHex, least: 32, kind: "sentry token"},
	{begin: "hvs.", set: url, least: 24, kind: "vault token"},
	{begin: "hvb.", set: url, least: 24, kind: "vault token"},
	{begin: "dp.pt.", set: letters, least: 32, kind: "doppler token"},
	{begin: "dp.st.", set: dotted, least: 32, kind: "doppler token"},
	{begin: "pul-", set: lowHex, least: 40, kind: "pulumi token"},
	{begin: "sbp_", set: lowHex, least: 40, kind: "supabase token"},
	{begin: "sb_secret_", set: url, least: 20, kind: "supabase token"},
	{begin: "nfp_", set: letters, least: 32, kind: "netlify token"},
	{begin: "fm2_", set: letters, least: 40, kind: "fly token"},
	{begin: "tskey-", set: url, least: 20, kind: "tailscale key"},
	{begin: "AGE-SECRET-KEY-1", set: capital, least: 40, kind: "age key"},
	{begin: "ops_eyJ", set: url, least: 60, kind: "1password token"},
	{begin: "ATATT3", set: url, least: 60, kind: "atlassian token"},
	{begin: "CLOJARS_", set: letters, least: 50, kind: "clojars token"},
	{begin: "PRIVATE-TOKEN-", set: url, least: 20, kind: "gitlab token"},
	{begin: "lip_", set: letters, least: 40, kind: "api key"},
	{begin: "EZAK", set: letters, least: 54, kind: "easypost key"},
	{begin: "duffel_live_", set: url, least: 40, kind: "duffel token"},
	{begin: "frnd-", set: url, least: 40, kind: "api key"},
	{begin: "patTM", set: dotted, least: 60, kind: "airtable token"},
	{begin: "v1.0-", set: url, least: 140, kind: "cloudflare key"},
}

// byFirst lists rules by the first byte of what they begin with.
var byFirst = func() (t [256][]int) {
	for i, r := range rules {
		t[r.begin[0]] = append(t[r.begin[0]], i)
	}
	return t
}()

// match returns how much of a word is the key, 0 where it is none.
func (r *rule) match(w string) int {
	if !strings.HasPrefix(w, r.begin) {
		return 0
	}
	end := len(r.begin)
	for end < len(w) && r.set.has(w[end]) {
		end++
	}
	for end > len(r.begin) && !alnum(w[end-1]) {
		end-- // a full stop or dash that belongs to the sentence
	}
	n := end - len(r.begin)
	if n < r.least || r.most > 0 && n > r.most || end < len(w) && (alnum(w[end]) || w[end] == '_') {
		return 0
	}
	rest := w[len(r.begin):end]
	if distinct(rest) < 4 {
		return 0
	}
	if r.plain {
		lower, upper, digit, _ := classes(rest)
		if !digit || !lower || !upper && !longRun(rest) {
			return 0
		}
	}
	return end
}

// longRun reports a part without separators that no word is as long as.
func longRun(s string) bool {
	run := 0
	for i := range len(s) {
		if run++; !alnum(s[i]) {
			run = 0
		}
		if run >= 20 {
			return true
		}
	}
	return false
}

// odd knows keys by their shape: JSON web tokens, Discord's, Airtable's, Terraform's, Mailchimp's
// and Azure's.
func odd(w string) (size int, kind string) {
	w = strings.TrimRight(w, ".-_~")
	switch {
	case strings.HasPrefix(w, "eyJ"):
		if jwt(w) {
			return len(w), "json web token"
		}
	case len(w) >= 37 && len(w) <= 38 && w[32] == '-' && hex(w[:32]) && strings.HasPrefix(w[33:], "us") && digits(w[35:]):
		return len(w), "mailchimp key"
	case strings.Contains(w, ".atlasv1."):
		if len(w) >= 60 {
			return len(w), "terraform token"
		}
	case len(w) >= 80 && strings.HasPrefix(w, "pat") && w[min(17, len(w)-1)] == '.' && hex(w[18:]):
		return len(w), "airtable token"
	case len(w) >= 38 && len(w) <= 42 && strings.Contains(w, "8Q~"):
		return len(w), "azure client secret"
	case len(w) >= 59 && (w[0] == 'M' || w[0] == 'N' || w[0] == 'O'):
		parts := strings.Split(w, ".")
		if len(parts) == 3 && len(parts[0]) >= 23 && len(parts[0]) <= 28 && len(parts[1]) == 6 && len(parts[2]) >= 27 {
			_, upper, digit, _ := classes(parts[0])
			if upper && digit {
				return len(w), "discord token"
			}
		}
	}
	return 0, ""
}

// jwt reports three parts, of which the first two are encoded JSON objects.
func jwt(w string) bool {
	head, rest, ok := strings.Cut(w, ".")
	body, sign, signed := strings.Cut(rest, ".")
	return ok && signed && len(head) >= 12 && len(body) >= 8 && len(sign) >= 10 && strings.HasPrefix(body, "eyJ") && !strings.Contains(sign, ".") || ok && strings.Count(w, ".") == 4 && len(w) > 100
}
