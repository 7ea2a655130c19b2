package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

// longHistory is a conversation of 2,000 messages and 4 MB.
func longHistory() []json.RawMessage {
	rng := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields(prose)
	said := func() string {
		var b strings.Builder
		for b.Len() < 1880 {
			fmt.Fprintf(&b, "%s%d %s ", words[rng.IntN(len(words))], rng.IntN(20)*rng.IntN(2), words[rng.IntN(len(words))])
		}
		return b.String()
	}
	var h []json.RawMessage
	for i := range 500 {
		at := day + int64(10*i)
		h = append(h, user(said(), at),
			raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":%q}}],"stopReason":"toolUse","timestamp":%d}`, i, said(), at+1)),
			raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":%q}],"isError":false,"timestamp":%d}`, i, said(), at+2)),
			assistant(said(), at+3))
	}
	return h
}

// BenchmarkAssemble is the call before a model request on a history of 2,000 messages and 4 MB, all
// of which is kept: by an engine that has served the session before, and by one that has just started.
func BenchmarkAssemble(b *testing.B) {
	h := longHistory()
	e := filled(b, 5000)
	call := func(b *testing.B, e *Engine, h []json.RawMessage, prompt string) {
		b.Helper()
		res, err := e.Assemble(b.Context(), AssembleParams{SessionID: "s", SessionKey: mainKey, Messages: h, Prompt: prompt, TokenBudget: 2_000_000})
		if err != nil || len(res.Kept) != len(h) {
			b.Fatal(err, len(res.Kept))
		}
	}
	call(b, e, h, "ok")
	b.Run("no question", func(b *testing.B) {
		for b.Loop() {
			call(b, e, h, "ok")
		}
	})
	b.Run("next turn", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			next := append(h[4:len(h):len(h)], user(fmt.Sprint("words of turn ", i), day+1e6+int64(i)), assistant(fmt.Sprint("answer ", i), day+1e6+int64(i)), h[2], h[3])
			b.StartTimer()
			call(b, e, next[:len(next)-2], "ok")
		}
	})
	b.Run("new question", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			call(b, e, h, fmt.Sprintf("where is the laptop of ticket OPS-%d?", i))
		}
	})
	b.Run("same turn", func(b *testing.B) {
		for b.Loop() {
			call(b, e, h, "where is the laptop of ticket OPS-77?")
		}
	})
	// A process that has just started: for a history nobody has seen, and for one that was served before.
	for _, name := range []string{"first sight", "restarted"} {
		b.Run(name, func(b *testing.B) {
			session := map[string]string{"first sight": "", "restarted": "s"}[name]
			for b.Loop() {
				b.StopTimer()
				e.keeping.Wait()
				tokens, err := newCounter()
				if err != nil {
					b.Fatal(err)
				}
				e.mu.Lock()
				clear(e.seen)
				clear(e.unwritten)
				e.tokens = tokens
				e.mu.Unlock()
				b.StartTimer()
				p := AssembleParams{SessionID: session, Messages: h, Prompt: "ok", TokenBudget: 2_000_000}
				if session != "" {
					p.SessionKey = mainKey
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
