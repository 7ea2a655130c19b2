package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Report is everything a run found out that is the same in every run of it: report.json.
type Report struct {
	Schema     int             `json:"schema"`
	Commit     string          `json:"commit,omitempty"` // that the program was built from
	Set        string          `json:"set"`
	Format     string          `json:"format"`
	System     string          `json:"system"`
	Embedder   string          `json:"embedder"`
	Pooled     bool            `json:"pooled"`
	SameTurn   bool            `json:"sameSession,omitempty"`
	Counts     Counts          `json:"counts"`
	Problems   []Problem       `json:"problems,omitempty"`
	Categories []string        `json:"categories"`
	Metrics    []MetricSummary `json:"metrics"`
	Separation *Separation     `json:"confidence,omitempty"`
	Fates      []FateCount     `json:"fates"` // of evidence missing from the context at the reference budget
	Outcomes   []Outcome       `json:"outcomes"`
}

// schema is the version of report.json.
const schema = 1

// MetricSummary is one metric over all queries.
type MetricSummary struct {
	Name       string              `json:"name"`
	Unit       Unit                `json:"unit"`
	Lower      bool                `json:"lowerIsBetter,omitempty"`
	Doc        string              `json:"doc"`
	Micro      Estimate            `json:"micro"` // every query the same weight
	Macro      Estimate            `json:"macro"` // every category the same weight
	Categories map[string]Estimate `json:"categories,omitempty"`
}

// FateCount says how much of the evidence met a fate.
type FateCount struct {
	Fate  Fate `json:"fate"`
	Count int  `json:"count"`
}

// NewReport computes the metrics of a result. commit is what the program was built from, "" where
// that is not known.
func NewReport(r *Result, commit string) *Report {
	rep := &Report{
		Schema: schema, Commit: commit, Set: r.Set.Name, Format: r.Set.Format, System: r.Spec.String(), Embedder: "none",
		Pooled: r.Pooled, SameTurn: r.Spec.Same, Counts: r.Set.Counts(), Problems: r.Set.Problems, Outcomes: r.Outcomes,
	}
	if r.Spec.Embedder != nil {
		rep.Embedder = r.Spec.Embedder.Model().String()
	}
	rep.Categories = r.Set.Categories()
	if slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Cat == Foreign }) {
		rep.Categories = append(rep.Categories, Foreign)
	}
	for _, m := range Metrics(r.Set.Format) {
		if s := summarise(m, r.Outcomes, rep.Categories); s.Micro.N > 0 {
			rep.Metrics = append(rep.Metrics, s)
		}
	}
	var with, without []float64
	count := map[Fate]int{}
	for _, o := range r.Outcomes {
		if o.Negative {
			without = append(without, o.Confidence)
			continue
		}
		with = append(with, o.Confidence)
		for _, g := range o.Gold {
			count[g.Fate]++
		}
	}
	if r.Spec.Name != Legacy {
		rep.Separation = separate(with, without, random("confidence"))
	}
	for _, f := range append([]Fate{InBlock, InWindow}, fates()...) {
		if count[f] > 0 {
			rep.Fates = append(rep.Fates, FateCount{f, count[f]})
		}
	}
	return rep
}

func summarise(m Metric, outcomes []Outcome, categories []string) MetricSummary {
	s := MetricSummary{Name: m.Name, Unit: m.Unit, Lower: m.Lower, Doc: m.Doc, Categories: map[string]Estimate{}}
	var all []float64
	by := map[string][]float64{}
	for i := range outcomes {
		if v, ok := m.Value(&outcomes[i]); ok {
			all = append(all, v)
			by[outcomes[i].Cat] = append(by[outcomes[i].Cat], v)
		}
	}
	var groups [][]float64
	for _, c := range categories {
		if len(by[c]) > 0 {
			groups = append(groups, by[c])
			s.Categories[c] = estimate(by[c], random(m.Name, c))
		}
	}
	s.Micro, s.Macro = estimate(all, random(m.Name, "micro")), estimateStrata(groups, random(m.Name, "macro"))
	return s
}

// Metric returns a metric's summary; ok is false where no query has it.
func (r *Report) Metric(name string) (MetricSummary, bool) {
	i := slices.IndexFunc(r.Metrics, func(m MetricSummary) bool { return m.Name == name })
	if i < 0 {
		return MetricSummary{}, false
	}
	return r.Metrics[i], true
}

// value is a metric's micro mean, 0 where there is none.
func (r *Report) value(name string) float64 {
	m, _ := r.Metric(name)
	return m.Micro.Mean
}

// Write writes the files of a run into dir, which is created: report.json, timing.json, the TREC
// run and qrels, and report.html. Existing files of these names are replaced.
func Write(dir string, r *Result, rep *Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"report.json", func(w io.Writer) error { return writeJSON(w, rep) }},
		{"timing.json", func(w io.Writer) error { return writeJSON(w, r.Timing) }},
		{"run.trec", func(w io.Writer) error { return WriteRun(w, r.Rankings, r.Spec.tag()) }},
		{"qrels.trec", func(w io.Writer) error { return WriteQrels(w, r.Set) }},
		{"report.html", func(w io.Writer) error { return WriteHTML(w, rep, r.Timing) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}

// ReadReport reads the report.json in a folder, or the file itself.
func ReadReport(path string) (*Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "report.json")
	}
	var rep Report
	if err := readJSON(path, &rep); err != nil {
		return nil, err
	}
	if rep.Schema != schema {
		return nil, fmt.Errorf("%s is of version %d, and this program reads version %d: run the evaluation again", path, rep.Schema, schema)
	}
	return &rep, nil
}
