package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"hark/index"
)

// pageFrom is the number of entries from which it pays to remember that a page was stored.
const pageFrom = 200

// storedPage is what is remembered of a long page of a transcript: hosts hand over the same history on
// every turn.
type storedPage struct {
	Entries int    `json:"entries"`
	Digest  string `json:"digest"`
}

// pageKey names the page of a session that begins with an entry, without telling either.
func pageKey(session string, h []HistoryEntry) string {
	sum := sha256.Sum256([]byte(entryKey(session, h[0].EntryID)))
	return hex.EncodeToString(sum[:12])
}

// pageDigest identifies all that is known of entries; this program's version is part of it, because
// another may read them otherwise.
func pageDigest(sessionID string, h []HistoryEntry) string {
	sum := sha256.New()
	var size [8]byte
	write := func(b []byte) {
		binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
		sum.Write(size[:])
		sum.Write(b)
	}
	write([]byte(Version))
	write([]byte(sessionID))
	for i := range h {
		for _, s := range [...]string{h[i].EntryID, h[i].ParentID, h[i].IdempotencyKey, h[i].CreatedAt} {
			write([]byte(s))
		}
		write(h[i].Message)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// storedEntries is how many of the first entries were stored before exactly as they are, and still are
// known; 0 where that is not known.
func (e *Engine) storedEntries(ctx context.Context, session, sessionID string, h []HistoryEntry) int {
	if len(h) < pageFrom || h[0].EntryID == "" {
		return 0
	}
	value, err := e.store.State(ctx, "pages", pageKey(session, h))
	var page storedPage
	if err != nil || json.Unmarshal(value, &page) != nil || page.Entries <= 0 || page.Entries > len(h) ||
		pageDigest(sessionID, h[:page.Entries]) != page.Digest {
		return 0
	}
	var keys []string
	var places []int
	for i := range h[:page.Entries] {
		if h[i].EntryID != "" {
			keys, places = append(keys, entryKey(session, h[i].EntryID)), append(places, i)
		}
	}
	rows, err := e.store.Known(ctx, keys...)
	if err != nil {
		return 0
	}
	for i, seq := range rows {
		if seq == index.Unknown && isMessage(h[places[i]].Message) {
			return 0 // it is gone from the store
		}
	}
	return page.Entries
}

// isMessage says whether an entry becomes a row.
func isMessage(raw json.RawMessage) bool {
	m, err := decode(raw)
	return err == nil && m.custom != fenceName
}

// noteEntries remembers that entries are stored.
func (e *Engine) noteEntries(ctx context.Context, session, sessionID string, h []HistoryEntry) error {
	if len(h) < pageFrom || h[0].EntryID == "" {
		return nil
	}
	value, err := json.Marshal(storedPage{len(h), pageDigest(sessionID, h)})
	if err != nil {
		return err
	}
	return e.store.SetState(ctx, "pages", pageKey(session, h), value)
}
