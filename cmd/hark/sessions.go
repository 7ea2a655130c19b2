package main

import (
	"fmt"
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
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listing().ask(cmd.Context(), a, nothing{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			t := table{header: []string{"messages", "first", "last", "session"}, right: map[int]bool{0: true}}
			for _, s := range list.Sessions {
				t.add(fmt.Sprint(s.Messages), a.when(s.First), a.when(s.Last), clean(shortKey(a.set.Agent, s.Session)))
			}
			t.print(a.out, a.term)
			return nil
		},
	}
}
