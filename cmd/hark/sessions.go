package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

type sessionLine struct {
	Session  string    `json:"session"`
	Messages int       `json:"messages"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

type sessionList struct {
	Sessions []sessionLine `json:"sessions"`
}

func newSessions(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sessions",
		Short: "List the stored sessions",
		Long: `Lists the sessions something is stored of, with their messages and the times of the
first and the last one. What is shown is the session's key without its beginning
agent:` + "<agent>:" + `, the same as OpenClaw has; every --session takes either form.`,
		Example: "  hark sessions\n  hark search --session telegram:direct:42 boiler",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listing().ask(cmd.Context(), a, nothing{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			a.printSessions(list.Sessions)
			return nil
		},
	}
}

// printSessions shows sessions as a table; a narrow one leaves out when they began.
func (a *app) printSessions(list []sessionLine) {
	t := table{header: []string{"messages", "first", "last", "session"}, right: map[int]bool{0: true}}
	const first, enough = 1, 70
	narrow := a.term.room(0) < enough
	if narrow {
		t.header = slices.Delete(t.header, first, first+1)
	}
	for _, s := range list {
		row := []string{fmt.Sprint(s.Messages), a.when(s.First), a.when(s.Last), clean(shortKey(a.set.Agent, s.Session))}
		if narrow {
			row = slices.Delete(row, first, first+1)
		}
		t.add(row...)
	}
	t.print(a.out, a.term)
}
