package main

import (
	"github.com/spf13/cobra"
)

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
				differences := r.Differences
				if differences == nil {
					differences = []string{}
				}
				if err := a.printJSON(map[string]any{
					"ok": r.OK(), "rows": r.Rows, "recallable": r.Recallable, "words": r.Words, "vectors": r.Vectors,
					"problems": r.Problems, "differences": differences,
				}); err != nil {
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
				if r.OK() {
					a.printf("%s rows and indexes agree\n", a.term.green("ok:"))
				} else {
					a.printf("%s %d differences\n", a.term.red("failed:"), r.Problems)
				}
			}
			if !r.OK() {
				return errReported
			}
			return nil
		},
	}
}
