package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hark": main})
}

// The stories of the command line, one a file.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HARK_DATA", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("TZ", "UTC")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonValue, "generate": generate, "killed": killed, "cutlast": cutLast, "exits": exits, "atleast": atLeast,
			"nowhere": nowhere, "sameids": sameIDs, "samelines": sameLines,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// jsonValue checks a value of the JSON in a file or in stdout: json FILE PATH [WANT]. The path is
// keys and indexes with dots; "len" at its end is the length. Without WANT the value has to be there.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: json FILE PATH [WANT]")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	ok := true
	for step := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			if step == "len" {
				v = float64(len(x))
				continue
			}
			v, ok = x[step]
		case []any:
			if step == "len" {
				v = float64(len(x))
				continue
			}
			i, err := strconv.Atoi(step)
			ok = err == nil && i < len(x)
			if ok {
				v = x[i]
			}
		default:
			ok = false
		}
		if !ok {
			break
		}
	}
	got := fmt.Sprint(v)
	switch {
	case len(args) == 2 && ok == neg:
		ts.Fatalf("%s: found %v", args[1], ok)
	case len(args) == 3 && (ok && got == args[2]) == neg:
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

// generate writes a chat history: generate FILE MESSAGES.
func generate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: generate FILE MESSAGES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	at := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	for i := range n {
		ts.Check(enc.Encode(map[string]string{
			"session": "s" + strconv.Itoa(i/1000), "role": []string{"user", "assistant"}[i%2], "sender": "Ann",
			"timestamp": at.Add(time.Duration(i) * time.Second).Format(time.RFC3339),
			"content":   fmt.Sprintf("message number %d about topic%d and parcel P-%05d", i, i%37, i),
		}))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// killed runs hark with ARGS and kills it (kill -9) once standard error has had N lines:
// killed N ARGS…. What it had said is in the file killed.txt.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: killed LINES ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var self string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "hark")); err == nil {
			self = filepath.Join(dir, "hark")
			break
		}
	}
	cmd := exec.Command(self, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HARK_DATA", "HOME", "PATH"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for bytes.Count(seen.Bytes(), []byte("\n")) < want {
		n, err := pipe.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			ts.Fatalf("hark ended before it had said %d lines: %s", want, seen.String())
		}
	}
	ts.Check(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed: that is its error
	ts.Check(os.WriteFile(ts.MkAbs("killed.txt"), seen.Bytes(), 0o644))
	ts.Setenv("STORED", lastNumber(seen.String()))
}

// lastNumber is the number of the last whole line.
func lastNumber(s string) string {
	lines := strings.Split(s[:strings.LastIndexByte(s, '\n')], "\n")
	for word := range strings.FieldsSeq(lines[len(lines)-1]) {
		if _, err := strconv.Atoi(word); err == nil {
			return word
		}
	}
	return "0"
}

// cutLast drops the last N bytes of a file: cutlast FILE N.
func cutLast(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cutlast FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data[:len(data)-n]), 0o644))
}

// exits runs a command that has to end with the given code: exits CODE COMMAND ARGS….
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// atLeast checks that a number of the JSON in a file is not less than another: atleast FILE KEY N.
func atLeast(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: atleast FILE KEY N")
	}
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	want, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	if got, ok := v[args[1]].(float64); !ok || got < want || want == 0 {
		ts.Fatalf("%s is %v, want at least %v and more than 0", args[1], v[args[1]], want)
	}
}
