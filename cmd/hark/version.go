package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases: -X main.version=1.2.3.
var version = ""

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v, commit := buildVersion()
			if a.json {
				return a.printJSON(map[string]string{"version": v, "commit": commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			a.printf("hark %s", v)
			if commit != "" {
				a.printf(" (%s)", commit)
			}
			a.printf(", %s, %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// buildVersion is the version and commit the program was built from, as far as it knows.
func buildVersion() (v, commit string) {
	v = version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return orDev(v), ""
	}
	if v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if commit != "" {
		commit += dirty
	}
	return orDev(strings.TrimPrefix(v, "v")), commit
}

func orDev(v string) string {
	if v == "" {
		return "dev"
	}
	return v
}
