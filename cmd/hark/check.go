package main

import (
	"github.com/spf13/cobra"
)

// checked is the result of a check.
type checked struct {
	OK          bool     `json:"ok"`
	InUse       bool     `json:"in_use,omitempty"` // another process has the store open: the indexes were not compared
	Rows        int      `json:"rows"`
	Recallable  int      `json:"recallable"`
	Words       int      `json:"words"`   // messages in the index of words
	Vectors     int      `json:"vectors"` // messages with vectors
	Problems    int      `json:"problems"`
	Differences []string `json:"differences"` // the first of the problems
}

func newCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Compare the stored rows with both indexes",
		Long: `Reads every stored message and compares it with the index of words and the
vectors, without changing anything. Exit code 1 means that they differ; opening
the store for writing (any import) repairs the indexes from the rows.

While another process than the daemon has the store open, or the daemon hangs, the
indexes cannot be compared: then only the rows are counted, and the exit code is 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := checking().ask(cmd.Context(), a, nothing{})
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(r); err != nil {
					return err
				}
			} else {
				if r.InUse {
					a.printf("%s, %d of them recallable\n", count(r.Rows, "row"), r.Recallable)
					a.printf("%s another process uses the store, rows and indexes cannot be compared now; try again when it has ended\n", a.term.yellow("in use:"))
					return errReported
				}
				a.printf("%s, %d of them recallable; %d in the index of words, %d with vectors\n", count(r.Rows, "row"), r.Recallable, r.Words, r.Vectors)
				for _, d := range r.Differences {
					a.printf("  %s %s\n", a.term.red("differs:"), clean(d))
				}
				if more := r.Problems - len(r.Differences); more > 0 {
					a.printf("  and %d more\n", more)
				}
				if r.OK {
					a.printf("%s rows and indexes agree\n", a.term.green("ok:"))
				} else {
					a.printf("%s %s\n", a.term.red("failed:"), count(r.Problems, "difference"))
				}
			}
			if !r.OK {
				return errReported
			}
			return nil
		},
	}
}
