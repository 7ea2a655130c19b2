package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
)

// source says where the value of an option came from.
type source struct {
	kind string // "default", "file", "environment" or "flag"
	name string // of the file, variable or flag
}

func (s source) String() string {
	if s.name == "" {
		return s.kind
	}
	return s.kind + " " + s.name
}

// resolve works out the settings: flags over environment over the file over defaults. It returns
// where every value came from, by key, and the file that was read, "" for none.
func resolve(cmd *cobra.Command, env func(string) (string, bool)) (settings, map[string]source, string, error) {
	s := defaults(env)
	from := map[string]source{}
	path, err := configPath(cmd, env)
	if err != nil {
		return s, nil, "", err
	}
	values := map[string]string{}
	if path != "" {
		if values, err = readConfig(path); err != nil {
			return s, nil, "", err
		}
	}
	for _, o := range options() {
		from[o.key] = source{kind: "default"}
		apply := func(v string, src source) error {
			if err := o.set(&s, v); err != nil {
				shown := fmt.Sprintf("%q", v)
				if o.secret {
					shown = "the value"
				}
				return fmt.Errorf("%s: %s is not valid for %s: %w", src, shown, o.key, err)
			}
			from[o.key] = src
			return nil
		}
		if v, ok := values[o.key]; ok {
			if err := apply(v, source{"file", path}); err != nil {
				return s, nil, "", err
			}
		}
		if v, ok := env(o.env()); ok && v != "" {
			if err := apply(v, source{"environment", o.env()}); err != nil {
				return s, nil, "", err
			}
		}
		if f := cmd.Flags().Lookup(o.flag); o.flag != "" && f != nil && f.Changed {
			if err := apply(f.Value.String(), source{"flag", "--" + o.flag}); err != nil {
				return s, nil, "", usageError{err}
			}
		}
	}
	s.Data = expandHome(env, s.Data)
	s.Agent = strings.ToLower(strings.TrimSpace(s.Agent)) // the host writes agent ids in small letters
	if s.Agent == "" {
		return s, nil, "", usage("the agent has no name: give one with --agent, or leave the flag out for %q", "main")
	}
	if _, rest, isKey := strings.Cut(s.Agent, ":"); isKey {
		id := "main"
		if s.Agent != "" && strings.HasPrefix(s.Agent, "agent:") {
			id, _, _ = strings.Cut(rest, ":")
		}
		return s, nil, "", usage("%q is no agent: an id has no colon. A session key like agent:%s:… goes to --session, the id in it to --agent: --agent %s", s.Agent, id, id)
	}
	return s, from, path, nil
}

// configPath finds the configuration file: the one named, or the one in the usual place if it is there.
func configPath(cmd *cobra.Command, env func(string) (string, bool)) (string, error) {
	path := cmd.Flags().Lookup("config").Value.String()
	if path == "" {
		path, _ = env("HARK_CONFIG")
	}
	if path = expandHome(env, path); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("configuration file: %w", err)
		}
		return path, nil
	}
	path = defaultConfig(env)
	if path == "" {
		return "", nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// readConfig reads a TOML file into values by key. Keys Hark does not know are errors.
func readConfig(path string) (map[string]string, error) {
	var tree map[string]any
	if _, err := toml.DecodeFile(path, &tree); err != nil {
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fmt.Errorf("%s:%d: %s", path, parse.Position.Line, parse.Message)
		}
		return nil, err
	}
	known := options()
	values := map[string]string{}
	if table, ok := tree[peopleKey].(map[string]any); ok {
		line, err := peopleLine(table)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		values[peopleKey] = line
		delete(tree, peopleKey)
	}
	for _, v := range flatten("", tree) {
		o, ok := find(known, v.key)
		if !ok {
			return nil, fmt.Errorf("%s: unknown key %q%s\n\"hark config\" lists every key", path, v.key, nearest(known, v.key))
		}
		switch v.value.(type) {
		case string, bool, int64, float64:
			values[o.key] = fmt.Sprint(v.value)
		default:
			return nil, fmt.Errorf("%s: the key %q takes one value, not a list or table", path, v.key)
		}
	}
	return values, nil
}

// peopleLine writes the table of people as the line that is used on the environment.
func peopleLine(table map[string]any) (string, error) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list, ok := table[name].([]any)
		if one, isText := table[name].(string); isText {
			list, ok = []any{one}, true
		}
		var ids []string
		for _, v := range list {
			id, isText := v.(string)
			ok = ok && isText && !strings.ContainsAny(id, ",;")
			ids = append(ids, id)
		}
		if !ok || strings.ContainsAny(name, "=;") {
			return "", fmt.Errorf(`%s.%s has to be a list of ids like ["telegram:42"]`, peopleKey, name)
		}
		parts = append(parts, name+"="+strings.Join(ids, ","))
	}
	return strings.Join(parts, ";"), nil
}

func find(options []option, key string) (option, bool) {
	for _, o := range options {
		if o.key == key {
			return o, true
		}
	}
	return option{}, false
}

// keyed is a value of a configuration file under its full key.
type keyed struct {
	key   string
	value any
}

// flatten lists the values of a decoded TOML table by full key, sorted.
func flatten(prefix string, table map[string]any) []keyed {
	var out []keyed
	for _, k := range slices.Sorted(maps.Keys(table)) {
		if sub, ok := table[k].(map[string]any); ok && len(sub) > 0 {
			out = append(out, flatten(prefix+k+".", sub)...)
			continue
		}
		out = append(out, keyed{prefix + k, table[k]})
	}
	return out
}

// nearest suggests the key that was probably meant, as the end of a sentence.
func nearest(options []option, key string) string {
	best, least := "", len(key)/2+2
	for _, o := range options {
		d := distance(key, o.key)
		if _, last, ok := strings.Cut(o.key, "."); ok {
			d = min(d, distance(key, last)+1)
		}
		if d < least {
			best, least = o.key, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the number of letters to add, drop or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// defaultData is the folder for data of this operating system, "" where it cannot be told.
func defaultData(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hark")
	}
	home := homeDir(env)
	switch {
	case runtime.GOOS == "windows":
		if dir, _ := env("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "hark")
		}
		return ""
	case home == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "hark")
	}
	return filepath.Join(home, ".local", "share", "hark")
}

// defaultConfig is where the configuration file is looked for, "" where that cannot be told.
func defaultConfig(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hark", "config.toml")
	}
	home := homeDir(env)
	switch {
	case runtime.GOOS == "windows":
		if dir, _ := env("APPDATA"); dir != "" {
			return filepath.Join(dir, "hark", "config.toml")
		}
		return ""
	case home == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "hark", "config.toml")
	}
	return filepath.Join(home, ".config", "hark", "config.toml")
}

func homeDir(env func(string) (string, bool)) string {
	home, _ := env("HOME")
	return home
}

func dataHint(env func(string) (string, bool)) string { return shortHome(env, defaultData(env)) }

func configHint(env func(string) (string, bool)) string { return shortHome(env, defaultConfig(env)) }

// expandHome reads ~ at the beginning of a path as the home folder, where no shell did.
func expandHome(env func(string) (string, bool), path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if home := homeDir(env); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(home, rest)
	}
	return path
}

// shortHome writes ~ for the home folder.
func shortHome(env func(string) (string, bool), path string) string {
	if rest, ok := strings.CutPrefix(path, homeDir(env)+string(filepath.Separator)); ok && homeDir(env) != "" {
		return filepath.Join("~", rest)
	}
	return path
}
