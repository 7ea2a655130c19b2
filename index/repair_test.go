package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tamper changes a closed store's log with another program's means.
func tamper(t *testing.T, dir string, stmts ...string) {
	t.Helper()
	db, err := openDB(dir, "FULL", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, stmt := range stmts {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
}

// What is derived from the rows is made again on the next Open, whoever damaged it. (STO-02)
func TestDerivedDataIsRepaired(t *testing.T) {
	sp := Space{"test", 4}
	for name, tc := range map[string]struct {
		stmt    string
		rows    int
		pending int
	}{
		"vectors":      {`UPDATE vectors SET body=x'0102' WHERE key IN (SELECT key FROM vectors LIMIT 50)`, 600, 50},
		"floats":       {`UPDATE floats SET body=x'0102' WHERE key IN (SELECT key FROM floats LIMIT 50)`, 600, -1},
		"texts":        {`UPDATE messages SET text='a kingfisher' WHERE seq BETWEEN 3 AND 7`, 600, 5},
		"rows removed": {`DELETE FROM messages WHERE seq < 20`, 581, 0},
		"docs":         {`UPDATE docs SET body=x'00' WHERE seq=5`, 600, 0},
		"keys":         {`DELETE FROM identities WHERE seq < 50`, 600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(t.Context(), dir, &Options{Vectors: "flat"})
			if err != nil {
				t.Fatal(err)
			}
			var ms []Message
			var vs []Vector
			for i := range 600 {
				ms = append(ms, say(i, "a", fmt.Sprintf("heron number %d", i)))
			}
			for i, seq := range add(t, s, ms...) {
				vs = append(vs, Vector{Seq: seq, V: []float32{1, float32(i), 2, 3}})
			}
			if err := s.SetVectors(t.Context(), sp, vs); err != nil {
				t.Fatal(err)
			}
			settled(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			tamper(t, dir, tc.stmt)
			if name == "keys" { // nothing but a check sees that
				s := open(t, dir, nil)
				if r, err := s.Check(context.Background()); err != nil || r.OK() {
					t.Errorf("not noticed: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s, err = Open(t.Context(), dir, &Options{Vectors: "flat"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.UseSpace(t.Context(), sp); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Nearest(t.Context(), sp, []float32{1, 2, 3, 4}, all, 10); err != nil {
				t.Error(err)
			}
			settled(t, s)
			if n, err := s.PendingCount(t.Context(), sp); tc.pending >= 0 && n != tc.pending {
				t.Errorf("%d pending, want %d: %v", n, tc.pending, err)
			}
			if st, err := s.Status(t.Context()); err != nil || st.Rows != tc.rows || len(st.Errors) > 3 {
				t.Errorf("%d rows, want %d; %q %v", st.Rows, tc.rows, st.Errors, err)
			}
			if name == "texts" && len(matched(t, s, all, "kingfisher")) != 5 {
				t.Error("the texts that changed are not found")
			}
			if name != "floats" {
				check(t, s)
			}
			// What was removed can be imported again.
			if a, err := s.Append(t.Context(), Batch{Messages: ms}); err != nil || a.New != 600-tc.rows {
				t.Errorf("import again: %+v %v", a.New, err)
			}
		})
	}
}

// An index without its rows is a store that lost them, not a new one.
func TestLogMissingBesideWords(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"empty":   func(log string) error { return os.WriteFile(log, nil, 0o600) },
		"missing": os.Remove,
		"foreign": func(log string) error { return os.WriteFile(log, []byte(strings.Repeat("no database ", 999)), 0o600) },
	} {
		dir := t.TempDir()
		s := open(t, dir, nil)
		add(t, s, say(1, "a", "the heron"))
		settled(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(dir, "log.sqlite")); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			s, err := Open(t.Context(), dir, &Options{ReadOnly: readOnly})
			if err == nil {
				s.Close()
			}
			if readOnly && name == "missing" && errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "log.sqlite") || !strings.Contains(err.Error(), "backup") {
				t.Errorf("%s, read-only %v: %v", name, readOnly, err)
			}
		}
	}
}

// Vectors of a model that is not in use any more are repaired too.
func TestUnusedSpacesAreRepaired(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	seqs := add(t, s, numbered(20)...)
	for _, sp := range []Space{{"old", 2}, {"new", 3}} {
		var vs []Vector
		for i, seq := range seqs {
			vs = append(vs, Vector{Seq: seq, V: make([]float32, sp.Dim)})
			vs[i].V[0], vs[i].V[1] = 1, float32(i)
		}
		if err := s.SetVectors(t.Context(), sp, vs); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, dir, `DELETE FROM vectors WHERE key%2=0`, `DELETE FROM floats WHERE key%3=0`)
	if s, err = Open(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Check(t.Context()); err != nil || r.OK() {
		t.Errorf("the check saw nothing: %+v %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, nil) // is checked at the end
}

// STO-02: the root file of the lexical index, cut at any page, is never mapped beyond its end.
func TestRootFileCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	add(t, s, numbered(300)...)
	settled(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "words", "root.bolt")
	whole, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(whole); cut += max(4096, len(whole)/12) {
		if err := os.WriteFile(root, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, nil)
		add(t, s, say(1000+cut, "s", "common talk after a cut"))
		settled(t, s)
		if got := matched(t, s, all, "marker123"); len(got) == 0 {
			t.Errorf("cut at %d: not found", cut)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
