package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hark/index/terms"
)

// entryKey marks keys of transcript entries, whose text the host may finish later.
const entryKey = "entry:"

// idLength is the length of a public id before a collision extends it: 50 bits.
const idLength = 10

// statements are prepared on the durable connection, for appends.
type statements struct {
	identity, addIdentity, receipt, addReceipt, id, name, message, doc, whole *sql.Stmt
	all                                                                       []*sql.Stmt
}

func (st *statements) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&st.identity, `SELECT seq FROM identities WHERE hash=?`},
		{&st.addIdentity, `INSERT INTO identities(hash, seq) VALUES(?, ?)`},
		{&st.receipt, `SELECT digest FROM receipts WHERE key=?`},
		{&st.addReceipt, `INSERT INTO receipts(key, digest) VALUES(?, ?)`},
		{&st.id, `SELECT 1 FROM messages WHERE id=?`},
		{&st.name, `INSERT INTO names(name) VALUES(?)`},
		{&st.message, `INSERT INTO messages(id, keys, session, session_id, scope, kind, role, sender, time_ms, time_source, text, caption, raw, mark, said_ms, edited_ms)
			VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&st.doc, `INSERT OR REPLACE INTO docs(seq, body) VALUES(?, ?)`},
		{&st.whole, `SELECT ` + messageColumns + ` FROM messages WHERE seq=?`},
	} {
		s, err := db.PrepareContext(ctx, p.sql)
		if err != nil {
			return err
		}
		*p.to = s
		st.all = append(st.all, s)
	}
	return nil
}

func (st *statements) close() {
	for _, s := range st.all {
		s.Close()
	}
}

// Append stores a batch in one transaction that is on disk when it returns, with its words
// searchable. Messages that are known by any key are duplicates; where the first key is of a
// transcript entry ("entry:"), which the row has too or gets now as its first, and the text differs,
// the row's text, caption, raw form, kind and version are replaced and its vectors are pending again,
// unless the version says that it is old. Forgotten messages stay forgotten:
// they count as duplicates with row 0. On any error nothing is stored.
func (s *Store) Append(ctx context.Context, b Batch) (Appended, error) {
	if err := s.enter(); err != nil {
		return Appended{}, err
	}
	defer s.leave()
	for i := range b.Messages {
		if err := valid(&b.Messages[i]); err != nil {
			return Appended{}, fmt.Errorf("append: message %d: %w", i, err)
		}
	}
	if len(b.Messages) >= followBatch {
		if err := s.words.wait(ctx); err != nil {
			return Appended{}, err
		}
	}
	done, err := s.write(ctx)
	if err != nil {
		return Appended{}, err
	}
	defer done()
	out, err := s.append(ctx, b)
	if err != nil {
		return Appended{}, fmt.Errorf("append: %w", err)
	}
	return out, nil
}

func valid(m *Message) error {
	switch {
	case len(m.Keys) == 0 || m.Keys[0] == "":
		return errors.New("no identity key")
	case slices.ContainsFunc(m.Keys, func(k string) bool { return strings.Contains(k, "\n") }):
		return errors.New("an identity key holds a line break")
	case m.Kind > Noise:
		return fmt.Errorf("unknown kind %d", m.Kind)
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.Caption):
		return errors.New("text is not valid UTF-8")
	}
	return nil
}

// appending is one transaction of Append and what memory has to learn from it.
type appending struct {
	*analyser // of what is stored and what this transaction adds
	s         *Store
	tx        *sql.Tx
	staged    []staged
	place     map[int64]int // row → staged
	changes   []change
	out       Appended
}

// staged is a row that was added or replaced.
type staged struct {
	rec
	raw     []byte
	doc     terms.Doc
	keys    []string
	session string
	scope   string
	update  bool
}

func (s *Store) append(ctx context.Context, b Batch) (Appended, error) {
	// The transaction itself runs uncancelled: interrupting a statement costs a goroutine each.
	quiet := context.WithoutCancel(ctx)
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return Appended{}, err
	}
	defer tx.Rollback()
	// The columns may be read without the lock: who has the turn to write alone changes them.
	a := &appending{analyser: newAnalyser(s.analyzer, s.cols), s: s, tx: tx, place: map[int64]int{}}
	a.analyser.addName = a.addName
	if replayed, err := a.receive(quiet, b.Receipt); err != nil || replayed {
		return Appended{Replayed: replayed}, err
	}
	a.out.Seqs = make([]int64, len(b.Messages))
	for i := range b.Messages {
		if err := ctx.Err(); err != nil {
			return Appended{}, err
		}
		if a.out.Seqs[i], err = a.message(quiet, &b.Messages[i]); err != nil {
			return Appended{}, fmt.Errorf("message %d: %w", i, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return Appended{}, err
	}
	a.publish()
	return a.out, nil
}

// receive checks and stores the receipt.
func (a *appending) receive(ctx context.Context, r *Receipt) (replayed bool, err error) {
	if r == nil {
		return false, nil
	}
	st := &a.s.stmts
	var digest []byte
	switch err := a.tx.StmtContext(ctx, st.receipt).QueryRowContext(ctx, r.Key).Scan(&digest); {
	case err == nil && bytes.Equal(digest, r.Digest[:]):
		return true, nil
	case err == nil:
		return false, ErrConflict
	case !errors.Is(err, sql.ErrNoRows):
		return false, err
	}
	_, err = a.tx.StmtContext(ctx, st.addReceipt).ExecContext(ctx, r.Key, r.Digest[:])
	return false, err
}

func hashKey(key string) []byte {
	h := sha256.Sum256([]byte(key))
	return h[:16]
}

// message stores, replaces or recognises one message and returns its row.
func (a *appending) message(ctx context.Context, m *Message) (int64, error) {
	const unknown = -1
	found, gone := int64(unknown), int64(0) // minus when what was found was forgotten
	byFirst := false
	var missing []string
	for i, key := range m.Keys {
		if key == "" || slices.Contains(m.Keys[:i], key) {
			continue
		}
		seq, known, err := a.identity(ctx, key)
		switch {
		case err != nil:
			return 0, err
		case !known:
			missing = append(missing, key)
		case found == unknown:
			if i == 0 && seq > 0 && strings.HasPrefix(key, entryKey) {
				if other, err := a.reused(ctx, m, seq); err != nil {
					return 0, err
				} else if other {
					continue // the id names another message: the rest of the keys decides
				}
			}
			found, byFirst = max(0, seq), i == 0
			gone = min(0, seq)
		}
	}
	if found == unknown {
		seq, err := a.insert(ctx, m)
		if err != nil {
			return 0, err
		}
		a.out.New++
		return seq, a.identify(ctx, missing, seq)
	}
	if err := a.identify(ctx, missing, found+gone); err != nil {
		return 0, err
	}
	if found > 0 && len(missing) > 0 {
		if _, err := a.tx.ExecContext(ctx, `UPDATE messages SET keys = keys || char(10) || ? WHERE seq=?`,
			strings.Join(missing, "\n"), found); err != nil {
			return 0, err
		}
	}
	if found > 0 && m.Version.Dates && m.TimeSource == FromMessage {
		if err := a.date(ctx, m, found); err != nil {
			return 0, err
		}
	}
	if found > 0 && strings.HasPrefix(m.Keys[0], entryKey) {
		updated, err := a.update(ctx, m, found, byFirst)
		if err != nil {
			return 0, err
		}
		if updated {
			a.out.Updated++
			return found, nil
		}
	}
	a.out.Duplicate++
	return found, nil
}

// identity is the row of a key; where its message was forgotten, here or elsewhere, minus when that was.
func (a *appending) identity(ctx context.Context, key string) (seq int64, known bool, err error) {
	hash := hashKey(key)
	err = a.tx.StmtContext(ctx, a.s.stmts.identity).QueryRowContext(ctx, hash).Scan(&seq)
	if !errors.Is(err, sql.ErrNoRows) {
		return seq, err == nil, err
	}
	gone, known, err := a.s.marked(ctx, a.tx, hash)
	if err != nil || !known {
		return 0, false, err
	}
	_, err = a.tx.StmtContext(ctx, a.s.stmts.addIdentity).ExecContext(ctx, hash, -gone)
	return -gone, true, err
}

func (a *appending) identify(ctx context.Context, keys []string, seq int64) error {
	add := a.tx.StmtContext(ctx, a.s.stmts.addIdentity)
	for _, key := range keys {
		if _, err := add.ExecContext(ctx, hashKey(key), seq); err != nil {
			return err
		}
	}
	return nil
}

func (a *appending) insert(ctx context.Context, m *Message) (int64, error) {
	id, err := a.publicID(ctx, m.Keys[0])
	if err != nil {
		return 0, err
	}
	st := &a.s.stmts
	res, err := a.tx.StmtContext(ctx, st.message).ExecContext(ctx, id, strings.Join(distinct(m.Keys), "\n"),
		m.Session, m.SessionID, m.Scope, m.Kind, m.Role, m.Sender, m.Time.UnixMilli(), m.TimeSource, m.Text, m.Caption, []byte(m.Raw),
		m.Version.Mark, milliOf(m.Version.Said), milliOf(m.Version.Edited))
	if err != nil {
		return 0, err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	return seq, a.stage(ctx, m, seq, false)
}

func distinct(keys []string) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		if k != "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// publicID derives an id from a key and extends it until it is free.
func (a *appending) publicID(ctx context.Context, key string) (string, error) {
	sum := sha256.Sum256([]byte(key))
	full := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	for n := idLength; n <= len(full); n++ {
		var one int
		err := a.tx.StmtContext(ctx, a.s.stmts.id).QueryRowContext(ctx, full[:n]).Scan(&one)
		if errors.Is(err, sql.ErrNoRows) {
			return full[:n], nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no free id for key %q", key)
}

// reused reports that a row with the entry id of m is another message: hosts make short ids afresh
// for every transcript, and several transcripts can belong to one session.
func (a *appending) reused(ctx context.Context, m *Message, seq int64) (bool, error) {
	row, err := scanMessage(a.tx.StmtContext(ctx, a.s.stmts.whole).QueryRowContext(ctx, seq))
	if err != nil {
		return false, err
	}
	return row.SessionID != m.SessionID && row.Text != m.Text && row.TimeSource == FromMessage && m.TimeSource == FromMessage &&
		row.Time.UnixMilli() != m.Time.UnixMilli(), nil
}

// update replaces the text of a row if it differs; sender and session stay. A row that was
// found by another key than its entry takes the entry's text only where it had no entry before.
func (a *appending) update(ctx context.Context, m *Message, seq int64, byEntry bool) (bool, error) {
	row, err := scanMessage(a.tx.StmtContext(ctx, a.s.stmts.whole).QueryRowContext(ctx, seq))
	if err != nil || m.Version.Old {
		return false, err
	}
	if row.Text == m.Text {
		return false, a.confirm(ctx, &row, m)
	}
	had := slices.ContainsFunc(row.Keys, func(k string) bool { return strings.HasPrefix(k, entryKey) && k != m.Keys[0] })
	if !byEntry && had {
		return false, nil
	}
	row.Text, row.Caption, row.Raw, row.Kind = m.Text, m.Caption, m.Raw, m.Kind
	row.Version = m.Version
	return true, a.replace(ctx, &row)
}

// date gives a row the time that the message itself tells.
func (a *appending) date(ctx context.Context, m *Message, seq int64) error {
	row, err := scanMessage(a.tx.StmtContext(ctx, a.s.stmts.whole).QueryRowContext(ctx, seq))
	if err != nil || row.TimeSource == FromMessage {
		return err
	}
	row.Time, row.TimeSource, row.Version.Said = m.Time, m.TimeSource, m.Version.Said
	return a.replace(ctx, &row)
}

// confirm notes that a row's text was given again, by a later version than was known.
func (a *appending) confirm(ctx context.Context, row, m *Message) error {
	if !m.Version.Edited.After(row.Version.Edited) && !m.Version.Said.After(row.Version.Said) {
		return nil
	}
	_, err := a.tx.ExecContext(ctx, `UPDATE messages SET mark=?, said_ms=max(said_ms, ?), edited_ms=max(edited_ms, ?) WHERE seq=?`,
		m.Version.Mark, milliOf(m.Version.Said), milliOf(m.Version.Edited), row.Seq)
	return err
}

// replace writes a row that is stored already, with all that is derived from it.
func (a *appending) replace(ctx context.Context, row *Message) error {
	if _, err := a.tx.ExecContext(ctx, `UPDATE messages SET time_ms=?, time_source=?, text=?, caption=?, raw=?, kind=?, mark=?, said_ms=?, edited_ms=? WHERE seq=?`,
		row.Time.UnixMilli(), row.TimeSource, row.Text, row.Caption, []byte(row.Raw), row.Kind, row.Version.Mark, milliOf(row.Version.Said), milliOf(row.Version.Edited), row.Seq); err != nil {
		return err
	}
	res, err := a.tx.ExecContext(ctx, `INSERT INTO changes(seq) VALUES(?)`, row.Seq)
	if err != nil {
		return err
	}
	n, err := res.LastInsertId()
	if err != nil {
		return err
	}
	a.changes = append(a.changes, change{n, row.Seq})
	if err := dropVectors(ctx, a.tx, a.s.spaceNumbers(), row.Seq); err != nil {
		return err
	}
	return a.stage(ctx, row, row.Seq, true)
}

// stage analyses a message, writes its columns and keeps them for publish.
func (a *appending) stage(ctx context.Context, m *Message, seq int64, update bool) error {
	row, doc, keys, err := a.analyse(ctx, m)
	if err != nil {
		return err
	}
	row.seq = seq
	if _, err := a.tx.StmtContext(ctx, a.s.stmts.doc).ExecContext(ctx, seq, encodeDoc(row, doc)); err != nil {
		return err
	}
	st := staged{rec: row, raw: doc.Bytes(), doc: doc, keys: keys, session: m.Session, scope: m.Scope, update: update}
	if i, ok := a.place[seq]; ok {
		st.update = a.staged[i].update
		a.staged[i] = st
		return nil
	}
	a.place[seq] = len(a.staged)
	a.staged = append(a.staged, st)
	return nil
}

// addName stores a string that has no number yet.
func (a *appending) addName(ctx context.Context, name string) (uint32, error) {
	res, err := a.tx.StmtContext(ctx, a.s.stmts.name).ExecContext(ctx, name)
	if err != nil {
		return 0, err
	}
	n, err := res.LastInsertId()
	return uint32(n), err
}

// publish makes a committed transaction visible.
func (a *appending) publish() {
	if len(a.staged) == 0 {
		return
	}
	s := a.s
	entries := make([]wordDoc, 0, len(a.staged))
	s.mu.Lock()
	for name, id := range a.names {
		s.cols.names.set(id, name)
	}
	for i := range a.staged {
		st := &a.staged[i]
		if !st.update {
			s.cols.add(st.rec, st.raw, st.doc, true)
			entries = append(entries, wordDoc{seq: st.seq, keys: st.keys, session: st.session, scope: st.scope, kind: st.kind})
			continue
		}
		if slot, ok := s.cols.slot(st.seq); ok {
			s.cols.replace(slot, st.rec, st.raw, st.doc)
			s.dropInMemory(slot)
		}
	}
	s.words.announce(entries, a.changes)
	s.mu.Unlock()
	s.relift()
	s.words.wake()
}
