package mask

import "strings"

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
