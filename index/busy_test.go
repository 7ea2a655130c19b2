package index

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestForeignWriter: another program holds the log's write lock. Writes keep their deadline and can be
// repeated, reads answer. (STO-11, CONC-03)
func TestForeignWriter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, say(1, "a", "the walrus sleeps"))
	settled(t, s)
	other, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
	defer cancel()
	_, err = s.Append(ctx, Batch{Messages: []Message{say(2, "a", "an ocelot")}})
	if !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append beside a foreign writer: %v", err)
	}
	if err := s.SetState(ctx, "b", "k", []byte("v")); err == nil {
		t.Error("state was written beside a foreign writer")
	}
	if got := matched(t, s, all, "walrus"); len(got) != 1 {
		t.Errorf("reads beside a foreign writer: %v", got)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	add(t, s, say(2, "a", "an ocelot"))
	if got := matched(t, s, all, "ocelot"); len(got) != 1 {
		t.Errorf("the call repeated: %v", got)
	}
	check(t, s)
}
