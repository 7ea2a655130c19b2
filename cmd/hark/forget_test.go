package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// nowhere checks that no file below a folder holds one of the words, in any case: nowhere DIR WORDS….
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: nowhere DIR WORDS…")
	}
	files := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		for _, word := range args[1:] {
			if strings.Contains(strings.ToLower(string(data)), strings.ToLower(word)) {
				ts.Fatalf("%s holds %q", path, word)
			}
		}
		return err
	}))
	if files == 0 {
		ts.Fatalf("%s holds no file", args[0])
	}
}

// sameIDs checks that two answers of hark search --json name the same messages: sameids FILE FILE.
func sameIDs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameids FILE FILE")
	}
	var ids [2][]string
	for i, name := range args {
		var v struct{ Hits []struct{ ID string } }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &v))
		for _, h := range v.Hits {
			ids[i] = append(ids[i], h.ID)
		}
		slices.Sort(ids[i])
	}
	if len(ids[0]) == 0 || !slices.Equal(ids[0], ids[1]) {
		ts.Fatalf("ids %v and %v", ids[0], ids[1])
	}
}

// sameLines checks that two exports hold the same, whenever they were made: samelines FILE FILE.
func sameLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samelines FILE FILE")
	}
	var lines [2][]string
	for i, name := range args {
		lines[i] = strings.Split(ts.ReadFile(name), "\n")[1:]
		slices.Sort(lines[i])
	}
	if !slices.Equal(lines[0], lines[1]) {
		ts.Fatalf("%s and %s differ:\n%s\n%s", args[0], args[1], strings.Join(lines[0], "\n"), strings.Join(lines[1], "\n"))
	}
}
