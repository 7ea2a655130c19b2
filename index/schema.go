package index

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// schemaVersion is what this program reads and writes, kept in PRAGMA user_version.
const schemaVersion = 2

// migrations[i] takes a log from version i to i+1. A released migration is never edited.
//
//	messages    the truth: one row a message, in order of storage
//	docs        seq → columns and forward document of a row: see encodeDoc
//	names       the strings that docs refer to by number
//	identities  first 16 bytes of SHA-256 of a key → seq; not positive where the message was forgotten:
//	            minus when, in Unix milliseconds, or 0 where that is not known
//	marks       keys of messages that were forgotten elsewhere, as an export tells of them: see Mark
//	changes     rows replaced or removed after they were stored, for the lexical index to follow
//	vectors     space<<40|seq → quantised parts: see encodeQuantised
//	floats      the same key → the parts exactly (see encodeFloats); apart, so that loading never reads them
//	failures    messages that could not be embedded
//	state       small values of the engine
var migrations = [schemaVersion][]string{{
	`CREATE TABLE messages(
		seq INTEGER PRIMARY KEY AUTOINCREMENT,
		id TEXT NOT NULL UNIQUE,
		keys TEXT NOT NULL,
		session TEXT NOT NULL,
		session_id TEXT NOT NULL,
		scope TEXT NOT NULL,
		kind INTEGER NOT NULL,
		role TEXT NOT NULL,
		sender TEXT NOT NULL,
		time_ms INTEGER NOT NULL,
		time_source INTEGER NOT NULL,
		text TEXT NOT NULL,
		caption TEXT NOT NULL,
		raw BLOB)`,
	`CREATE TABLE docs(seq INTEGER PRIMARY KEY, body BLOB NOT NULL)`,
	`CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)`,
	`CREATE TABLE identities(hash BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE receipts(key TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE changes(n INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL)`,
	`CREATE TABLE spaces(n INTEGER PRIMARY KEY, id TEXT NOT NULL, dim INTEGER NOT NULL, UNIQUE(id, dim))`,
	`CREATE TABLE vectors(key INTEGER PRIMARY KEY, body BLOB NOT NULL)`,
	`CREATE TABLE floats(key INTEGER PRIMARY KEY, body BLOB NOT NULL)`,
	`CREATE TABLE failures(space INTEGER NOT NULL, seq INTEGER NOT NULL, reason TEXT NOT NULL, tries INTEGER NOT NULL,
		PRIMARY KEY(space, seq)) WITHOUT ROWID`,
	`CREATE TABLE state(bucket TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY(bucket, key)) WITHOUT ROWID`,
	`INSERT INTO state VALUES('store', 'id', randomblob(12))`,
}, {
	`ALTER TABLE messages ADD COLUMN mark TEXT NOT NULL DEFAULT ''`,
	`ALTER TABLE messages ADD COLUMN said_ms INTEGER NOT NULL DEFAULT 0`,
	`ALTER TABLE messages ADD COLUMN edited_ms INTEGER NOT NULL DEFAULT 0`,
	`CREATE TABLE marks(salt BLOB NOT NULL, hash BLOB NOT NULL, gone_ms INTEGER NOT NULL, PRIMARY KEY(salt, hash)) WITHOUT ROWID`,
	`INSERT INTO state VALUES('store', 'salt', randomblob(16))`,
}}

// dsn names the log for the driver. synchronous is FULL where a commit is a promise and
// NORMAL where the work can be done again.
func dsn(dir, synchronous string, readOnly bool) string {
	path := filepath.ToSlash(filepath.Join(dir, "log.sqlite"))
	if len(path) > 1 && path[1] == ':' {
		path = "/" + path // a drive letter
	}
	q := []string{"_pragma=cache_size(-16000)", "_txlock=immediate"}
	if readOnly {
		q = append(q, "_pragma=busy_timeout(5000)", "_pragma=query_only(1)")
	} else {
		q = append(q, fmt.Sprintf("_pragma=busy_timeout(%d)", busySlice.Milliseconds()), "_pragma=journal_mode(WAL)", "_pragma=secure_delete(1)",
			"_pragma=journal_size_limit(16777216)", "_pragma=synchronous("+synchronous+")")
	}
	// The driver splits at the first question mark; a path may hold one.
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + strings.Join(q, "&")
}

func openDB(dir, synchronous string, readOnly bool, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(dir, synchronous, readOnly))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// migrate brings the log to schemaVersion, all steps in one transaction.
func migrate(ctx context.Context, db *sql.DB, dir string) error {
	have, err := schemaOf(ctx, db)
	if err != nil {
		return err
	}
	if have > schemaVersion {
		return newer(dir, have)
	}
	if have == schemaVersion {
		return nil
	}
	tx, err := begin(ctx, db)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for v := have; v < schemaVersion; v++ {
		for _, stmt := range migrations[v] {
			if _, err := tx.ExecContext(ctx, stmt); err != nil {
				return fmt.Errorf("migrate from version %d: %w", v, err)
			}
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version=%d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// watches make the log itself forget what was derived from a text when anybody changes the text, also
// with another program: Open finds the rows without, and makes all of it again.
var watches = []string{`CREATE TRIGGER IF NOT EXISTS text_changed AFTER UPDATE OF session, scope, kind, role, sender, time_ms, text, caption ON messages BEGIN
	DELETE FROM docs WHERE seq=old.seq;
	DELETE FROM vectors WHERE key IN (SELECT n<<40|old.seq FROM spaces);
	DELETE FROM floats WHERE key IN (SELECT n<<40|old.seq FROM spaces);
END`}

// watch installs the watches, which stores of older programs lack.
func watch(ctx context.Context, db *sql.DB) error {
	for _, stmt := range watches {
		if _, err := execute(ctx, db, stmt); err != nil {
			return err
		}
	}
	return nil
}

func schemaOf(ctx context.Context, db *sql.DB) (v int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

func newer(dir string, have int) error {
	return fmt.Errorf("%s has schema version %d and this program knows %d: update Hark: %w", dir, have, schemaVersion, ErrNewer)
}
