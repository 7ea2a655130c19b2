package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

const messageColumns = `seq, id, keys, session, session_id, scope, kind, role, sender, time_ms, time_source, text, caption, raw, mark, said_ms, edited_ms`

// Get returns rows in the order asked for. A row that does not exist is ErrNotFound.
func (s *Store) Get(ctx context.Context, seqs ...int64) ([]Message, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.get(ctx, seqs)
}

func (s *Store) get(ctx context.Context, seqs []int64) ([]Message, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	found, err := s.query(ctx, `seq IN (SELECT value FROM json_each(?)) ORDER BY seq`, jsonInts(seqs))
	if err != nil {
		return nil, fmt.Errorf("get messages: %w", err)
	}
	out := make([]Message, len(seqs))
	for i, seq := range seqs {
		j := sort.Search(len(found), func(j int) bool { return found[j].Seq >= seq })
		if j == len(found) || found[j].Seq != seq {
			return nil, fmt.Errorf("row %d: %w", seq, ErrNotFound)
		}
		out[i] = found[j]
	}
	return out, nil
}

// jsonInts spells numbers as the JSON array that json_each reads.
func jsonInts(seqs []int64) string {
	b := make([]byte, 0, 8*len(seqs)+2)
	b = append(b, '[')
	for i, n := range seqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// query reads messages, text and raw form included.
func (s *Store) query(ctx context.Context, where string, args ...any) ([]Message, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT `+messageColumns+` FROM messages WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Message
	for rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// scanMessage reads messageColumns.
func scanMessage(row interface{ Scan(...any) error }) (m Message, err error) {
	var keys string
	var ms, said, edited int64
	var raw []byte
	err = row.Scan(&m.Seq, &m.ID, &keys, &m.Session, &m.SessionID, &m.Scope, &m.Kind, &m.Role, &m.Sender,
		&ms, &m.TimeSource, &m.Text, &m.Caption, &raw, &m.Version.Mark, &said, &edited)
	m.Version.Said, m.Version.Edited = instant(said), instant(edited)
	m.Keys, m.Time, m.Raw = strings.Split(keys, "\n"), unixMilli(ms), raw
	return m, err
}

// Find returns messages by their public ids, in the order asked for. An id that does not
// exist is ErrNotFound.
func (s *Store) Find(ctx context.Context, ids ...string) ([]Message, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	out := make([]Message, 0, len(ids))
	for _, id := range ids {
		m, err := s.query(ctx, `id=?`, strings.ToLower(strings.TrimSpace(id)))
		if err != nil {
			return nil, fmt.Errorf("find message: %w", err)
		}
		if len(m) == 0 {
			return nil, fmt.Errorf("message %q: %w", id, ErrNotFound)
		}
		out = append(out, m[0])
	}
	return out, nil
}

// instant reads a time of which 0 means that there is none, and milliOf writes it.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return unixMilli(ms)
}

func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Session returns the rows of a session, of every kind, in order of time, then row: those
// after the given row (0: from the beginning), at most limit (0: all). A row that is gone
// counts as the beginning.
func (s *Store) Session(ctx context.Context, session string, after int64, limit int) ([]Message, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.get(ctx, s.sessionSeqs(session, after, limit))
}

func (s *Store) sessionSeqs(session string, after int64, limit int) []int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.cols
	id, ok := c.names.ids[session]
	ses := c.sessions[id]
	if !ok || ses == nil {
		return nil
	}
	slots := ses.all
	if i, ok := c.slot(after); ok {
		if at, ok := slices.BinarySearchFunc(slots, int32(i), c.order); ok {
			slots = slots[at+1:]
		}
	}
	if limit > 0 && len(slots) > limit {
		slots = slots[:limit]
	}
	out := make([]int64, len(slots))
	for i, slot := range slots {
		out[i] = c.rows[slot].seq
	}
	return out
}

// Sessions lists the sessions, sorted by key.
func (s *Store) Sessions(ctx context.Context) ([]SessionInfo, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.cols
	var out []SessionInfo
	for id, ses := range c.sessions {
		if len(ses.all) == 0 {
			continue
		}
		at := func(slot int32) time.Time { return time.UnixMilli(c.rows[slot].time).UTC() }
		out = append(out, SessionInfo{c.names.byID[id], len(ses.all), at(ses.all[0]), at(ses.all[len(ses.all)-1])})
	}
	slices.SortFunc(out, func(a, b SessionInfo) int { return strings.Compare(a.Session, b.Session) })
	return out, nil
}

// State returns a small durable value of the engine, nil where it is not set.
func (s *Store) State(ctx context.Context, bucket, key string) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	var v []byte
	err := s.reads.QueryRowContext(ctx, `SELECT value FROM state WHERE bucket=? AND key=?`, bucket, key).Scan(&v)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return v, nil
}

// States returns the values of a bucket by their keys.
func (s *Store) States(ctx context.Context, bucket string) (map[string][]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	rows, err := s.reads.QueryContext(ctx, `SELECT key, value FROM state WHERE bucket=?`, bucket)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	defer rows.Close()
	out := map[string][]byte{}
	for rows.Next() {
		var key string
		var value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		out[key] = value
	}
	return out, rows.Err()
}

// StateKeys returns the keys of a bucket, sorted.
func (s *Store) StateKeys(ctx context.Context, bucket string) ([]string, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	rows, err := s.reads.QueryContext(ctx, `SELECT key FROM state WHERE bucket=? ORDER BY key`, bucket)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		out = append(out, key)
	}
	return out, rows.Err()
}

// SetState stores a small value durably; nil deletes it. The bucket "store" is taken.
func (s *Store) SetState(ctx context.Context, bucket, key string, value []byte) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if bucket == ownBucket {
		return fmt.Errorf("index: state bucket %q is the store's own", bucket)
	}
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if value == nil {
		_, err = execute(ctx, s.durable, `DELETE FROM state WHERE bucket=? AND key=?`, bucket, key)
	} else {
		_, err = execute(ctx, s.durable, `INSERT OR REPLACE INTO state VALUES(?, ?, ?)`, bucket, key, value)
	}
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// ownBucket holds the store's id, the version of its analysis and whether words are to be erased.
const ownBucket = "store"
