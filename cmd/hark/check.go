package main

import (
	"github.com/spf13/cobra"
)

// checked is the result of a check.
type checked struct {
	OK          bool     `json:"ok"`
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
the store for writing (any import) repairs the indexes from the rows.`,
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
				a.printf("%d rows, %d of them recallable; %d in the index of words, %d with vectors\n", r.Rows, r.Recallable, r.Words, r.Vectors)
				for _, d := range r.Differences {
					a.printf("  %s %s\n", a.term.red("differs:"), clean(d))
				}
				if more := r.Problems - len(r.Differences); more > 0 {
					a.printf("  and %d more\n", more)
				}
				if r.OK {
					a.printf("%s rows and indexes agree\n", a.term.green("ok:"))
				} else {
					a.printf("%s %d differences\n", a.term.red("failed:"), r.Problems)
				}
			}
			if !r.OK {
				return errReported
			}
			return nil
		},
	}
}
