package eval

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hark/embed"
	"hark/engine"
)

// locomo finds the set, which is not in the repository: in $HARK_SHARED/eval or ../shared/eval
// beside the checkout.
func locomo(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("HARK_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	dir := filepath.Join(shared, "eval", "locomo")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no LoCoMo in %s: set HARK_SHARED to the folder that holds eval/locomo", dir)
	}
	return dir
}

func hark(t *testing.T, without ...string) Spec {
	t.Helper()
	emb, err := embed.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSpec(Hark, emb, engine.Options{}, without)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoCoMo(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole set takes half a minute")
	}
	dir := locomo(t)
	set, err := Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := set.Queries[:0]
	for i, q := range set.Queries { // a third is enough to see a fall
		if i%3 == 0 {
			kept = append(kept, q)
		}
	}
	set.Queries = kept
	res, err := Run(t.Context(), set, hark(t), Options{Foreign: -1, Dir: t.TempDir(), Budgets: []int{ReferenceBudget}})
	if err != nil {
		t.Fatal(err)
	}
	rep := NewReport(res, "")
	r10, _ := rep.Metric("recall@10")
	t.Logf("LoCoMo: R@10 %s over %d questions", showEstimate(r10.Micro, Share), r10.Micro.N)
	if r10.Micro.Mean < .68 {
		t.Errorf("R@10 is %.1f, want at least 68", 100*r10.Micro.Mean)
	}
}

// bicycles are two conversations about the same words.
const bicycles = `
-- docs.jsonl --
{"id":"a1","conv":"a","sess":"1","spk":"Ann","date":"1:56 pm on 8 May, 2023","text":"my bicycle is green and has a bell"}
{"id":"a2","conv":"a","sess":"1","idx":1,"spk":"Bob","date":"1:56 pm on 8 May, 2023","text":"mine is a red one, with a basket for the dog"}
{"id":"a3","conv":"a","sess":"2","spk":"Ann","date":"1:56 pm on 9 June, 2023","text":"I painted the bicycle, it is yellow now"}
{"id":"a4","conv":"a","sess":"2","idx":1,"spk":"tool paint","date":"1:56 pm on 9 June, 2023","text":"order 4711 of yellow varnish delivered"}
{"id":"b1","conv":"b","sess":"1","spk":"Cy","date":"1:56 pm on 8 May, 2023","text":"the green bicycle was sold"}
{"id":"b2","conv":"b","sess":"1","idx":1,"spk":"Di","date":"1:56 pm on 8 May, 2023","text":"we bake the bread on Fridays"}
-- queries.jsonl --
{"id":"q1","conv":"a","text":"what colour is Ann's bicycle?","cat":"update"}
{"id":"q2","conv":"b","text":"who sold the bicycle?","cat":"single"}
{"id":"q3","conv":"b","text":"when do we bake bread?","cat":"single"}
{"id":"q4","conv":"a","text":"how deep is the Mariana Trench?","cat":"negative"}
-- qrels.txt --
q1 0 a1 1
q1 0 a3 1
q2 0 b1 1
q3 0 b2 1
`

func bicycleSet(t *testing.T) *Set {
	t.Helper()
	s, err := Load(folder(t, bicycles), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRunKeepsConversationsApart(t *testing.T) {
	for _, pooled := range []bool{false, true} {
		set := bicycleSet(t)
		res, err := Run(t.Context(), set, hark(t), Options{Pooled: pooled, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		q2 := res.Rankings[1]
		if got := slices.Contains(q2.Docs, "a1"); got != pooled || !slices.Contains(q2.Docs, "b1") {
			t.Errorf("pooled %v: the ranking of q2 is %v", pooled, q2.Docs)
		}
		rep := NewReport(res, "")
		if r := rep.value("recall@5"); r != 1 {
			t.Errorf("pooled %v: recall@5 is %v", pooled, r)
		}
		foreign := 0
		for _, o := range res.Outcomes {
			if o.Cat == Foreign && o.Negative {
				foreign++
			}
		}
		if want := map[bool]int{false: 3, true: 0}[pooled]; foreign != want {
			t.Errorf("pooled %v: %d questions to a wrong conversation, want %d", pooled, foreign, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	res, err := Run(t.Context(), bicycleSet(t), hark(t), Options{Foreign: -1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o := res.Outcomes[0]
	if o.Update == nil || o.Update.Newer == 0 || o.Update.Older == 0 || o.Update.OlderUndated {
		t.Errorf("update %+v", o.Update)
	}
	if c, ok := o.in(ReferenceBudget); !ok || c.Found != 2 || c.Tokens < 40 || c.Window != 0 {
		t.Errorf("context %+v", c)
	}
	if len(o.Sessions) != 2 {
		t.Errorf("sessions %+v", o.Sessions)
	}
	if n := res.Outcomes[3]; !n.Negative || len(n.Gold) != 0 {
		t.Errorf("negative %+v", n)
	}
}

func TestTwoRunsAreTheSameBytes(t *testing.T) {
	set := bicycleSet(t)
	report := func(parallel int) []byte {
		dir := t.TempDir()
		res, err := Run(t.Context(), set, hark(t), Options{Parallel: parallel, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(dir, res, NewReport(res, "")); err != nil {
			t.Fatal(err)
		}
		var all []byte
		for _, name := range []string{"report.json", "run.trec", "qrels.trec"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data...)
		}
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil || !bytes.Contains(page, []byte("</html>")) || bytes.Contains(page, []byte("http")) {
			t.Errorf("the page is not whole, or needs something beside it: %v", err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "hark-eval-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("stores are left: %v, %v", left, err)
		}
		return all
	}
	if a, b := report(1), report(4); !bytes.Equal(a, b) {
		t.Errorf("two runs differ:\n%s", cmp.Diff(string(a), string(b)))
	}
}

func TestSystems(t *testing.T) {
	for _, name := range []string{Hark, Legacy, BM25, Dense} {
		s, err := NewSpec(name, hark(t).Embedder, engine.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Run(t.Context(), bicycleSet(t), s, Options{Foreign: -1, Dir: t.TempDir()})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		o := res.Outcomes[2]
		c, _ := o.in(1000)
		switch {
		case name == Legacy && (c.Window != 1 || c.Items != 0):
			t.Errorf("the recent window holds %+v", c)
		case name != Legacy && o.Gold[0].Rank != 1:
			t.Errorf("%s ranks the evidence at %d", name, o.Gold[0].Rank)
		}
	}
	spec := hark(t)
	spec.Same = true
	res, err := Run(t.Context(), bicycleSet(t), spec, Options{Foreign: -1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := res.Outcomes[0].in(ReferenceBudget); c.Window != 1 || c.Found != 2 {
		t.Errorf("asked in the last session: %+v, want one by the window and one recalled", c)
	}
}

func TestAblations(t *testing.T) {
	whole := hark(t)
	for _, p := range parts() {
		s := hark(t, p.name)
		if p.name != "recency" && s.Weights == whole.Weights && (s.Embedder == nil) == (whole.Embedder == nil) {
			t.Errorf("without %s is the same", p.name)
		}
		if s.String() != "hark without "+p.name {
			t.Errorf("named %q", s)
		}
	}
	if _, err := NewSpec(Hark, nil, engine.Options{}, []string{"magic"}); err == nil || !strings.Contains(err.Error(), "smoothing") {
		t.Errorf("error %v", err)
	}
	if _, err := NewSpec("grep", nil, engine.Options{}, nil); err == nil {
		t.Error("an unknown system was accepted")
	}
}

// fake is a system that answers what it is told to.
type fake struct{ docs []string }

func (f fake) Rank(context.Context, Query, int) (Ranked, error) {
	return Ranked{Docs: f.docs, Scores: make([]float64, len(f.docs)), Took: time.Millisecond}, nil
}

func (f fake) Assemble(context.Context, Query, int) (Context, error) {
	return Context{Recalled: f.docs, Tokens: 10 * len(f.docs)}, nil
}

func TestLeakEndsTheRun(t *testing.T) {
	s := Spec{Name: "leaky", New: func(*Library) (System, error) { return fake{docs: []string{"b1"}}, nil }}
	_, err := Run(t.Context(), bicycleSet(t), s, Options{Foreign: -1, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `leak: document "b1"`) || !strings.Contains(err.Error(), "query q") {
		t.Errorf("error %v", err)
	}
	s.New = func(l *Library) (System, error) { return fake{docs: []string{l.Docs[0].ID, l.Docs[0].ID}}, nil }
	if _, err := Run(t.Context(), bicycleSet(t), s, Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error %v", err)
	}
}

func TestEverythingReturnedIsNotPrecise(t *testing.T) {
	var docs, queries, qrels strings.Builder
	for i := range 200 {
		id := strings.Repeat("x", 1+i%3) + string(rune('a'+i%26)) + time.Duration(i).String()
		docs.WriteString(`{"id":"` + id + `","conv":"c","text":"message ` + id + `"}` + "\n")
		if i%40 == 0 {
			queries.WriteString(`{"id":"q` + id + `","conv":"c","text":"` + id + `","cat":"single"}` + "\n")
			qrels.WriteString("q" + id + " 0 " + id + " 1\n")
		}
	}
	set, err := Load(folder(t, "-- docs.jsonl --\n"+docs.String()+"-- queries.jsonl --\n"+queries.String()+"-- qrels.txt --\n"+qrels.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Name: "everything", New: func(l *Library) (System, error) {
		var all []string
		for _, d := range l.Docs {
			all = append(all, d.ID)
		}
		return fake{docs: all}, nil
	}}
	res, err := Run(t.Context(), set, s, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	rep := NewReport(res, "")
	if p := rep.value(At("precision", 4000)); p <= 0 || p > .01 {
		t.Errorf("precision %v", p)
	}
	if r := rep.value(At("budget recall", 4000)); r != 1 {
		t.Errorf("budget recall %v", r)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, bicycleSet(t), hark(t), Options{Dir: t.TempDir()}); err == nil {
		t.Error("a cancelled run ended well")
	}
}
