package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/wire"
	"hark/index"
)

// forgetFlags are the conditions of hark forget, as they were written.
type forgetFlags struct {
	ids                            []string
	session, person, before, match string
	due, all, yes, dryRun          bool
}

func newForget(a *app) *cobra.Command {
	var f forgetFlags
	cmd := &cobra.Command{
		Use:   "forget (--id ID… | --session KEY | --person WHO | --before DATE | --match WORDS | --retention | --all)",
		Short: "Remove messages for good",
		Long: `Removes messages from the rows, from both indexes and from every file of the store.
What was forgotten does not come back when the same history is imported again.
Conditions may be combined; then only what meets all of them goes.

First it shows exactly what would go, and asks. With --dry-run it ends there, with
--yes it does not ask. A person is an id of a channel (telegram:42), a name from
people in the configuration, or a name as it is shown beside messages; their direct
conversations go with all that was said in them, elsewhere what they said.

OpenClaw keeps its own transcripts. Delete there what shall be gone there too.`,
		Example: "  hark forget --session telegram:direct:4471\n  hark forget --match 'vault code' --before 2025-01-01\n  hark forget --id 7k2mzq4x1c",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"id", "session", "person", "before", "match"} {
				// An empty variable in a script must not widen what goes.
				if flag := cmd.Flags().Lookup(name); flag.Changed && strings.TrimSpace(strings.Trim(flag.Value.String(), "[]")) == "" {
					return usage("--%s is empty", name)
				}
			}
			q, what, err := a.forgetting(f)
			if err != nil {
				return err
			}
			return a.forget(cmd.Context(), q, what, f)
		},
	}
	cmd.Flags().StringSliceVar(&f.ids, "id", nil, "the message with this id; may be repeated")
	cmd.Flags().StringVar(&f.session, "session", "", "all messages of this session")
	cmd.Flags().StringVar(&f.person, "person", "", "all messages of this person")
	cmd.Flags().StringVar(&f.before, "before", "", "messages before this date (2025-01-31, or RFC 3339)")
	cmd.Flags().StringVar(&f.match, "match", "", "messages that hold these words, whatever their case, width and white space")
	cmd.Flags().BoolVar(&f.due, "retention", false, "what the retention of the configuration removes next")
	cmd.Flags().BoolVar(&f.all, "all", false, "everything stored for the agent")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would go, and remove nothing")
	a.sessionFlag(cmd)
	return cmd
}

// forgetting turns the flags into what is to be removed, and into words for the question.
func (a *app) forgetting(f forgetFlags) (engine.Forgetting, string, error) {
	q := engine.Forgetting{IDs: f.ids, Session: f.session, Person: f.person, Match: strings.TrimSpace(f.match), Due: f.due, All: f.all}
	var parts []string
	add := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(f.session != "", "of session %s", f.session)
	add(f.person != "", "of %s", f.person)
	add(q.Match != "", "that hold %q", q.Match)
	add(len(f.ids) > 0, "with the given ids")
	add(f.due, "that retention.days and retention.megabytes remove next")
	if f.before != "" {
		t, err := time.ParseInLocation(time.DateOnly, f.before, a.set.location())
		if err != nil {
			t, err = time.Parse(time.RFC3339, f.before)
		}
		if err != nil {
			return q, "", usage("--before %q is no date: write 2025-01-31 or 2025-01-31T18:00:00Z", f.before)
		}
		q.Before = t
		add(true, "before %s", f.before)
	}
	if f.all && len(parts) > 0 {
		return q, "", usage("--all cannot be combined with other conditions")
	}
	add(f.all, "of agent %q", a.set.Agent)
	if len(parts) == 0 {
		return q, "", usage("say what to forget: --id, --session, --person, --before, --match, --retention or --all")
	}
	return q, strings.Join(parts, " and "), nil
}

// forget shows what would go, asks, and removes exactly that.
func (a *app) forget(ctx context.Context, q engine.Forgetting, what string, f forgetFlags) error {
	plan, err := selecting().ask(ctx, a, q)
	if err != nil {
		return err
	}
	if f.dryRun && a.json {
		return a.printJSON(plan)
	}
	if !a.json && (f.dryRun || !f.yes) {
		a.showPlan(plan, what)
	}
	switch {
	case f.dryRun:
		return nil
	case len(plan.Messages) == 0 && len(plan.rows()) == 0:
	case f.yes:
	default:
		yes, err := a.confirm("these " + count(len(plan.Messages), "message"))
		if err != nil {
			return err
		}
		if !yes {
			return errors.New("nothing was removed; confirm with --yes")
		}
	}
	done := forgotten{}
	if rows := plan.rows(); len(rows) > 0 {
		if done, err = forgetting().ask(ctx, a, engine.Forgetting{Rows: rows}); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(done)
	}
	a.printf("forgot %s\n", count(done.Forgotten, "message"))
	return nil
}

// forgetPlan is what a forgetting would remove.
type forgetPlan struct {
	Messages []plannedMessage `json:"messages"`
}

type plannedMessage struct {
	ID      string    `json:"id"`
	Row     int64     `json:"row"`
	Session string    `json:"session"`
	Role    string    `json:"role"`
	Sender  string    `json:"sender,omitempty"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"` // its beginning
}

func (p forgetPlan) rows() []int64 {
	rows := make([]int64, len(p.Messages))
	for i, m := range p.Messages {
		rows[i] = m.Row
	}
	return rows
}

// showPlan prints the messages of a plan, or their sessions where there are many.
func (a *app) showPlan(plan forgetPlan, what string) {
	const most = 200
	a.printf("%s %s\n", count(len(plan.Messages), "message"), what)
	if len(plan.Messages) <= most {
		for _, m := range plan.Messages {
			who := m.Role
			if m.Sender != "" {
				who = m.Sender
			}
			head := m.ID + "  " + a.when(m.Time) + "  " + clean(shortKey(a.set.Agent, m.Session)) + "  " + clean(who)
			a.printf("%s\n    %s\n", cut(head, a.term.room(0)), cut(clean(m.Text), a.term.room(4)))
		}
		return
	}
	var list []sessionLine
	for same := range chunkBy(plan.Messages, func(m plannedMessage) string { return m.Session }) {
		list = append(list, sessionLine{same[0].Session, len(same), same[0].Time, same[len(same)-1].Time})
	}
	a.printSessions(list)
	a.note("too many to list; --dry-run --json lists every one")
}

// chunkBy yields runs of neighbours with the same key.
func chunkBy[T any](all []T, key func(T) string) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := slices.IndexFunc(all, func(x T) bool { return key(x) != key(all[0]) })
			if n < 0 {
				n = len(all)
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// confirm asks on a terminal; elsewhere nobody can answer, and the answer is no.
func (a *app) confirm(what string) (bool, error) {
	if !a.term.errTTY || a.quiet || a.json {
		return false, nil
	}
	_, _ = fmt.Fprintf(a.err, "Remove %s for good? [y/N] ", what)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintln(a.err) // the prompt's line ends here
		return false, fmt.Errorf("%w: nothing was removed", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// shownText is how much of a message a plan shows, in characters.
const shownText = 60

func selecting() question[engine.Forgetting, forgetPlan] {
	return question[engine.Forgetting, forgetPlan]{"selected", func(ctx context.Context, _ *app, m *memory, q engine.Forgetting) (forgetPlan, error) {
		out := forgetPlan{Messages: []plannedMessage{}}
		rows, err := m.engine.Selected(ctx, q)
		if err != nil {
			return out, unknownID(err)
		}
		for _, r := range rows {
			text := strings.Join(strings.Fields(r.Text), " ")
			if runes := []rune(text); len(runes) > shownText {
				text = string(runes[:shownText]) + "…"
			}
			out.Messages = append(out.Messages, plannedMessage{r.ID, r.Seq, r.Session, r.Role, r.Sender, r.Time, text})
		}
		return out, nil
	}}
}

type forgotten struct {
	Forgotten int `json:"forgotten"`
}

func forgetting() question[engine.Forgetting, forgotten] {
	return question[engine.Forgetting, forgotten]{"forget", func(ctx context.Context, _ *app, m *memory, q engine.Forgetting) (forgotten, error) {
		n, err := m.engine.Forget(ctx, q)
		if err != nil {
			return forgotten{n}, unknownID(err)
		}
		return forgotten{n}, nil
	}}
}

// unknownID tells what to do about an id that is not stored.
func unknownID(err error) error {
	if errors.Is(err, index.ErrNotFound) {
		return &wire.Error{Code: wire.CodeNotFound, Message: err.Error(), Remedy: `nothing was removed; "hark search --json" shows ids`}
	}
	return err
}
