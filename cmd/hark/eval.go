package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/engine/history"
	"hark/eval"
)

func newEval(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure recall: on public sets, on your own history, before and after",
		Long: `Measures how well recall finds what it should and stays silent where it should:
offline, without a model as judge, the same figures from every run.

  hark eval run --set PATH      on a set of labelled questions
  hark eval compare A B         what changed between two runs, and whether it is chance
  hark eval own                 on questions made from your own store
  hark eval cache               what recall costs a provider's prompt cache
  hark eval fit                 fit the network of the second look`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvalRun(a), newEvalCompare(a), newEvalOwn(a), newEvalCache(a), newEvalFit(a))
	return cmd
}

// evalFlags are the flags of hark eval run.
type evalFlags struct {
	sets     []string
	out      string
	system   string
	without  []string
	pooled   bool
	same     bool
	foreign  int
	parallel int
}

func newEvalRun(a *app) *cobra.Command {
	var f evalFlags
	var parts strings.Builder
	for _, p := range eval.Parts() {
		_, _ = fmt.Fprintf(&parts, "  %-13s %s\n", p[0], p[1])
	}
	cmd := &cobra.Command{
		Use:   "run --set PATH [--out DIR]",
		Short: "Evaluate a system on a set of labelled questions",
		Long: `Evaluates a system on a set: how high it ranks the evidence, how much of it is in
the context a model gets at 500 to 8,000 tokens, and what it recalls where there is
nothing to recall.

PATH is a set, or a folder of sets, in the shape of docs.jsonl, queries.jsonl and
qrels.txt, or the files of BEIR, LMEB, LoCoMo, LongMemEval or BEAM as they are
published; docs/evaluation.md says where. The format is recognised.

The system hark is the default configuration, whatever you have configured; with
--config FILE it is that file's. Parts of it can be taken off with --without:

` + parts.String() + `
In DIR it writes report.json (the same bytes from every run), timing.json, report.html,
and run.trec and qrels.trec for trec_eval. With several sets each has a folder, and
summary.md is one table of all.`,
		Example: "  hark eval run --set ../locomo --out /tmp/locomo\n  hark eval run --set ../locomo --system bm25\n  hark eval run --set ../locomo --without smoothing,session --out /tmp/without",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(f.sets) == 0 {
				return usage("name a set with --set")
			}
			if f.parallel < 0 {
				return usage("--parallel has to be 0 or more, not %d", f.parallel)
			}
			return a.evalRun(cmd.Context(), f, cmd.Flags().Changed("config"))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "set, or folder of sets; may be given several times")
	fl.StringVar(&f.out, "out", "", "write the report's files into this folder")
	fl.StringVar(&f.system, "system", eval.Hark, "what is tested: hark, memory (what the tool memory_search answers), legacy (the recent window only), bm25, or dense")
	fl.StringSliceVar(&f.without, "without", nil, "take these parts off hark")
	fl.BoolVar(&f.pooled, "pooled", false, "put all conversations into one store, as sessions of one agent")
	fl.BoolVar(&f.same, "same-session", false, "ask in the conversation's last session instead of in a new one")
	fl.IntVar(&f.foreign, "foreign", 100, "questions that are also put to another conversation, where they have no answer; 0 for none")
	fl.IntVar(&f.parallel, "parallel", 0, "queries asked at a time (default: one a processor)")
	_ = cmd.RegisterFlagCompletionFunc("system", cobra.FixedCompletions([]string{eval.Hark, eval.Memory, eval.Legacy, eval.BM25, eval.Dense}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

// spec makes the system of the flags.
func (a *app) spec(f evalFlags, configured bool) (eval.Spec, error) {
	set := defaults(a.env)
	if configured {
		set = a.set
	} else {
		set.Timezone = "UTC" // dates shown in a block are part of what is measured
	}
	emb, err := embed.New(set.embedder(), a.logger())
	if err != nil {
		return eval.Spec{}, fmt.Errorf("embedder: %w", err)
	}
	opts, err := set.engineAndSecond()
	if err != nil {
		return eval.Spec{}, err
	}
	spec, err := eval.NewSpec(f.system, emb, *opts, f.without)
	if err != nil {
		return spec, usageError{err}
	}
	spec.Same = f.same
	if configured && f.system == eval.Hark {
		spec.Name = eval.Hark + " (" + filepath.Base(a.file) + ")"
	}
	return spec, nil
}

func (a *app) evalRun(ctx context.Context, f evalFlags, configured bool) error {
	spec, err := a.spec(f, configured)
	if err != nil {
		return err
	}
	var paths []string
	for _, s := range f.sets {
		found, err := eval.Find(s)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	opts := eval.Options{Pooled: f.pooled, Foreign: f.foreign, Parallel: f.parallel}
	if f.foreign == 0 {
		opts.Foreign = -1
	}
	var reports []*eval.Report
	var timings []eval.Timing
	for _, path := range paths {
		rep, t, err := a.evalSet(ctx, path, spec, opts, outDir(f.out, path, len(paths)))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		reports, timings = append(reports, rep), append(timings, t)
		if !a.json {
			a.printReport(rep, t)
		}
	}
	if a.json {
		return a.printJSON(reports)
	}
	if len(reports) > 1 {
		return a.evalSummary(reports, timings, f.out)
	}
	if f.out != "" {
		a.printf("%s\n", a.term.dim("written to "+f.out+": report.html, report.json, timing.json, run.trec, qrels.trec"))
	}
	return nil
}

func outDir(out, path string, sets int) string {
	if out == "" || sets == 1 {
		return out
	}
	return filepath.Join(out, strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".json"))
}

func (a *app) evalSet(ctx context.Context, path string, spec eval.Spec, opts eval.Options, out string) (*eval.Report, eval.Timing, error) {
	set, err := eval.Load(path, readHistory)
	if err != nil {
		return nil, eval.Timing{}, err
	}
	if set.Format == eval.History {
		spec.Engine.Policy = engine.PolicyAgent // its questions are about all of its conversations
	}
	const shown = 10
	for i, p := range set.Problems {
		if i == shown {
			a.note("%s %d more labels that cannot be used; report.json lists them", a.term.yellow("warning:"), len(set.Problems)-shown)
			break
		}
		a.note("%s %s", a.term.yellow("warning:"), clean(p.String()))
	}
	bar := a.evalBar(set.Counts().Asked, set.Name)
	opts.Progress = func(done, of int) {
		bar.ChangeMax(of)
		_ = bar.Set(done) // draws to standard error only
	}
	res, err := eval.Run(ctx, set, spec, opts)
	_ = bar.Finish() // draws to standard error only
	if err != nil {
		return nil, eval.Timing{}, err
	}
	rep := eval.NewReport(res, builtFrom())
	if out != "" {
		err = eval.Write(out, res, rep)
	}
	return rep, res.Timing, err
}

// readHistory reads a history for package eval: a document a line.
func readHistory(path string) ([]eval.HistorySession, error) {
	f, err := history.Read(path, history.Options{Format: history.Chat, Agent: "main", Now: time.Now()})
	if err != nil {
		return nil, err
	}
	var out []eval.HistorySession
	for _, s := range f.Sessions {
		h := eval.HistorySession{Key: s.Key, ID: s.ID, Entries: s.Entries}
		for i := range h.Entries {
			h.Entries[i].EntryID = strconv.FormatInt(h.Entries[i].Seq, 10)
		}
		out = append(out, h)
	}
	return out, nil
}

func (a *app) evalBar(n int, what string) *progressbar.ProgressBar {
	if !a.term.errTTY || a.quiet || a.json {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n,
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("queries"),
		progressbar.OptionThrottle(80*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true),
	)
}

// errNoReport is returned for a comparison of things that are no reports.
var errNoReport = errors.New("name two folders or files that hark eval run wrote")

// builtFrom is the commit the program was built from, or its version where that is all it knows.
func builtFrom() string {
	v, commit := buildVersion()
	if commit == "" {
		return v
	}
	return commit
}

func cpus() string { return fmt.Sprintf("%d CPUs, %s", runtime.NumCPU(), runtime.Version()) }
