package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hark/engine"
)

// hostConfig is what Hark reads of OpenClaw's configuration file.
type hostConfig struct {
	path   string // of the file, which may be missing
	exists bool

	Agents struct {
		Entries map[string]json.RawMessage `json:"entries"`
		List    []struct {                 // as older files have them
			ID string `json:"id"`
		} `json:"list"`
	} `json:"agents"`
	Plugins struct {
		Enabled *bool             `json:"enabled"`
		Allow   []string          `json:"allow"`
		Deny    []string          `json:"deny"`
		Slots   map[string]string `json:"slots"`
		Entries map[string]struct {
			Enabled *bool `json:"enabled"`
			Config  struct {
				Binary  string `json:"binary"`
				DataDir string `json:"dataDir"`

				Dreaming struct { // OpenClaw reads it of the plugin in the memory slot
					Enabled *bool `json:"enabled"`
				} `json:"dreaming"`
			} `json:"config"`
		} `json:"entries"`
	} `json:"plugins"`
}

// readHostConfig reads the configuration of the OpenClaw this environment means: the file that
// OPENCLAW_CONFIG_PATH names, else openclaw.json in its state directory. A missing file is no error.
func readHostConfig(env func(string) (string, bool)) (hostConfig, error) {
	c := hostConfig{}
	c.path, _ = env("OPENCLAW_CONFIG_PATH")
	if c.path == "" {
		c.path = filepath.Join(hostState(env), "openclaw.json")
	}
	data, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the configuration of OpenClaw: %w", err)
	}
	c.exists = true
	data, err = engine.StandardJSON(data)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", c.path, err)
	}
	return c, nil
}

// hostState is OpenClaw's state directory.
func hostState(env func(string) (string, bool)) string {
	if dir, _ := env("OPENCLAW_STATE_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(homeDir(env), ".openclaw")
}

// pluginOff reports that Hark's plugin is installed and turned off.
func (c hostConfig) pluginOff() bool {
	on := c.Plugins.Entries[engine.ID].Enabled
	return on != nil && !*on
}

// dreamless reports that OpenClaw's own memory stays away while another holds the memory slot.
func (c hostConfig) dreamless() bool {
	off := func(on *bool) bool { return on != nil && !*on }
	return off(c.Plugins.Entries["memory-core"].Enabled) || off(c.Plugins.Entries[engine.ID].Config.Dreaming.Enabled)
}

// problem says why OpenClaw would not use Hark, and what to do; "" when it does.
func (c hostConfig) problem() (what, remedy string) {
	p := c.Plugins
	switch {
	case !c.exists:
		return "there is no configuration at " + c.path, "set up OpenClaw, then run: hark plugin install"
	case p.Enabled != nil && !*p.Enabled:
		return "plugins are turned off", "openclaw config set plugins.enabled true"
	case c.pluginOff():
		return "the plugin is turned off", "openclaw plugins enable hark"
	case slices.Contains(p.Deny, engine.ID):
		return "plugins.deny names hark", "take it off that list with: openclaw configure"
	case len(p.Allow) > 0 && !slices.Contains(p.Allow, engine.ID):
		return "plugins.allow does not name hark", "add it to that list in " + c.path
	case p.Slots["contextEngine"] != engine.ID:
		now := p.Slots["contextEngine"]
		if now == "" {
			now = "legacy, the default"
		}
		return "the context engine is " + now, "hark plugin install, or: openclaw config set plugins.slots.contextEngine hark"
	}
	return "", ""
}

// data is where the plugin keeps Hark's data for this host; it has to find what the plugin's
// config.ts finds.
func (c hostConfig) data(env func(string) (string, bool)) string {
	if dir := c.Plugins.Entries[engine.ID].Config.DataDir; dir != "" {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			return filepath.Join(homeDir(env), rest)
		}
		return dir
	}
	if dir, _ := env("HARK_DATA"); dir != "" {
		return dir
	}
	if state := hostState(env); filepath.Clean(state) != filepath.Join(homeDir(env), ".openclaw") {
		return filepath.Join(state, "hark")
	}
	return defaultData(env)
}
