package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"hark/index"
)

// place is what a delivery says about one message's place in the host's transcript.
type place struct {
	entryID    string
	parent     string // entry before it on the active branch
	idem       string
	sessionID  string
	generation string
	position   int
	positioned bool
	turn       string // advancement key of the turn it is part of
	nth        int    // message of it
}

// fingerprint identifies what a message says, whatever the host did to its form: white space is
// collapsed, tool-call ids, signatures and metadata are not part of it.
func (m *message) fingerprint() string {
	h := sha256.New()
	for i, part := range []string{m.said, m.tool, m.caption} {
		if i > 0 {
			h.Write([]byte{0})
		}
		for j, word := range strings.Fields(part) {
			if j > 0 {
				h.Write([]byte{' '})
			}
			h.Write([]byte(word))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// contentKey is the key of last resort: session, role, time and fingerprint. The same message said
// again differs in its time; where it has none, or the same, by its occurrence (from 1).
func contentKey(session, role, mark string, ms int64, occurrence int) string {
	return numbered("text:"+oneLine(session)+"/"+role+"/"+strconv.FormatInt(ms, 10)+"/"+mark, occurrence)
}

// entryKey is the key of an entry of the host's transcript.
func entryKey(session, id string) string { return "entry:" + oneLine(session) + "/" + oneLine(id) }

// millis is the message's own time, 0 where it has none. A summary has none that counts: hosts hand it
// over with and without.
func (m *message) millis() int64 {
	if m.at.IsZero() || m.role == "summary" {
		return 0
	}
	return m.at.UnixMilli()
}

// placeKeys lists the keys of a message's place, most reliable first. The position counts only together
// with the content and its time, because a transcript that is cut back gives its positions to other
// messages, even to ones that say the same.
func placeKeys(session string, m *message, mark string, at place) []string {
	keys := make([]string, 0, 5)
	if at.entryID != "" {
		keys = append(keys, entryKey(session, at.entryID))
	}
	idem := at.idem
	if idem == "" {
		idem = m.idem
	}
	if idem != "" {
		keys = append(keys, "idem:"+oneLine(session)+"/"+m.role+"/"+oneLine(idem))
	}
	if at.positioned {
		keys = append(keys, fmt.Sprintf("pos:%s/%s/%s/%d/%s/%d", oneLine(session), oneLine(at.sessionID), oneLine(at.generation), at.position, mark[:8], m.millis()))
	}
	if m.reply != "" {
		keys = append(keys, "reply:"+oneLine(session)+"/"+oneLine(m.reply)+"/"+mark)
	}
	if at.turn != "" && m.at.IsZero() {
		keys = append(keys, fmt.Sprintf("turn:%s/%s/%d", oneLine(session), oneLine(at.turn), at.nth))
	}
	return keys
}

// oneLine makes s one part of a key: what separates parts, and stored keys, is escaped, because ids
// and session keys may hold it and two messages must never share a key. A secret in it is not kept.
func oneLine(s string) string { return partEscaper.Replace(hideInID(s)) }

var (
	partEscaper   = strings.NewReplacer("%", "%25", "/", "%2F", "\n", "%0A")
	partUnescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%0A", "\n")
)

// contradicts reports that two messages of the same content are two events: each has a place in the
// transcript, and the places differ. Where both have the same time, only places of one generation
// count: a transcript that was rewritten gives its messages new entries.
func contradicts(stored, keys []string, untimed bool) bool {
	if untimed {
		for _, class := range [...]string{"entry:", "turn:"} {
			if a, b := keyOf(stored, class), keyOf(keys, class); a != "" && b != "" {
				return a != b
			}
		}
	}
	a, at := placeOf(keyOf(stored, "pos:"))
	b, bt := placeOf(keyOf(keys, "pos:"))
	return a != "" && b != "" && (a == b && at != bt || untimed && a != b)
}

// placeOf reads the transcript with its generation, and the position in it, out of a key of a position.
func placeOf(key string) (transcript, position string) {
	parts := strings.Split(key, "/")
	if len(parts) < 5 {
		return "", ""
	}
	n := len(parts) - 3 // position, print, time
	return strings.Join(parts[:n], "/"), parts[n]
}

func keyOf(keys []string, class string) string {
	for _, key := range keys {
		if strings.HasPrefix(key, class) {
			return key
		}
	}
	return ""
}

// kindOf maps a decoded message to the row it becomes.
func (m *message) kindOf() (kind index.Kind, role string) {
	if m.echo {
		return index.Noise, m.role
	}
	switch m.role {
	case "user":
		if m.machine {
			return index.Noise, "system"
		}
		return index.Said, "user"
	case "assistant":
		if m.said == "" && m.tool != "" {
			return index.Tool, "assistant"
		}
		return index.Said, "assistant"
	case "tool":
		return index.Tool, "tool"
	case "summary":
		return index.Summary, "system"
	}
	return index.Noise, "system"
}
