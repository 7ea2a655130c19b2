package eval

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/embed"
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

func TestLoCoMo(t *testing.T) {
	set, err := Load(locomo(t))
	if err != nil {
		t.Fatal(err)
	}
	emb, err := embed.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	rankings, err := Run(t.Context(), set, t.TempDir(), emb, 10)
	if err != nil {
		t.Fatal(err)
	}
	r5, _ := Recall(set, rankings, 5)
	r10, n := Recall(set, rankings, 10)
	var times []time.Duration
	for _, r := range rankings {
		times = append(times, r.Took)
	}
	slices.Sort(times)
	t.Logf("LoCoMo: %d turns, %d questions with evidence: R@5 %.1f, R@10 %.1f; search p50 %s, p95 %s; all in %s",
		len(set.Docs), n, 100*r5, 100*r10, times[len(times)/2].Round(10*time.Microsecond), times[len(times)*95/100].Round(10*time.Microsecond), time.Since(start).Round(100*time.Millisecond))
	if r10 < .68 {
		t.Errorf("R@10 is %.1f, want at least 68", 100*r10)
	}
}

func set(t *testing.T, docs, queries, qrels string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{"docs.jsonl": docs, "queries.jsonl": queries, "qrels.txt": qrels} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRunKeepsConversationsApart(t *testing.T) {
	s, err := Load(set(t,
		`{"id":"a1","conv":"a","sess":"1","spk":"Ann","date":"1:56 pm on 8 May, 2023","text":"my bicycle is green"}
{"id":"a2","conv":"a","sess":"1","idx":1,"spk":"Bob","text":"mine is a red one, with a basket for the dog"}
{"id":"b1","conv":"b","sess":"1","spk":"Cy","text":"the green bicycle was sold"}
`, `{"id":"q1","conv":"a","text":"what colour is Ann's bicycle?"}
{"id":"q2","conv":"b","text":"who sold the bicycle?"}
`, "q1 0 a1 1\nq2 0 b1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Run(t.Context(), s, t.TempDir(), nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[0].Docs) == 0 || got[0].Docs[0] != "a1" || !slices.Equal(got[1].Docs, []string{"b1"}) {
		t.Errorf("rankings %+v", got)
	}
	if r, n := Recall(s, got, 1); r != 1 || n != 2 {
		t.Errorf("recall %v over %d", r, n)
	}
}

func TestRecall(t *testing.T) {
	s := &Set{Qrels: map[string]map[string]bool{"q1": {"a": true, "b": true}, "q2": {"c": true}}}
	rankings := []Ranking{{Query: Query{ID: "q1"}, Docs: []string{"x", "a", "b"}}, {Query: Query{ID: "q2"}}, {Query: Query{ID: "negative"}, Docs: []string{"a"}}}
	if r, n := Recall(s, rankings, 2); math.Abs(r-.25) > 1e-9 || n != 2 {
		t.Errorf("recall %v over %d, want .25 over 2", r, n)
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	_, err := Load(set(t, `{"id":"a"}`, `{"id":"q"`, ""))
	if err == nil || !strings.Contains(err.Error(), "queries.jsonl:1:") {
		t.Errorf("error %v", err)
	}
	_, err = Load(set(t, `{"id":"a"}`, `{"id":"q"}`, "q 0 a 1\nq 0 missing 1\n"))
	if err == nil || !strings.Contains(err.Error(), "qrels.txt:2: document missing is not in the set") {
		t.Errorf("error %v", err)
	}
}
