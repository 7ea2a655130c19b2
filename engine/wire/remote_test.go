package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hark/engine"
)

// counting counts the bytes of request bodies.
type counting struct {
	http.Handler
	bytes atomic.Int64
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = &countingBody{r.Body, &c.bytes}
	c.Handler.ServeHTTP(w, r)
}

type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// remoteTest connects a Remote to an engine over TCP, and counts what it sends.
func remoteTest(t *testing.T, e *scripted) (*Remote, *Server, *counting) {
	t.Helper()
	srv, _ := serveTest(t, ServerOptions{Open: e.open, Classify: classify})
	count := &counting{Handler: srv}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: count}
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() { hs.Close() })
	state := t.TempDir()
	if err := writeRecord(state, Record{Protocol: Protocol, Address: l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	return NewRemote(dialTest(t, state, nil), "main", nil), srv, count
}

// aTurn is what a turn of a usual session adds: a question, a tool call with its output, an answer.
func aTurn(i int) []json.RawMessage {
	return raws(
		fmt.Sprintf(`{"role":"user","content":"What does the log of run %d say? <b>ü</b>","timestamp":%d}`, i, 1796061012079+i),
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"call%d","name":"read","arguments":{"path":"run-%d.log"}}],"api":"openai-completions","provider":"fake","model":"fake-1","usage":{"input":5675,"output":7,"totalTokens":5682},"stopReason":"toolUse","timestamp":%d}`, i, i, 1796061013079+i),
		fmt.Sprintf(`{"role":"toolResult","toolCallId":"call%d","toolName":"read","content":[{"type":"text","text":%q}],"isError":false,"timestamp":%d}`, i, strings.Repeat(fmt.Sprintf("line of run %d: ok\n", i), 60), 1796061014079+i),
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Run %d went well & took 3 s."}],"api":"openai-completions","provider":"fake","model":"fake-1","usage":{"input":6675,"output":17,"totalTokens":6692},"stopReason":"stop","timestamp":%d}`, i, 1796061015079+i),
	)
}

// TestHistoryIsNotSentAgain measures what reuse of the history saves over a session of 20 turns of
// about 2 KB, and that it changes nothing.
func TestHistoryIsNotSentAgain(t *testing.T) {
	const turns = 20
	var whole, reused [turns]int64
	e := newScripted(script{Recall: "r"})
	with, _, withCount := remoteTest(t, e)
	without, _, withoutCount := remoteTest(t, newScripted(script{Recall: "r"}))
	var messages []json.RawMessage
	for i := range turns {
		p := engine.AssembleParams{SessionID: "s1", SessionKey: "agent:main:main", Messages: messages, Prompt: "and run " + fmt.Sprint(i), TokenBudget: 100000}
		a, err := with.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		without.remember(p, nil)
		b, err := without.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("turn %d (-whole +reused):\n%s", i, diff)
		}
		if diff := cmp.Diff(texts(messages), texts(e.seen[i].Messages)); diff != "" {
			t.Errorf("turn %d: the engine saw other messages (-sent +seen):\n%s", i, diff)
		}
		for j, m := range messages {
			if &a.Messages[j][0] != &m[0] {
				t.Fatalf("turn %d: message %d is a copy", i, j)
			}
		}
		reused[i], whole[i] = withCount.bytes.Swap(0), withoutCount.bytes.Swap(0)
		messages = append(messages, aTurn(i)...)
	}
	var sumWhole, sumReused int64
	for i := range turns {
		sumWhole, sumReused = sumWhole+whole[i], sumReused+reused[i]
		t.Logf("turn %2d: %6d bytes whole, %5d with reuse", i+1, whole[i], reused[i])
	}
	t.Logf("session: %d bytes whole, %d with reuse: %.1f times less", sumWhole, sumReused, float64(sumWhole)/float64(sumReused))
	if last := turns - 1; reused[last]*10 > whole[last] {
		t.Errorf("turn %d sends %d of %d bytes, want a tenth or less", turns, reused[last], whole[last])
	}
	if sumReused*5 > sumWhole {
		t.Errorf("the session sends %d of %d bytes, want a fifth or less", sumReused, sumWhole)
	}
}

func texts(messages []json.RawMessage) []string {
	out := []string{}
	for _, m := range messages {
		out = append(out, string(m))
	}
	return out
}

// TestLostHistoryIsSentAgain lets the server forget between calls: the client notices nothing but
// the time, and stops offering what is never there.
func TestLostHistoryIsSentAgain(t *testing.T) {
	e := newScripted(script{})
	r, srv, count := remoteTest(t, e)
	var messages []json.RawMessage
	for i := range 6 {
		messages = append(messages, aTurn(i)...)
		count.bytes.Store(0)
		res, err := r.Assemble(t.Context(), engine.AssembleParams{SessionID: "s1", Messages: messages})
		if err != nil || len(res.Messages) != len(messages) {
			t.Fatalf("turn %d: %d messages, %v", i, len(res.Messages), err)
		}
		var size int64
		for _, m := range messages {
			size += int64(len(m))
		}
		if sent := count.bytes.Load(); i > maxRefused && sent > size+2000 {
			t.Errorf("turn %d: %d bytes were sent for %d", i, sent, size)
		}
		srv.histories.forget(sessionRef{"main", "id:s1"})
	}
	if len(e.seen) != 6 {
		t.Errorf("the engine was asked %d times", len(e.seen))
	}
}

// TestWhiteSpaceInMessages sends messages that are not in the form the encoder gives them.
func TestWhiteSpaceInMessages(t *testing.T) {
	r, srv, _ := remoteTest(t, newScripted(script{}))
	messages := raws(`{ "role": "user",  "content": "a < b & \u2028 \ud800" }`, "{\n\"role\":\"assistant\"}")
	for i := range 3 {
		res, err := r.Assemble(t.Context(), engine.AssembleParams{SessionID: "s1", Messages: messages})
		if err != nil || string(res.Messages[0]) != string(messages[0]) {
			t.Fatalf("call %d: %s, %v", i, res.Messages, err)
		}
		messages = append(messages, json.RawMessage(fmt.Sprintf(`{ "n" : %d }`, i)))
	}
	if r.sessions["id:s1"].refused != 0 || srv.histories.find(sessionRef{"main", "id:s1"}) == nil {
		t.Error("the history was sent again though nothing was lost")
	}
}

func TestRemoteSpawnAndCompact(t *testing.T) {
	e := newScripted(script{})
	r, _, _ := remoteTest(t, e)
	spawn, err := r.PrepareSubagentSpawn(t.Context(), engine.SpawnParams{ParentSessionKey: "p", ChildSessionKey: "c"})
	if err != nil || spawn.ChildSessionKey != "c" {
		t.Fatalf("%+v, %v", spawn, err)
	}
	for range 2 {
		if err := spawn.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if res, err := r.Compact(t.Context(), engine.CompactParams{}); err != nil || res.Compacted || res.Reason == "" {
		t.Errorf("compact without a host: %+v, %v", res, err)
	}
	r.runtime = HostCompacted{}
	if res, err := r.Compact(t.Context(), engine.CompactParams{SessionID: "s1"}); err != nil || !res.Compacted {
		t.Errorf("compact: %+v, %v", res, err)
	}
	if got := strings.Join(e.calls, " "); got != "prepareSubagentSpawn rollback c onSubagentEnded compact" {
		t.Errorf("the engine was asked: %s", got)
	}
}

func TestChain(t *testing.T) {
	c := NewChain()
	if got := c.String(); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("over nothing: %s", got)
	}
	// As JavaScript gives it: see the README.
	if got := c.Add(json.RawMessage(`{"role":"user","content":"ü"}`)).String(); got != "884acc4150f86a0a7398104788138212c38f1ce02aeea5bf789aed565b6d6339" {
		t.Errorf("over one message: %s", got)
	}
}

func TestHistoriesMakeRoom(t *testing.T) {
	hs := newHistories(3000)
	ref := func(i int) sessionRef { return sessionRef{"main", fmt.Sprint(i)} }
	body := raws(`"` + strings.Repeat("x", 1000) + `"`)
	for i := range 4 {
		hs.resolve(ref(i), body, nil)
	}
	if hs.find(ref(0)) != nil || hs.find(ref(3)) == nil || hs.bytes > 3000 {
		t.Errorf("the oldest is to go: %d bytes, %d sessions", hs.bytes, hs.order.Len())
	}
	big := raws(`"` + strings.Repeat("x", 9000) + `"`)
	hs.resolve(ref(9), big, nil)
	if _, ok := hs.resolve(ref(9), nil, &History{Base: NewChain().Add(big[0]).String(), Count: 1}); !ok || hs.order.Len() != 1 {
		t.Errorf("the latest always fits: %v, %d sessions", ok, hs.order.Len())
	}
	hs.forget(ref(9))
	if hs.bytes != 0 || hs.order.Len() != 0 {
		t.Errorf("%d bytes are left over", hs.bytes)
	}
}
