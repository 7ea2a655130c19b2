package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"hark/embed"
	"hark/index"
)

// countingEmbedder counts the texts it is given.
type countingEmbedder struct {
	embed.Embedder
	texts atomic.Int64
}

func (c *countingEmbedder) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	c.texts.Add(int64(len(texts)))
	return c.Embedder.Embed(ctx, kind, texts)
}

// lateEmbedder does not answer questions while it is late, and heeds no context.
type lateEmbedder struct {
	embed.Embedder
	late    atomic.Bool
	release chan struct{}
}

func (l *lateEmbedder) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	if kind == embed.Query && l.late.Load() {
		<-l.release
	}
	return l.Embedder.Embed(ctx, kind, texts)
}

func TestOpen(t *testing.T) {
	m, e, _ := memoryOver(t, nil, nil)
	var msgs []json.RawMessage
	for i := range 30 {
		msgs = append(msgs, user(fmt.Sprintf("message %d of the log", i), day+int64(i)*1000))
	}
	commit(t, e, turn(mainKey, "t1", msgs...))
	commit(t, e, turn(groupKey, "t2", user("the group's own", day)))
	stored := rows(t, e, mainKey)
	openAt := func(key, id string, before, after *int, tokens int) (string, error) {
		res, err := m.Open(t.Context(), OpenParams{Requester: Requester{SessionKey: key}, ID: id, Before: before, After: after, MaxTokens: tokens})
		var texts []string
		for _, msg := range res.Messages {
			texts = append(texts, strings.Fields(msg.Text + " - -")[1])
		}
		return strings.Join(texts, " "), err
	}
	zero, two, many := 0, 2, 1000
	for _, c := range []struct {
		at            int
		before, after *int
		tokens        int
		want          string
	}{
		{10, nil, nil, 0, "7 8 9 10 11 12 13"}, {10, &zero, &two, 0, "10 11 12"}, {0, nil, &zero, 0, "0"}, {29, &two, nil, 0, "27 28 29"},
		{1, nil, &zero, 0, "0 1"}, {15, &many, &many, 5000, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29"},
		{10, nil, nil, 40, "9 10"},
	} {
		if got, err := openAt(mainKey, stored[c.at].ID, c.before, c.after, c.tokens); got != c.want || err != nil {
			t.Errorf("%d: %q %v, want %q", c.at, got, err, c.want)
		}
	}
	for _, key := range []string{groupKey, "", "agent:main:telegram:direct:9"} {
		if got, err := openAt(key, stored[10].ID, nil, nil, 0); !errors.Is(err, index.ErrNotFound) || got != "" {
			t.Errorf("%q: %q %v", key, got, err)
		}
	}
	if _, err := openAt(mainKey, "nothing", nil, nil, 0); !errors.Is(err, index.ErrNotFound) {
		t.Error(err)
	}
	commit(t, e, turn(mainKey, "t3", user("first word "+strings.Repeat("and many more ", 5000), day+100_000)))
	stored = rows(t, e, mainKey)
	long := stored[len(stored)-1]
	res, err := m.Open(t.Context(), OpenParams{Requester: Requester{SessionKey: mainKey}, ID: long.ID, MaxTokens: 300})
	if err != nil || len(res.Messages) != 1 || !res.Messages[0].Cut || e.tokens.count(res.Messages[0].Text) > 300 || !strings.HasPrefix(res.Messages[0].Text, "first word and") {
		t.Errorf("a long message: %d messages %v", len(res.Messages), err)
	}
}

// DEL-01: what is shown can be read and forgotten by its id; without confirmation nothing happens.
func TestForgetOne(t *testing.T) {
	m, e, _ := memoryOver(t, nil, nil)
	commit(t, e, turn(mainKey, "t1", user("the safe opens with 4417", day), assistant("Noted.", day+1)))
	_, res := lookUp(t, m, mainKey, "safe opens", nil)
	hit := res.Results[0]
	got, err := m.Get(t.Context(), MemoryGetParams{Path: hit.Path, Requester: Requester{SessionKey: mainKey}})
	if err != nil || got.Status != MemoryOK || got.Text != "the safe opens with 4417" || got.Total != 1 {
		t.Errorf("%+v %v", got, err)
	}
	for _, path := range []string{strings.Replace(hit.Path, "/main/", "/other/", 1), "sessions/" + hit.ID + ".md", "sessions/main/../main/" + hit.ID + ".md"} {
		if got, err := m.Get(t.Context(), MemoryGetParams{Path: path, Requester: Requester{SessionKey: mainKey}}); err != nil || got.Status != MemoryNotFound {
			t.Errorf("%s: %+v %v", path, got, err)
		}
	}
	forget := func(key string, confirm bool) ForgottenOne {
		t.Helper()
		out, err := m.ForgetOne(t.Context(), ForgetOneParams{Requester: Requester{SessionKey: key}, ID: hit.ID, Confirm: confirm})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := forget(groupKey, true); out.Found || out.Forgotten {
		t.Errorf("a group forgot the owner's message: %+v", out)
	}
	if out := forget(mainKey, false); !out.Found || out.Forgotten || out.Preview == nil || out.Preview.Chars != 24 || out.Preview.Role != "user" {
		t.Errorf("dry run: %+v", out)
	}
	if out := forget(mainKey, true); !out.Found || !out.Forgotten {
		t.Errorf("%+v", out)
	}
	if out := forget(mainKey, true); out.Found || out.Forgotten {
		t.Errorf("again: %+v", out)
	}
	if got, _ := lookUp(t, m, mainKey, "safe opens", nil); len(got) > 0 && strings.Contains(got[0], "4417") {
		t.Error("it is still found")
	}
}
