package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
)

// listening is an embedder that keeps what it was given.
type listening struct {
	embed.Embedder
	mu    *sync.Mutex
	heard *strings.Builder
}

func (l listening) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	l.mu.Lock()
	for _, text := range texts {
		l.heard.WriteString(text + "\n")
	}
	l.mu.Unlock()
	return l.Embedder.Embed(ctx, kind, texts)
}

func (l listening) InProcess() bool { return true }

// The parts of the secrets under test that must appear nowhere; all made up.
var fakeSecrets = []string{
	"ghp_FAKE0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u", "FAKE0123456789ABCDEFfake", "FAKEMIIEowIBAAKCAQEA0fake", "fake-db-pw-1", "sk-ant-api03-FAKE0aB1cD2eF3gH4iJ5kL6mN7o",
}

// secretive is a turn with a secret in every part that is stored.
func secretive(key string) CommitTurnParams {
	pad := strings.Repeat("line of a log file, nothing to see here. ", 100) // what follows is shortened away in part
	return turn(mainKey, key,
		user("the violet deploy token is "+fakeSecrets[0]+" ok?", day),
		raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"their key %s","thinkingSignature":"abc"},{"type":"toolCall","id":"c1","name":"run","arguments":{"env":{"API_SECRET":%q},"cmd":"deploy"}}],"stopReason":"toolUse","timestamp":%d}`, fakeSecrets[4], fakeSecrets[1], day+1)),
		raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c1","toolName":"run","content":[{"type":"text","text":%s}],"details":{"url":"postgres://app:%s@db/x"},"timestamp":%d}`, encodeText(pad[:2650]+"-----BEGIN RSA PRIVATE KEY-----\n"+strings.Repeat(fakeSecrets[2]+"\n", 40)+"-----END RSA PRIVATE KEY-----\n"+pad), fakeSecrets[3], day+2)),
		assistant("deployed with the violet token "+fakeSecrets[0], day+3))
}

// Secrets are masked in place before anything is stored, indexed, embedded or logged, and what they
// stood in is found and recalled.
func TestSecretsAreMasked(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var heard, logged strings.Builder
	emb := listening{embedtest.Hashed(16), &mu, &heard}
	store := openStore(t, dir)
	e, err := New(store, emb, &Options{Clock: fixedClock}, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	commit(t, e, secretive("k"))
	commit(t, e, secretive("k2")) // known already, masked as it was
	if n := total(t, e); n != 4 {
		t.Errorf("%d rows", n)
	}
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "o", SessionKey: otherKey, Prompt: "what was the violet deploy token, " + fakeSecrets[0] + "?"})
	if err != nil {
		t.Fatal(err)
	}
	if block := blockOf(t, res); !strings.Contains(block, "the violet deploy token is [masked: github token] ok?") {
		t.Errorf("%s", block)
	}
	trace := fmt.Sprintf("%+v %+v", res.Trace, res.Trace.Recall.Search)
	if err := store.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range rows(t, e, mainKey) {
		if len(m.Raw) == 0 {
			t.Errorf("the host's message is not kept: %s", m.Role)
		}
	}
	nowhere(t, dir, fakeSecrets...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	nowhere(t, dir, fakeSecrets...)
	for name, text := range map[string]string{"embedder": heard.String(), "log": logged.String(), "trace": trace} {
		for _, s := range fakeSecrets {
			if strings.Contains(text, s) || strings.Contains(text, s[:12]) {
				t.Errorf("the %s holds %q", name, s)
			}
		}
	}
	if !strings.Contains(heard.String(), "violet deploy token") {
		t.Error("nothing was embedded")
	}
}

// A secret in a name or an id is kept nowhere: not in a sender's name, a session's key, an idempotency key
// or the id of an entry or an answer; and what differs stays different.
func TestSecretsInNamesAndIDs(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, nil, nil)
	const secret, other = "ghp_fake0ab1cd2ef3gh4ij5kl6mn7op8qr9st0u", "ghp_fake0ab1cd2ef3gh4ij5kl6mn7op8qr9st0v"
	key := "agent:main:explicit:" + secret
	named := raw(fmt.Sprintf(`{"role":"user","content":"the violet folder","timestamp":%d,"idempotencyKey":%q,"__openclaw":{"senderName":"Ann %s"}}`, day, secret, secret))
	p := turn(key, secret, named, raw(fmt.Sprintf(`{"role":"assistant","content":"yes","responseId":%q,"timestamp":%d}`, secret, day+1)))
	commit(t, e, p)
	commit(t, e, p) // the same turn
	commit(t, e, turn("agent:main:explicit:"+other, other, user("another violet folder", day+2)))
	_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: secret, SessionKey: mainKey, History: []HistoryEntry{{EntryID: secret, Seq: 1, Message: user("the red folder", day)}, {EntryID: other, Seq: 2, Message: user("the red folder", day)}}})
	if err != nil {
		t.Fatal(err)
	}
	ms := rows(t, e, canonicalKey(key))
	if len(ms) != 2 || ms[0].Sender != "Ann [masked: github token]" {
		t.Errorf("%+v", ms)
	}
	if n := total(t, e); n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
	if k := canonicalKey(key); canonicalKey(k) != k || k == canonicalKey("agent:main:explicit:"+other) {
		t.Error(k)
	}
	done()
	nowhere(t, dir, secret, other)
}

// A store can be told to keep them; its messages are the same messages.
func TestSecretsAreKeptOnRequest(t *testing.T) {
	dir := t.TempDir()
	e, done := openAt(t, dir, nil, &Options{KeepSecrets: true})
	commit(t, e, secretive("k"))
	ms := rows(t, e, mainKey)
	if len(ms) != 4 || !strings.Contains(ms[0].Text, fakeSecrets[0]) || !bytes.Contains(ms[0].Raw, []byte(fakeSecrets[0])) {
		t.Errorf("%+v", ms)
	}
	done()
	e, done = openAt(t, dir, nil, nil)
	defer done()
	commit(t, e, secretive("k2"))
	if n := total(t, e); n != 4 {
		t.Errorf("%d rows after the switch was turned back", n)
	}
	// The transcript read again masks what was kept.
	_, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "id-" + mainKey, SessionKey: mainKey, History: []HistoryEntry{{EntryID: "e", Seq: 1, Message: secretive("k").Messages[0]}}})
	if ms := rows(t, e, mainKey); err != nil || len(ms) != 4 || strings.Contains(ms[0].Text, fakeSecrets[0]) || bytes.Contains(ms[0].Raw, []byte(fakeSecrets[0])) {
		t.Errorf("%+v %v", ms[0], err)
	}
}

// INJ-06: no conversation text in the log at any level, in errors, or in the status, whatever is done
// and whatever fails.
func TestLogsHoldNoText(t *testing.T) {
	const canary = "quetzalcoatl"
	var logged strings.Builder
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(locked{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var errs []error
	for _, emb := range []embed.Embedder{embedtest.Hashed(16), embedtest.Broken(embedtest.Hashed(16), embed.ErrUnavailable), embedtest.Half(embedtest.Hashed(16)), nil} {
		store, err := index.Open(t.Context(), t.TempDir(), &index.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(store, emb, &Options{Clock: fixedClock, RecallTools: true}, log)
		if err != nil {
			t.Fatal(err)
		}
		errs = append(errs, everything(t.Context(), e, canary)...)
		status, err := store.Status(t.Context())
		if err != nil || strings.Contains(fmt.Sprintf("%+v", status), canary) {
			t.Errorf("%+v %v", status, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		errs = append(errs, everything(t.Context(), e, canary)...) // with the store closed
	}
	for _, err := range errs {
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("an error tells: %v", err)
		}
	}
	if len(errs) == 0 || !strings.Contains(logged.String(), "level=DEBUG") || strings.Contains(logged.String(), canary) {
		for line := range strings.Lines(logged.String()) {
			if strings.Contains(line, canary) {
				t.Error(line)
			}
		}
		if t.Failed() {
			return
		}
		t.Error("nothing was logged")
	}
}

type locked struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// everything calls what there is to call with the word in every text.
func everything(ctx context.Context, e *Engine, word string) (errs []error) {
	note := func(err error) { errs = append(errs, err) }
	u, a := user("the "+word+" is under the stairs", day), assistant("the "+word+", noted", day+1)
	odd := raw(`{"role":"hologram","content":{"` + word + `":7},"timestamp":"` + word + `"}`)
	_, err := e.CommitTurn(ctx, turn(mainKey, "k", u, a, odd))
	note(err)
	_, err = e.CommitTurn(ctx, turn(mainKey, "k", a)) // a conflict
	note(err)
	_, err = e.CommitTurn(ctx, CommitTurnParams{Messages: []json.RawMessage{u}})
	note(err)
	note(e.AfterTurn(ctx, AfterTurnParams{SessionID: "s", SessionKey: mainKey, Messages: []json.RawMessage{u, a, odd, raw("{" + word)}, AutoCompactionSummary: word}))
	_, err = e.Ingest(ctx, IngestParams{SessionID: "s", Message: raw(word)})
	note(err)
	_, err = e.IngestBatch(ctx, IngestBatchParams{SessionKey: "agent:main:subagent:1", Messages: []json.RawMessage{u, a}})
	note(err)
	for _, text := range []string{word + " one", word + " two"} {
		_, err = e.Bootstrap(ctx, BootstrapParams{SessionID: "s", SessionKey: mainKey, Complete: true, History: []HistoryEntry{{EntryID: "e1", Seq: 1, Message: user(text, day)}, {EntryID: text[len(text)-3:], ParentID: "e1", Seq: 2, Message: user(text+"!", day+9)}}})
		note(err)
	}
	for _, budget := range []Tokens{100, 50_000} {
		_, err = e.Assemble(ctx, AssembleParams{SessionID: "s", SessionKey: otherKey, Messages: []json.RawMessage{u, odd, a}, Prompt: "where is the " + word + "?", TokenBudget: budget})
		note(err)
	}
	_, err = e.Compact(ctx, CompactParams{SessionKey: mainKey, CustomInstructions: word})
	note(err)
	_, err = e.PrepareSubagentSpawn(ctx, SpawnParams{ParentSessionKey: mainKey, ChildSessionKey: "agent:main:subagent:1", ContextMode: Fork})
	note(err)
	_, err = e.Maintain(ctx, MaintainParams{SessionKey: mainKey})
	note(err)
	page, err := e.Export(ctx, "", "", 0)
	note(err)
	_, err = e.Restore(ctx, append(page.Messages, Exported{Text: word}))
	note(err)
	_, err = e.Selected(ctx, Forgetting{IDs: []string{"nonesuch"}})
	note(err)
	_, err = e.Forget(ctx, Forgetting{Match: word})
	note(err)
	note(e.OnSubagentEnded(ctx, SubagentEndedParams{ChildSessionKey: "agent:main:subagent:1"}))
	return errs
}
