package index

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Unknown is the row of a key that was never stored.
const Unknown = -1

// Identity is what is known of an identity key.
type Identity struct {
	Seq     int64     // the row; 0 where the message was forgotten, Unknown where the key was never stored
	Gone    time.Time // when it was forgotten; zero where that is not known
	Foreign bool      // it was forgotten elsewhere, and a mark tells of it
}

// Identities returns what is known of each key, in order.
func (s *Store) Identities(ctx context.Context, keys ...string) ([]Identity, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	out := make([]Identity, 0, len(keys))
	for chunk := range slices.Chunk(keys, knownChunk) {
		found, err := s.identities(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("look up keys: %w", err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// Known returns the row of each identity key, 0 where the message was forgotten, Unknown where the key
// was never stored.
func (s *Store) Known(ctx context.Context, keys ...string) ([]int64, error) {
	found, err := s.Identities(ctx, keys...)
	out := make([]int64, len(found))
	for i, id := range found {
		out[i] = id.Seq
	}
	return out, err
}

// Lookup returns the row of each identity key, 0 where it is unknown or was forgotten.
func (s *Store) Lookup(ctx context.Context, keys ...string) ([]int64, error) {
	out, err := s.Known(ctx, keys...)
	for i := range out {
		out[i] = max(0, out[i])
	}
	return out, err
}

// knownChunk is how many keys are looked up by one statement.
const knownChunk = 200

func (s *Store) identities(ctx context.Context, keys []string) ([]Identity, error) {
	out := make([]Identity, len(keys))
	at := make(map[[16]byte][]int, len(keys))
	args := make([]any, len(keys))
	for i, key := range keys {
		hash := hashKey(key)
		out[i].Seq, args[i] = Unknown, hash
		at[[16]byte(hash)] = append(at[[16]byte(hash)], i)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT hash, seq FROM identities WHERE hash IN (?`+strings.Repeat(",?", len(keys)-1)+`)`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hash sql.RawBytes
	var seq int64
	for rows.Next() {
		if err := rows.Scan(&hash, &seq); err != nil {
			return nil, err
		}
		if len(hash) != 16 {
			continue
		}
		for _, i := range at[[16]byte(hash)] {
			out[i] = identityOf(seq)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for hash, places := range at {
		if out[places[0]].Seq != Unknown {
			continue
		}
		gone, ok, err := s.marked(ctx, s.reads, hash[:])
		if err != nil {
			return nil, err
		}
		for _, i := range places {
			if ok {
				out[i] = Identity{Gone: instant(gone), Foreign: true}
			}
		}
	}
	return out, nil
}

// identityOf reads the number beside a hash.
func identityOf(seq int64) Identity {
	if seq > 0 {
		return Identity{Seq: seq}
	}
	return Identity{Gone: instant(-seq)}
}

// Mark tells of a key whose message was forgotten, so that another store keeps it out too. It holds no
// text: Hash is the first 16 bytes of HMAC-SHA-256, under Salt, of the first 16 bytes of SHA-256 of the
// key. The salt is random, one for each store that forgets, so that marks of different stores cannot be
// compared and no table made before fits them. Who has the mark can still test a guess of the whole key.
type Mark struct {
	Salt []byte    // 16 bytes
	Hash []byte    // 16 bytes
	Gone time.Time // when it was forgotten; zero where that is not known
}

const markBytes = 16

// Marks returns a page of the marks of all that was forgotten here or is marked as forgotten elsewhere,
// in order of salt and hash, after the given mark (nil: from the beginning).
func (s *Store) Marks(ctx context.Context, after *Mark, limit int) ([]Mark, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	own, err := s.ownSalt(ctx)
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	out, err := s.ownMarks(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT salt, hash, gone_ms FROM marks`)
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m Mark
		var gone int64
		if err := rows.Scan(&m.Salt, &m.Hash, &gone); err != nil {
			return nil, err
		}
		m.Gone = instant(gone)
		out = append(out, m)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(out, compareMarks)
	if after != nil {
		i, found := slices.BinarySearchFunc(out, *after, compareMarks)
		if found {
			i++
		}
		out = out[i:]
	}
	return out[:min(limit, len(out))], nil
}

func compareMarks(a, b Mark) int {
	if c := bytes.Compare(a.Salt, b.Salt); c != 0 {
		return c
	}
	return bytes.Compare(a.Hash, b.Hash)
}

func (s *Store) ownMarks(ctx context.Context, salt []byte) (out []Mark, err error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT hash, seq FROM identities WHERE seq <= 0`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var hash []byte
		var seq int64
		if err := rows.Scan(&hash, &seq); err != nil {
			return nil, err
		}
		out = append(out, Mark{Salt: salt, Hash: markOf(salt, hash), Gone: instant(-seq)})
	}
	return out, rows.Err()
}

func markOf(salt, hash []byte) []byte {
	h := hmac.New(sha256.New, salt)
	h.Write(hash)
	return h.Sum(nil)[:markBytes]
}

// ownSalt is the salt of this store's marks.
func (s *Store) ownSalt(ctx context.Context) (salt []byte, err error) {
	err = s.reads.QueryRowContext(ctx, `SELECT value FROM state WHERE bucket='store' AND key='salt'`).Scan(&salt)
	return salt, err
}

// AddMarks takes in marks of another store. They keep out what is not stored yet and remove nothing. It
// returns how many are new.
func (s *Store) AddMarks(ctx context.Context, marks []Mark) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	for _, m := range marks {
		if len(m.Salt) != markBytes || len(m.Hash) != markBytes {
			return 0, fmt.Errorf("add marks: a salt of %d and a hash of %d bytes, both have to be of %d", len(m.Salt), len(m.Hash), markBytes)
		}
	}
	done, err := s.write(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	n, err := s.addMarks(context.WithoutCancel(ctx), marks)
	if err != nil {
		return 0, fmt.Errorf("add marks: %w", err)
	}
	return n, nil
}

func (s *Store) addMarks(ctx context.Context, marks []Mark) (added int, err error) {
	own, err := s.ownSalt(ctx)
	if err != nil {
		return 0, err
	}
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	put, err := tx.PrepareContext(ctx, `INSERT OR IGNORE INTO marks(salt, hash, gone_ms) VALUES(?, ?, ?)`)
	if err != nil {
		return 0, err
	}
	defer put.Close()
	for _, m := range marks {
		if bytes.Equal(m.Salt, own) {
			continue // of this store
		}
		res, err := put.ExecContext(ctx, m.Salt, m.Hash, milliOf(m.Gone))
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += int(n)
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return added, s.loadSalts(ctx)
}

// loadSalts reads under which salts there are marks.
func (s *Store) loadSalts(ctx context.Context) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT DISTINCT salt FROM marks`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var salts [][]byte
	for rows.Next() {
		var salt []byte
		if err := rows.Scan(&salt); err != nil {
			return err
		}
		salts = append(salts, salt)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.salts.Store(&salts)
	return nil
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// marked reports whether the hash of a key is marked as forgotten elsewhere, and when that was.
func (s *Store) marked(ctx context.Context, db querier, hash []byte) (gone int64, ok bool, err error) {
	salts := s.salts.Load()
	if salts == nil {
		return 0, false, nil
	}
	for _, salt := range *salts {
		err := db.QueryRowContext(ctx, `SELECT gone_ms FROM marks WHERE salt=? AND hash=?`, salt, markOf(salt, hash)).Scan(&gone)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return gone, err == nil, err
		}
	}
	return 0, false, nil
}
