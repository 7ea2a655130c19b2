package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"hark/embed"
	"hark/engine"
	"hark/index"
)

// TestTortureSeesWhatIsBroken: a torture that finds nothing wrong says something only if it would. Each
// damage is done to a store of five turns, of which one was forgotten, and has to be counted.
func TestTortureSeesWhatIsBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		damage string // a statement on the log
		lie    func(r *record)
		count  func(r tortureReport) int
	}{
		"nothing":       {"", nil, func(r tortureReport) int { return 1 }},
		"a row is gone": {`DELETE FROM messages WHERE text LIKE 'markerr1-0-0x2u%'`, nil, func(r tortureReport) int { return r.Lost }},
		"a row is there twice": {`INSERT INTO messages(id, keys, session, session_id, scope, kind, role, sender, time_ms, time_source, text, caption, raw)
			SELECT 'twice', 'twice', session, session_id, scope, kind, role, sender, time_ms, time_source, text, caption, raw FROM messages WHERE text LIKE 'markerr1-0-0x2u%'`, nil,
			func(r tortureReport) int { return r.Doubled }},
		"a row nobody wrote":       {`UPDATE messages SET text='somebody else' WHERE text LIKE 'markerr1-0-0x2u%'`, nil, func(r tortureReport) int { return r.Wrong }},
		"a forgotten turn is back": {"", func(r *record) { r.turns["r1-0-0.2"].forgotten = true }, func(r tortureReport) int { return r.Back }},
		"a receipt is gone":        {`DELETE FROM receipts; DELETE FROM identities; DELETE FROM messages WHERE text LIKE 'markerr1-0-0x4%'`, nil, func(r tortureReport) int { return r.Lost }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			a := &app{console: console{out: &bytes.Buffer{}, err: &bytes.Buffer{}, env: func(string) (string, bool) { return "", false }}, quiet: true}
			tt := &torturer{app: a, rand: rand.New(rand.NewPCG(1, 1)), store: filepath.Join(t.TempDir(), "store"), record: newRecord()}
			storeTurns(ctx, t, tt)
			if tc.damage != "" {
				if err := tt.behind(ctx, tc.damage); err != nil {
					t.Fatal(err)
				}
			}
			if tc.lie != nil {
				tc.lie(&tt.record)
			}
			if err := tt.verify(ctx, name); err != nil {
				t.Fatal(err)
			}
			if tc.count(tt.report) == 0 || tt.report.ok() != (name == "nothing") {
				t.Errorf("%+v", tt.report)
			}
		})
	}
}

// storeTurns does what a child does, and lets the torturer hear of it.
func storeTurns(ctx context.Context, t *testing.T, tt *torturer) {
	t.Helper()
	store, err := index.Open(ctx, tt.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	emb, err := embed.New(embed.Config{Provider: "builtin"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(store, renamed{emb, "torture-0"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		key := fmt.Sprintf("r1-0-%d.%d", i/3/2, i)
		tt.take("try turn " + key)
		if _, err := e.CommitTurn(ctx, tortureTurn(key)); err != nil {
			t.Fatal(err)
		}
		tt.take("ok turn " + key)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
