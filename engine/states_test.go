package engine

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ERR: something else that writes to the store's file costs a turn a tenth of a second, not ten. What
// the turn left behind is written when the file is free.
func TestForeignWriter(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, nil, nil)
	commit(t, e, turn(otherKey, "k1", user("the wifi name at the cabin is Larkspur", day), assistant("noted", day+1)))
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	history := []byte(strings.Repeat("rain and sun ", 400))
	h := append(rounds(0, 40, "ok"), user(string(history), day), assistant("yes", day+5), user("short", day+6), assistant("yes", day+7))
	p := AssembleParams{SessionID: "x", SessionKey: mainKey, Messages: h, Prompt: "what is the wifi name at the cabin?", TokenBudget: 1500}
	started := time.Now()
	first, err := e.Assemble(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if !strings.Contains(blockOf(t, first), "Larkspur") || !strings.Contains(strings.Join(first.Trace.Notes, "\n"), "the store is busy") {
		t.Errorf("%+v %v", first.Trace.Recall.Reason, first.Trace.Notes)
	}
	again, err := e.Assemble(t.Context(), p)
	if err != nil || string(join(again.Messages)) != string(join(first.Messages)) || !again.Trace.Recall.Cached {
		t.Errorf("what is not written yet is not seen: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	done()
	e, done = openAt(t, dir, nil, nil)
	defer done()
	for bucket, key := range map[string]string{"window": mainKey, "recall": mainKey, "lineage": "x"} {
		if value, err := e.store.State(context.Background(), bucket, key); err != nil || len(value) == 0 {
			t.Errorf("%s was not written: %v", bucket, err)
		}
	}
}
