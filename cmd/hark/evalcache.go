package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/eval/cache"
)

// evalCacheFlags are the flags of hark eval cache.
type evalCacheFlags struct {
	turns   int
	seed    int
	plan    string
	session string
	budget  int
	prices  cache.Prices
	brief   bool
}

func newEvalCache(a *app) *cobra.Command {
	f := evalCacheFlags{turns: 200, seed: 1, plan: "mixed", budget: 100_000, prices: cache.Prices{Input: 1, Cached: 0.1}}
	cmd := &cobra.Command{
		Use:   "cache [FILE]",
		Short: "Measure what recall costs a provider's prompt cache",
		Long: `Plays a conversation the way OpenClaw does, by Hark and by the legacy engine, and
compares every model request with the one before it: how much of it begins alike,
what is billed in full that legacy would have had from the cache, and why.

FILE is a transcript in one of the formats of "hark import", or a recording of the
host's calls. Without it a session is made up: 200 turns with tool loops, changing
topics, questions about earlier sessions, and compactions. Other plans: chat (no
tools), tools (long loops), work (long loops with long outputs), steady (no
compaction, a budget that the session outgrows), nothing (nothing to recall), all.

Added cost is shown twice: as a share of what legacy costs, and as a share of what
all of legacy's input tokens would cost without a cache. "hark" leaves the block of a
turn in place only where its tools read much; "all stay" is recall.keep_blocks.

The last lines say whether the run keeps to what Hark promises; the command fails
where it does not. The cache is taken to be warm and free to write to.`,
		Example: "  hark eval cache\n  hark eval cache transcript.jsonl --price-cached 0.25 --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.turns < 1 || f.budget < 1 {
				return usage("--turns and --budget have to be 1 or more")
			}
			if f.prices.Input <= 0 || f.prices.Cached < 0 {
				return usage("prices have to be positive: --price-input is what a token costs, --price-cached what one from the cache does")
			}
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			return a.evalCache(cmd.Context(), file, f)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.turns, "turns", f.turns, "turns of a made-up session")
	fl.IntVar(&f.seed, "seed", f.seed, "what a made-up session is made from")
	fl.StringVar(&f.plan, "plan", f.plan, "made-up session: mixed, chat, tools, work, steady, nothing or all")
	fl.StringVar(&f.session, "session", "", "session of a recording, by its key; all without it")
	fl.IntVar(&f.budget, "budget", f.budget, "tokens of a transcript's context")
	fl.Float64Var(&f.prices.Input, "price-input", f.prices.Input, "price of a token billed in full")
	fl.Float64Var(&f.prices.Cached, "price-cached", f.prices.Cached, "price of a token from the cache")
	fl.BoolVar(&f.brief, "brief", false, "leave out the requests")
	return cmd
}

// playedSession is a comparison and how the configured run did.
type playedSession struct {
	*cache.Comparison
	Checks []cache.Check `json:"checks"`
}

func (a *app) evalCache(ctx context.Context, file string, f evalCacheFlags) (err error) {
	sessions, err := a.cacheSessions(file, f)
	if err != nil {
		return err
	}
	emb, err := embed.New(a.set.embedder(), a.logger())
	if err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	dir, err := os.MkdirTemp("", "hark-cache-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	opts := a.set.engine()
	lab := cache.Lab{Dir: dir, Embedder: emb, Options: *opts, Log: a.logger()}
	chosen := 1
	if opts.KeepBlocks {
		chosen = 2
	}
	var out []playedSession
	good := true
	for _, s := range sessions {
		c, err := lab.Compare(ctx, s, f.prices)
		if err != nil {
			return fmt.Errorf("play %s: %w", s.Name, err)
		}
		p := playedSession{c, c.Checks(chosen)}
		for _, check := range p.Checks {
			good = good && check.OK
		}
		out = append(out, p)
		if !a.json {
			a.printCache(p, chosen, f.brief)
		}
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !good {
		return errReported
	}
	return nil
}

// cacheSessions reads or makes up what is played.
func (a *app) cacheSessions(file string, f evalCacheFlags) ([]*cache.Session, error) {
	if file == "" {
		var out []*cache.Session
		for _, p := range cache.Plans(f.turns, uint64(f.seed)) {
			if f.plan == "all" || p.Name == f.plan || strings.HasPrefix(p.Name, f.plan+" ") {
				out = append(out, cache.Synthetic(p))
			}
		}
		if len(out) == 0 {
			return nil, usage("--plan has to be mixed, chat, tools, work, steady, nothing or all, not %q", f.plan)
		}
		return out, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(data, []byte(`"commitTurn"`)) {
		messages, err := a.readMessages(file)
		if err != nil {
			return nil, err
		}
		s, err := cache.FromMessages(file, messages, f.budget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return []*cache.Session{s}, nil
	}
	all, err := cache.FromRecording(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var keys []string
	for _, s := range all {
		if s.Key == f.session {
			return []*cache.Session{s}, nil
		}
		keys = append(keys, s.Key)
	}
	if f.session != "" {
		return nil, fmt.Errorf("%s has no session %q; it has %s", file, f.session, strings.Join(keys, ", "))
	}
	return all, nil
}

// printCache prints the requests of the configured run, the totals of all, and the checks.
func (a *app) printCache(p playedSession, chosen int, brief bool) {
	a.printf("Session %s: %d turns, a budget of %d tokens, a token at %g, from the cache at %g\n", p.Session, p.Turns, p.Budget, p.Prices.Input, p.Prices.Cached)
	run, base := p.Runs[chosen], p.Runs[0]
	if !brief {
		a.printf("\n%10s %8s %7s %7s %9s %7s  %s\n", "request", "tokens", "alike", "legacy", "re-billed", "recall", "what ended the likeness")
		for i, r := range run.Requests {
			was := base.Requests[i]
			a.printf("%10s %8d %6.1f%% %6.1f%% %+9d %7d  %s\n", fmt.Sprintf("%d.%d", r.Turn, r.Call), r.Tokens, 100*r.Share(), 100*was.Share(),
				(r.Tokens-r.Same)-(was.Tokens-was.Same), r.Recall, r.Break)
		}
	}
	a.printf("\n%-18s %8s %10s %7s %9s %7s %9s %5s %6s %11s %7s %8s\n", "engine", "requests", "tokens", "alike", "in full", "blocks", "recall", "cuts", "early", "cost", "of cost", "of input")
	for _, t := range p.Totals {
		a.printf("%-18s %8d %10d %6.1f%% %9d %7d %9d %5d %6d %11.0f %+6.1f%% %+7.2f%%\n", t.Engine, t.Requests, t.Tokens, 100*t.Same, t.Full, t.Blocks, t.Recall, t.Cuts, t.Early, t.Cost, 100*t.Added, 100*t.OfInput)
	}
	a.printf("\n")
	for _, c := range p.Checks {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
		}
		a.printf("%s %s: %s\n", mark, c.What, c.Got)
	}
	a.printf("\n")
}
