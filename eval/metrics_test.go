package eval

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// treclines reads the files of a TREC run: its gold by query.
func trecGold(t *testing.T, run, qrels string) map[string][]Gold {
	t.Helper()
	rank := map[[2]string]int{}
	for _, f := range fields(t, run) {
		n, err := strconv.Atoi(f[3])
		if err != nil {
			t.Fatal(err)
		}
		rank[[2]string{f[0], f[2]}] = n
	}
	gold := map[string][]Gold{}
	for _, f := range fields(t, qrels) {
		grade, err := strconv.Atoi(f[3])
		if err != nil {
			t.Fatal(err)
		}
		if grade > 0 {
			gold[f[0]] = append(gold[f[0]], Gold{Doc: f[2], Grade: grade, Rank: rank[[2]string{f[0], f[2]}]})
		}
	}
	return gold
}

func fields(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out [][]string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		out = append(out, strings.Fields(sc.Text()))
	}
	return out
}

// The fixture's values follow trec_eval's definitions; testdata/README.md says how they were made.
func TestMetricsAreTrecEvals(t *testing.T) {
	dir := filepath.Join("testdata", "trec")
	gold := trecGold(t, filepath.Join(dir, "run.trec"), filepath.Join(dir, "qrels.trec"))
	got := map[string]float64{}
	names := map[string]func([]Gold) float64{
		"recip_rank": func(g []Gold) float64 { return ReciprocalRank(g, 10) },
	}
	for _, k := range []int{5, 10, 20, 50} {
		names[fmt.Sprintf("recall_%d", k)] = func(g []Gold) float64 { return RecallAt(g, k) }
	}
	for _, k := range []int{5, 10} {
		names[fmt.Sprintf("success_%d", k)] = func(g []Gold) float64 { return AnyAt(g, k) }
		names[fmt.Sprintf("ndcg_cut_%d", k)] = func(g []Gold) float64 { return NDCG(g, k) }
	}
	for name, f := range names {
		all := 0.0
		for q, g := range gold {
			got[name+" "+q] = f(g)
			all += f(g)
		}
		got[name+" all"] = all / float64(len(gold))
	}
	want := fields(t, filepath.Join(dir, "expected.txt"))
	if len(want) < 60 {
		t.Fatalf("only %d values to compare with", len(want))
	}
	for _, f := range want {
		if v, ok := got[f[0]+" "+f[1]]; !ok || fmt.Sprintf("%.4f", v) != f[2] {
			t.Errorf("%s of %s is %.4f, trec_eval has %s", f[0], f[1], v, f[2])
		}
	}
	t.Run("installed", func(t *testing.T) {
		trec, err := exec.LookPath("trec_eval")
		if err != nil {
			t.Skip("trec_eval is not installed; the recorded values were checked")
		}
		out, err := exec.Command(trec, "-q", "-c", "-M", "50", "-m", "recall.5,10,20,50", "-m", "success.5,10", "-m", "ndcg_cut.5,10",
			filepath.Join(dir, "qrels.trec"), filepath.Join(dir, "run.trec")).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if v, ok := got[f[0]+" "+f[1]]; ok && fmt.Sprintf("%.4f", v) != f[2] {
				t.Errorf("%s of %s is %.4f, trec_eval says %s", f[0], f[1], v, f[2])
			}
		}
	})
}

// outcomesOf makes outcomes of rankings of 50 documents of which two are relevant.
func outcomesOf(order func(q int) []int) []Outcome {
	var out []Outcome
	for q := range 60 {
		place := map[int]int{}
		for i, d := range order(q) {
			place[d] = i + 1
		}
		a, b := q%25, 25+(q*7)%25
		out = append(out, Outcome{ID: fmt.Sprint(q), Cat: "c", Gold: []Gold{{Doc: "a", Rank: place[a]}, {Doc: "b", Rank: place[b]}}})
	}
	return out
}

// A ranking that is broken on purpose moves the metrics as it must.
func TestBrokenRankings(t *testing.T) {
	good := func(q int) []int { // relevant documents at ranks 1 and 3
		a, b := q%25, 25+(q*7)%25
		rest := make([]int, 0, 50)
		for d := range 50 {
			if d != a && d != b {
				rest = append(rest, d)
			}
		}
		return append([]int{a, rest[0], b}, rest[1:]...)
	}
	first := func(int) []int { // the same documents for every question
		out := make([]int, 50)
		for i := range out {
			out[i] = i
		}
		return out
	}
	reversed := func(q int) []int {
		in := good(q)
		out := make([]int, len(in))
		for i, d := range in {
			out[len(in)-1-i] = d
		}
		return out
	}
	shuffled := func(q int) []int { return rand.New(rand.NewPCG(1, uint64(q))).Perm(50) } //nolint:gosec // a test's shuffle
	score := func(name string, order func(int) []int) float64 {
		for _, m := range Metrics(Plain) {
			if m.Name == name {
				return summarise(m, outcomesOf(order), []string{"c"}).Micro.Mean
			}
		}
		t.Fatalf("no metric %s", name)
		return 0
	}
	for _, c := range []struct {
		metric      string
		order       func(int) []int
		name        string
		least, most float64
	}{
		{"recall@5", good, "good", 1, 1}, {"MRR@10", good, "good", 1, 1}, {"nDCG@10", good, "good", .91, .93}, {"all@10", good, "good", 1, 1},
		{"recall@5", reversed, "reversed", 0, 0}, {"recall@20", reversed, "reversed", 0, 0}, {"recall@50", reversed, "reversed", 1, 1},
		{"MRR@10", reversed, "reversed", 0, 0}, {"nDCG@10", reversed, "reversed", 0, 0},
		{"recall@10", shuffled, "random", .12, .28}, {"recall@50", shuffled, "random", 1, 1}, {"nDCG@10", shuffled, "random", .05, .25},
		{"recall@10", first, "first-k", .15, .25}, {"all@10", first, "first-k", 0, .01},
	} {
		if got := score(c.metric, c.order); got < c.least || got > c.most {
			t.Errorf("%s of a %s ranking is %.3f, want %.2f to %.2f", c.metric, c.name, got, c.least, c.most)
		}
	}
	// And the comparison calls it by its name.
	a, b := outcomesOf(good), outcomesOf(shuffled)
	cmp, err := Compare(&Report{Set: "s", Format: Plain, Outcomes: a, Categories: []string{"c"}}, &Report{Set: "s", Format: Plain, Outcomes: b, Categories: []string{"c"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range cmp.Rows {
		if r.Metric == "nDCG@10" && r.Verdict != Worse {
			t.Errorf("a random ranking against a good one: %s (p %v)", r.Verdict, r.Adjusted)
		}
	}
	if len(cmp.Lost) < 50 || len(cmp.Won) != 0 {
		t.Errorf("%d queries won and %d lost", len(cmp.Won), len(cmp.Lost))
	}
	cmp, err = Compare(&Report{Set: "s", Format: Plain, Outcomes: a}, &Report{Set: "s", Format: Plain, Outcomes: a}, "")
	if err != nil || cmp.Significant() || len(cmp.Won)+len(cmp.Lost) != 0 {
		t.Errorf("a report against itself: %v, %+v", err, cmp.Rows)
	}
}

func TestLongMemEvalNDCG(t *testing.T) {
	for _, c := range []struct {
		ranks []int
		k     int
		want  float64
	}{
		{[]int{1}, 10, 1}, {[]int{2}, 10, 1}, {[]int{4}, 10, .5}, {[]int{0}, 10, 0}, {[]int{11}, 10, 0},
		{[]int{1, 4}, 10, (1 + .5) / 2}, {[]int{2, 0, 8}, 10, (1 + 1./3) / (2 + 1/math.Log2(3))},
	} {
		if got := LongMemEvalNDCG(c.ranks, c.k); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("nDCG of ranks %v is %v, want %v", c.ranks, got, c.want)
		}
	}
}

func TestAUROC(t *testing.T) {
	for _, c := range []struct {
		with, without []float64
		want          float64
	}{
		{[]float64{.9, .8}, []float64{.1, .2}, 1}, {[]float64{.1}, []float64{.9}, 0}, {[]float64{.5, .5}, []float64{.5}, .5},
		{[]float64{.3, .7}, []float64{.5}, .5}, {[]float64{.3, .7}, []float64{.3, .1}, .875},
	} {
		if got := AUROC(c.with, c.without); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("AUROC of %v against %v is %v, want %v", c.with, c.without, got, c.want)
		}
	}
	if !math.IsNaN(AUROC(nil, []float64{1})) {
		t.Error("an AUROC of one side")
	}
}

func TestEstimate(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = truth(i%4 == 0)
	}
	e := estimate(values, random("x"))
	if e.N != 200 || e.Mean != .25 || e.Low < .17 || e.Low > .22 || e.High < .28 || e.High > .33 {
		t.Errorf("%+v: the interval of 50 in 200 is about .19 to .31", e)
	}
	if again := estimate(values, random("x")); again != e {
		t.Errorf("%+v, then %+v", e, again)
	}
	macro := estimateStrata([][]float64{{1, 1, 1, 1, 1, 1}, {0}, nil}, random("x"))
	if macro.Mean != .5 || macro.N != 7 {
		t.Errorf("mean of categories %+v", macro)
	}
}

func TestRandomisation(t *testing.T) {
	var a, b, c []float64
	rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test's noise
	for range 300 {
		v := rng.Float64()
		a, b, c = append(a, v), append(b, v+.05+.1*rng.NormFloat64()), append(c, v+.1*rng.NormFloat64())
	}
	if r := compare(a, b, random("x")); r.p > .001 || r.low <= 0 {
		t.Errorf("a shift of .05: %+v", r)
	}
	if r := compare(a, c, random("x")); r.p < .01 {
		t.Errorf("noise: %+v", r)
	}
	if got := holm([]float64{.01, .04, .03}); math.Abs(got[0]-.03) > 1e-12 || math.Abs(got[1]-.06) > 1e-12 || math.Abs(got[2]-.06) > 1e-12 {
		t.Errorf("Holm %v", got)
	}
}

func TestRunFileScoresFall(t *testing.T) {
	var b strings.Builder
	err := WriteRun(&b, []Ranking{{Query: "q 1", Docs: []string{"a", "b", "c", "d"}, Scores: []float64{2, 2, 2 - 1e-7, 1.5}}}, "hark")
	if err != nil {
		t.Fatal(err)
	}
	last := float32(math.Inf(1))
	for line := range strings.Lines(b.String()) {
		f := strings.Fields(line)
		v, err := strconv.ParseFloat(f[4], 32)
		if err != nil || float32(v) >= last {
			t.Errorf("%s after %v", line, last)
		}
		last = float32(v)
		if f[0] != "q_1" || len(f) != 6 {
			t.Errorf("line %q", line)
		}
	}
}
