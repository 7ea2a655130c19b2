package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hark/engine"
	"hark/engine/wire"
)

// holding lists the files below dir that hold a word, in any case.
func holding(t *testing.T, dir, word string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(strings.ToLower(string(data)), word) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestPrivacyWhileADaemonServes: the daemon's log holds no words at its most talkative, forgetting and
// exporting go through it, and what was forgotten is in no file below the data folder while it serves.
func TestPrivacyWhileADaemonServes(t *testing.T) {
	data := shortDir(t)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"HARK_DATA": data, "HOME": filepath.Dir(data), "HARK_DEBUG": "1"}[name]
		return v, ok
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx, []string{"serve", "--idle-exit", "1h"}, console{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, env: env})
	}()
	defer func() { cancel(); <-done }()
	c := wire.NewClient(data, wire.ClientOptions{Spawn: func(context.Context) error { return nil }})
	defer c.Close()
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := wire.NewRemote(c, "main", nil)
	for i, key := range []string{"agent:main:main", "agent:main:telegram:direct:42"} {
		p := saidTurn(fmt.Sprint("t", i), "s", fmt.Sprintf("the quetzalcoatl number %d is under the stairs; export API_SECRET=fake-xylophone-1", i))
		p.SessionKey = key
		if _, err := r.CommitTurn(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if _, err := r.CommitTurn(t.Context(), saidTurn(fmt.Sprint("t", i), "s", "another quetzalcoatl")); err == nil {
			t.Error("a conflict was not noticed")
		}
	}
	res, err := r.Assemble(t.Context(), engine.AssembleParams{SessionID: "o", SessionKey: "agent:main:explicit:o", Prompt: "where is the quetzalcoatl?"})
	if err != nil || !strings.Contains(string(res.Insert[0].Message), "quetzalcoatl") {
		t.Fatalf("%+v %v", res, err)
	}
	_ = c.Call(t.Context(), "main", "nonesuch", map[string]string{"text": "quetzalcoatl"}, nil)
	_ = c.Call(t.Context(), "main", "ingest", "quetzalcoatl", nil)
	log := filepath.Join(data, "logs", "hark.log")
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "DEBUG") || strings.Contains(string(text), "quetzalcoatl") {
		t.Errorf("the log: %s %v", text, err)
	}
	if _, out, _ := hark(t.Context(), t, data, "status", "--json"); strings.Contains(out, "quetzalcoatl") {
		t.Errorf("the status tells: %s", out)
	}

	export := filepath.Join(filepath.Dir(data), "export.jsonl")
	if code, out, errs := hark(t.Context(), t, data, "export", export); code != 0 || !strings.Contains(out, "exported 4 messages") {
		t.Errorf("export: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "forget", "--match", "quetzalcoatl", "--dry-run"); code != 0 || !strings.Contains(out, "4 messages that hold") {
		t.Errorf("dry run: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "forget", "--id", "nonesuch", "--yes"); code != 1 || !strings.Contains(errs, "nothing was removed") {
		t.Errorf("an unknown id: %d %s%s", code, out, errs)
	}
	if code, out, errs := hark(t.Context(), t, data, "forget", "--match", "quetzalcoatl", "--yes"); code != 0 || out != "forgot 4 messages\n" {
		t.Errorf("forget: %d %s%s", code, out, errs)
	}
	for _, word := range []string{"quetzalcoatl", "xylophone"} {
		if files := holding(t, data, word); files != nil {
			t.Errorf("%s is in %v", word, files)
		}
	}
	if code, out, errs := hark(t.Context(), t, data, "import", export); code != 0 || !strings.Contains(out, "(0 new, 4 duplicate") {
		t.Errorf("import: %d %s%s", code, out, errs)
	}
	res, err = r.Assemble(t.Context(), engine.AssembleParams{SessionID: "o", SessionKey: "agent:main:explicit:o", Prompt: "where is the quetzalcoatl?"})
	if err != nil || len(res.Insert) != 0 {
		t.Errorf("the same turn still shows it: %+v %v", res, err)
	}
	if files := holding(t, data, "quetzalcoatl"); files != nil {
		t.Errorf("it is back in %v", files)
	}
	other := shortDir(t)
	if code, out, errs := hark(t.Context(), t, other, "import", export); code != 0 || !strings.Contains(out, "(4 new, 0 duplicate") {
		t.Errorf("import elsewhere: %d %s%s", code, out, errs)
	}
}

func TestRetentionAndSecretsAreConfigured(t *testing.T) {
	s := defaults(func(string) (string, bool) { return "", false })
	if s.retention() != (engine.Retention{}) || s.keepsSecrets() {
		t.Error("the defaults bound something")
	}
	s.Retain, s.Ingest.KeepSecrets = retainSettings{Days: 2, Size: 1}, "helper, MAIN"
	if got := s.retention(); got.Age.Hours() != 48 || got.Bytes != 8<<20 {
		t.Errorf("%+v", got)
	}
	for agent, want := range map[string]bool{"main": true, "helper": true, "other": false} {
		s.Agent = agent
		if s.keepsSecrets() != want {
			t.Errorf("%s keeps its secrets: %v", agent, !want)
		}
	}
	if s.Ingest.KeepSecrets = "*"; !s.keepsSecrets() {
		t.Error("* is not all")
	}
}

// TestDaemonAppliesRetention: what is too old goes when the daemon opens the store.
func TestDaemonAppliesRetention(t *testing.T) {
	data := shortDir(t)
	file := filepath.Join(filepath.Dir(data), "talk.jsonl")
	if err := os.WriteFile(file, []byte(kitchenTalk), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := hark(t.Context(), t, data, "import", file); code != 0 {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		env := func(name string) (string, bool) {
			v, ok := map[string]string{"HARK_DATA": data, "HOME": filepath.Dir(data), "HARK_RETENTION_DAYS": "1"}[name]
			return v, ok
		}
		late := func() time.Time { return time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC) } // the garage is from the day before
		a := &app{console: console{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, env: env}, clock: late}
		a.set = defaults(env)
		a.set.Data, a.set.Retain.Days = data, 1
		if err := a.serve(ctx, "", time.Hour, false); err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := a.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	defer func() { cancel(); <-done }()
	c := wire.NewClient(data, wire.ClientOptions{Spawn: func(context.Context) error { return nil }})
	defer c.Close()
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for {
		var status struct{ Messages, Forgotten int }
		if err := c.Call(t.Context(), "main", "status", struct{}{}, &status); err != nil {
			t.Fatal(err)
		}
		if status.Messages == 2 && status.Forgotten > 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%+v", status)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
