package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// nowhere fails the test where a file below dir holds one of the words, in any case.
func nowhere(t *testing.T, dir string, words ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, w := range words {
			if strings.Contains(strings.ToLower(string(data)), strings.ToLower(w)) {
				t.Errorf("%s holds %q", path, w)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func forget(t *testing.T, e *Engine, f Forgetting, want int) {
	t.Helper()
	if n, err := e.Forget(t.Context(), f); err != nil || n != want {
		t.Errorf("forgot %d, want %d: %v", n, want, err)
	}
}

// DEL-03, DEL-05: forgotten text is in no file, with the store open and closed, and neither a restart,
// nor the host's transcript, nor a retried turn, nor an edit brings it back. The key of a session
// that is gone as a whole, which can name a person, goes with it.
func TestForgottenIsGone(t *testing.T) {
	const dm = "agent:main:telegram:direct:zaphod42"
	dir := t.TempDir()
	e, done := openAt(t, dir, embedtest.Hashed(32), nil)
	secret := raw(fmt.Sprintf(`{"role":"user","content":"the quetzalcoatl is under the stairs, xylophone","timestamp":%d,"__openclaw":{"senderIsOwner":true,"senderName":"Beeblebrox"}}`, day))
	commit(t, e, turn(dm, "k1", secret, assistant("the quetzalcoatl, noted", day+1)))
	commit(t, e, turn(mainKey, "k2", user("the ladder is in the shed", day+5), assistant("noted", day+6)))
	// What is kept beside the rows: an anchor, a ledger, a cursor.
	question(t, e, dm, "where is the quetzalcoatl?", user("go", day), assistant("on", day+1))
	if err := e.store.SetState(t.Context(), "wire", "cursor/1", []byte(`{"sessionId":"s","sessionKey":"`+dm+`","cursor":"c"}`)); err != nil {
		t.Fatal(err)
	}
	forget(t, e, Forgetting{Session: "TELEGRAM:direct:zaphod42"}, 2)
	words := []string{"quetzalcoatl", "xylophone", "Beeblebrox", "zaphod42"}
	nowhere(t, dir, words...)
	again := func() {
		t.Helper()
		commit(t, e, turn(mainKey, "k2", user("the ladder is in the shed", day+5), assistant("noted", day+6)))
		if got := commit(t, e, turn(dm, "k1", secret, assistant("the quetzalcoatl, noted", day+1))); got != Duplicate {
			t.Error(got)
		}
		commit(t, e, turn(dm, "k9", secret, assistant("the quetzalcoatl, noted", day+1)))
		for _, id := range []string{"e", "rewritten"} {
			_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "id-" + dm, SessionKey: dm, History: []HistoryEntry{{EntryID: id, Seq: 1, Message: secret}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := total(t, e); n != 2 {
			t.Errorf("%d rows", n)
		}
		if block, _ := question(t, e, otherKey, "where is the quetzalcoatl?"); block != "" {
			t.Error(block)
		}
	}
	again()
	nowhere(t, dir, words[:3]...) // the session is known again, as one that said something
	done()
	nowhere(t, dir, words[:3]...)
	e, done = openAt(t, dir, embedtest.Hashed(32), nil)
	again()
	done()
	nowhere(t, dir, words[:3]...)
}

// waiting is an embedder outside this process that answers when it is let.
type waiting struct {
	embed.Embedder
	asked chan struct{}
	let   chan struct{}
}

func (w waiting) InProcess() bool { return false }

func (w waiting) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	select {
	case w.asked <- struct{}{}:
	default:
	}
	select {
	case <-w.let:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return w.Embedder.Embed(ctx, kind, texts)
}

// A vector that is on its way when its message is forgotten is not stored.
func TestForgetWhileEmbedding(t *testing.T) {
	emb := waiting{embedtest.Hashed(16), make(chan struct{}, 1), make(chan struct{})}
	e := open(t, emb, nil)
	commit(t, e, turn(mainKey, "k", user("the quetzalcoatl is under the stairs", day)))
	<-emb.asked
	forget(t, e, Forgetting{Match: "quetzalcoatl"}, 1)
	close(emb.let)
	commit(t, e, turn(mainKey, "k2", user("the ladder is in the shed", day+5)))
	deadline := time.After(10 * time.Second)
	for {
		report, err := e.store.Check(t.Context())
		if err != nil || !report.OK() {
			t.Fatalf("%+v %v", report, err)
		}
		if report.Vectors == 1 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("%+v", report)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if rows := total(t, e); rows != 1 {
		t.Errorf("%d rows", rows)
	}
}

// A history that is accepted and not stored yet is there to be forgotten, and to be exported.
func TestForgetWhatIsAccepted(t *testing.T) {
	dir := t.TempDir()
	emb := gated{embedtest.Hashed(16), make(chan struct{})}
	e, done := openAt(t, dir, emb, nil)
	var h []HistoryEntry
	for i := range journalFrom + 200 {
		text := fmt.Sprintf("statement %d", i)
		if i%300 == 299 {
			text = fmt.Sprintf("the quetzalcoatl number %d", i)
		}
		h = append(h, HistoryEntry{EntryID: fmt.Sprint("e", i), Seq: int64(i + 1), Message: user(text, day+int64(i)*1000)})
	}
	for _, want := range []int{4, 0} { // and handed over again it stays away
		if _, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: h}); err != nil {
			t.Fatal(err)
		}
		if want > 0 { // while nothing is stored, neither answers with less than there is
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if rows, err := e.Selected(ctx, Forgetting{Match: "quetzalcoatl"}); err == nil {
				t.Errorf("%d rows selected of what is not stored", len(rows))
			}
			if page, err := e.Export(ctx, "", "", 0); err == nil {
				t.Errorf("%d exported of what is not stored", len(page.Messages))
			}
			cancel()
			close(emb.open)
		}
		if page, err := e.Export(t.Context(), "", "", 0); err != nil || len(page.Messages) < selectChunk {
			t.Errorf("%d exported: %v", len(page.Messages), err)
		}
		forget(t, e, Forgetting{Match: "Quetzalcoatl"}, want)
		if err := e.store.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		nowhere(t, dir, "quetzalcoatl")
	}
	if n := total(t, e); n != len(h)-4 {
		t.Errorf("%d rows", n)
	}
	done()
	nowhere(t, dir, "quetzalcoatl")
}

// DEL-01: every id that is shown is accepted, as it is shown; one that is not stored is an error and
// nothing is forgotten. A block that showed the message does so no more.
func TestShownIDsAreAccepted(t *testing.T) {
	e := open(t, nil, &Options{KeepBlocks: true})
	commit(t, e, turn(mainKey, "k1", user("the violet folder is in the attic", day)))
	commit(t, e, turn(mainKey, "k2", user("the violet ladder is in the shed", day+50)))
	block, tr := question(t, e, otherKey, "where is the violet folder?")
	if len(tr.Recall.Items) == 0 || !strings.Contains(block, "violet folder") {
		t.Fatal(block)
	}
	_, rest, ok := strings.Cut(block, "| id ")
	id, _, closed := strings.Cut(rest, "]")
	if !ok || !closed || id != tr.Recall.Items[0].ID {
		t.Fatalf("id %q in the block, %q in the trace", id, tr.Recall.Items[0].ID)
	}
	if _, err := e.Forget(t.Context(), Forgetting{IDs: []string{id, "nonesuch"}}); !errors.Is(err, index.ErrNotFound) {
		t.Error(err)
	}
	rows, err := e.Selected(t.Context(), Forgetting{IDs: []string{" " + strings.ToUpper(id) + "]"}})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	forget(t, e, Forgetting{IDs: []string{id, id}}, 1)
	if block, _ := question(t, e, otherKey, "where is the violet folder?"); strings.Contains(block, "attic") {
		t.Errorf("the same turn still shows it: %s", block)
	}
	next, _ := question(t, e, otherKey, "and the violet ladder?", user("where is the violet folder?", day+100), assistant("in the attic", day+101))
	if strings.Contains(next, "violet folder is in the attic") {
		t.Error(next)
	}
}

// By person, words and date: each selects what it says, and together what meets all.
func TestForgettingSelects(t *testing.T) {
	e := open(t, nil, &Options{Links: map[string][]string{"ann": {"telegram:42", "signal:+31"}}})
	say := func(key, sender, text string, at int64) {
		t.Helper()
		m := raw(fmt.Sprintf(`{"role":"user","content":%s,"timestamp":%d,"__openclaw":{"senderName":%q}}`, encodeText(text), at, sender))
		commit(t, e, turn(key, fmt.Sprint(key, at), m, assistant("so you say", at+1)))
	}
	say("agent:main:telegram:direct:42", "Ann", "a1 the red kite", day)
	say("agent:main:signal:direct:+31", "Ann", "a2 the blue kite", day+100)
	say("agent:main:telegram:direct:43", "Bob", "b1 the green kite", day+200)
	say("agent:main:telegram:group:-9", "Ann", "a3 the\n black   KITE", day+300)
	say("agent:main:telegram:group:-9", "Bob", "b2 no kites", day+400)
	for _, c := range []struct {
		f    Forgetting
		want int
	}{
		{Forgetting{}, 0},
		{Forgetting{Person: "ann"}, 5}, // two conversations and one statement
		{Forgetting{Person: "telegram:42"}, 4},
		{Forgetting{Person: "telegram:43"}, 2},
		{Forgetting{Person: "Bob"}, 2},
		{Forgetting{Person: "nobody"}, 0},
		{Forgetting{Match: "black kite"}, 1},
		{Forgetting{Match: "kite"}, 5},
		{Forgetting{Match: "kite", Person: "bob"}, 2},
		{Forgetting{Session: "telegram:group:-9"}, 4},
		{Forgetting{Session: "no such session"}, 0},
		{Forgetting{Before: time.UnixMilli(day + 100)}, 2},
		{Forgetting{Before: time.UnixMilli(day + 100), Match: "red"}, 1},
		{Forgetting{All: true}, 10},
	} {
		rows, err := e.Selected(t.Context(), c.f)
		if err != nil || len(rows) != c.want {
			t.Errorf("%+v selects %d, want %d: %v", c.f, len(rows), c.want, err)
		}
	}
	if _, err := e.Selected(t.Context(), Forgetting{All: true, Match: "x"}); err == nil {
		t.Error("everything and a condition")
	}
	forget(t, e, Forgetting{Person: "ann"}, 5)
	if n := total(t, e); n != 5 {
		t.Errorf("%d rows left", n)
	}
}

// What is matched is what a person sees, in the text, the caption and the host's message.
func TestMatchAsSeen(t *testing.T) {
	e := open(t, nil, nil)
	texts := []string{"the Vault-Code is 4471", "the ｖａｕｌｔ－ｃｏｄｅ is ４４７１", "the va\u200bult\u00ad-co\u2060de\ufe0f is 4471", "the VAULT-code\u00a0is\n\t4471", "nothing of it",
		"Straße in Koeln", "cafe\u0301 noir", "ﬁnal oﬀer", "ΟΔΥΣΣΕΥΣ"}
	for i, text := range texts {
		commit(t, e, turn(mainKey, fmt.Sprint("k", i), user(text, day+int64(i)*5000)))
	}
	for match, want := range map[string]int{
		"vault-code is 4471": 4, "ＶＡＵＬＴ－ＣＯＤＥ　ＩＳ": 4, "vau\u200dlt": 4, "STRASSE": 1, "straße": 1, "CAFÉ": 1, "café": 1,
		"final offer": 1, "οδυσσευς": 1, "οδυσσευσ": 1, "cafe noir": 0,
	} {
		rows, err := e.Selected(t.Context(), Forgetting{Match: match})
		if err != nil || len(rows) != want {
			t.Errorf("%q selects %d, want %d: %v", match, len(rows), want, err)
		}
	}
	for _, match := range []string{" ", "\u200b", "\u00ad\ufe0f \u2060"} { // or everything would be gone
		for _, f := range []Forgetting{{Match: match}, {Match: match, Session: mainKey}} {
			if rows, err := e.Selected(t.Context(), f); err == nil || len(rows) > 0 {
				t.Errorf("%q selects %d", match, len(rows))
			}
		}
	}
}

// What is too old or too much goes by itself, once a day, and does not come back.
func TestRetention(t *testing.T) {
	now := time.UnixMilli(day).Add(10 * 24 * time.Hour)
	e := open(t, nil, &Options{Clock: func() time.Time { return now }, Retention: Retention{Age: 9 * 24 * time.Hour}})
	maintain := func() {
		t.Helper()
		if _, err := e.Maintain(t.Context(), MaintainParams{}); err != nil {
			t.Fatal(err)
		}
	}
	old := turn(mainKey, "k1", user("the violet folder is in the attic", day))
	commit(t, e, old)
	commit(t, e, turn(mainKey, "k2", user("the ladder is in the shed", day+5*24*3_600_000)))
	maintain()
	if n := total(t, e); n != 1 {
		t.Errorf("%d rows", n)
	}
	old.AdvancementKey = "k3"
	commit(t, e, old)
	if n := total(t, e); n != 1 {
		t.Errorf("%d rows: an old message came back", n)
	}
	now = now.Add(5 * 24 * time.Hour)
	maintain()
	if n := total(t, e); n != 0 {
		t.Errorf("%d rows five days later", n)
	}
}

// The dry run says what Retain then removes: by age exactly, and by size the oldest ones, no more than are
// too much where many are of one moment.
func TestRetentionDue(t *testing.T) {
	now := time.UnixMilli(day).Add(10 * 24 * time.Hour)
	e := open(t, nil, &Options{Clock: func() time.Time { return now }, Retention: Retention{Age: 9 * 24 * time.Hour}})
	for i := range 20 { // the bound itself is not older than the bound
		commit(t, e, turn(mainKey, fmt.Sprint("k", i), user(fmt.Sprintf("folder %d", i), day+24*3_600_000+int64(i-10))))
	}
	due, err := e.Due(t.Context())
	if want := (Due{10, time.UnixMilli(day + 24*3_600_000 - 1).UTC()}); err != nil || due != want {
		t.Errorf("%+v, want %+v: %v", due, want, err)
	}
	planned, err := e.Selected(t.Context(), Forgetting{Due: true})
	if err != nil || len(planned) != 10 || total(t, e) != 20 {
		t.Errorf("%d planned: %v", len(planned), err)
	}
	if n, err := e.Retain(t.Context()); err != nil || n != 10 {
		t.Errorf("forgot %d: %v", n, err)
	}
	for _, m := range rows(t, e, mainKey) {
		if m.Time.Before(now.Add(-9 * 24 * time.Hour)) {
			t.Errorf("%v is left", m.Time)
		}
	}
	if due, err := e.Due(t.Context()); err != nil || due.Messages != 0 {
		t.Errorf("%+v %v", due, err)
	}

	e = open(t, nil, nil)
	var ms []json.RawMessage
	for i := range 400 {
		ms = append(ms, user(fmt.Sprintf("%d %s", i, strings.Repeat(fmt.Sprintf("w%x ", i*7919), 200)), day))
	}
	if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s", SessionKey: mainKey, Messages: ms}); err != nil {
		t.Fatal(err)
	}
	used, err := e.store.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.opts.Retention.Bytes = used * 3 / 4
	n, err := e.Retain(t.Context())
	if left := rows(t, e, mainKey); err != nil || n < 50 || len(left) < 150 || !strings.HasPrefix(left[len(left)-1].Text, "399 ") {
		t.Errorf("forgot %d of 400 of one moment, %d left: %v", n, len(left), err)
	}
}

// SES-07: what goes takes only its own vectors along: what is left is not embedded again, also after a
// restart.
func TestPruneWithoutEmbedding(t *testing.T) {
	dir := t.TempDir()
	var texts atomic.Int64
	e, done := openAt(t, dir, countingTexts{embedtest.Hashed(16), &texts}, nil)
	for i := range 30 {
		key := mainKey
		if i%3 == 0 {
			key = otherKey // the host archives or deletes its transcript
		}
		commit(t, e, turn(key, fmt.Sprint("k", i), user(fmt.Sprintf("folder %d is in the attic", i), day+int64(i)*1000)))
	}
	before := texts.Load()
	if n := total(t, e); n != 30 || before < 30 {
		t.Fatalf("%d rows, %d texts embedded", n, before)
	}
	block, _ := question(t, e, mainKey, "where is folder 3?")
	if !strings.Contains(block, "folder 3 is") {
		t.Error("memory went with the host's transcript")
	}
	before = texts.Load()
	forget(t, e, Forgetting{Session: otherKey}, 10)
	done()
	e, done = openAt(t, dir, countingTexts{embedtest.Hashed(16), &texts}, nil)
	defer done()
	if err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	report, err := e.store.Check(t.Context())
	if err != nil || report.Vectors != 20 || texts.Load() != before {
		t.Errorf("%d vectors, %d texts embedded again: %v", report.Vectors, texts.Load()-before, err)
	}
}

// countingTexts counts the texts an embedder is given.
type countingTexts struct {
	embed.Embedder
	texts *atomic.Int64
}

func (c countingTexts) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	c.texts.Add(int64(len(texts)))
	return c.Embedder.Embed(ctx, kind, texts)
}

func TestRetentionBySize(t *testing.T) {
	e := open(t, nil, nil)
	for i := range 40 {
		var ms []string
		for j := range 25 {
			ms = append(ms, fmt.Sprintf("statement %d of lot %d about %x", j, i, uint64(i*j+7)*0x9e3779b97f4a7c15))
		}
		commit(t, e, turn(mainKey, fmt.Sprint("k", i), user(strings.Join(ms, "\n"), day+int64(i)*1000), assistant(strings.Repeat(ms[0]+" ", 300), day+int64(i)*1000+1)))
	}
	if err := e.store.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := e.store.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.opts.Retention.Bytes = before * 2 / 3
	n, err := e.Retain(t.Context())
	if err != nil || n == 0 {
		t.Fatalf("forgot %d: %v", n, err)
	}
	after, err := e.store.Used(t.Context())
	if err != nil || after > before*2/3 {
		t.Errorf("%d bytes of %d: %v", after, before, err)
	}
	left := rows(t, e, mainKey)
	if len(left) < 20 || left[len(left)-1].Time.UnixMilli() != day+39*1000+1 {
		t.Errorf("%d rows left, %d forgotten: the newest have to stay", len(left), n)
	}
	if n, err := e.Retain(t.Context()); err != nil || n != 0 {
		t.Errorf("a second time forgot %d: %v", n, err)
	}
}

// An export brings the same messages, ids and scopes into another store, and nothing twice.
func TestExportAndRestore(t *testing.T) {
	e := open(t, nil, nil)
	for i := range 30 {
		commit(t, e, turn(fmt.Sprintf("agent:main:telegram:direct:%d", i%3), fmt.Sprint("k", i), user(fmt.Sprintf("locker %d holds the kite", i), day+int64(i)*1000), assistant("ok", day+int64(i)*1000+1)))
	}
	export := func(e *Engine) (all []Exported) {
		t.Helper()
		session, after := "", int64(0)
		for {
			page, err := e.Export(t.Context(), "", session, after)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page.Messages...)
			if page.Session == "" {
				return all
			}
			session, after = page.Session, page.After
		}
	}
	all := export(e)
	if len(all) != 60 {
		t.Fatalf("%d exported", len(all))
	}
	other := open(t, nil, nil)
	for _, want := range []int{60, 0} {
		done, err := other.Restore(t.Context(), all)
		if err != nil || done.New != want {
			t.Errorf("%+v %v", done, err)
		}
	}
	again := export(other)
	for i := range all {
		if fmt.Sprint(all[i]) != fmt.Sprint(again[i]) {
			t.Errorf("%+v\n%+v", all[i], again[i])
		}
	}
	// The host's transcript and the export are the same messages.
	commit(t, other, turn("agent:main:telegram:direct:0", "k0", user("locker 0 holds the kite", day), assistant("ok", day+1)))
	if n := total(t, other); n != 60 {
		t.Errorf("%d rows", n)
	}
	forget(t, other, Forgetting{Match: "locker 7 "}, 1)
	if done, err := other.Restore(t.Context(), all); err != nil || done.New != 0 {
		t.Errorf("a forgotten message came back: %+v %v", done, err)
	}
	bad := []Exported{all[0]}
	bad[0].Session = "agent:helper:main"
	if _, err := other.Restore(t.Context(), bad); err == nil {
		t.Error("another agent's message was taken in")
	}
}
