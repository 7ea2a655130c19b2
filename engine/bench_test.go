package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hark/embed/embedtest"
)

// filled is an engine over n messages of earlier sessions.
func filled(b *testing.B, n int) *Engine {
	b.Helper()
	e := open(b, embedtest.Hashed(256), nil)
	var batch []json.RawMessage
	for i := range n {
		batch = append(batch, user(fmt.Sprintf("note %d: the %s of ticket OPS-%d was moved to shelf %d", i, []string{"folder", "laptop", "invoice", "key"}[i%4], i, i%97), day+int64(i)))
	}
	if _, err := e.IngestBatch(b.Context(), IngestBatchParams{SessionID: "x", SessionKey: otherKey, Messages: batch}); err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkAssemble is the call before a model request on a history of 2,000 messages and 4 MB.
func BenchmarkAssemble(b *testing.B) {
	var h []json.RawMessage
	for i := range 1000 {
		h = append(h, user(strings.Repeat("some words of a person ", 87), day+int64(2*i)), assistant(strings.Repeat("an answer in some words ", 83), day+int64(2*i+1)))
	}
	e := filled(b, 5000)
	for name, p := range map[string]AssembleParams{
		"no question": {Prompt: "ok"}, "new question": {Prompt: "where is the laptop of ticket OPS-%d?"}, "same turn": {Prompt: "where is the laptop of ticket OPS-77?"},
	} {
		b.Run(name, func(b *testing.B) {
			p.SessionID, p.SessionKey, p.Messages, p.TokenBudget = "s", mainKey, h, 2_000_000
			prompt, i := p.Prompt, 0
			for b.Loop() {
				if i++; strings.Contains(prompt, "%d") {
					p.Prompt = fmt.Sprintf(prompt, i)
				}
				if res, err := e.Assemble(b.Context(), p); err != nil || len(res.Kept) != len(h) {
					b.Fatal(err, len(res.Kept))
				}
			}
		})
	}
}

// BenchmarkCommitTurn is what the host waits for after a reply.
func BenchmarkCommitTurn(b *testing.B) {
	e := filled(b, 5000)
	i := 0
	for b.Loop() {
		i++
		p := turn(mainKey, fmt.Sprint("k", i), user(fmt.Sprintf("a question about number %d", i), day+int64(i*10)), assistant(fmt.Sprintf("an answer about %d", i), day+int64(i*10+1)))
		if _, err := e.CommitTurn(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode5MB is one message of five megabytes, of words and of encoded data.
func BenchmarkDecode5MB(b *testing.B) {
	for name, text := range map[string]string{
		"words":  strings.Repeat("ordinary words [of a log] in a line\n", 5<<20/36),
		"base64": strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAdQ9xZk3a", 5<<20/32),
		"han":    strings.Repeat("\u6f22\u5b57\u6d4b\u8bd5", 5<<20/12),
	} {
		b.Run(name, func(b *testing.B) {
			m := user(text, day)
			for b.Loop() {
				if _, err := decode(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
