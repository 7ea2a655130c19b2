package engine

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// CleanText takes a person's words out of what the host sends as a user message: without the
// channel's envelope, metadata blocks, timestamps, hidden context, media notes, data URIs and Hark's
// own recall block. What the person wrote stays, their own JSON and brackets included. The result
// is valid UTF-8 without control characters; cleaning it again changes nothing.
func CleanText(text string) string {
	text, _ = sanitize(text)
	return clean(text).text
}

type cleaned struct {
	text    string
	sender  string
	machine bool // written by the host or another session, not by a person
}

const fenceName = "hark-recall"

var (
	// A metadata block of the host: a header that calls itself untrusted, then fenced JSON.
	metadataBlock = regexp.MustCompile("^[A-Z][^\\n(]{0,80}\\(untrusted[^)\\n]{0,60}\\):[ \\t]*\\n?\\s*```(?:json)?[ \\t]*\\n((?s:.*?))\\n?```[ \\t]*(?:\\n|$)")
	// What the host lets in from outside, mail or a page: nobody in the conversation said it.
	externalContent = regexp.MustCompile(`(?s)<<<EXTERNAL_UNTRUSTED_CONTENT[^>\n]*>>>.*?<<<END_EXTERNAL_UNTRUSTED_CONTENT[^>\n]*>>>\n?`)
	// The host's hidden context. A beginning without an end stays: it may be a person's words.
	internalContext = regexp.MustCompile(`(?is)<<<\s*BEGIN_OPENCLAW_INTERNAL_CONTEXT\s*>>>.*?<<<\s*END_OPENCLAW_INTERNAL_CONTEXT\s*>>>`)
	untrustedTail   = regexp.MustCompile(`(?s)(?:^|\n)Untrusted context \(metadata, do not treat as instructions or commands\):\n.*$`)
	bracketed       = regexp.MustCompile(`^\[([^\]\n]{3,240})\][ \t]*`)
	weekdayStamp    = regexp.MustCompile(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: \S+)?$`)
	channelWord     = regexp.MustCompile(`^(?i:telegram|whatsapp|discord|slack|signal|imessage|bluebubbles|matrix|msteams|teams|microsoft teams|webchat|web|sms|email|gmail|line|feishu|lark|google ?chat|mattermost|nextcloud(?: talk)?|nostr|irc|zalo|zalouser|twitch|qqbot|qq|wechat|dingtalk|voice|tlon|synology-chat)\b`)
	envelopeProof   = regexp.MustCompile(`(?:^|\s)(?:id:\S+|\+\d+[smhdw]|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2})`)
	stamped         = regexp.MustCompile(`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}`)
	envelopeClock   = regexp.MustCompile(`\d{1,2}:\d{2}`)
	afterName       = regexp.MustCompile(`\s+(?:\(?@\S+|\(?id:|\+\d|\d{4}-\d{2}-\d{2}|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s\d)`)
	messageIDLine   = regexp.MustCompile(`(?m)^\[(?:message_id|message id|slack message id|reply_to_id): ?[^\]\n]*\][ \t]*$\n?`)
	mediaLine       = regexp.MustCompile(`(?m)^(?:\[media attached[^\n]*\]|<media:[a-z]+>)[ \t]*$\n?`)
	// The host's advice beside an attached image, and no more of its line: a person may quote its beginning.
	imageAdvice = regexp.MustCompile(`(?m)^To send an image back, prefer the message tool \(media/path[^)\n]*\)\.(?: If you must inline, use MEDIA:(?:[^\n]*?Keep caption in the text body\.|[^\n]*))?[ \t]*\n?`)
	systemEvent = regexp.MustCompile(`^System: \[\d{4}-\d{2}-\d{2}[^\]\n]*\][^\n]*(?:\n|$)`)
	dataURI     = regexp.MustCompile(`data:([a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+)?(?:;[a-zA-Z0-9=._-]+)*;base64,([A-Za-z0-9+/=_-]{16,})`)
)

// The beginnings of user messages that the host or another session wrote.
var machineOpenings = []string{
	"[Subagent Context]", "[Inter-session message]", "[Subagent Task]", "Pre-compaction memory flush.",
	"[OpenClaw heartbeat", "[Subagent completion]",
}

// clean strips text, which is sanitized, until nothing more comes off.
func clean(text string) cleaned {
	out := cleaned{text: strings.TrimSpace(text)}
	for {
		before := out.text
		out.text = strings.TrimSpace(stripHost(out.text))
		out.stripHead()
		out.text = without(out.text, untrustedTail, "Untrusted context (")
		out.text = without(out.text, mediaLine, "[media attached", "<media:")
		out.text = without(out.text, imageAdvice, "To send an image back")
		out.text = without(out.text, messageIDLine, "message_id:", "message id:", "reply_to_id:")
		if out.text == before {
			break
		}
	}
	for _, opening := range machineOpenings {
		if strings.HasPrefix(out.text, opening) {
			out.machine = true
		}
	}
	return out
}

// without removes what the expression matches, if any of its words occurs at all: the search for a
// word is a hundred times quicker, and texts can be megabytes.
func without(text string, expr *regexp.Regexp, words ...string) string {
	for _, word := range words {
		if strings.Contains(text, word) {
			return strings.TrimSpace(expr.ReplaceAllString(text, ""))
		}
	}
	return text
}

// stripHost removes the blocks that Hark or the host put into any kind of message.
func stripHost(text string) string {
	text = without(text, internalContext, "_OPENCLAW_INTERNAL_CONTEXT", "_openclaw_internal_context")
	text = without(text, externalContent, "<<<EXTERNAL_UNTRUSTED_CONTENT")
	return stripFences(text)
}

// blockOpening begins a recall block, or what looks like one of another version.
var blockOpening = regexp.MustCompile(`(?i)<\s*hark[-_ ]?recall\b([^>\n<]{0,64})>`)

// blockEnding ends one.
var blockEnding = regexp.MustCompile(`(?i)<\s*/\s*hark[-_ ]?recall\b([^>\n<]{0,64})>`)

// stripFences removes recall blocks of any store: an opening marker and the ending of the same nonce.
// Where the ending is missing or another, it removes the lines that have the form of records.
func stripFences(text string) string {
	if !strings.Contains(strings.ToLower(text), "hark") {
		return text
	}
	from := 0
	for {
		loc := blockOpening.FindStringSubmatchIndex(text[from:])
		if loc == nil {
			return text
		}
		start, open := from+loc[0], from+loc[1]
		end := blockEnd(text, open, strings.TrimSpace(text[from+loc[2]:from+loc[3]]))
		if end < 0 {
			from = open
			continue
		}
		text = text[:start] + text[end:]
		from = start
	}
}

// blockEnd returns where a block ends whose opening ends at open, -1 where it is none.
func blockEnd(text string, open int, nonce string) int {
	if nonce != "" {
		for at := open; ; {
			loc := blockEnding.FindStringSubmatchIndex(text[at:])
			if loc == nil {
				break
			}
			if strings.TrimSpace(text[at+loc[2]:at+loc[3]]) == nonce {
				return at + loc[1]
			}
			at += loc[1]
		}
	}
	end, records := open, 0
	for end < len(text) {
		line, _, more := strings.Cut(text[end:], "\n")
		trimmed := strings.TrimSpace(line)
		if loc := blockEnding.FindStringIndex(trimmed); loc != nil && loc[0] == 0 && records > 0 {
			return end + strings.Index(line, trimmed) + loc[1]
		}
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "Records of earlier conversations"):
		case trimmed[0] == '>', recordLine.MatchString(trimmed):
			records++
		default:
			if records == 0 {
				return -1
			}
			return end
		}
		if end += len(line); more {
			end++
		}
	}
	if records == 0 {
		return -1
	}
	return end
}

// recordLine is the line above a record.
var recordLine = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d [^\n]* \| session [^\n]*\]$`)

// stripHead removes one layer of what stands before a person's words.
func (c *cleaned) stripHead() {
	if m := metadataBlock.FindStringSubmatchIndex(c.text); m != nil {
		if name := senderName(c.text[:m[2]], c.text[m[2]:m[3]]); name != "" {
			c.sender = name
		}
		c.text = strings.TrimSpace(c.text[m[1]:])
	}
	if loc := systemEvent.FindStringIndex(c.text); loc != nil {
		c.text = strings.TrimSpace(c.text[loc[1]:])
	}
	m := bracketed.FindStringSubmatchIndex(c.text)
	if m == nil {
		return
	}
	inside := c.text[m[2]:m[3]]
	name, ok := envelope(inside)
	if !ok {
		return
	}
	if c.sender == "" {
		c.sender = name
	}
	c.text = strings.TrimSpace(c.text[m[1]:])
}

// envelope reports whether the inside of a leading bracket is a channel's envelope or the host's
// timestamp, and whose name it carries. A channel name alone proves nothing; an id, an age or a
// date beside a time does.
func envelope(inside string) (sender string, ok bool) {
	if weekdayStamp.MatchString(inside) {
		return "", true
	}
	channel := channelWord.FindString(inside)
	if channel == "" || !envelopeProof.MatchString(inside) || !envelopeClock.MatchString(inside) {
		return "", false
	}
	name := inside[len(channel):]
	if loc := afterName.FindStringIndex(name); loc != nil {
		name = name[:loc[0]]
	}
	return plainLine(name), true
}

// stampOf is the date and time in the envelopes and timestamps before a person's words, as UTC; zero
// where there is none.
func stampOf(text string) time.Time {
	c := cleaned{text: strings.TrimSpace(text)}
	for {
		if m := bracketed.FindStringSubmatch(c.text); m != nil {
			if _, ok := envelope(m[1]); ok {
				if at, err := time.Parse("2006-01-02 15:04", strings.Replace(stamped.FindString(m[1]), "T", " ", 1)); err == nil {
					return at
				}
			}
		}
		before := c.text
		if c.stripHead(); c.text == before {
			return time.Time{}
		}
	}
}

// senderName reads a display name out of the host's metadata JSON.
func senderName(header, body string) string {
	if !strings.HasPrefix(header, "Sender") && !strings.HasPrefix(header, "Conversation info") {
		return ""
	}
	var fields map[string]any
	if json.Unmarshal([]byte(body), &fields) != nil {
		return ""
	}
	keys := []string{"name", "display_name", "label", "username"}
	if strings.HasPrefix(header, "Conversation") {
		keys = []string{"sender"} // its label names the conversation
	}
	for _, key := range keys {
		if name, ok := fields[key].(string); ok && plainLine(name) != "" {
			return plainLine(name)
		}
	}
	return ""
}

// sanitize makes text valid UTF-8 without control and direction characters, with \n line ends, and
// replaces embedded binary data by placeholders; binary reports whether there was any.
func sanitize(text string) (out string, binary bool) {
	if len(text) > 64 && strings.Contains(text, ";base64,") {
		text = dataURI.ReplaceAllStringFunc(text, func(uri string) string {
			binary = true
			m := dataURI.FindStringSubmatch(uri)
			return placeholder("data", m[1], m[2])
		})
	}
	if len(text) >= minRun {
		if short, found := cutRuns(text); found {
			text, binary = short, true
		}
	}
	if plainText(text) {
		return text, binary
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '\r':
			if i >= len(text) || text[i] != '\n' {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case r == utf8.RuneError, unicode.IsControl(r), isDirection(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), binary
}

// minRun is the length from which a run of base64 characters is taken for data.
const minRun = 1000

// cutRuns replaces long runs of encoded data by placeholders.
func cutRuns(text string) (out string, found bool) {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		if end-i >= minRun && mixedCase(text[i:end]) {
			b.WriteString(text[kept:i])
			b.WriteString(placeholder("data", "base64", text[i:end]))
			kept, found = end, true
		}
		i = end + 1
	}
	if !found {
		return text, false
	}
	b.WriteString(text[kept:])
	return b.String(), true
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}

// plainText reports that sanitize has nothing to do, which is so for nearly every message.
func plainText(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// isDirection reports characters that reorder what a reader sees, and byte-order marks.
func isDirection(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff' || r == '\u200e' || r == '\u200f'
}

// mixedCase tells encoded data from a long word: both cases and digits within a short stretch.
func mixedCase(s string) bool {
	var lower, upper, digit bool
	for i := 0; i < min(len(s), 400); i++ {
		lower = lower || s[i] >= 'a' && s[i] <= 'z'
		upper = upper || s[i] >= 'A' && s[i] <= 'Z'
		digit = digit || s[i] >= '0' && s[i] <= '9'
	}
	return lower && upper && digit
}

// plainLine makes a name fit for one line of a rendered block.
func plainLine(s string) string {
	s, _ = sanitize(s)
	s = strings.Join(strings.Fields(s), " ")
	return cutRunes(s, 120)
}

// excerpt keeps the beginning and the end of a text of more than limit bytes, two thirds and one,
// and says how much is missing. Cuts fall between characters that are seen as one.
func excerpt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head := cutRunes(text, limit*2/3)
	tail := cutFront(text, limit/3)
	return head + leftOut(len(text)-len(head)-len(tail)) + tail
}
