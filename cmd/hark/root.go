package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"hark/index"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// console is the world outside the program.
type console struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
}

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usage makes a usageError.
func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported ends a command that failed and has said so itself.
var errReported = errors.New("reported")

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	a := &app{console: c, term: newTerm(c)}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	if cerr := a.close(); err == nil {
		err = cerr
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	}
	if _, ok := errors.AsType[usageError](err); ok {
		_, _ = fmt.Fprintf(c.err, "hark: %s\nRun \"%s --help\" for the usage.\n", err, cmd.CommandPath())
		return exitUsage
	}
	_, _ = fmt.Fprintln(c.err, "hark: "+remedy(err))
	return exitFailed
}

// remedy adds to an error what its reader can do about it.
func remedy(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, index.ErrLocked):
		return text + "\nAnother hark is using this store. Wait for it to end, or stop it, and try again."
	case errors.Is(err, index.ErrNewer):
		return text + "\nThis store was written by a newer hark. Update this program; nothing was changed."
	case errors.Is(err, fs.ErrPermission):
		return text + "\nCheck who owns the folder, or choose another one with --data."
	case strings.Contains(text, "no space left on device"):
		return text + "\nFree some disk space; what was imported so far is safe."
	}
	return text
}

// newRoot builds the command tree.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "hark",
		Short: "Recall what was said, across sessions",
		Long: `Hark keeps every message your OpenClaw agent exchanged and finds the few that
matter for the question asked now, in this session or any other.

  hark demo                                  see it work, on a bundled history
  hark import ~/.openclaw/agents/main        take in your own history
  hark search "which port did we pick"       ask it

Everything stays on this machine, in one folder (see "hark status").`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.configure(cmd)
		},
	}
	f := root.PersistentFlags()
	f.String("data", "", "folder of the stores (default "+dataHint(a.env)+")")
	f.String("agent", "main", "agent whose store is used")
	f.String("config", "", "configuration file (default "+configHint(a.env)+")")
	f.Bool("json", false, "print JSON instead of text")
	f.BoolP("quiet", "q", false, "print results only, no progress and no notes")
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Remember and recall:"},
		&cobra.Group{ID: "care", Title: "Look after the store:"},
		&cobra.Group{ID: "try", Title: "Try and measure:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("use", newImport(a), newSearch(a), newAssemble(a))
	add("care", newStatus(a), newSessions(a), newCheck(a), newForget(a), newExport(a), newConfig(a), newServe(a), newDoctor(a), newPlugin(a))
	add("try", newDemo(a), newBench(a), newEval(a))
	root.AddCommand(newVersion(a))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// noArgs rejects arguments, and says which command was perhaps meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() {
		msg := fmt.Sprintf("unknown command %q", args[0])
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			msg += fmt.Sprintf("; did you mean %q?", s[0])
		}
		return usage("%s", msg)
	}
	return usage("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
}
