package hark_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layout says which package of ours may import which. Nothing calls back up: a package may import
// only what stands above it in this table. Tests may import more.
var layout = []struct {
	pkg string
	may []string
}{
	{"index/terms", nil},
	{"index", []string{"index/terms"}},
	{"embed/static", nil},
	{"embed", []string{"embed/static"}},
	{"embed/embedtest", []string{"embed", "embed/static"}},
	{"embed/builtin/build", []string{"embed/static"}},
	{"recall/when", nil},
	{"recall/rerank", nil},
	{"recall", []string{"embed", "index", "index/terms", "recall/when"}},
	{"memorybridge", []string{"index", "recall"}},
	{"engine/mask", nil},
	{"engine", []string{"embed", "engine/mask", "index", "index/terms", "memorybridge", "recall"}},
	{"engine/history", []string{"engine", "index"}},
	{"engine/wire", []string{"engine", "memorybridge"}},
	{"legacy", []string{"engine", "memorybridge"}},
	{"eval", []string{"embed", "engine", "index", "index/terms", "legacy", "memorybridge", "recall"}},
	{"eval/fit", []string{"eval", "recall"}},
	{"eval/cache", []string{"embed", "engine", "index", "legacy"}},
	{"testdata/demo", nil},
	{"cmd/hark", []string{"*"}},
}

// leftovers are names that say nothing about what a package is for.
var leftovers = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}

func TestLayout(t *testing.T) {
	const module = "hark/"
	allowed := map[string][]string{}
	for _, row := range layout {
		for _, dep := range row.may {
			if dep != "*" && allowed[dep] == nil {
				t.Errorf("the table lets %s import %s, which does not stand above it", row.pkg, dep)
			}
		}
		allowed[row.pkg] = append([]string{""}, row.may...)
	}
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "node_modules" || name != "." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(file, "go.mod")); name != "." && err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(file))
		if slices.Contains(leftovers, path.Base(pkg)) {
			t.Errorf("%s: a package for leftovers", pkg)
		}
		may, known := allowed[pkg]
		if !known {
			if !found[pkg] {
				t.Errorf("%s is not in the layout table", pkg)
			}
			found[pkg] = true
			return nil
		}
		found[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			dep, ours := strings.CutPrefix(imported, module)
			if ours && !slices.Contains(may, dep) && !slices.Contains(may, "*") {
				t.Errorf("%s: %s may not import %s", file, pkg, dep)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range layout {
		if !found[row.pkg] {
			t.Errorf("%s is in the layout table and does not exist", row.pkg)
		}
	}
}
