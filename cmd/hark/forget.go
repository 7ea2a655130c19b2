package main

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine/history"
)

func newForget(a *app) *cobra.Command {
	var session, before string
	var ids []string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "forget (--session KEY | --before DATE | --id ID… | --all)",
		Short: "Remove messages for good",
		Long: `Removes messages from the rows and from both indexes. What was forgotten does not
come back when the same history is imported again. --session and --before may be
combined; then only what meets both goes.`,
		Example: "  hark forget --session telegram:direct:4471\n  hark forget --before 2025-01-01",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			sel, what, err := a.selection(session, before, ids, all)
			if err != nil {
				return err
			}
			if !yes && !a.confirm(what) {
				return fmt.Errorf("nothing was removed; confirm with --yes")
			}
			n, err := forgetting().ask(ctx, a, sel)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(n)
			}
			a.printf("forgot %d messages\n", n.Forgotten)
			return nil
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "all messages of this session")
	cmd.Flags().StringVar(&before, "before", "", "messages before this date (2025-01-31, or RFC 3339)")
	cmd.Flags().StringSliceVar(&ids, "id", nil, "the message with this id; may be repeated")
	cmd.Flags().BoolVar(&all, "all", false, "everything stored for the agent")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// selection turns the flags into what is to be removed, and into words for the question.
func (a *app) selection(session, before string, ids []string, all bool) (forgetQuery, string, error) {
	sel := forgetQuery{IDs: ids}
	var parts []string
	if session != "" {
		sel.Session = history.KeyFor(a.set.Agent, session)
		parts = append(parts, "of session "+session)
	}
	if before != "" {
		t, err := time.ParseInLocation(time.DateOnly, before, a.set.location())
		if err != nil {
			t, err = time.Parse(time.RFC3339, before)
		}
		if err != nil {
			return sel, "", usage("--before %q is no date: write 2025-01-31 or 2025-01-31T18:00:00Z", before)
		}
		sel.Before = t
		parts = append(parts, "before "+before)
	}
	if len(ids) > 0 {
		parts = append(parts, fmt.Sprintf("with %d ids", len(ids)))
	}
	if all && len(parts) > 0 {
		return sel, "", usage("--all cannot be combined with other conditions")
	}
	sel.All = all
	if all {
		parts = append(parts, fmt.Sprintf("of agent %q", a.set.Agent))
	}
	if len(parts) == 0 {
		return sel, "", usage("say what to forget: --session, --before, --id or --all")
	}
	return sel, "all messages " + strings.Join(parts, " and "), nil
}

// confirm asks on a terminal; elsewhere nobody can answer, and the answer is no.
func (a *app) confirm(what string) bool {
	if !a.term.errTTY || a.quiet || a.json {
		return false
	}
	_, _ = fmt.Fprintf(a.err, "Remove %s for good? [y/N] ", what)
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
