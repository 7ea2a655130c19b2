package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hark/engine"
)

// tableRow is a key of the table in docs/configuration.md: its name, its variable and its default.
var tableRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `(HARK_[A-Z_]+)` \\| ([^|]*)\\|")

// TestConfigurationIsDocumented compares the table of docs/configuration.md with the program.
func TestConfigurationIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	set := defaults(func(string) (string, bool) { return "", false })
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
		o, ok := find(options(), row[1])
		if !ok {
			t.Errorf("%s is documented and no option", row[1])
			continue
		}
		if o.env() != row[2] {
			t.Errorf("%s: %s is documented, it is %s", row[1], row[2], o.env())
		}
		if want, plain := strings.CutPrefix(strings.TrimSpace(row[3]), "`"); plain && strings.TrimSuffix(want, "`") != o.get(&set) {
			t.Errorf("%s: the default %s is documented, it is %q", row[1], want, o.get(&set))
		}
	}
	for _, o := range options() {
		known = append(known, o.key)
	}
	if !slices.Equal(documented, known) {
		t.Errorf("documented: %v\nknown: %v", documented, known)
	}
}

// TestTraceIsDocumented: a field that docs/trace.md is silent about is a riddle.
func TestTraceIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "trace.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []any{engine.Trace{}, engine.BudgetTrace{}, engine.WindowTrace{}, engine.RecallTrace{}, engine.TraceItem{}} {
		for f := range reflect.TypeOf(part).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "."+name+"`") {
				t.Errorf("docs/trace.md does not say what %s of %T is", name, part)
			}
		}
	}
}

// TestReadmeNamesEveryCommand: a command that the README is silent about is found by nobody.
func TestReadmeNamesEveryCommand(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot(&app{console: console{env: func(string) (string, bool) { return "", false }}}).Commands() {
		if c.Name() != "version" && !c.Hidden && !strings.Contains(string(text), "hark "+c.Name()) {
			t.Errorf("the README does not name hark %s", c.Name())
		}
	}
}
