package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// benchResult is what was measured with one size of history. Times are milliseconds.
type benchResult struct {
	Messages     int     `json:"messages"`
	Sessions     int     `json:"sessions"`
	ImportRate   float64 `json:"import_per_s"`
	ImportS      float64 `json:"import_s"`
	ImportCPU    float64 `json:"import_cpu_s"` // processor seconds, 0 where the system does not tell
	SearchP50    float64 `json:"search_p50_ms"`
	SearchP95    float64 `json:"search_p95_ms"`
	SearchCPU    float64 `json:"search_cpu_ms"` // processor time a search, mean
	AssembleP50  float64 `json:"assemble_p50_ms"`
	AssembleP95  float64 `json:"assemble_p95_ms"`
	CommitP50    float64 `json:"commit_p50_ms"`
	CommitP95    float64 `json:"commit_p95_ms"`
	ColdOpen     float64 `json:"cold_open_ms"`
	FirstSearch  float64 `json:"first_search_ms"`
	ResidentMiB  float64 `json:"resident_mib"`
	PeakMiB      float64 `json:"peak_mib"` // 0 where the system does not tell
	DiskMiB      float64 `json:"disk_mib"`
	SelfFound    float64 `json:"self_found"` // share of questions whose own message was among the ten hits
	QueriesAsked int     `json:"queries"`
}

// benchReport is the result of hark bench.
type benchReport struct {
	Seed     int64         `json:"seed"`
	CPU      string        `json:"cpu"`
	CPUs     int           `json:"cpus"`
	Go       string        `json:"go"`
	Embedder string        `json:"embedder"`
	Results  []benchResult `json:"results"`
}

func newBench(a *app) *cobra.Command {
	var messages, sizes, dir string
	var seed int64
	var queries int
	cmd := &cobra.Command{
		Use:   "bench [--messages N | --sizes N,N…]",
		Short: "Measure speed and size on a synthetic history",
		Long: `Makes a history (people, topics that come back, identifiers, tool output; the same
for the same seed), imports it through the engine into a temporary store, and
measures: import, search and assemble with vectors, one committed turn, opening
the store again, resident memory and disk.

Sizes are numbers of messages and may be written 10k or 1M. With several sizes each
is measured in a process of its own. The files of a reopened store are warm in the
system's cache.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := sizes
			switch {
			case sizes == "":
				list = messages
			case cmd.Flags().Changed("messages"):
				return usage("give either --messages or --sizes")
			}
			counts, err := parseSizes(list)
			if err != nil {
				return err
			}
			if queries < 1 {
				return usage("--queries has to be 1 or more, not %d", queries)
			}
			return a.bench(cmd.Context(), counts, benchPlan{seed: seed, queries: queries, dir: dir})
		},
	}
	cmd.Flags().StringVar(&messages, "messages", "10k", "messages in the history")
	cmd.Flags().StringVar(&sizes, "sizes", "", "several sizes, one after another")
	cmd.Flags().Int64Var(&seed, "seed", 1, "seed of the history")
	cmd.Flags().IntVar(&queries, "queries", 300, "questions to measure with")
	cmd.Flags().StringVar(&dir, "dir", "", "make the temporary stores in this folder (default: the system's)")
	return cmd
}

// parseSizes reads numbers like 500, 10k and 1M.
func parseSizes(list string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		text, factor := strings.TrimSpace(part), 1
		switch {
		case strings.HasSuffix(strings.ToLower(text), "k"):
			text, factor = text[:len(text)-1], 1000
		case strings.HasSuffix(strings.ToLower(text), "m"):
			text, factor = text[:len(text)-1], 1_000_000
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n*factor < 100 || n*factor > 20_000_000 {
			return nil, usage("%q is not a size: write a number of messages from 100 to 20M, like 500, 10k or 1M", part)
		}
		out = append(out, n*factor)
	}
	return out, nil
}

func (a *app) bench(ctx context.Context, sizes []int, plan benchPlan) error {
	report := benchReport{Seed: plan.seed, CPU: cpuName(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Results: []benchResult{}}
	for _, n := range sizes {
		var res benchResult
		var err error
		if len(sizes) == 1 {
			res, report.Embedder, err = a.measure(ctx, n, plan)
		} else {
			res, report.Embedder, err = a.measureApart(ctx, n, plan)
		}
		if err != nil {
			return fmt.Errorf("bench with %d messages: %w", n, err)
		}
		report.Results = append(report.Results, res)
	}
	if a.json {
		return a.printJSON(report)
	}
	a.printBench(report)
	return nil
}

// measureApart measures one size in a process of its own, so that its memory is its own.
func (a *app) measureApart(ctx context.Context, n int, plan benchPlan) (benchResult, string, error) {
	self, err := os.Executable()
	if err != nil {
		return benchResult{}, "", fmt.Errorf("find this program: %w", err)
	}
	args := []string{"bench", "--json", "--messages", strconv.Itoa(n), "--seed", strconv.FormatInt(plan.seed, 10), "--queries", strconv.Itoa(plan.queries)}
	if plan.dir != "" {
		args = append(args, "--dir", plan.dir)
	}
	if a.quiet {
		args = append(args, "--quiet")
	}
	if a.file != "" {
		args = append(args, "--config", a.file)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, a.err
	if err := cmd.Run(); err != nil {
		return benchResult{}, "", fmt.Errorf("run %s: %w", strings.Join(args, " "), err)
	}
	var part benchReport
	if err := json.Unmarshal(out.Bytes(), &part); err != nil || len(part.Results) != 1 {
		return benchResult{}, "", fmt.Errorf("unexpected output of %s", strings.Join(args, " "))
	}
	return part.Results[0], part.Embedder, nil
}

// printBench shows the report with a column for every size.
func (a *app) printBench(r benchReport) {
	a.printf("%s, %d CPUs, %s\nembedder %s, seed %d\n\n", r.CPU, r.CPUs, r.Go, r.Embedder, r.Seed)
	t := table{header: []string{"messages"}, right: map[int]bool{}}
	for i, res := range r.Results {
		t.header = append(t.header, strconv.Itoa(res.Messages))
		t.right[i+1] = true
	}
	row := func(name, format string, value func(benchResult) float64) {
		cells := []string{name}
		for _, res := range r.Results {
			cells = append(cells, fmt.Sprintf(format, value(res)))
		}
		t.add(cells...)
	}
	row("import, messages/s", "%.0f", func(b benchResult) float64 { return b.ImportRate })
	row("import, processor s", "%.2f", func(b benchResult) float64 { return b.ImportCPU })
	row("search p50, ms", "%.2f", func(b benchResult) float64 { return b.SearchP50 })
	row("search p95, ms", "%.2f", func(b benchResult) float64 { return b.SearchP95 })
	row("search, processor ms", "%.2f", func(b benchResult) float64 { return b.SearchCPU })
	row("assemble p50, ms", "%.2f", func(b benchResult) float64 { return b.AssembleP50 })
	row("assemble p95, ms", "%.2f", func(b benchResult) float64 { return b.AssembleP95 })
	row("commit a turn p50, ms", "%.2f", func(b benchResult) float64 { return b.CommitP50 })
	row("commit a turn p95, ms", "%.2f", func(b benchResult) float64 { return b.CommitP95 })
	row("open the store, ms", "%.0f", func(b benchResult) float64 { return b.ColdOpen })
	row("first search, ms", "%.1f", func(b benchResult) float64 { return b.FirstSearch })
	row("resident, MiB", "%.0f", func(b benchResult) float64 { return b.ResidentMiB })
	row("peak while importing, MiB", "%.0f", func(b benchResult) float64 { return b.PeakMiB })
	row("on disk, MiB", "%.1f", func(b benchResult) float64 { return b.DiskMiB })
	row("own message in ten hits", "%.2f", func(b benchResult) float64 { return b.SelfFound })
	t.print(a.out, a.term)
}
