package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeAgents offers the agents that have a store.
func (a *app) completeAgents(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if a.configure(cmd) != nil || a.set.Data == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dirs, err := os.ReadDir(filepath.Join(a.set.Data, "agents"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() && safeName(d.Name()) == d.Name() && strings.HasPrefix(d.Name(), begun) {
			names = append(names, d.Name())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSessions offers the stored sessions, in the short form wherever that was begun.
func (a *app) completeSessions(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	const patience = 2 * time.Second // nobody waits longer after a tab
	if a.configure(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.quiet, a.lockWait = true, -1
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, patience)
	defer cancel()
	list, err := listing().ask(ctx, a, nothing{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []string
	for _, s := range list.Sessions {
		for _, key := range []string{shortKey(a.set.Agent, s.Session), s.Session} {
			if strings.HasPrefix(key, begun) {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// sessionFlag completes the flag of a command that names a session.
func (a *app) sessionFlag(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeSessions) // fails only for a flag that is not there
}
