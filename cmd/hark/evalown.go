package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/eval"
	"hark/index"
)

func newEvalOwn(a *app) *cobra.Command {
	var out string
	var questions, parallel int
	cmd := &cobra.Command{
		Use:   "own [--out DIR]",
		Short: "Evaluate recall on questions made from your own store",
		Long: `Makes questions from your own store, without a model and the same ones every time:
identifiers, rare phrases, messages with words left out, facts that two sessions
share, values that changed, and things you never talked about. Then it asks them,
under your configuration, and reports as "hark eval run" does.

The store is opened for reading only: its files do not change. The report quotes your
messages; it stays in DIR on this machine.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if questions < 1 {
				return usage("--questions has to be 1 or more, not %d", questions)
			}
			return a.evalOwn(cmd, out, questions, parallel)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write the report's files into this folder")
	cmd.Flags().IntVar(&questions, "questions", 40, "questions of each kind, at most")
	cmd.Flags().IntVar(&parallel, "parallel", 0, "queries asked at a time (default: one a processor)")
	return cmd
}

func (a *app) evalOwn(cmd *cobra.Command, out string, questions, parallel int) error {
	if err := a.stored(); err != nil {
		return err
	}
	ctx, dir := cmd.Context(), a.agentDir()
	log := a.logger()
	store, err := index.Open(ctx, dir, &index.Options{Log: log, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open the store in %s: %w", dir, err)
	}
	a.closers = append(a.closers, store.Close)
	emb, err := embed.New(a.set.embedder(), log)
	if err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	opts, err := a.set.engineAndSecond()
	if err != nil {
		return err
	}
	spec, err := eval.NewSpec(eval.Hark, emb, *opts, nil)
	if err != nil {
		return err
	}
	set, lib, err := eval.FromStore(ctx, store, a.set.Agent, eval.OwnerSees(engine.Policy(a.set.Recall.Policy)), questions)
	if err != nil {
		return err
	}
	bar := a.evalBar(len(set.Queries), "questions")
	res, err := eval.RunOwn(ctx, set, lib, spec, eval.Options{Parallel: parallel, Progress: func(done, _ int) {
		_ = bar.Set(done) // draws to standard error only
	}})
	_ = bar.Finish() // draws to standard error only
	if err != nil {
		return err
	}
	rep := eval.NewReport(res, builtFrom())
	if out != "" {
		if err := eval.Write(out, res, rep); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(rep)
	}
	a.printReport(rep, res.Timing)
	if out != "" {
		a.printf("%s\n", a.term.dim("written to "+out+": report.html, report.json, timing.json, run.trec, qrels.trec"))
	}
	return nil
}
