package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/eval"
	"hark/eval/fit"
	"hark/recall"
)

// fitFlags are the flags of hark eval fit.
type fitFlags struct {
	sets  []string
	out   string
	folds int
	leave bool
	skip  bool
	fit.Options
}

func newEvalFit(a *app) *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit --set PATH [--out FILE]",
		Short: "Fit the network that looks at the best candidates again",
		Long: `Fits the small network of recall's second look to labelled questions and prints what
it changes on conversations it was not fitted on: the sets are divided into folds by
conversation, and each fold is ranked by a network fitted on the others. With --leave
each kind of set is ranked by a network that saw none of its kind.

With --out the network fitted on everything is written to FILE; recall/net.json is the
one that Hark is built with. The same sets give the same file.`,
		Example: "  hark eval fit --set ../sets\n  hark eval fit --set ../sets --set testdata/eval --out recall/net.json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(f.sets) == 0:
				return usage("name a set with --set")
			case f.folds < 2:
				return usage("--folds has to be at least 2, not %d", f.folds)
			}
			return a.evalFit(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "set, or folder of sets; may be given several times")
	fl.StringVar(&f.out, "out", "", "write the network to this file")
	fl.IntVar(&f.folds, "folds", 3, "parts of each set for cross-validation")
	fl.BoolVar(&f.leave, "leave", false, "leave out whole kinds of sets instead of conversations")
	fl.BoolVar(&f.skip, "no-validation", false, "only fit")
	fl.IntVar(&f.Nets, "nets", 3, "networks that are fitted and averaged")
	fl.IntVar(&f.Units, "units", 16, "hidden units of each")
	fl.IntVar(&f.Epochs, "epochs", 20, "how often every question is seen")
	fl.Float64Var(&f.Decay, "decay", 0.01, "how fast weights that nothing holds up fall")
	return cmd
}

func (a *app) evalFit(ctx context.Context, f fitFlags) error {
	spec, err := a.spec(evalFlags{system: eval.Hark}, false)
	if err != nil {
		return err
	}
	qs, err := a.labelled(ctx, f.sets, spec)
	if err != nil {
		return err
	}
	if len(qs) == 0 {
		return fmt.Errorf("no question of these sets has an answer: there is nothing to fit to")
	}
	var rows []fit.Row
	if !f.skip {
		folds := fit.Folds(qs, f.folds)
		if f.leave {
			folds = fit.Leave(qs)
		}
		if rows, err = fit.Validate(ctx, folds, recall.DefaultWeights().Look, f.Options); err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(rows)
		} else {
			a.fitTable(rows)
		}
		if err != nil {
			return err
		}
	}
	if f.out == "" {
		return nil
	}
	net, err := fit.Train(ctx, qs, f.Options)
	if err != nil {
		return err
	}
	if err := fit.Record(net, rows); err != nil {
		return err
	}
	b, err := json.Marshal(net)
	if err != nil {
		return fmt.Errorf("encode the network: %w", err)
	}
	if err := os.WriteFile(f.out, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the network: %w", err)
	}
	a.note("written to %s", f.out)
	return nil
}

// labelled collects the candidates of all questions of the sets.
func (a *app) labelled(ctx context.Context, sets []string, spec eval.Spec) ([]eval.Labelled, error) {
	var out []eval.Labelled
	for _, s := range sets {
		paths, err := eval.Find(s)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			set, err := eval.Load(p, readHistory)
			if err != nil {
				return nil, err
			}
			bar := a.evalBar(set.Counts().Asked, set.Name)
			o := eval.Options{Progress: func(done, of int) {
				bar.ChangeMax(of)
				_ = bar.Set(done) // draws to standard error only
			}}
			if set.Format == eval.History {
				spec.Engine.Policy = engine.PolicyAgent // its questions are about all of its conversations
			}
			qs, err := eval.Examples(ctx, set, spec, o)
			_ = bar.Finish() // draws to standard error only
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(p), err)
			}
			out = append(out, qs...)
		}
	}
	return out, nil
}

// fitTable prints before and after, a line a set.
func (a *app) fitTable(rows []fit.Row) {
	width := 12
	for _, r := range rows {
		width = max(width, len(r.Set))
	}
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%-*s  questions   R@5            R@10           nDCG@10\n", width, "set") // a Builder does not fail
	for _, r := range rows {
		_, _ = fmt.Fprintf(&b, "%-*s  %9d  %5.1f  %+5.1f   %5.1f  %+5.1f   %5.1f  %+5.1f\n", width, r.Set, r.Questions,
			r.After.Recall5, r.After.Recall5-r.Before.Recall5, r.After.Recall10, r.After.Recall10-r.Before.Recall10,
			r.After.NDCG10, r.After.NDCG10-r.Before.NDCG10)
	}
	a.printf("%s", b.String())
}
