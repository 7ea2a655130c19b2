package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hark/engine"
)

func newPlugin(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Put Hark into OpenClaw",
		Long: `Puts Hark into OpenClaw as its context engine, and as its memory where that is asked for.

  make plugin                in Hark's checkout: builds the package
  hark plugin install        installs it and selects Hark
  hark doctor                checks that OpenClaw uses it

"openclaw plugins uninstall hark" takes it out again; what Hark stored stays.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPluginInstall(a))
	return cmd
}

// installJSON is the result of hark plugin install --json.
type installJSON struct {
	Package  string `json:"package"` // file or folder that was installed
	Name     string `json:"name"`
	Version  string `json:"version"`
	Linked   bool   `json:"linked"`
	OpenClaw string `json:"openclaw"` // the program that was asked
	Config   string `json:"config"`   // the file it wrote
	Before   string `json:"slot_before"`
	Slot     string `json:"slot"`
	Memory   string `json:"memory_slot"` // plugin that answers memory_search; "" is OpenClaw's default
	Data     string `json:"data"`
}

func newPluginInstall(a *app) *cobra.Command {
	var pack, program string
	var link, memory bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the plugin into OpenClaw and select it as the context engine",
		Long: `Takes the package that "make plugin" built, has OpenClaw install it, and checks
that OpenClaw selected Hark as its context engine. Nothing is downloaded.

  hark plugin install                              the newest package of this checkout
  hark plugin install --package hark-openclaw-0.1.0.tgz
  hark plugin install --memory                     Hark answers memory_search and memory_get too
  hark plugin install --link --package plugin      a folder, used where it is (for development)

With --memory OpenClaw's dreaming is turned off, which would bring its own
memory_search along. Without it the plugin in OpenClaw's memory slot stays there, and finds Hark's
messages too.

OpenClaw is the one that OPENCLAW_STATE_DIR and OPENCLAW_CONFIG_PATH mean, else
that of ~/.openclaw. "openclaw plugins uninstall hark" undoes it; Hark's data
stays where it is.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.installPlugin(cmd.Context(), pack, program, link, memory)
		},
	}
	cmd.Flags().StringVar(&pack, "package", "", "package (.tgz) or folder of the plugin; default: the newest in dist/, beside this program, or here")
	cmd.Flags().BoolVar(&link, "link", false, "use the folder where it is instead of a copy")
	cmd.Flags().BoolVar(&memory, "memory", false, "select Hark for the memory slot as well")
	cmd.Flags().StringVar(&program, "openclaw", "openclaw", "the openclaw program")
	return cmd
}

func (a *app) installPlugin(ctx context.Context, pack, program string, link, memory bool) error {
	out := installJSON{Linked: link}
	var err error
	if out.Package, err = findPackage(pack, link); err != nil {
		return err
	}
	if out.Name, out.Version, err = describePackage(out.Package); err != nil {
		return err
	}
	if out.OpenClaw, err = exec.LookPath(program); err != nil {
		return fmt.Errorf("the openclaw program was not found (%w)\nInstall OpenClaw first, or name its program with --openclaw", err)
	}
	before, err := readHostConfig(a.env)
	if err != nil {
		return err
	}
	out.Config, out.Before = before.path, before.Plugins.Slots["contextEngine"]
	spec := []string{"npm-pack:" + out.Package}
	if link {
		spec = []string{"-l", out.Package}
	}
	ask := func(args ...string) error { return a.askOpenClaw(ctx, out.OpenClaw, args...) }
	if err := ask(append(append([]string{"plugins", "install"}, spec...), "--force", "--accept-capabilities")...); err != nil {
		return err
	}
	wanted := before.Plugins.Slots["memory"]
	if memory {
		wanted = engine.ID
	}
	after, err := a.selectHark(ask, wanted)
	if err == nil && memory && !after.dreamless() {
		// memory-core is loaded beside another memory for its dreaming, and then its tools come first. Whether it
		// dreams is an option of whatever holds the slot, so memory-core has its own again when it is back.
		if err = ask("config", "set", "plugins.entries.hark.config.dreaming.enabled", "false"); err == nil {
			after, err = readHostConfig(a.env)
		}
	}
	if err != nil {
		return err
	}
	out.Slot, out.Memory, out.Data = after.Plugins.Slots["contextEngine"], after.Plugins.Slots["memory"], after.data(a.env)
	if a.json {
		return a.printJSON(out)
	}
	a.printInstalled(out)
	return nil
}

// askOpenClaw has OpenClaw do something, and shows what.
func (a *app) askOpenClaw(ctx context.Context, program string, args ...string) error {
	a.note("%s", a.term.dim("$ openclaw "+strings.Join(args, " ")))
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("OpenClaw did not do it (%w):\n%s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

// selectHark does what an installation leaves undone where Hark was installed before and taken out
// again: the plugin may be off still, and the slot somebody else's. And it gives back the memory slot,
// which an installation always takes: memory is the plugin for it, "" for OpenClaw's default.
func (a *app) selectHark(ask func(args ...string) error, memory string) (hostConfig, error) {
	slot := []string{"config", "set", "plugins.slots.memory", memory}
	if memory == "" {
		slot = []string{"config", "unset", "plugins.slots.memory"}
	}
	steps := []struct {
		needed func(hostConfig) bool
		args   []string
	}{
		{hostConfig.pluginOff, []string{"plugins", "enable", engine.ID, "--accept-capabilities"}},
		{func(c hostConfig) bool { return c.Plugins.Slots["contextEngine"] != engine.ID },
			[]string{"config", "set", "plugins.slots.contextEngine", engine.ID}},
		{func(c hostConfig) bool { return c.Plugins.Slots["memory"] != memory }, slot},
	}
	for _, step := range steps {
		c, err := readHostConfig(a.env)
		if err != nil {
			return c, err
		}
		if !step.needed(c) {
			continue
		}
		if err := ask(step.args...); err != nil {
			return c, err
		}
	}
	c, err := readHostConfig(a.env)
	if err != nil {
		return c, err
	}
	if what, remedy := c.problem(); what != "" {
		return c, fmt.Errorf("OpenClaw installed the plugin, but does not use it: %s\nTo use it: %s", what, remedy)
	}
	return c, nil
}

func (a *app) printInstalled(o installJSON) {
	how := "copied into OpenClaw"
	if o.Linked {
		how = "used where it is"
	}
	slot := "hark, as before"
	if o.Before != engine.ID {
		was := o.Before
		if was == "" {
			was = "legacy, the default"
		}
		slot = fmt.Sprintf("hark, was %s", was)
	}
	line := func(name, text string) { a.printf("%s  %s\n", a.term.dim(pad(name, 14)), text) }
	line("package", fmt.Sprintf("%s %s, %s (%s)", o.Name, o.Version, how, shortHome(a.env, o.Package)))
	line("configuration", shortHome(a.env, o.Config))
	line("context engine", slot)
	switch o.Memory {
	case engine.ID:
		line("memory", "hark, without memory-core's dreaming")
	case "":
		line("memory", "memory-core, the default; it finds Hark's messages too")
	default:
		line("memory", o.Memory)
	}
	line("data", shortHome(a.env, o.Data))
	a.printf("%s the next turn uses Hark; restart a gateway that runs, and see \"hark doctor\"\n", a.term.green("installed:"))
}

// findPackage settles which package is meant, as an absolute path.
func findPackage(pack string, link bool) (string, error) {
	if pack == "" {
		return newestPackage(link)
	}
	path, err := filepath.Abs(pack)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the package: %w", err)
	}
	if link && !info.IsDir() {
		return "", usage("--link takes a folder, but %s is a file", pack)
	}
	return path, nil
}

// newestPackage looks where "make plugin" puts packages: dist/ of the current folder or of the
// checkout this program was built in, and beside the program.
func newestPackage(link bool) (string, error) {
	places := []string{"."}
	if self, err := os.Executable(); err == nil {
		places = append(places, filepath.Dir(self), filepath.Join(filepath.Dir(self), ".."))
	}
	var found []string
	for _, place := range places {
		if link {
			if _, err := os.Stat(filepath.Join(place, "plugin", "openclaw.plugin.json")); err == nil {
				return filepath.Abs(filepath.Join(place, "plugin"))
			}
			continue
		}
		for _, dir := range []string{"dist", "."} {
			matches, err := filepath.Glob(filepath.Join(place, dir, "hark-openclaw-*.tgz"))
			if err != nil {
				return "", err
			}
			found = append(found, matches...)
		}
	}
	if len(found) == 0 {
		return "", errors.New("there is no package of the plugin here\nBuild it with \"make plugin\", or name it with --package")
	}
	newest := slices.MaxFunc(found, func(a, b string) int {
		x, y := modified(a), modified(b)
		if x == y {
			return strings.Compare(a, b)
		}
		return int(min(1, max(-1, x-y)))
	})
	return filepath.Abs(newest)
}

func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// describePackage reads name and version of a package, and checks that it is Hark's and has a
// program for this machine.
func describePackage(path string) (name, version string, err error) {
	files, err := packageFiles(path)
	if err != nil {
		return "", "", err
	}
	var manifest struct {
		ID string `json:"id"`
	}
	var pkg struct{ Name, Version string }
	if err := errors.Join(json.Unmarshal(files["openclaw.plugin.json"], &manifest), json.Unmarshal(files["package.json"], &pkg)); err != nil {
		return "", "", fmt.Errorf("%s is no package of an OpenClaw plugin: %w", path, err)
	}
	if manifest.ID != engine.ID {
		return "", "", fmt.Errorf("%s is the plugin %q, not hark", path, manifest.ID)
	}
	if _, ok := files["dist/index.js"]; !ok {
		return "", "", fmt.Errorf("%s was not built: run \"make plugin\"", path)
	}
	if _, ok := files[bundledBinary()]; !ok {
		if _, err := exec.LookPath("hark"); err != nil {
			return "", "", fmt.Errorf("%s has no program for this machine (%s) and hark is not on PATH\nRun \"make plugin\" on this machine, or with PLUGIN_PLATFORMS=%s/%s", path, bundledBinary(), runtime.GOOS, runtime.GOARCH)
		}
	}
	return pkg.Name, pkg.Version, nil
}

// bundledBinary is the program's path in a package, for this machine.
func bundledBinary() string {
	name := "hark"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return "bin/" + runtime.GOOS + "-" + runtime.GOARCH + "/" + name
}

// packageFiles lists the files of a package by their path in it. The content is there for JSON only.
func packageFiles(path string) (map[string][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if info.IsDir() {
		for _, name := range []string{"openclaw.plugin.json", "package.json", "dist/index.js", bundledBinary()} {
			data, err := os.ReadFile(filepath.Join(path, filepath.FromSlash(name)))
			if err == nil {
				files[name] = data
			}
		}
		return files, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s is no package: %w", path, err)
	}
	for r := tar.NewReader(zip); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s is damaged: %w", path, err)
		}
		name := strings.TrimPrefix(head.Name, "package/")
		files[name] = nil
		if strings.HasSuffix(name, ".json") && head.Size < 1<<20 {
			if files[name], err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("%s is damaged: %w", path, err)
			}
		}
	}
}
