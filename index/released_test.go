package index

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// restored makes the store that a released version left, from its dump in testdata/stores.
func restored(t *testing.T, dump string) string {
	t.Helper()
	data, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(string(data)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A store of every released version opens, holds what it held, and goes on.
func TestStoresOfReleasedVersions(t *testing.T) {
	dumps, err := filepath.Glob(filepath.Join("testdata", "stores", "*.sql"))
	if err != nil || len(dumps) == 0 {
		t.Fatal("no stores of released versions", err)
	}
	for _, dump := range dumps {
		t.Run(filepath.Base(dump), func(t *testing.T) {
			s := open(t, restored(t, dump), nil)
			if got := matched(t, s, all, "quince"); len(got) != 2 {
				t.Errorf("found %v", got)
			}
			settled(t, s)
			st, err := s.Status(context.Background())
			if err != nil || st.Rows != 3 || st.Sessions != 2 || st.Forgotten != 1 || st.Schema != schemaVersion {
				t.Errorf("status %+v %v", st, err)
			}
			if len(st.Spaces) != 1 || st.Spaces[0].Stored != 3 || st.Spaces[0].Pending != 0 {
				t.Errorf("vectors %+v", st.Spaces)
			}
			add(t, s, say(9, "new", "a walrus in the attic"))
			if got := matched(t, s, all, "walrus"); len(got) != 1 {
				t.Errorf("a new message: %v", got)
			}
		})
	}
}

// A migration that fails leaves the store as it was.
func TestMigrationIsOneTransaction(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE state(in_the_way)`); err != nil { // the last table of the first version
		t.Fatal(err)
	}
	if s, err := Open(context.Background(), dir, nil); err == nil || !strings.Contains(err.Error(), "migrate from version 0") {
		t.Errorf("opened %v, %v", s, err)
	}
	var tables, version int
	if err := db.QueryRow(`SELECT COUNT(*) FROM sqlite_master`).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	if tables != 1 || version != 0 {
		t.Errorf("%d tables of version %d", tables, version)
	}
}

// DISK-02, ENV-03: what a store writes is its own few files, however often it is written.
func TestNoStrayFiles(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		s := open(t, dir, nil)
		for i := range 30 {
			add(t, s, say(i, "a", "the same again"))
		}
		settled(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "LOCK", "log.sqlite", "log.sqlite-wal", "log.sqlite-shm", "words":
		default:
			t.Errorf("stray file %s", e.Name())
		}
	}
}

// STO-05: a lock file with the id of a process that is gone, or of somebody else's, holds nobody up.
func TestLeftoverLockFile(t *testing.T) {
	for _, text := range []string{"999999999\n", "1\n", "", "rubbish"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, &Options{LockWait: -1})
		add(t, s, say(1, "a", "kestrel"))
	}
}

// PERF-02, STO-11: rows do not wait for the index of words: while that cannot be written they are stored
// and found, and it takes them in as a few batches when it can.
func TestRowsDoNotWaitForTheIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, numbered(10)...)
	settled(t, s)
	s.words.mu.Lock() // nothing can be written to it now
	for i := 10; i < 210; i++ {
		add(t, s, say(i, "s", "common talk, late"+string(rune('a'+i%26))))
	}
	s.words.mu.Unlock()
	settled(t, s)
	if got := matched(t, s, all, "lateb"); len(got) == 0 {
		t.Error("not found")
	}
}
