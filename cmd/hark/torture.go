package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// tortureFlags are what a torture is asked for.
type tortureFlags struct {
	seed     uint64
	steps    int
	seconds  int
	messages int
	dir      string
	mode     string
	turns    int
	sessions int
}

func newTorture(a *app) *cobra.Command {
	var f tortureFlags
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Try to break a store, and count what was lost",
		Long: `Works on a store of its own as a host does, from other processes, and breaks it:
kill -9 in the middle of storing, forgetting and embedding, files cut at any length,
half the vectors gone, a held lock, a newer schema, a folder that cannot be written,
a full disk, a stopped process, several processes at once. After each step the store
is opened again and compared with a record of what had been acknowledged.

It prints what it did and how much was lost, stored twice, brought back after it was
forgotten, found wrong, or waited for too long; each of these should be 0, and makes
the exit code 1. The same --seed does the same steps; where a kill hits differs.

--mode life does something else: so many turns over so many sessions, with an engine
built and disposed for each, and the resources it takes as a curve.`,
		Example: `  hark torture --steps 20
  hark torture --seed 7 --seconds 3600 --json
  hark torture --messages 100000 --steps 10
  hark torture --mode life --turns 50000 --sessions 500`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.torture(cmd.Context(), f, cmd.Flags().Changed("steps"))
		},
	}
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "what the steps are chosen by")
	cmd.Flags().IntVar(&f.steps, "steps", 20, "end after so many steps")
	cmd.Flags().IntVar(&f.seconds, "seconds", 0, "end after so many seconds; 0: after the steps")
	cmd.Flags().IntVar(&f.messages, "messages", 0, "messages that are stored before the first step")
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder to work in, which stays (default a temporary one)")
	cmd.Flags().StringVar(&f.mode, "mode", "faults", "faults, or life for the resources of a long life")
	cmd.Flags().IntVar(&f.turns, "turns", 50_000, "turns of --mode life")
	cmd.Flags().IntVar(&f.sessions, "sessions", 500, "sessions of --mode life")
	return cmd
}

// The bounds of a torture: how long a child may be silent, and an opening take, before it counts as
// blocked.
const (
	tortureSilence = 60 * time.Second
	tortureOpen    = 10 * time.Second
)

// tortureReport is what was done and what came of it.
type tortureReport struct {
	Seed      uint64         `json:"seed"`
	Steps     int            `json:"steps"`
	Seconds   float64        `json:"seconds"`
	Did       map[string]int `json:"did"`     // by fault
	Skipped   map[string]int `json:"skipped"` // faults that cannot be made here, for example by root
	Turns     int            `json:"turns"`   // acknowledged
	Histories int            `json:"histories"`
	Forgotten int            `json:"forgotten"` // turns and histories whose forgetting was acknowledged
	Messages  int            `json:"messages"`  // in the store at the end
	Refused   int            `json:"refused"`   // calls that failed with a reason while a fault lasted
	Repaired  int            `json:"repaired"`  // openings after which something derived had to be made again
	OpenMS    openTimes      `json:"open_ms"`

	Lost      int      `json:"lost"`      // messages that were acknowledged and are gone
	Doubled   int      `json:"doubled"`   // messages that are there more than once
	Back      int      `json:"back"`      // messages that are there although they were forgotten
	Blocked   int      `json:"blocked"`   // waits that were too long
	Wrong     int      `json:"wrong"`     // anything else that is not as it should be
	Incidents []string `json:"incidents"` // the first fifty
}

type openTimes struct {
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
}

func (r *tortureReport) ok() bool { return r.Lost+r.Doubled+r.Back+r.Blocked+r.Wrong == 0 }

// torturer is a torture under way.
type torturer struct {
	*app
	flags  tortureFlags
	rand   *rand.Rand
	dir    string // of everything
	store  string // the store that is tortured
	report tortureReport
	record record
	opens  []float64
	round  int // of the children: their keys begin with it
}

func (a *app) torture(ctx context.Context, f tortureFlags, stepsGiven bool) error {
	switch {
	case f.mode != "faults" && f.mode != "life":
		return usage("--mode is faults or life, not %q", f.mode)
	case f.steps < 1 || f.seconds < 0 || f.messages < 0 || f.turns < 1 || f.sessions < 1:
		return usage("steps, seconds, messages, turns and sessions are numbers above 0")
	}
	dir := f.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "hark-torture-"); err != nil {
			return fmt.Errorf("make a folder to work in: %w", err)
		}
		defer os.RemoveAll(dir)
	} else if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return usage("%s is not empty: a torture has a folder of its own", dir)
	}
	if f.mode == "life" {
		return a.life(ctx, dir, f)
	}
	if f.seconds > 0 && !stepsGiven {
		f.steps = 1 << 30
	}
	t := &torturer{
		app: a, flags: f, rand: rand.New(rand.NewPCG(f.seed, 17)), dir: dir, store: filepath.Join(dir, "store"), record: newRecord(),
		report: tortureReport{Seed: f.seed, Did: map[string]int{}, Skipped: map[string]int{}, Incidents: []string{}},
	}
	start := time.Now()
	err := t.run(ctx, start)
	t.report.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	t.sum()
	if perr := t.tell(); err == nil {
		err = perr
	}
	if err == nil && !t.report.ok() {
		return errReported
	}
	return err
}

func (t *torturer) run(ctx context.Context, start time.Time) error {
	if err := t.preload(ctx); err != nil {
		return err
	}
	faults := tortureFaults()
	for step := range t.flags.steps {
		if t.flags.seconds > 0 && time.Since(start) > time.Duration(t.flags.seconds)*time.Second {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		// Every third step is one of the faults in turn, the others are kills.
		what := tortureFault{"kill -9", (*torturer).kill}
		if step%3 == 1 {
			what = faults[step/3%len(faults)]
		}
		err := what.do(t, ctx)
		switch {
		case errors.Is(err, errCannot):
			t.report.Skipped[what.name]++
		case err != nil:
			return fmt.Errorf("step %d, %s: %w", step, what.name, err)
		default:
			t.report.Did[what.name]++
		}
		if err := t.verify(ctx, what.name); err != nil {
			return fmt.Errorf("step %d, after %s: %w", step, what.name, err)
		}
		t.report.Steps++
		t.progress("step %d: %s; %d turns acknowledged, %d incidents\n", step+1, what.name, len(t.record.turns), len(t.report.Incidents))
	}
	return nil
}

// progress tells of a step on standard error.
func (t *torturer) progress(format string, args ...any) {
	if !t.quiet && !t.json {
		_, _ = fmt.Fprintf(t.err, format, args...)
	}
}

// incident counts something that should not be.
func (t *torturer) incident(counter *int, format string, args ...any) {
	*counter++
	if len(t.report.Incidents) < 50 {
		t.report.Incidents = append(t.report.Incidents, fmt.Sprintf("step %d: ", t.report.Steps+1)+fmt.Sprintf(format, args...))
	}
}

func (t *torturer) sum() {
	r := &t.report
	slices.Sort(t.opens)
	if n := len(t.opens); n > 0 {
		r.OpenMS = openTimes{t.opens[n/2], t.opens[n-1]}
	}
	for _, u := range t.record.turns {
		switch {
		case u.forgotten:
			r.Forgotten++
		case !u.acknowledged:
		}
		if u.acknowledged && u.entries > 0 {
			r.Histories++
		} else if u.acknowledged {
			r.Turns++
		}
	}
}

func (t *torturer) tell() error {
	r := t.report
	if t.json {
		return t.printJSON(r)
	}
	t.printf("%d steps in %.1f s with seed %d\n", r.Steps, r.Seconds, r.Seed)
	for _, list := range []struct {
		what string
		n    map[string]int
	}{{"did", r.Did}, {"cannot", r.Skipped}} {
		for _, name := range sortedKeys(list.n) {
			t.printf("  %-7s %4d × %s\n", list.what, list.n[name], name)
		}
	}
	t.printf("acknowledged: %d turns, %d histories; %d of them forgotten; %d messages at the end\n", r.Turns, r.Histories, r.Forgotten, r.Messages)
	t.printf("refused while a fault lasted: %s\n", count(r.Refused, "call"))
	t.printf("opened: median %.0f ms, at most %.0f ms; %d times something derived was made again\n", r.OpenMS.Median, r.OpenMS.Most, r.Repaired)
	t.printf("lost %d, doubled %d, back %d, blocked %d, wrong %d\n", r.Lost, r.Doubled, r.Back, r.Blocked, r.Wrong)
	for _, line := range r.Incidents {
		t.printf("  %s\n", t.term.red(clean(line)))
	}
	return nil
}

func sortedKeys(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
