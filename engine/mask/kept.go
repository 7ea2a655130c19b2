package mask

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
	"github.com/zricethezav/gitleaks/v8/config"
)

// keptRule is a rule of gitleaks: a key that is known by a word in it or before it.
type keptRule struct {
	kind    string
	expr    func() *regexp.Regexp // made when the rule's word is first met
	named   bool                  // the word is the vendor's, before the key; otherwise it is in the key
	group   int
	entropy float64
}

// keptWord is a word of a rule, in small letters.
type keptWord struct {
	word string
	rule int
}

// keptRules are gitleaks' rules, with a table by which most places of a text are passed over at the
// cost of one look: which three characters a word can begin with.
type keptRules struct {
	rules   []keptRule
	at      [1 << 15]uint16 // where in words, from 1
	words   [][]keptWord
	begins  [1 << 15 / 64]uint64
	unknown error // the rules could not be read
}

// passedOver are rules of gitleaks that are not used: keys which have a better rule here, expressions
// over whole files, and rules for what is no secret (the ids and public keys are named by their ends).
var passedOver = []string{
	"generic-api-key", "hashicorp-tf-password", "vault-service-token", "jwt", "jwt-base64", "twilio-api-key",
	"curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "private-key", "pkcs12-file", "nuget-config-password",
	"aws-access-token", "freemius-secret-key", "sourcegraph-access-token", "facebook-secret", "square-access-token", "slack-webhook-url",
}

// anyBefore opens the rules of gitleaks that look for a vendor's name. What may stand before the name is
// not part of the secret, so these are tried at the name.
var anyBefore = strings.NewReplacer(`[\w.-]{0,50}?`, "")

// kept reads gitleaks' rules, once.
var kept = sync.OnceValue(func() *keptRules {
	k := &keptRules{}
	var file struct {
		Rules []struct {
			ID, Regex, Path string
			SecretGroup     int
			Entropy         any // written with and without a point
			Keywords        []string
		}
	}
	if _, k.unknown = toml.Decode(config.DefaultConfig, &file); k.unknown != nil {
		return k
	}
	for _, r := range file.Rules {
		if r.Regex == "" || r.Path != "" || slices.Contains(passedOver, r.ID) ||
			strings.HasSuffix(r.ID, "-id") || strings.Contains(r.ID, "-pub") {
			continue
		}
		rule := keptRule{kind: strings.ReplaceAll(r.ID, "-", " "), group: r.SecretGroup}
		switch e := r.Entropy.(type) {
		case float64:
			rule.entropy = e
		case int64:
			rule.entropy = float64(e)
		}
		source := anyBefore.Replace(r.Regex)
		if rule.named = source != r.Regex; rule.named {
			source = `\A` + source
		}
		rule.expr = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
		for _, word := range r.Keywords {
			if len(word) < 3 {
				continue
			}
			h := trio(word[0], word[1], word[2])
			k.begins[h/64] |= 1 << (h % 64)
			if k.at[h] == 0 {
				k.words = append(k.words, nil)
				k.at[h] = uint16(len(k.words))
			}
			k.words[k.at[h]-1] = append(k.words[k.at[h]-1], keptWord{strings.ToLower(word), len(k.rules)})
		}
		k.rules = append(k.rules, rule)
	}
	return k
})

// trio is the same for capitals and small letters.
func trio(a, b, c byte) uint16 {
	return uint16(a&31)<<10 | uint16(b&31)<<5 | uint16(c&31)
}

// find lists what gitleaks' rules find in a text, in the order of where their words stand.
func (k *keptRules) find(text string) []Finding {
	var found []Finding
	var h uint16
	for i := range len(text) {
		h = (h<<5 | uint16(text[i]&31)) & (1<<15 - 1)
		if k.begins[h/64]&(1<<(h%64)) == 0 || i < 2 {
			continue
		}
		at := i - 2
		for _, w := range k.words[k.at[h]-1] {
			last := len(w.word) - 1
			if len(text)-at <= last || text[at+last]|0x20 != w.word[last]|0x20 || !strings.EqualFold(text[at:at+last+1], w.word) {
				continue
			}
			if s, ok := k.rules[w.rule].match(text, at, w.word); ok {
				found = append(found, s)
			}
		}
	}
	return found
}

// The most bytes that are read around a rule's word.
const (
	keptBefore = 80
	keptAfter  = 1200
	namedAfter = 400
)

// match tries a rule where its word stands.
func (r *keptRule) match(text string, at int, word string) (Finding, bool) {
	from, to := at, min(len(text), at+namedAfter)
	if !r.named {
		for to = at; to < min(len(text), at+keptAfter) && text[to] > ' '; to++ {
		}
		for from > 0 && at-from < keptBefore && text[from-1] > ' ' {
			from--
		}
		from, to = max(0, from-1), min(len(text), to+1)
	}
	if r.named && !longWord(text[from+len(word):min(to, from+len(word)+48+10)]) {
		return Finding{}, false
	}
	m := r.expr().FindStringSubmatchIndex(text[from:to])
	if m == nil {
		return Finding{}, false
	}
	group := 2 * r.group
	for group == 0 && len(m) > 2 || group > 0 && m[group] < 0 {
		if group += 2; group >= len(m) {
			group = 0
			break
		}
	}
	if m[group+1]-m[group] < 8 { // a part that repeats
		group = 0
	}
	start, end := from+m[group], from+m[group+1]
	v := text[start:end]
	if len(v) < 8 || inBlob(text, start) || placeholder(v) || worded(v) || entropy(v) < r.entropy {
		return Finding{}, false
	}
	if r.named {
		if lower, upper, digit, _ := classes(v); !digit || !lower && !upper {
			return Finding{}, false
		}
	} else if start > at || end < at+len(word) {
		return Finding{}, false // the word stands beside what was found, not in it
	}
	return Finding{start, end, r.kind}, true
}

// longWord reports a run of letters and digits that could be a key.
func longWord(s string) bool {
	run := 0
	for i := range len(s) {
		if c := s[i]; alnum(c) || c == '-' || c == '_' {
			if run++; run == 10 {
				return true
			}
		} else {
			run = 0
		}
	}
	return false
}

// entropy is Shannon's, in bits for a byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// merge joins two lists, the first in order and without overlaps; where they overlap the first is right.
func merge(own, more []Finding) []Finding {
	if len(more) == 0 {
		return own
	}
	slices.SortStableFunc(more, func(a, b Finding) int { return a.Start - b.Start })
	all := make([]Finding, 0, len(own)+len(more))
	end := 0
	for _, s := range more {
		for len(own) > 0 && own[0].Start < s.End {
			end = max(end, own[0].End)
			all, own = append(all, own[0]), own[1:]
		}
		if s.Start >= end {
			end = s.End
			all = append(all, s)
		}
	}
	return append(all, own...)
}
