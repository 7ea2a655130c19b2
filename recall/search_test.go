package recall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
	"hark/index/terms"
	"hark/recall"
)

// world is a store with messages of one scope unless said otherwise.
type world struct {
	t     *testing.T
	store *index.Store
	emb   embed.Embedder
	clock time.Time
	n     int
}

func newWorld(t *testing.T, emb embed.Embedder) *world {
	t.Helper()
	s, err := index.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, store: s, emb: emb, clock: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}
	if emb != nil {
		if err := s.UseSpace(t.Context(), w.space()); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) space() index.Space {
	m := w.emb.Model()
	return index.Space{ID: m.String(), Dim: m.Dim}
}

// say stores a message and returns its row. who is "role" or "role:sender".
func (w *world) say(session, who, text string) int64 {
	w.t.Helper()
	return w.sayIn("owner", session, who, text)
}

func (w *world) sayIn(scope, session, who, text string) int64 {
	w.t.Helper()
	w.n++
	w.clock = w.clock.Add(time.Minute)
	role, sender, _ := strings.Cut(who, ":")
	kind := index.Said
	if role == "tool" {
		kind = index.Tool
	}
	got, err := w.store.Append(w.t.Context(), index.Batch{Messages: []index.Message{{
		Keys: []string{fmt.Sprint("entry:", w.n)}, Session: session, Scope: scope, Role: role, Sender: sender,
		Kind: kind, Time: w.clock, Text: text,
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	seq := got.Seqs[0]
	if w.emb != nil {
		parts := []string{text}
		if ps := terms.Passages(text); len(ps) > 1 {
			parts = append(parts, ps...)
		}
		vs, err := w.emb.Embed(w.t.Context(), embed.Passage, parts)
		if err != nil {
			w.t.Fatal(err)
		}
		var out []index.Vector
		for i, v := range vs {
			out = append(out, index.Vector{Seq: seq, Part: i, V: v})
		}
		if err := w.store.SetVectors(w.t.Context(), w.space(), out); err != nil {
			w.t.Fatal(err)
		}
	}
	return seq
}

func (w *world) search(text string, change ...func(*recall.Request)) *recall.Result {
	w.t.Helper()
	r := recall.Request{Question: recall.Ask(text, ""), Filter: index.Filter{Scopes: []string{"owner"}}}
	for _, f := range change {
		f(&r)
	}
	res, err := recall.NewSearcher(w.store, w.emb, nil, nil).Search(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func rows(res *recall.Result) (out []int64) {
	for _, h := range res.Hits {
		out = append(out, h.Message.Seq)
	}
	return out
}

func (w *world) wantFirst(res *recall.Result, want int64) {
	w.t.Helper()
	if got := rows(res); len(got) == 0 || got[0] != want {
		w.t.Errorf("rows %v, want %d first", got, want)
	}
}

func builtin(t *testing.T) embed.Embedder {
	t.Helper()
	e, err := embed.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestFindsAcrossSessions(t *testing.T) {
	w := newWorld(t, builtin(t))
	bike := w.say("a", "user:Mara", "my bike is green and stands in the shed")
	w.say("a", "assistant", "Noted.")
	for i := range 40 {
		w.say("b", "user:Mara", fmt.Sprintf("deploy number %d went out to production this afternoon", i))
	}
	res := w.search("what colour is the bicycle, my bike?")
	w.wantFirst(res, bike)
	if res.Confidence <= 0 || res.Trace.Lexical.Hits == 0 || !res.Trace.Dense.Ran {
		t.Errorf("confidence %v, trace %+v", res.Confidence, res.Trace)
	}
	if len(res.Hits[0].Matched) == 0 || len(res.Hits[0].Why) == 0 {
		t.Errorf("no explanation: %+v", res.Hits[0])
	}
}

// RCL-01: what only the words find is returned, whatever the vectors say.
func TestIdentifierWithUnrelatedVectors(t *testing.T) {
	w := newWorld(t, embedtest.Hashed(64))
	for i := range 60 {
		w.say("a", "user", fmt.Sprintf("ticket OPS-%d is about the printer on floor %d", 2000+i, i))
	}
	want := w.say("a", "user", "closing OPS-1042, the certificate was renewed")
	for i := range 60 {
		w.say("b", "user", fmt.Sprintf("ticket OPS-%d is about the door on floor %d", 3000+i, i))
	}
	w.wantFirst(w.search("OPS-1042"), want)
}

// RCL-10, LEX-01, LEX-02, LEX-04, QRY-05: scripts.
func TestScripts(t *testing.T) {
	w := newWorld(t, nil)
	zh := w.say("a", "user", "GitHub备份脚本上传失败")
	decoy := w.say("a", "user", "本失传脚上份备败")
	ru := w.say("b", "user", "Вчера мы купили новую машину")
	ar := w.say("c", "user", "اشترينا سيارة جديدة أمس")
	th := w.say("d", "user", "เราซื้อรถใหม่เมื่อวานนี้")
	ko := w.say("e", "user", "어제 새 자동차를 샀다")
	for q, want := range map[string]int64{"备份脚本": zh, "github": zh, "件": 0, "машина": ru, "سيارة": ar, "รถใหม่": th, "자동차": ko} {
		res := w.search(q)
		if want == 0 {
			if len(res.Hits) != 0 {
				t.Errorf("%s: rows %v", q, rows(res))
			}
			continue
		}
		w.wantFirst(res, want)
	}
	res := w.search("备份脚本")
	score := map[int64]float64{}
	for _, h := range res.Hits {
		score[h.Message.Seq] = h.Score
	}
	if score[zh] < 1.5*score[decoy] {
		t.Errorf("shuffled decoy scores %.2f against %.2f", score[decoy], score[zh])
	}
}

// ISO-08: a thousand better foreign matches neither leak nor crowd out.
func TestForeignScopeStaysOut(t *testing.T) {
	w := newWorld(t, builtin(t))
	own := w.say("a", "user", "somewhere I wrote that the safe code might be 4711")
	for i := range 1000 {
		w.sayIn("group:1", "g", "user", fmt.Sprintf("safe code safe code 4711 number %d", i))
	}
	res := w.search("safe code")
	for _, h := range res.Hits {
		if h.Message.Scope != "owner" {
			t.Fatalf("foreign row %d returned", h.Message.Seq)
		}
	}
	w.wantFirst(res, own)
	for _, c := range res.Trace.Candidates {
		if c.Seq != own {
			t.Errorf("trace tells of row %d", c.Seq)
		}
	}
	if res := w.search("safe code", func(r *recall.Request) { r.Filter = index.Filter{} }); len(res.Hits) != 0 {
		t.Errorf("the empty filter returned %v", rows(res))
	}
}

// RCL-03, RCL-04: what is on screen is not recalled, and is again once it is not.
func TestOnScreenIsNotRecalled(t *testing.T) {
	w := newWorld(t, builtin(t))
	seq := w.say("a", "user", "the dentist is on the twelfth of May")
	res := w.search("when is the dentist?", func(r *recall.Request) { r.Exclude = map[int64]bool{seq: true} })
	if len(res.Hits) != 0 || res.Trace.Candidates[0].Fate != recall.OnScreen {
		t.Errorf("rows %v, trace %+v", rows(res), res.Trace.Candidates)
	}
	if res.Confidence != 0 {
		t.Errorf("confidence %v that something else answers", res.Confidence)
	}
	w.wantFirst(w.search("when is the dentist?"), seq)
}

// EMB-09: a slow or broken embedder costs the meaning, not the answer.
func TestWordsAnswerWithoutMeaning(t *testing.T) {
	for name, emb := range map[string]embed.Embedder{"broken": embedtest.Broken(embedtest.Hashed(16), errors.New("no route")), "none": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			seq := w.say("a", "user", "my bike is green")
			w.emb = emb
			res := w.search("which colour is my bike?")
			w.wantFirst(res, seq)
			if res.Trace.Dense.Ran || res.Trace.Dense.Reason == "" {
				t.Errorf("dense leg: %+v", res.Trace.Dense)
			}
		})
	}
}

// stubborn ignores its context, or panics.
type stubborn struct {
	embed.Embedder
	hold chan struct{}
}

func (s stubborn) Embed(context.Context, embed.Kind, []string) ([][]float32, error) {
	if s.hold == nil {
		panic("boom")
	}
	<-s.hold
	return nil, errors.New("late")
}

// Promise 1: neither an embedder that hangs nor one that panics costs more than the meaning.
func TestStubbornEmbedder(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	for name, emb := range map[string]embed.Embedder{"hangs": stubborn{embedtest.Hashed(8), hold}, "panics": stubborn{embedtest.Hashed(8), nil}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			seq := w.say("a", "user", "my bike is green")
			res, err := recall.NewSearcher(w.store, emb, &recall.Options{DenseWait: 20 * time.Millisecond}, nil).Search(t.Context(),
				recall.Request{Question: recall.Ask("which colour is my bike?", ""), Filter: index.Filter{Scopes: []string{"owner"}}})
			if err != nil {
				t.Fatal(err)
			}
			w.wantFirst(res, seq)
			if !strings.HasPrefix(res.Trace.Dense.Reason, "unavailable") {
				t.Errorf("dense leg: %+v", res.Trace.Dense)
			}
		})
	}
}

// RCL-09: a very short text does not win over a sentence with the answer.
func TestShortTextDoesNotWin(t *testing.T) {
	w := newWorld(t, nil)
	w.say("a", "user", "port")
	want := w.say("b", "user", "the ssh port of the new server is 49222")
	w.wantFirst(w.search("what is the ssh port?"), want)
}

// RCL-05: the newer statement of the same thing is known, even where it shares few words.
func TestNewerStatementIsKnown(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 60 {
		w.say("a", "user:Bob", fmt.Sprintf("the printer on floor %d needs paper", i))
	}
	old := w.say("b", "user:Mara", "the server in the attic listens on port 22 for ssh")
	w.say("b", "assistant", "Noted, ssh on port 22.")
	w.say("b", "user:Bob", "ssh on my laptop moves to 7022")
	want := w.say("c", "user:Mara", "ssh moves to 49222, inside the house too")
	res := w.search("which port does ssh listen on now?")
	for _, h := range res.Hits {
		if h.Message.Seq == old && h.Newer != want {
			t.Errorf("the newer statement is row %d, want %d", h.Newer, want)
		}
	}
	items, _ := recall.Pack(res.Hits, recall.PackOptions{Tokens: 500})
	at := map[int64]int{}
	for i, it := range items {
		at[it.Hit.Message.Seq] = i + 1
	}
	if at[want] == 0 || at[old] == 0 || at[want] > at[old] {
		t.Errorf("newer at %d, older at %d of %d", at[want], at[old], len(items))
	}
}

// NOISE-10: people's words rank before tool dumps.
func TestDecisionBeforeToolDumps(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 200 {
		w.say("a", "tool", fmt.Sprintf("total %d\n./deploy/window/config_%d.yaml\n./deploy/window/run_%d.sh\n./deploy/readme.md", i, i, i))
	}
	want := w.say("b", "user:Tomás", "We decided that the deploy window moves to Tuesday morning.")
	w.wantFirst(w.search("what did we decide about the deploy window?"), want)
}

// RCL-07: reading changes no rank, and the same question gives the same answer.
func TestReadingChangesNothing(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 30 {
		w.say("a", "user", fmt.Sprintf("the garden shed needs paint, visit %d", i%7))
	}
	first := rows(w.search("garden shed paint"))
	for range 20 {
		if got := rows(w.search("garden shed paint")); fmt.Sprint(got) != fmt.Sprint(first) {
			t.Fatalf("rows %v, then %v", first, got)
		}
	}
}

// QRY-04: nothing asked, nothing found, nothing spent.
func TestBlankAsksNothing(t *testing.T) {
	w := newWorld(t, embedtest.Broken(embedtest.Hashed(8), errors.New("no route")))
	for _, q := range []string{"", "  ", "👍", "ok"} {
		res := w.search(q)
		if len(res.Hits) != 0 || res.Trace.Dense.Reason != "" || res.Trace.Asked == "" {
			t.Errorf("%q: %d hits, trace %+v", q, len(res.Hits), res.Trace)
		}
	}
}
