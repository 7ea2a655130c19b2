package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hark/engine/wire"
	"hark/index"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it for Ctrl-C
)

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
	out := &watched{w: c.out}
	a := &app{console: c, term: newTerm(c), warned: &warnings{}}
	a.out = out
	if c.in != nil {
		a.in = &interruptible{ctx: ctx, r: c.in}
	}
	a.json = slices.Contains(args, "--json") // for what is wrong with the flags themselves
	c.std.send(a.logger())
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	if cerr := a.close(); err == nil {
		err = cerr
	}
	a.warned.tell(a)
	if printed := out.outputError(); printed != nil {
		err = printed
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errReported) {
		return exitFailed
	}
	_, wrong := errors.AsType[usageError](err)
	message, remedy := explain(err)
	code := exitFailed
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		code = exitInterrupted
	case wrong:
		code = exitUsage
		remedy = fmt.Sprintf("Run \"%s --help\" for the usage.", cmd.CommandPath())
	}
	a.fail(message, remedy)
	return code
}

// fail tells on standard error why a command ended: in words, or with --json as a line of JSON.
func (a *app) fail(message, remedy string) {
	if a.json {
		type failure struct {
			Message string `json:"message"`
			Remedy  string `json:"remedy,omitempty"`
		}
		line, err := json.Marshal(map[string]failure{"error": {message, remedy}})
		if err == nil {
			_, _ = fmt.Fprintln(a.err, string(line))
			return
		}
	}
	if remedy != "" {
		message += "\n" + remedy
	}
	_, _ = fmt.Fprintln(a.err, "hark: "+message)
}

// explain says what happened and what its reader can do about it.
func explain(err error) (message, remedy string) {
	message, remedy, _ = strings.Cut(err.Error(), "\n")
	add := func(more string) {
		remedy = strings.TrimPrefix(remedy+"\n"+more, "\n")
	}
	answered, refused := errors.AsType[*wire.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		_, what, _ := strings.Cut(message, context.Canceled.Error())
		if what != "" {
			return "interrupted" + what, remedy
		}
		return "interrupted", "Repeat the command to go on."
	case errors.Is(err, errOutput):
	case errors.Is(err, index.ErrLocked):
		add("Another hark is using this store. Wait for it to end, or stop it, and try again.")
	case errors.Is(err, index.ErrNewer):
		add("This store was written by a newer hark. Update this program; nothing was changed.")
	case errors.Is(err, fs.ErrPermission):
		add("Check who owns the folder, or choose another one with --data.")
	case strings.Contains(message, "no space left on device"):
		add("Free some disk space; what was stored so far is safe.")
	case refused && answered.Remedy != "" && remedy == "":
		message, remedy = strings.TrimSuffix(message, ": "+answered.Remedy), answered.Remedy
	}
	return message, remedy
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{flagError(err)} })
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
	add("use", newImport(a), newSearch(a), newMemory(a), newAssemble(a), newExplain(a))
	add("care", newStatus(a), newSessions(a), newCheck(a), newForget(a), newExport(a), newConfig(a), newServe(a), newDoctor(a), newPlugin(a))
	add("try", newDemo(a), newBench(a), newEval(a), newTorture(a), newTortureChild(a))
	root.AddCommand(newVersion(a))
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args = noArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range completion.Commands() {
			shell.Args = noArgs
		}
	}
	v, _ := buildVersion()
	root.Version = v
	root.SetVersionTemplate("hark {{.Version}}\n")
	_ = root.RegisterFlagCompletionFunc("agent", a.completeAgents) // fails only for a flag that is not there
	return root
}

// newHelp explains a command. cobra's own takes a misspelt name for success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			at, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), begun) {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage("there is no command %q", strings.Join(args, " "))
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// flagError says what is wrong with a flag in the words of the program rather than of its library.
func flagError(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name := "--" + bad.GetFlag().Name
	if short := bad.GetFlag().Shorthand; short != "" {
		name = "-" + short + ", " + name
	}
	want := "another value"
	switch bad.GetFlag().Value.Type() {
	case "int", "int64":
		want = "a whole number"
	case "duration":
		want = "a time like 15m or 90s"
	case "bool":
		want = "true or false"
	}
	return fmt.Errorf("%q is not valid for %s: use %s", bad.GetValue(), name, want)
}

// noArgs rejects arguments, and says which command was perhaps meant.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		msg := fmt.Sprintf("unknown command %q", args[0])
		if cmd.HasParent() {
			msg += fmt.Sprintf(" for %q", cmd.CommandPath())
		}
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			msg += fmt.Sprintf("; did you mean %q?", s[0])
		}
		return usage("%s", msg)
	}
	return usage("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
}
