package engine

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// A tool's output of megabytes is kept as an excerpt with its type, size and hash.
func TestLargeToolOutput(t *testing.T) {
	e := open(t, nil, nil)
	large := strings.Repeat("a line of the build log\n", 5<<20/24)
	commit(t, e, turn(mainKey, "k", user("run it", day), raw(`{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":`+string(encodeText(large))+`}]}`)))
	m := rows(t, e, mainKey)[1]
	if len(m.Text) > 2*maxToolText || len(m.Raw) > 0 || !strings.Contains(m.Caption, "[text, 52") || !strings.Contains(m.Caption, "bytes, sha256 ") {
		t.Errorf("%d bytes of text, %d raw, caption %q", len(m.Text), len(m.Raw), m.Caption)
	}
}

// A turn that is committed while another program holds the log keeps its deadline, says what it waits
// for, and is stored once when it is repeated. A context is given meanwhile. (CONC-03, HOST-06)
func TestTurnBesideAForeignWriter(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, embedtest.Hashed(16), nil)
	defer done()
	commit(t, e, turn(mainKey, "k1", user("the walrus is called Otto", day)))
	other, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	p := turn(mainKey, "k2", user("the ocelot is called Ida", day+1))
	if _, err := e.CommitTurn(ctx, p); !errors.Is(err, index.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a foreign writer: %v", err)
	}
	if block, _ := question(t, e, otherKey, "what is the walrus called?"); !strings.Contains(block, "Otto") {
		t.Errorf("recalled %q", block)
	}
	a, err := e.Account(t.Context())
	if err != nil || len(a.Degraded) != 1 || a.Degraded[0].What != DegradedTurns {
		t.Errorf("degraded: %+v %v", a.Degraded, err)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if got := commit(t, e, p); got != Committed {
		t.Errorf("repeated: %s", got)
	}
	if n := total(t, e); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// counting counts the texts that are embedded.
type counting struct {
	embed.Embedder
	name  string
	texts int
}

func (c *counting) Model() embed.Model {
	m := c.Embedder.Model()
	m.Name = c.name
	return m
}

func (c *counting) InProcess() bool { return true }

func (c *counting) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	if kind == embed.Passage {
		c.texts += len(texts)
	}
	return c.Embedder.Embed(ctx, kind, texts)
}

// PERF-03, STO-10: another model is another space, made in the background and resumed after an end;
// going back costs nothing, a missing vector costs one call, and nothing of two models is mixed.
func TestSwitchingTheModel(t *testing.T) {
	dir := t.TempDir()
	with := func(name string, dim int, do func(e *Engine)) int {
		t.Helper()
		c := &counting{Embedder: embedtest.Hashed(dim), name: name}
		e, done := openAt(t, dir, c, nil)
		defer done()
		if err := e.Embed(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if do != nil {
			do(e)
		}
		return c.texts
	}
	const n = 40
	if got := with("one", 16, func(e *Engine) {
		for i := range n {
			commit(t, e, turn(mainKey, string(rune('A'+i)), user("the walrus number "+string(rune('A'+i))+" is called Otto", day+int64(i))))
		}
	}); got != n {
		t.Errorf("%d texts embedded for %d messages", got, n)
	}
	cut := func(e *Engine) { // half the vectors go behind the store's back
		db, err := sql.Open("sqlite", filepath.Join(dir, "log.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(`DELETE FROM vectors WHERE (key & 1099511627775)=7; DELETE FROM floats WHERE (key & 1099511627775)=7`); err != nil {
			t.Fatal(err)
		}
	}
	if got := with("two", 24, nil); got != n {
		t.Errorf("the second model embedded %d of %d", got, n)
	}
	if got := with("one", 16, nil); got != 0 {
		t.Errorf("switching back embedded %d texts", got)
	}
	with("one", 16, cut)
	if got := with("one", 16, func(e *Engine) {
		if block, tr := question(t, e, otherKey, "what is the walrus number G called?"); !strings.Contains(block, "Otto") || !tr.Recall.Search.Dense.Ran {
			t.Errorf("recalled %q", block)
		}
	}); got != 1 {
		t.Errorf("one missing vector cost %d texts", got)
	}
}

// EMB-12: without an embedder words are recalled, and nothing is degraded or pending.
func TestWithoutAnEmbedder(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(mainKey, "k1", user("the walrus is called Otto", day)))
	block, tr := question(t, e, otherKey, "what is the walrus called?")
	if !strings.Contains(block, "Otto") || tr.Recall.Search.Dense.Reason == "" {
		t.Errorf("recalled %q, %+v", block, tr.Recall.Search.Dense)
	}
	if a, err := e.Account(t.Context()); err != nil || len(a.Degraded) != 0 {
		t.Errorf("degraded: %+v %v", a.Degraded, err)
	}
}

// DISK-01: the same thousand messages again and again take no more room than once.
func TestSameMessagesAgain(t *testing.T) {
	e := open(t, embedtest.Hashed(16), nil)
	h := parcels(900)
	size := func() int64 {
		if err := e.store.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := e.store.Used(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	boot := func() {
		t.Helper()
		if _, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: h}); err != nil {
			t.Fatal(err)
		}
	}
	boot()
	fresh := size()
	for i := range 100 {
		h[i].CreatedAt = "2026-01-01T00:00:00Z" // so that the page is not recognised as a whole
		if i%10 == 0 {
			boot()
		} else {
			commit(t, e, turn(mainKey, "same", user("the same turn", day)))
		}
	}
	if n := total(t, e); n != 901 {
		t.Errorf("%d rows", n)
	}
	if again := size(); again > fresh+fresh/2 {
		t.Errorf("%d bytes, %d when they were new", again, fresh)
	}
}
