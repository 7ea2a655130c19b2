package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hark/engine"
)

// row is one line of an OpenClaw transcript: the event itself, or a row of the host's table
// transcript_events that holds it.
type row struct {
	Seq        int64           `json:"seq"`
	SessionID  string          `json:"session_id"`
	SessionKey string          `json:"session_key"`
	CreatedAt  stamp           `json:"created_at"`
	Event      json.RawMessage `json:"event"`
	EventJSON  string          `json:"event_json"`
}

// event is the part of a transcript event that is used. Versions 2 to 4 are a tree by id and
// parentId; version 1 is a list without either.
type event struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	ParentID  json.RawMessage `json:"parentId"` // null starts the conversation afresh, absent goes on
	TargetID  *string         `json:"targetId"` // of a leaf event: where the conversation goes on
	Timestamp stamp           `json:"timestamp"`
	Message   json.RawMessage `json:"message"`
}

// parent is the id of the event this one follows, "" where it names none.
func (e event) parent() string {
	var id string
	if json.Unmarshal(e.ParentID, &id) != nil {
		return ""
	}
	return id
}

// head is the part of a message that is read here; the message itself is handed on untouched.
type head struct {
	Role           string `json:"role"`
	Timestamp      stamp  `json:"timestamp"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// tree is the transcript of one session while it is read.
type tree struct {
	id, key string // of the session
	nodes   []node
	byID    map[string]int
	leaf    int // the node the conversation goes on from; -1 before the first
}

// node is one event of a tree.
type node struct {
	parent  int // -1 at a root
	message bool
	entry   engine.HistoryEntry
	time    stamp
}

// openClaw reads a transcript. Only the active branch of each session becomes entries: the way
// from its last event back to the root. A reset starts a new window of the same conversation, and
// a compaction shortens the window, not the conversation, so that neither ends the branch.
func (d *decoding) openClaw(data []byte) {
	var trees []*tree
	byID := map[string]*tree{}
	current := ""
	for n, line := range lines(data) {
		r, ev, reason := d.event(line)
		if reason != "" {
			d.bad(n, reason)
			continue
		}
		if ev.Type == "session" && ev.ID != "" {
			current = ev.ID
		}
		id := r.SessionID
		if id == "" {
			id = current
		}
		t := byID[id]
		if t == nil {
			t = &tree{id: id, key: r.SessionKey, byID: map[string]int{}, leaf: -1}
			byID[id] = t
			trees = append(trees, t)
		}
		if reason := d.grow(t, r, ev); reason != "" {
			d.bad(n, reason)
		}
	}
	for _, t := range trees {
		d.harvest(t)
	}
}

// event decodes one line.
func (d *decoding) event(line []byte) (row, event, string) {
	var r row
	var ev event
	line, reason := d.usable(line)
	if reason != "" {
		return r, ev, reason
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, ev, explain(err)
	}
	switch {
	case len(r.Event) > 0 && r.Event[0] == '{':
		line = r.Event
	case r.EventJSON != "":
		line = []byte(r.EventJSON)
	}
	if err := json.Unmarshal(line, &ev); err != nil {
		return r, ev, explain(err)
	}
	if ev.Type == "" {
		return r, ev, `the event has no "type"`
	}
	return r, ev, ""
}

// grow adds an event to its tree.
func (d *decoding) grow(t *tree, r row, ev event) (reason string) {
	n := node{parent: t.leaf, time: ev.Timestamp}
	if n.time.IsZero() {
		n.time = r.CreatedAt
	}
	switch ev.Type {
	case "session":
		return ""
	case "leaf":
		t.leaf = -1
		if ev.TargetID != nil {
			if i, ok := t.byID[*ev.TargetID]; ok {
				t.leaf = i
			}
		}
		return ""
	case "message":
		if reason := d.message(&n, r, ev, len(t.nodes)); reason != "" {
			return reason
		}
	case "compaction", "branch_summary":
		d.counts.summaries++
	case "custom_message":
		d.counts.injected++
	case "reset":
		ev.ParentID = nil // the words before a reset remain part of what was said
	case "custom", "model_change", "thinking_level_change", "active_tools_change", "label", "session_info":
	default:
		count(&d.counts.unknownEvt, ev.Type)
	}
	t.add(d, n, ev)
	return ""
}

// message fills in the node of a message event, the nth event of its session.
func (d *decoding) message(n *node, r row, ev event, nth int) (reason string) {
	if len(ev.Message) == 0 || ev.Message[0] != '{' {
		return `the message event holds no "message" object`
	}
	var h head
	if err := json.Unmarshal(ev.Message, &h); err != nil {
		return explain(err)
	}
	if n.time.IsZero() {
		n.time = h.Timestamp
	}
	id := ev.ID
	if id == "" { // version 1
		id = "v1-" + digest(ev.Message, []byte(n.time.text()), []byte(strconv.Itoa(nth)))
	}
	n.message = true
	n.entry = engine.HistoryEntry{
		EntryID: id, ParentID: ev.parent(), Seq: r.Seq, Role: h.Role, CreatedAt: n.time.text(),
		IdempotencyKey: h.IdempotencyKey, Message: ev.Message,
	}
	return ""
}

// add puts a node under its parent and moves the leaf to it. An event seen before is replaced:
// the host appends the edited form of an entry under the same id.
func (t *tree) add(d *decoding, n node, ev event) {
	if parent := ev.parent(); parent != "" {
		if i, ok := t.byID[parent]; ok {
			n.parent = i
		} else {
			d.counts.orphans++
		}
	} else if n.message && string(ev.ParentID) == "null" {
		n.parent = -1
	}
	if i, ok := t.byID[ev.ID]; ok && ev.ID != "" {
		n.parent = t.nodes[i].parent
		t.nodes[i] = n
		t.leaf = i
		return
	}
	i := len(t.nodes)
	if ev.ID != "" {
		t.byID[ev.ID] = i
	}
	t.nodes = append(t.nodes, n)
	t.leaf = i
}

// harvest turns the active branch of a tree into entries. Parents are always earlier nodes, so
// that the walk ends.
func (d *decoding) harvest(t *tree) {
	id := t.id
	if id == "" {
		id = sessionIDOf(d.file.Path)
	}
	var branch []int
	for i := t.leaf; i >= 0; i = t.nodes[i].parent {
		if t.nodes[i].message {
			branch = append(branch, i)
		}
	}
	slices.Reverse(branch)
	total := 0
	for _, n := range t.nodes {
		if n.message {
			total++
		}
	}
	d.counts.branches += total - len(branch)
	d.file.Skipped += total - len(branch)
	s := d.session(d.sessionKey(t.key, id), id)
	for _, i := range branch {
		d.dated(t.nodes[i].time)
		s.Entries = append(s.Entries, t.nodes[i].entry)
	}
}

// sessionKey says under which key a session of this file is stored: the caller's, the host's, or
// the one the host itself uses for a session it is only given the id of.
func (d *decoding) sessionKey(key, id string) string {
	switch {
	case d.opts.Session != "":
		return d.opts.Session
	case key != "":
		return key
	}
	return "agent:" + d.opts.Agent + ":explicit:" + id
}

// sessionIDOf reads the session id from the name of a transcript: <id>.jsonl,
// <id>-topic-<thread>.jsonl, and their archived forms <id>.jsonl.reset.<time>, all with .gz or without.
func sessionIDOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(path)), ".gz")
	if i := strings.Index(name, ".jsonl"); i > 0 {
		name = name[:i]
	}
	if i := strings.Index(name, "-topic-"); i > 0 {
		name = name[:i]
	}
	if name == "" || name == "-" || name == "." {
		return "imported"
	}
	return name
}

// digest is a short, stable name for parts: the first 16 hexadecimal digits of their SHA-256.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
