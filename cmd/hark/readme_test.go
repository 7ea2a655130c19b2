package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestWireReadme does what the examples of the wire's README do, in order, and compares what comes
// back with what stands there. UPDATE_README=1 writes it down instead.
func TestWireReadme(t *testing.T) {
	path := filepath.Join("..", "..", "engine", "wire", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data := shortDir(t)
	startServe(t, data)
	do := overSocket(t, filepath.Join(data, "hark.sock"))
	examples := 0
	after := example.ReplaceAllStringFunc(string(text), func(block string) string {
		examples++
		command, want := cutCommand(example.FindStringSubmatch(block)[1])
		got := do(command)
		if err := sameShape(want, got); err != nil {
			t.Errorf("$ %s\n%v\ngives %s", command, err, got)
		}
		shown := strings.ReplaceAll(strings.TrimSpace(got), data, "/home/ann/.local/share/hark")
		return "```\n$ " + command + "\n" + shown + "\n```"
	})
	if os.Getenv("UPDATE_README") != "" {
		if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if examples < 20 {
		t.Errorf("only %d examples were found", examples)
	}
}

// example is a block of the README with one curl command and its answer.
var example = regexp.MustCompile("(?s)```\n\\$ (curl .*?)\n```")

// cutCommand separates a command from its answer: it ends with the line in which no quote is open.
func cutCommand(block string) (command, answer string) {
	quotes := 0
	for i, r := range block {
		switch {
		case r == '\'':
			quotes++
		case r == '\n' && quotes%2 == 0:
			return block[:i], block[i+1:]
		}
	}
	return block, ""
}

// word is one argument of a command: in single quotes or without spaces.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// overSocket returns a curl that knows the few options the README uses.
func overSocket(t *testing.T, socket string) func(command string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return func(command string) string {
		method, url, body := http.MethodGet, "", ""
		header := http.Header{}
		args := word.FindAllString(command, -1)[1:]
		for i := 0; i < len(args); i++ {
			arg := strings.Trim(args[i], "'")
			switch arg {
			case "-s":
				continue
			case "--unix-socket", "-X", "-H", "-d":
				i++
			default:
				url = arg
				continue
			}
			value := strings.Trim(args[i], "'")
			switch arg {
			case "-X":
				method = value
			case "-d":
				method, body = http.MethodPost, value
			case "-H":
				name, v, _ := strings.Cut(value, ": ")
				header.Set(name, v)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		req.Header = header
		res, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(answer)
	}
}

// sameShape compares two JSON texts: keys, kinds of values, and the values that do not depend on
// the time, the machine or the store.
func sameShape(want, got string) error {
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		return fmt.Errorf("the README has no JSON here: %w", err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		return err
	}
	return shape("answer", w, g)
}

func shape(at string, want, got any) error {
	if reflect.TypeOf(want) != reflect.TypeOf(got) {
		return fmt.Errorf("%s is %v, the README has %v", at, got, want)
	}
	switch w := want.(type) {
	case map[string]any:
		g := got.(map[string]any)
		for key := range g {
			if _, ok := w[key]; !ok {
				return fmt.Errorf("%s has %q, which the README has not", at, key)
			}
		}
		for key := range w {
			v, ok := g[key]
			if !ok {
				return fmt.Errorf("%s has no %q", at, key)
			}
			if err := shape(at+"."+key, w[key], v); err != nil {
				return err
			}
		}
	case []any:
		g := got.([]any)
		if len(w) != len(g) {
			return fmt.Errorf("%s has %d values, the README %d", at, len(g), len(w))
		}
		for i := range w {
			if err := shape(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); err != nil {
				return err
			}
		}
	case bool:
		if w != got {
			return fmt.Errorf("%s is %v, the README has %v", at, got, want)
		}
	case string:
		if key := at[strings.LastIndex(at, ".")+1:]; (key == "status" || key == "code" || key == "text" || key == "cursor" || key == "session") && w != got {
			return fmt.Errorf("%s is %v, the README has %v", at, got, want)
		}
	}
	return nil
}
