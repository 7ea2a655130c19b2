package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hark/engine/mask"
	"hark/index"
)

// Limits of one delivery: rows a transaction, and bytes of a message whose JSON is kept beside its text.
const (
	maxBatch = 500
	maxRaw   = 64 << 10
)

// item is one message of a delivery.
type item struct {
	raw     json.RawMessage
	place   place
	created time.Time // of the transcript event that held it; zero where unknown
	seq     int64     // place in the transcript, from 1; 0 where unknown
}

// delivery is what every ingest path makes of its call.
type delivery struct {
	key, sessionID string
	heartbeat      bool
	items          []item
	known          int  // so many of the first items are stored already
	partial        bool // not the session from its beginning: repetitions cannot be counted
	page           bool // of the host's transcript: neighbours on the active branch
	ends           bool // the active branch ends with the last item
	batch          int  // rows a transaction; 0: maxBatch
	receipt        *index.Receipt
}

type saved struct {
	index.Appended
	skipped int // items that are no messages, or are Hark's own
}

// Ingest implements ContextEngine.
func (e *Engine) Ingest(ctx context.Context, p IngestParams) (res IngestResult, err error) {
	defer func() { e.counted(ctx, "ingest", false, err) }()
	done, err := e.save(ctx, delivery{
		key: p.SessionKey, sessionID: p.SessionID, heartbeat: p.IsHeartbeat, items: items([]json.RawMessage{p.Message}),
	})
	if err != nil {
		return IngestResult{}, fmt.Errorf("ingest: %w", err)
	}
	return IngestResult{Ingested: done.New+done.Updated > 0}, nil
}

// IngestBatch implements ContextEngine.
func (e *Engine) IngestBatch(ctx context.Context, p IngestBatchParams) (res IngestBatchResult, err error) {
	defer func() { e.counted(ctx, "ingestBatch", false, err) }()
	done, err := e.save(ctx, delivery{
		key: p.SessionKey, sessionID: p.SessionID, heartbeat: p.IsHeartbeat, items: items(p.Messages),
	})
	if err != nil {
		return IngestBatchResult{}, fmt.Errorf("ingest %d messages: %w", len(p.Messages), err)
	}
	return IngestBatchResult{IngestedCount: done.New + done.Updated}, nil
}

// AfterTurn implements ContextEngine. It stores the messages after the pre-prompt count, and the
// earlier ones too where the session is new to the store or the count makes no sense.
func (e *Engine) AfterTurn(ctx context.Context, p AfterTurnParams) (err error) {
	defer func() { e.counted(ctx, "afterTurn", false, err) }()
	key := e.lineage(ctx, sessionKey(p.SessionKey, p.SessionTarget), p.SessionID)
	known := p.PrePromptMessageCount
	if known < 0 || known > len(p.Messages) {
		known = 0
	}
	if known > 0 {
		session := key
		if session == "" {
			session = "id:" + hideInID(p.SessionID)
		}
		rows, err := e.store.Session(ctx, session, 0, 1)
		if err == nil && len(rows) == 0 {
			known = 0
		}
	}
	d := delivery{key: key, sessionID: p.SessionID, heartbeat: p.IsHeartbeat, items: items(p.Messages), known: known}
	if p.AutoCompactionSummary != "" {
		d.items = append(d.items, summaryItem(p.AutoCompactionSummary))
	}
	_, err = e.save(ctx, d)
	if err != nil {
		return fmt.Errorf("store the turn: %w", err)
	}
	return nil
}

// summaryItem is a compaction's summary that the host tells beside its messages.
func summaryItem(text string) item {
	return item{raw: json.RawMessage(`{"role":"compactionSummary","summary":` + string(encodeText(text)) + `}`)}
}

// keepSummary stores the summary of a compaction; it is kept as such and never recalled.
func (e *Engine) keepSummary(ctx context.Context, key, sessionID string, c *Compaction) {
	if c == nil || strings.TrimSpace(c.Summary) == "" {
		return
	}
	if _, err := e.save(ctx, delivery{key: key, sessionID: sessionID, partial: true, items: []item{summaryItem(c.Summary)}}); err != nil {
		e.log.Warn("summary of a compaction not stored", "error", err)
	}
}

// CommitTurn implements ContextEngine. Its errors leave nothing written; the host repeats the call.
func (e *Engine) CommitTurn(ctx context.Context, p CommitTurnParams) (res CommitTurnResult, err error) {
	defer func() { e.counted(ctx, "commitTurn", res.Status == Duplicate, err) }()
	if strings.TrimSpace(p.AdvancementKey) == "" {
		return CommitTurnResult{}, errors.New("commit turn: the advancement key is missing")
	}
	if id := p.Admission.LogicalTurnID; id != "" && id != p.AdvancementKey {
		return CommitTurnResult{}, fmt.Errorf("commit turn: advancement key %q and logical turn %q differ", p.AdvancementKey, id)
	}
	key := sessionKey(p.SessionKey, p.SessionTarget)
	if key == "" {
		key = p.Admission.SessionKey
	}
	sessionID := p.SessionID
	if sessionID == "" {
		sessionID = p.Admission.SessionID
	}
	key = e.lineage(ctx, key, sessionID)
	done, err := e.save(ctx, delivery{
		key: key, sessionID: sessionID, heartbeat: p.IsHeartbeat, partial: true,
		items:   turnItems(p, sessionID),
		receipt: &index.Receipt{Key: "turn:" + hideInID(p.AdvancementKey), Digest: digest(strings.ToLower(cmp.Or(p.SessionKey, p.Admission.SessionKey, sessionID)), p.Messages)},
	})
	switch {
	case errors.Is(err, index.ErrConflict):
		return CommitTurnResult{}, fmt.Errorf("commit turn: advancement key %q was used for another turn, nothing was stored: %w", p.AdvancementKey, err)
	case err != nil:
		return CommitTurnResult{}, fmt.Errorf("commit turn: %w", err)
	case done.Replayed:
		return CommitTurnResult{Status: Duplicate}, nil
	}
	return CommitTurnResult{Status: Committed}, nil
}

func items(messages []json.RawMessage) []item {
	out := make([]item, len(messages))
	for i, raw := range messages {
		out[i].raw = raw
	}
	return out
}

// turnItems gives the messages of a turn their places. The anchors name the first and the last
// message; the positions between them are used only where their number agrees.
func turnItems(p CommitTurnParams, sessionID string) []item {
	out := items(p.Messages)
	if len(out) == 0 {
		return out
	}
	for i := range out {
		out[i].place = place{turn: p.AdvancementKey, nth: i}
	}
	first, last := p.Admission.EntryAnchor, p.Terminal
	if last.ActiveMessagePosition-first.ActiveMessagePosition == len(out)-1 && first.Generation != "" && first.Generation == last.Generation {
		for i := range out {
			out[i].place = place{
				sessionID: sessionID, generation: first.Generation,
				position: first.ActiveMessagePosition + i, positioned: true, turn: p.AdvancementKey, nth: i,
			}
		}
	}
	if m, err := decode(out[0].raw); err == nil && m.role == "user" {
		out[0].place.entryID, out[0].place.idem = first.EntryID, first.IdempotencyKey
		if first.EffectiveParentID != nil {
			out[0].place.parent = *first.EffectiveParentID
		}
	}
	if len(out) > 1 {
		out[len(out)-1].place.entryID = last.EntryID
	}
	return out
}

// digest identifies a turn by its session and by its messages' meaning as JSON: key order and white
// space do not count.
func digest(session string, messages []json.RawMessage) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", session)
	for _, raw := range messages {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		canonical := []byte(raw)
		if dec.Decode(&v) == nil {
			if data, err := json.Marshal(v); err == nil {
				canonical = data
			}
		}
		fmt.Fprintf(h, "%d\n", len(canonical))
		h.Write(canonical)
	}
	return [32]byte(h.Sum(nil))
}

// save stores a delivery: the one way into the index.
func (e *Engine) save(ctx context.Context, d delivery) (saved, error) {
	msgs, kept := decodeItems(d.items)
	out := saved{skipped: len(d.items) - len(kept)}
	sc := e.scope(ctx, d.key, d.sessionID, ownerOf(msgs))
	if !d.page {
		e.journal.said(sc.Session)
	}
	markTasks(msgs, sc)
	kinds := classify(msgs, sc, d.heartbeat)
	rows, done, err := e.record(ctx, d, sc, msgs, kept, kinds)
	out.Appended = done
	e.embed(ctx, rows, done)
	if err != nil {
		return out, err
	}
	if b, ok := d.branch(sc.Session, done.Seqs); ok && len(done.Seqs) == len(rows) {
		if err := e.follow(ctx, b); err != nil {
			// The messages are stored; the next page of the transcript tells the same.
			e.log.Warn("cut branches not followed", "error", err)
		}
	}
	if err := e.abortBefore(ctx, d, sc.Session, msgs); err != nil {
		e.log.Warn("aborted turn not followed", "error", err)
	}
	e.log.Debug("stored", "new", done.New, "duplicate", done.Duplicate, "updated", done.Updated,
		"replayed", done.Replayed, "skipped", out.skipped)
	return out, nil
}

// record finds out which messages of a delivery are stored, and writes the rows of those that it is of.
func (e *Engine) record(ctx context.Context, d delivery, sc Scope, msgs []message, kept []int, kinds []index.Kind) ([]index.Message, index.Appended, error) {
	e.ingest.Lock()
	defer e.ingest.Unlock()
	if err := e.adopt(ctx, sc, d.sessionID); err != nil {
		return nil, index.Appended{}, err
	}
	r := e.resolver(sc.Session, d)
	all := d.candidates(sc.Session, msgs, kept)
	if err := r.prefetch(ctx, all); err != nil {
		return nil, index.Appended{}, err
	}
	rows := make([]index.Message, 0, len(msgs))
	for _, c := range all {
		keys, version, err := r.resolve(ctx, c)
		if err != nil {
			return nil, index.Appended{}, err
		}
		if kept[c.at] >= d.known {
			row := e.row(&msgs[c.at], d.items[kept[c.at]], sc, d.sessionID, kinds[c.at], keys)
			row.Version = version
			rows = append(rows, row)
		}
	}
	e.markRestated(ctx, rows)
	done, err := e.append(ctx, rows, d.receipt, cmp.Or(d.batch, maxBatch))
	if err != nil {
		delete(e.paging, sc.Session)
		return rows, done, err
	}
	r.settle(done.Seqs)
	return rows, done, nil
}

// candidates are the messages of a delivery for the resolver: of those that are known only such as can be
// taken for a new one.
func (d delivery) candidates(session string, msgs []message, kept []int) []candidate {
	all := make([]candidate, len(msgs))
	fresh := map[string]bool{}
	for i := range msgs {
		m, it := &msgs[i], &d.items[kept[i]]
		mark := m.fingerprint()
		c := candidate{
			content: content{session: session, role: m.role, mark: mark, ms: m.millis(), seen: m.at},
			at:      i, own: placeKeys(session, m, mark, it.place), text: m.text(), timed: !m.at.IsZero(),
			version: index.Version{Mark: mark, Said: m.at, Edited: m.edited},
		}
		if c.seen.IsZero() {
			c.seen = it.created
		}
		if c.version.Edited.IsZero() {
			c.version.Edited = it.created
		}
		all[i] = c
		if kept[i] >= d.known {
			fresh[c.kin(1)] = true
		}
	}
	return slices.DeleteFunc(all, func(c candidate) bool { return kept[c.at] < d.known && !fresh[c.kin(1)] })
}

// decodeItems decodes what are messages, without Hark's own, and tells which items they were.
func decodeItems(items []item) (msgs []message, kept []int) {
	for i, it := range items {
		m, err := decode(it.raw)
		if err != nil || m.custom == fenceName {
			continue
		}
		msgs, kept = append(msgs, m), append(kept, i)
	}
	return msgs, kept
}

// row makes the index's row of a message.
func (e *Engine) row(m *message, it item, sc Scope, sessionID string, kind index.Kind, keys []string) index.Message {
	_, role := m.kindOf()
	if m.masked > 0 && e.opts.KeepSecrets {
		if open, err := decodeOpen(it.raw); err == nil {
			m = &open
		}
	}
	r := index.Message{
		Keys: keys, Session: sc.Session, SessionID: hideInID(sessionID), Scope: sc.Stored, Kind: kind, Role: role,
		Text: m.said, Caption: joinLines(m.tool, m.caption), Time: m.at, TimeSource: index.FromMessage,
	}
	if role == "user" {
		r.Sender = m.sender
	}
	if m.said == "" {
		r.Text, r.Caption = m.text(), m.caption
	}
	r.Caption = joinLines(r.Caption, m.whole)
	if len(r.Caption) > maxCaption {
		r.Caption = excerpt(r.Caption, maxCaption)
	}
	if m.echo {
		r.Text, r.Caption = "(what memory answered is kept where it was said)", ""
	}
	if r.Time.IsZero() {
		r.Time, r.TimeSource = it.created, index.FromEvent
	}
	if r.Time.IsZero() {
		r.Time, r.TimeSource = e.opts.Clock().UTC().Truncate(time.Millisecond), index.FromIngest
	}
	if !m.binary && !m.echo && len(it.raw) <= maxRaw && utf8.Valid(it.raw) {
		r.Raw = it.raw
		if !e.opts.KeepSecrets {
			r.Raw, _ = mask.JSON(it.raw)
		}
	}
	return r
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// markRestated makes Noise of long user texts that another session of the same scope has word for
// word. What was said in another scope does not count: who asks here may not see it there.
func (e *Engine) markRestated(ctx context.Context, rows []index.Message) {
	for i := range rows {
		r := &rows[i]
		if r.Role != "user" || r.Kind != index.Said || len(r.Text) < restatedFrom {
			continue
		}
		sum := sha256.Sum256([]byte(r.Text))
		restated, err := e.restated(ctx, fmt.Sprintf("%x", sum[:12]), r)
		if restated {
			r.Kind = index.Noise
		}
		if err != nil {
			e.log.Warn("restated text not looked up", "error", err)
			return // what keeps one waiting would keep every one
		}
	}
}

// restated reports that another session of a row's scope has its text, and notes the first that does.
func (e *Engine) restated(ctx context.Context, key string, r *index.Message) (bool, error) {
	value, err := e.store.State(ctx, "restated", key)
	if err != nil {
		return false, err
	}
	var first map[string]string // scope → session
	if json.Unmarshal(value, &first) != nil || first == nil {
		first = map[string]string{}
	}
	if session, ok := first[r.Scope]; ok {
		return session != r.Session, nil
	}
	first[r.Scope] = r.Session
	if value, err = json.Marshal(first); err != nil {
		return false, err
	}
	return false, e.store.SetState(ctx, "restated", key, value)
}

// append writes rows, at most so many in a transaction, or with a receipt in one transaction. The caller
// has embed follow, without holding Engine.ingest.
func (e *Engine) append(ctx context.Context, rows []index.Message, receipt *index.Receipt, most int) (index.Appended, error) {
	if len(rows) == 0 && receipt == nil {
		return index.Appended{}, nil
	}
	var total index.Appended
	for start := 0; start == 0 || start < len(rows); {
		end := len(rows)
		if receipt == nil {
			end = min(end, start+most)
		}
		done, err := e.store.Append(ctx, index.Batch{Messages: rows[start:end], Receipt: receipt})
		if err != nil {
			return total, err
		}
		total.New += done.New
		total.Duplicate += done.Duplicate
		total.Updated += done.Updated
		total.Replayed = done.Replayed
		total.Seqs = append(total.Seqs, done.Seqs...)
		start = end
		if len(rows) == 0 {
			break
		}
	}
	return total, nil
}

// embed gives rows that were written their vectors, where the embedder is in this process.
func (e *Engine) embed(ctx context.Context, rows []index.Message, done index.Appended) {
	if done.New+done.Updated > 0 && e.worker != nil && len(done.Seqs) <= len(rows) {
		e.worker.follow(ctx, rows[:len(done.Seqs)], done.Seqs)
	}
}
