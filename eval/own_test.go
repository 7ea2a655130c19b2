package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hark/engine"
	"hark/index"
)

// files hashes everything below dir.
func files(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(h, "%s %d %x\n", path, len(data), sha256.Sum256(data)) // a hash does not fail
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestOwnHistory(t *testing.T) {
	set, err := Load(filepath.Join("..", "testdata", "eval", "agent"), readChat)
	if err != nil {
		t.Fatal(err)
	}
	spec := hark(t)
	spec.Engine.Policy = engine.PolicyAgent
	dir := t.TempDir()
	lib, err := build(t.Context(), dir, set.Docs, set.history, spec.Embedder, &spec.Engine)
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.Store.Close(); err != nil {
		t.Fatal(err)
	}
	own := func() *Report {
		store, err := index.Open(t.Context(), dir, &index.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		set, lib, err := FromStore(t.Context(), store, agent, OwnerSees(engine.PolicyAgent), 15)
		if err != nil {
			t.Fatal(err)
		}
		res, err := RunOwn(t.Context(), set, lib, spec, Options{Budgets: goldenBudgets()})
		if err != nil {
			t.Fatal(err)
		}
		return NewReport(res, "")
	}
	before := files(t, dir)
	rep := own()
	if after := files(t, dir); after != before {
		t.Error("the store's files changed")
	}
	first, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(own())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("two runs differ:\n%s", cmp.Diff(string(first), string(second)))
	}
	have := map[string]int{}
	for _, o := range rep.Outcomes {
		have[o.Cat]++
	}
	for _, cat := range []string{OwnIdentifier, OwnPhrase, OwnDropped, OwnLink, OwnNothing} {
		if have[cat] == 0 {
			t.Errorf("no question of kind %q: %v", cat, have)
		}
	}
	if r := rep.value("recall@10"); r < .9 {
		t.Errorf("recall@10 of known items is %.2f", r)
	}
	t.Logf("%v; R@10 %.3f, nDCG@10 %.3f, false recall at 4k %.2f", have, rep.value("recall@10"), rep.value("nDCG@10"), rep.value(At("false recall", ReferenceBudget)))
}

func TestOwnQuestions(t *testing.T) {
	dir := t.TempDir()
	store, err := index.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	mine := index.Message{Keys: []string{"a"}, Session: "agent:main:main", Scope: ownerScope, Role: "user", Text: "the green parcel PKG-7731 waits behind the counter of the bakery in Elm street"}
	theirs := mine
	theirs.Keys, theirs.Session, theirs.Scope, theirs.Text = []string{"b"}, "agent:main:telegram:group:1", "group:telegram:1", "our blue parcel PKG-9942 waits at the station beside the old ticket machine"
	older, newer := mine, mine
	older.Keys, older.Time, older.Text = []string{"c"}, time.Unix(1000, 0), "the spare battery of my drill holds 1300 charges"
	newer.Keys, newer.Time, newer.Text = []string{"d"}, time.Unix(2000, 0), "they say the spare battery of the drill holds 900 charges"
	done, err := store.Append(t.Context(), index.Batch{Messages: []index.Message{mine, theirs, newer, older}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.Get(t.Context(), done.Seqs...)
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := FromStore(t.Context(), store, agent, OwnerSees(engine.PolicyOwner), 5)
	if err != nil {
		t.Fatal(err)
	}
	updates := 0
	for _, q := range set.Queries {
		switch {
		case q.Text == "pkg-9942":
			t.Error("asks for what the owner's sessions do not recall")
		case q.Cat == OwnUpdate:
			updates++
			if set.Qrels[q.ID][rows[2].ID] != 1 || !slices.Equal(q.Stale, []string{rows[3].ID}) {
				t.Errorf("%q: evidence %v, replaced %v", q.Text, set.Qrels[q.ID], q.Stale)
			}
		}
	}
	if updates != 1 {
		t.Errorf("%d questions about changed values, want one", updates)
	}
	if len(set.Queries) == 0 || set.Queries[0].Text != "pkg-7731" {
		t.Errorf("queries %+v", set.Queries)
	}
}
