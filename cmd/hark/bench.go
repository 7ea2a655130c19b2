package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// benchReport is the result of hark bench.
type benchReport struct {
	Seed     int64         `json:"seed"`
	CPU      string        `json:"cpu"`
	CPUs     int           `json:"cpus"`
	Go       string        `json:"go"`
	Embedder string        `json:"embedder"`
	Results  []benchResult `json:"results"`
}

// benchPlan says what is measured and where.
type benchPlan struct {
	seed    int64
	queries int
	dir     string // of the stores
	keep    bool   // leave them there, and measure what is there
	out     string // folder for bench.json and bench.svg, "" for none
	dump    string // folder for the history in files, "" for none
	warm    bool   // leave the files in the system's cache
}

func newBench(a *app) *cobra.Command {
	var messages, sizes, stage, in string
	var plan benchPlan
	cmd := &cobra.Command{
		Use:   "bench [--messages N | --sizes N,N…] [flags]",
		Short: "Measure speed and size on a synthetic history",
		Long: `Makes a history (people, topics that come back, identifiers, tool output; the same
for the same seed), imports it through the engine into a temporary store, and
measures it: import, opening the store, the first answer, search and assemble with
vectors, one committed turn, forgetting a session, memory, disk, and how many of the
ten nearest messages the vector search finds, compared with an exact search.

Sizes are numbers of messages and may be written 10k or 1M. Each size is imported by
one process and measured by another, so that its memory is its own. On Linux the
files are dropped from the system's cache before the store is opened.`,
		Example: `  hark bench
  hark bench --sizes 10k,100k,1m --out results
  hark bench --sizes 1m --dir /data --keep   # import once, measure as often as you like`,
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
			if plan.queries < 1 {
				return usage("--queries has to be 1 or more, not %d", plan.queries)
			}
			if plan.keep && plan.dir == "" {
				return usage("--keep needs --dir, the folder to keep the stores in")
			}
			switch stage {
			case "":
				return a.bench(cmd.Context(), counts, plan)
			case "import":
				return a.benchImport(cmd.Context(), in, counts[0], plan)
			case "ask":
				return a.benchAsk(cmd.Context(), in, plan)
			}
			return usage("--stage is import or ask, not %q", stage)
		},
	}
	f := cmd.Flags()
	f.StringVar(&messages, "messages", "10k", "messages in the history")
	f.StringVar(&sizes, "sizes", "", "several sizes, one after another")
	f.Int64Var(&plan.seed, "seed", 1, "seed of the history")
	f.IntVar(&plan.queries, "queries", 300, "questions to measure with")
	f.StringVar(&plan.dir, "dir", "", "make the stores in this folder (default: the system's for temporary files)")
	f.BoolVar(&plan.keep, "keep", false, "leave the stores in --dir; those found there are measured without importing")
	f.StringVar(&plan.out, "out", "", "write bench.json and the chart bench.svg into this folder")
	f.StringVar(&plan.dump, "dump", "", "write the history with its vectors and the questions into this folder, for other programs")
	f.BoolVar(&plan.warm, "warm", false, "leave the store's files in the system's cache before it is opened")
	f.StringVar(&stage, "stage", "", "run one stage in this process")
	f.StringVar(&in, "in", "", "folder of the stage")
	for _, name := range []string{"stage", "in"} {
		if err := f.MarkHidden(name); err != nil {
			panic(err) // defined just above
		}
	}
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
		res, err := a.measure(ctx, n, plan)
		if err != nil {
			return fmt.Errorf("bench with %d messages: %w", n, err)
		}
		report.Embedder = res.Embedder
		report.Results = append(report.Results, res)
	}
	if plan.out != "" {
		if err := writeBench(plan.out, report); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(report)
	}
	a.printBench(report)
	if plan.out != "" {
		a.note("written to %s: bench.json, bench.svg", plan.out)
	}
	return nil
}

// measure imports and measures one size, each in a process of its own, so that the memory of the
// second is that of answering.
func (a *app) measure(ctx context.Context, n int, plan benchPlan) (res benchResult, err error) {
	dir := filepath.Join(plan.dir, "hark-bench-"+strconv.Itoa(n))
	if !plan.keep {
		if dir, err = os.MkdirTemp(plan.dir, "hark-bench-"); err != nil {
			return res, fmt.Errorf("make a folder for the store: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary folder: what is left of it does no harm
	}
	if _, err := os.Stat(filepath.Join(dir, benchNotes)); errors.Is(err, fs.ErrNotExist) {
		if _, err := a.stage(ctx, "import", dir, n, plan); err != nil {
			return res, err
		}
	}
	out, err := a.stage(ctx, "ask", dir, n, plan)
	if err != nil {
		return res, err
	}
	if err := json.Unmarshal(out, &res); err != nil {
		return res, fmt.Errorf("read what was measured: %w", err)
	}
	return res, nil
}

// stage runs a stage of the bench in a process of its own and returns what it printed.
func (a *app) stage(ctx context.Context, name, dir string, n int, plan benchPlan) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"bench", "--stage", name, "--in", dir, "--messages", strconv.Itoa(n), "--json",
		"--seed", strconv.FormatInt(plan.seed, 10), "--queries", strconv.Itoa(plan.queries)}
	if plan.dump != "" {
		args = append(args, "--dump", plan.dump)
	}
	if plan.warm {
		args = append(args, "--warm")
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
		return nil, fmt.Errorf("run %s: %w", strings.Join(args, " "), err)
	}
	return out.Bytes(), nil
}

// writeBench writes a report and its chart.
func writeBench(dir string, r benchReport) error {
	var doc bytes.Buffer
	if err := writeJSON(&doc, r); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the report: %w", err)
	}
	for name, data := range map[string][]byte{"bench.json": doc.Bytes(), "bench.svg": benchChart(r)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
