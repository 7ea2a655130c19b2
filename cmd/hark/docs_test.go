package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// TestReadmeNamesEveryCommand: a command that the README is silent about is found by nobody.
func TestReadmeNamesEveryCommand(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot(&app{console: console{env: func(string) (string, bool) { return "", false }}}).Commands() {
		if c.Name() != "version" && !strings.Contains(string(text), "hark "+c.Name()) {
			t.Errorf("the README does not name hark %s", c.Name())
		}
	}
}
