package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

type configLine struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Env    string `json:"env"`
	Flag   string `json:"flag,omitempty"`
	Help   string `json:"help"`
}

func newConfig(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show every option, its value and where that came from",
		Long: `Shows every option with its effective value and the place it came from. A flag
wins over an environment variable, that over the configuration file, that over
the default. Keys with a dot stand in a table of the file:

  timezone = "Europe/Berlin"

  [embedder]
  provider = "ollama"
  model = "nomic-embed-text"`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			lines := make([]configLine, 0, len(options()))
			for _, o := range options() {
				value := o.get(&a.set)
				if value == "" {
					value = a.set.Embedder.chosen(o.key)
				}
				if o.secret && value != "" {
					value = "(set)"
				}
				flag := ""
				if o.flag != "" {
					flag = "--" + o.flag
				}
				lines = append(lines, configLine{o.key, value, a.from[o.key].String(), o.env(), flag, o.help})
			}
			if a.json {
				return a.printJSON(map[string]any{"file": a.file, "options": lines})
			}
			file := a.file
			if file == "" {
				file = "none (looked for " + defaultConfig(a.env) + ")"
			}
			a.printf("configuration file: %s\n\n", file)
			for _, l := range lines {
				value := l.Value
				if value == "" {
					value = `""`
				}
				a.printf("%s = %s  %s\n", a.term.bold(l.Key), value, a.term.dim("("+l.Source+")"))
				for _, part := range wrap(fmt.Sprintf("%s. %s", l.Help, l.Env), a.term.room(4)) {
					a.printf("    %s\n", a.term.dim(part))
				}
			}
			return nil
		},
	}
}
