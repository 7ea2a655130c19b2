package eval

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hark/engine"
	"hark/engine/history"
)

var update = flag.Bool("update", false, "write the golden files of the project's own sets anew")

// goldenBudgets are assembled for the goldens: fewer than a report has, for time.
func goldenBudgets() []int { return []int{1000, ReferenceBudget} }

// readChat reads a history as hark import does.
func readChat(path string) ([]HistorySession, error) {
	f, err := history.Read(path, history.Options{Format: history.Chat, Agent: "main", Now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		return nil, err
	}
	var out []HistorySession
	for _, s := range f.Sessions {
		h := HistorySession{Key: s.Key, ID: s.ID, Entries: s.Entries}
		for i := range h.Entries {
			h.Entries[i].EntryID = strconv.FormatInt(h.Entries[i].Seq, 10)
		}
		out = append(out, h)
	}
	return out, nil
}

// The project's own sets, against what is recorded: a fall that is more than chance fails; any
// other difference is shown, and recorded with: go test ./eval -run TestGolden -update.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("asks 500 questions")
	}
	asked := 0
	var before, after []Outcome
	for _, name := range []string{"demo", "agent", "notes"} {
		dir := filepath.Join("..", "testdata", "eval", name)
		set, err := Load(dir, readChat)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range set.Problems {
			t.Errorf("label: %s", p)
		}
		spec := hark(t)
		spec.Engine.Policy = engine.PolicyAgent
		res, err := Run(t.Context(), set, spec, Options{Dir: t.TempDir(), Budgets: goldenBudgets()})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range set.Queries {
			if q.Cat != Ordinary {
				asked++
			}
		}
		file := filepath.Join(dir, "golden.txt")
		got := golden(res)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(data); got != want {
			t.Logf("%s differs; read the difference, then record it with -update:\n%s", file, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
		old, err := parseGolden(string(data))
		if err != nil {
			t.Fatal(err)
		}
		before, after = append(before, old...), append(after, res.Outcomes...)
	}
	if asked < 150 {
		t.Errorf("%d questions, want at least 150", asked)
	}
	for _, f := range falls(before, after) {
		t.Error(f)
	}
}

// watched are the metrics whose fall fails the test.
func watched() []string {
	return []string{"recall@5", "recall@10", "MRR@10", "nDCG@10", At("budget recall", 1000), At("budget recall", ReferenceBudget), At("false recall", ReferenceBudget)}
}

// falls compares recorded outcomes with new ones.
func falls(before, after []Outcome) []string {
	at := map[string]*Outcome{}
	for i := range after {
		at[after[i].ID] = &after[i]
	}
	var out []string
	for _, m := range Metrics(History) {
		if !slices.Contains(watched(), m.Name) {
			continue
		}
		var a, b []float64
		for i := range before {
			o := at[before[i].ID]
			if o == nil {
				continue // the question was taken away
			}
			x, ok := m.Value(&before[i])
			y, too := m.Value(o)
			if ok && too {
				a, b = append(a, x), append(b, y)
			}
		}
		r := compare(a, b, random("golden", m.Name))
		if worse := (r.b < r.a) != m.Lower && r.b != r.a; worse && r.p < Level && (r.low > 0 || r.high < 0) {
			out = append(out, fmt.Sprintf("%s went from %.1f to %.1f over %d questions (p %.4f)", m.Name, 100*r.a, 100*r.b, r.n, r.p))
		}
	}
	return out
}

// golden writes a result down: its figures, then a line for every question.
func golden(res *Result) string {
	rep := NewReport(res, "")
	var b strings.Builder
	w := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) } // a Builder does not fail
	w("# %s: recorded by go test ./eval -run TestGolden -update", res.Set.Name)
	w("# %d documents, %d questions with evidence, %d without", rep.Counts.Documents, rep.Counts.WithEvidence, rep.Counts.WithoutEvidence)
	for _, m := range rep.Metrics {
		if strings.HasPrefix(m.Name, "any@") || strings.HasPrefix(m.Name, "window") {
			continue
		}
		unit := fmt.Sprintf("%.1f", 100*m.Micro.Mean)
		if m.Unit == Tokens {
			unit = fmt.Sprintf("%.0f", m.Micro.Mean)
		}
		w("%-20s %6s  n %d", m.Name, unit, m.Micro.N)
	}
	if s := rep.Separation; s != nil {
		w("%-20s %6.3f", "AUROC", s.AUROC)
	}
	w("")
	w("# id | category | rank of each evidence (- beyond %d) | of it in the context at 1k and 4k | recalled at 4k | fate of what is missing", rankDepth)
	for _, o := range res.Outcomes {
		var ranks, lost []string
		for _, g := range o.Gold {
			r := "-"
			if g.Rank > 0 {
				r = strconv.Itoa(g.Rank)
			}
			ranks = append(ranks, r)
			if g.Fate != InBlock && g.Fate != InWindow {
				lost = append(lost, string(g.Fate))
			}
		}
		small, _ := o.in(1000)
		large, _ := o.in(ReferenceBudget)
		w("%s | %s | %s | %d %d | %d | %s", o.ID, o.Cat, strings.Join(ranks, " "), small.Found, large.Found, large.Items, strings.Join(lost, ", "))
	}
	return b.String()
}

// parseGolden reads outcomes back.
func parseGolden(text string) ([]Outcome, error) {
	var out []Outcome
	for n, line := range strings.Split(text, "\n") {
		f := strings.Split(line, " | ")
		if strings.HasPrefix(line, "#") || len(f) != 6 {
			continue
		}
		o := Outcome{ID: f[0], Cat: f[1], Contexts: []InContext{{Budget: 1000}, {Budget: ReferenceBudget}}}
		for i, r := range strings.Fields(f[2]) {
			rank, err := strconv.Atoi(r)
			if err != nil && r != "-" {
				return nil, fmt.Errorf("line %d: rank %q", n+1, r)
			}
			o.Gold = append(o.Gold, Gold{Doc: strconv.Itoa(i), Rank: rank})
		}
		o.Negative = len(o.Gold) == 0
		if _, err := fmt.Sscanf(f[3]+" "+f[4], "%d %d %d", &o.Contexts[0].Found, &o.Contexts[1].Found, &o.Contexts[1].Items); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no outcomes in %d lines", strings.Count(text, "\n"))
	}
	return out, nil
}

func TestGoldenTellsAFall(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "testdata", "eval", "demo", "golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	read := func() []Outcome {
		out, err := parseGolden(string(data))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if f := falls(read(), read()); len(f) > 0 {
		t.Errorf("the same outcomes: %v", f)
	}
	bad := read()
	for i := range bad {
		for j := range bad[i].Gold {
			if i%4 == 0 { // every fourth question loses its evidence
				bad[i].Gold[j].Rank = 0
			}
		}
		if bad[i].Negative {
			bad[i].Contexts[1].Items = 3
		}
	}
	got := strings.Join(falls(read(), bad), "\n")
	if !strings.Contains(got, "recall@10 went from") || !strings.Contains(got, "false recall 4k went from") || strings.Contains(got, "budget recall") {
		t.Errorf("falls:\n%s", got)
	}
	if f := falls(bad, read()); len(f) > 0 {
		t.Errorf("a rise is told as a fall: %v", f)
	}
	one := read()
	one[0].Gold[0].Rank = 0
	if f := falls(read(), one); len(f) > 0 {
		t.Errorf("one question is no fall: %v", f)
	}
}
