package embed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// apiError is what servers put into the body of a failure, in the shapes seen: {"error": {…}}, {"error": "…"},
// {"message": "…"}, {"detail": "…"}.
type apiError struct {
	present bool // there is a non-null "error"
	message string
	code    string
}

func parseAPIError(body []byte) apiError {
	var outer struct {
		Error   json.RawMessage
		Message json.RawMessage
		Detail  json.RawMessage
	}
	if json.Unmarshal(body, &outer) != nil {
		return apiError{}
	}
	var e apiError
	e.present = len(outer.Error) > 0 && string(outer.Error) != "null"
	var inner struct {
		Message string
		Type    string
		Code    any
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Message, outer.Detail} {
		if json.Unmarshal(raw, &e.message) == nil && e.message != "" {
			break
		}
	}
	if json.Unmarshal(outer.Error, &inner) == nil {
		e.message = inner.Message
		e.code = inner.Type
		if inner.Code != nil {
			e.code = fmt.Sprint(inner.Code)
		}
	}
	return e
}

// statusFault sorts an answer other than 200.
func statusFault(status int, h http.Header, body []byte) *fault {
	return errorFault(parseAPIError(body), status, h)
}

func errorFault(e apiError, status int, h http.Header) *fault {
	f := &fault{reason: describe(e, status), after: retryAfter(h, time.Now())}
	says := func(parts ...string) bool {
		text := strings.ToLower(e.code + " " + e.message)
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case says("insufficient_quota", "billing", "exceeded your current quota") || status == http.StatusPaymentRequired:
		f.kind = exhausted
		f.reason = "the account's quota is used up: " + f.reason
	case status == http.StatusTooManyRequests || says("rate_limit"):
		f.kind = throttled
	case status == http.StatusForbidden && e.message == "":
		f.kind = misconfigured
		f.reason = "the server, or a proxy before it, forbids the request: check the base URL, HTTP_PROXY and NO_PROXY: " + f.reason
	case status == http.StatusProxyAuthRequired:
		f.kind = misconfigured
		f.reason = "the proxy wants a user and password: check HTTP_PROXY and NO_PROXY: " + f.reason
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.kind = misconfigured
		f.reason = "the server refuses the API key: " + f.reason
	case status == http.StatusNotFound || says("model_not_found"):
		f.kind = misconfigured
		f.reason = "the server does not know this model or address: " + f.reason
	case 300 <= status && status < 400:
		f.kind = misconfigured
		f.reason = "the server redirects; set the base URL to the address it redirects to: " + f.reason
	case status == http.StatusRequestEntityTooLarge || says("context length", "context_length", "context size", "too long", "too large", "maximum input", "max_tokens", "token limit", "less than 512", "must have less than"):
		f.kind = tooLong
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly || status >= 500:
		f.kind = transient
	default:
		f.kind = refused
	}
	return f
}

// describe says what the server said, shortened: some quote the text back.
func describe(e apiError, status int) string {
	s := fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))
	if e.message == "" {
		return s
	}
	const most = 160
	m := strings.Join(strings.Fields(e.message), " ")
	if len(m) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(m[cut]) {
			cut--
		}
		m = m[:cut] + "…"
	}
	return s + ": " + m
}

// retryAfter reads how long the server wants peace: seconds, milliseconds or a date; 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, float64(maxPause.Milliseconds())) * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s, maxPause.Seconds()) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
