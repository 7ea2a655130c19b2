package eval

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/index/terms"
)

// agent owns every store that an evaluation fills, and ownerScope is where the engine keeps what
// the agent's owner said.
const (
	agent      = "main"
	ownerScope = "owner"
)

// Library is one filled store and the documents in it.
type Library struct {
	Store *index.Store
	Docs  []Doc  // in the order of storage
	Agent string // whose store it is

	dir       string // of the store
	workspace string // whose memory files the documents are, "" for none

	byID map[string]int // of Docs by the public id of its row
	rows map[string]row // by the document's id
	last time.Time      // of the last document
}

// row is what is known of a stored document.
type row struct {
	seq  int64
	doc  int // of Library.Docs
	kind index.Kind
}

// Has says whether the library holds a document.
func (l *Library) Has(doc string) bool { _, ok := l.rows[doc]; return ok }

// doc names the document of a row, by its public id; "" where there is none.
func (l *Library) doc(id string) string {
	if i, ok := l.byID[id]; ok {
		return l.Docs[i].ID
	}
	return ""
}

// clock is the time at which a query is asked: its own, else shortly after the last document.
func (l *Library) clock(q Query) time.Time {
	if t, ok := parseDate(q.Date); ok {
		return t
	}
	return l.last.Add(time.Minute)
}

// build fills a new store in dir with documents and their vectors. Documents with the same id and
// text count once. emb may be nil.
func build(ctx context.Context, dir string, docs []Doc, history []HistorySession, emb embed.Embedder, opts *engine.Options) (*Library, error) {
	store, err := index.Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	l := &Library{Store: store, Agent: agent, dir: dir, byID: map[string]int{}, rows: map[string]row{}}
	// A fence of fixed bytes: a random one would take more or fewer tokens from run to run.
	err = store.SetState(ctx, "engine", "fence", []byte("00000000"))
	switch {
	case err != nil:
	case history != nil:
		err = l.live(ctx, docs, history, emb, opts)
	default:
		err = l.fill(ctx, docs)
	}
	if err == nil && emb != nil {
		err = embedAll(ctx, store, emb)
	}
	if err == nil {
		err = store.Settle(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return l, nil
}

// fillBatch is how many messages go into one transaction.
const fillBatch = 500

// fill stores documents as rows, as the engine would make them of host messages.
func (l *Library) fill(ctx context.Context, docs []Doc) error {
	var batch []index.Message
	flush := func() error {
		done, err := l.Store.Append(ctx, index.Batch{Messages: batch})
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		rows, err := l.Store.Get(ctx, done.Seqs...)
		if err != nil {
			return fmt.Errorf("read what was stored: %w", err)
		}
		from := len(l.Docs) - len(batch)
		for i, m := range rows {
			l.note(from+i, m)
		}
		batch = batch[:0]
		return nil
	}
	for _, d := range docs {
		if l.Has(d.ID) {
			continue // the same document of another conversation
		}
		l.rows[d.ID] = row{}
		batch = append(batch, l.message(d))
		l.Docs = append(l.Docs, d)
		if len(batch) == fillBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

func (l *Library) note(doc int, m index.Message) {
	l.byID[m.ID] = doc
	l.rows[l.Docs[doc].ID] = row{seq: m.Seq, doc: doc, kind: m.Kind}
	if m.Time.After(l.last) {
		l.last = m.Time
	}
}

// message makes a row of a document. The owner said it, the assistant did, or a tool put it out.
func (l *Library) message(d Doc) index.Message {
	at, ok := parseDate(d.Date)
	if ok {
		at = at.Add(time.Duration(d.Idx) * time.Second)
	} else {
		at = time.Date(2000, 1, 1, 0, 0, len(l.Docs), 0, time.UTC) // the set has no times: the order counts
	}
	m := index.Message{
		Keys: []string{"doc:" + d.ID}, Session: sessionKey(d.Conv, d.Sess), SessionID: d.Sess, Scope: ownerScope,
		Kind: index.Said, Role: "user", Sender: d.Spk, Time: at, Text: d.Text, Caption: d.Extra,
	}
	switch kind, name, _ := strings.Cut(d.Spk, " "); {
	case d.Spk == "assistant":
		m.Role, m.Sender = "assistant", ""
	case kind == "tool":
		m.Role, m.Sender, m.Kind = "tool", "", index.Tool
		if name != "" {
			m.Text = name + ": " + d.Text
		}
	case d.Spk == "user":
		m.Sender = ""
	}
	return m
}

// sessionKey is a key of the host for a session of a set. It is the owner's, so that every session
// of the agent may recall it.
func sessionKey(conv, sess string) string { return "agent:" + agent + ":explicit:" + conv + "/" + sess }

// live hands a history to an engine, as the host does, and finds the rows of its messages.
func (l *Library) live(ctx context.Context, docs []Doc, history []HistorySession, emb embed.Embedder, opts *engine.Options) (err error) {
	e, err := engine.New(l.Store, emb, opts, nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	l.Docs = docs
	at := map[string]int{}
	for i, d := range docs {
		at[d.ID] = i
	}
	for _, h := range history {
		for from := 0; from < len(h.Entries); from += fillBatch {
			page := h.Entries[from:min(from+fillBatch, len(h.Entries))]
			if _, err := e.Bootstrap(ctx, engine.BootstrapParams{SessionID: h.ID, SessionKey: h.Key, History: page}); err != nil {
				return fmt.Errorf("session %s: %w", h.Key, err)
			}
		}
		rows, err := l.Store.Session(ctx, h.Key, 0, 0)
		if err != nil {
			return fmt.Errorf("read session %s: %w", h.Key, err)
		}
		for _, m := range rows {
			if doc, ok := at[entryOf(m.Keys)]; ok {
				l.note(doc, m)
			}
		}
	}
	return nil
}

// entryOf is the id of the transcript entry that a row was made of, "" where its keys name none.
func entryOf(keys []string) string {
	for _, k := range keys {
		if strings.HasPrefix(k, "entry:") {
			return k[strings.LastIndexByte(k, '/')+1:]
		}
	}
	return ""
}

// embedAll gives every message that lacks them its vectors: the whole text, and its passages where
// there are several.
func embedAll(ctx context.Context, store *index.Store, emb embed.Embedder) error {
	model := emb.Model()
	space := index.Space{ID: model.String(), Dim: model.Dim}
	if err := store.UseSpace(ctx, space); err != nil {
		return fmt.Errorf("use vector space: %w", err)
	}
	for {
		rows, err := store.Pending(ctx, space, fillBatch)
		if err != nil {
			return fmt.Errorf("list pending messages: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		var texts []string
		var vectors []index.Vector
		for _, m := range rows {
			texts, vectors = append(texts, m.Text), append(vectors, index.Vector{Seq: m.Seq})
			if parts := terms.Passages(m.Text); len(parts) > 1 {
				for i, p := range parts {
					texts, vectors = append(texts, p), append(vectors, index.Vector{Seq: m.Seq, Part: i + 1})
				}
			}
		}
		vs, err := emb.Embed(ctx, embed.Passage, texts)
		if err != nil {
			return fmt.Errorf("embed %d texts: %w", len(texts), err)
		}
		for i, v := range vs {
			vectors[i].V = v
		}
		if err := store.SetVectors(ctx, space, vectors); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
	}
}

var chineseDate = regexp.MustCompile(`^(\d{4})年(\d{2})月(\d{2})日(?:\s+周.)?(?:\s+(\d{2}:\d{2}))?`)

// parseDate reads the ways in which sets write dates.
func parseDate(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, false
	}
	if m := chineseDate.FindStringSubmatch(s); m != nil {
		clock := m[4]
		if clock == "" {
			clock = "00:00"
		}
		s = m[1] + "-" + m[2] + "-" + m[3] + " " + clock + ":00"
	}
	for _, layout := range []string{
		"3:04 pm on 2 January, 2006", time.RFC3339, "2006-01-02 15:04:05", time.DateOnly, "January-2-2006", "2006/01/02 (Mon) 15:04",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
