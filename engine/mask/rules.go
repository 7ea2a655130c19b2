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
	{begin: "gloas-", set: url, least: 40, kind: "gitlab token"},
	{begin: "glagent-", set: url, least: 40, kind: "gitlab token"},
	{begin: "glsoat-", set: url, least: 18, kind: "gitlab token"},
	{begin: "glffct-", set: url, least: 18, kind: "gitlab token"},
	{begin: "glft-", set: url, least: 18, kind: "gitlab token"},
	{begin: "glimt-", set: url, least: 20, kind: "gitlab token"},
	{begin: "sk_test_", set: letters, least: 16, kind: "stripe key"},
	{begin: "rk_test_", set: letters, least: 16, kind: "stripe key"},
	{begin: "sess-", set: letters, least: 32, kind: "openai key", plain: true},
	{begin: "AQ.Ab8", set: url, least: 30, kind: "google api key"},
	{begin: "xoxc-", set: url, least: 16, kind: "slack token"},
	{begin: "xoxd-", set: dotted, least: 16, kind: "slack token"},
	{begin: "pscale_pw_", set: dotted, least: 30, kind: "planetscale token"},
	{begin: "pscale_tkn_", set: dotted, least: 30, kind: "planetscale token"},
	{begin: "pscale_oauth_", set: dotted, least: 30, kind: "planetscale token"},
	{begin: "napi_", set: letters, least: 32, kind: "neon key"},
	{begin: "npg_", set: letters, least: 12, kind: "neon key", plain: true},
	{begin: "EAAA", set: url, least: 40, kind: "facebook or square token", plain: true},
	{begin: "EAAC", set: letters, least: 80, kind: "facebook token", plain: true},
	{begin: "EAAG", set: letters, least: 80, kind: "facebook token", plain: true},
	{begin: "EAAM", set: letters, least: 80, kind: "facebook token", plain: true},
	{begin: "IGQV", set: url, least: 80, kind: "instagram token", plain: true},
	{begin: "IGAA", set: url, least: 80, kind: "instagram token", plain: true},
	{begin: "syt_", set: under, least: 20, kind: "matrix token", plain: true},
	{begin: "mct_", set: under, least: 30, kind: "matrix token", plain: true},
	{begin: "rnd_", set: letters, least: 24, kind: "render key", plain: true},
	{begin: "vcp_", set: letters, least: 24, kind: "vercel token", plain: true},
	{begin: "vca_", set: letters, least: 24, kind: "vercel token", plain: true},
	{begin: "vci_", set: letters, least: 24, kind: "vercel token", plain: true},
	{begin: "vcr_", set: letters, least: 24, kind: "vercel token", plain: true},
	{begin: "vck_", set: letters, least: 24, kind: "vercel token", plain: true},
	{begin: "vercel_blob_rw_", set: under, least: 24, kind: "vercel token"},
	{begin: "phx_", set: letters, least: 30, kind: "posthog key", plain: true},
	{begin: "phs_", set: letters, least: 30, kind: "posthog key", plain: true},
	{begin: "pa-", set: url, least: 32, kind: "voyage key", plain: true},
	{begin: "fw_", set: letters, least: 20, kind: "fireworks key", plain: true},
	{begin: "tk_", set: letters, least: 24, kind: "api token", plain: true},
	{begin: "HRKU-", set: url, least: 32, kind: "heroku key"},
	{begin: "CCIPAT_", set: under, least: 40, kind: "circleci token"},
	{begin: "CCIPRJ_", set: under, least: 40, kind: "circleci token"},
	{begin: "bkua_", set: lowHex, least: 40, kind: "buildkite token"},
	{begin: "pat-na1-", set: url, least: 32, kind: "hubspot token"},
	{begin: "pat-eu1-", set: url, least: 32, kind: "hubspot token"},
	{begin: "lin_oauth_", set: letters, least: 32, kind: "linear key"},
	{begin: "ATCTT3", set: url, least: 60, kind: "atlassian token"},
	{begin: "ATBB", set: letters, least: 28, kind: "bitbucket password", plain: true},
	{begin: "sqp_", set: lowHex, least: 40, kind: "sonar token"},
	{begin: "squ_", set: lowHex, least: 40, kind: "sonar token"},
	{begin: "sqa_", set: lowHex, least: 40, kind: "sonar token"},
	{begin: "sgp_", set: under, least: 40, kind: "sourcegraph token"},
	{begin: "sk.eyJ", set: dotted, least: 60, kind: "mapbox token"},
	{begin: "LTAI", set: letters, least: 16, most: 24, kind: "alibaba key", plain: true},
	{begin: "AKID", set: letters, least: 32, most: 32, kind: "tencent key", plain: true},
	{begin: "ABSK", set: letters, least: 100, kind: "aws bedrock key"},
	{begin: "cfut_", set: letters, least: 32, kind: "cloudflare key"},
	{begin: "cfat_", set: letters, least: 32, kind: "cloudflare key"},
	{begin: "cfk_", set: letters, least: 32, kind: "cloudflare key"},
	{begin: "cio", set: letters, least: 32, most: 32, kind: "crates.io token", plain: true},
	{begin: "oy2", set: letters, least: 43, most: 43, kind: "nuget key", plain: true},
	{begin: "dckr_oat_", set: url, least: 20, kind: "docker token"},
	{begin: "dt0c01.", set: dotted, least: 60, kind: "dynatrace token"},
	{begin: "dt0s01.", set: dotted, least: 60, kind: "dynatrace token"},
	{begin: "e2b_", set: lowHex, least: 40, kind: "e2b key"},
	{begin: "dtn_", set: lowHex, least: 40, kind: "daytona key"},
	{begin: "rpa_", set: letters, least: 36, kind: "runpod key", plain: true},
	{begin: "bb_live_", set: url, least: 20, kind: "browserbase key", plain: true},
	{begin: "apify_api_", set: letters, least: 30, kind: "apify token"},
	{begin: "pylf_v", set: under, least: 40, kind: "logfire token", plain: true},
	{begin: "wandb_v1_", set: under, least: 40, kind: "wandb key"},
	{begin: "ctx7sk-", set: url, least: 30, kind: "api key"},
	{begin: "cal_live_", set: letters, least: 32, kind: "cal.com key"},
	{begin: "tr_prod_", set: letters, least: 18, kind: "trigger.dev key", plain: true},
	{begin: "tr_dev_", set: letters, least: 18, kind: "trigger.dev key", plain: true},
	{begin: "signkey-prod-", set: lowHex, least: 32, kind: "inngest key"},
	{begin: "xau_", set: letters, least: 32, kind: "xata key", plain: true},
	{begin: "ory_pat_", set: letters, least: 28, kind: "ory token"},
	{begin: "dp.ct.", set: letters, least: 32, kind: "doppler token"},
	{begin: "dp.sa.", set: letters, least: 32, kind: "doppler token"},
	{begin: "dp.scim.", set: letters, least: 32, kind: "doppler token"},
	{begin: "CFPAT-", set: url, least: 40, kind: "contentful token"},
	{begin: "shippo_live_", set: lowHex, least: 40, kind: "shippo token"},
	{begin: "rzp_live_", set: letters, least: 14, kind: "razorpay key"},
	{begin: "pdl_live_apikey_", set: under, least: 30, kind: "paddle key"},
	{begin: "access-production-", set: url, least: 36, kind: "plaid token"},
	{begin: "tfp_", set: dotted, least: 40, kind: "typeform token", plain: true},
	{begin: "rdme_", set: letters, least: 60, kind: "readme key"},
	{begin: "ico-", set: letters, least: 32, most: 32, kind: "infracost key", plain: true},
	{begin: "NRII-", set: url, least: 30, kind: "new relic key"},
	{begin: "AKCp", set: letters, least: 60, kind: "jfrog key"},
	{begin: "m0-", set: letters, least: 40, most: 40, kind: "mem0 key", plain: true},
	{begin: "WPL_AP1.", set: dotted, least: 16, kind: "linkedin secret"},
	{begin: "A21AA", set: url, least: 80, kind: "paypal token", plain: true},
	{begin: "sha256~", set: url, least: 43, most: 43, kind: "openshift token"},
	{begin: "kgat_", set: lowHex, least: 32, kind: "kaggle token"},
	{begin: "KGAT_", set: lowHex, least: 32, kind: "kaggle token"},
	{begin: "mlsn.", set: lowHex, least: 60, kind: "mailersend token"},
	{begin: "live_", set: letters, least: 30, kind: "mollie key", plain: true},
	{begin: "flyv1_", set: letters, least: 40, kind: "fly token"},
	{begin: "fo1_", set: url, least: 43, kind: "fly token"},
	{begin: "fm1r_", set: letters, least: 60, kind: "fly token"},
	{begin: "fm1a_", set: letters, least: 60, kind: "fly token"},
	{begin: "lsk_", set: letters, least: 32, kind: "api key", plain: true},
	{begin: "fal_", set: letters, least: 32, kind: "api key", plain: true},
	{begin: "nvcf-", set: url, least: 40, kind: "nvidia key"},
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
	if distinct(rest) < 4 || worded(rest) {
		return 0
	}
	if r.plain {
		lower, upper, digit, _ := classes(rest)
		if !digit || !lower || !upper && !longRun(rest) || strings.HasPrefix(rest, "AA") {
			return 0
		}
	}
	return end
}
