package embed_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hark/embed"
)

// One bad text in a batch of 32: the other 31 have their vectors, and few requests find it. (EMB-06)
func TestOneBadTextOf32(t *testing.T) {
	s := newServer(t)
	cfg := s.openAIConfig()
	cfg.Batch, cfg.Concurrency = 32, 1
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = fmt.Sprintf("parcel number %d", i)
	}
	texts[19] = "cyanide"
	vectors, err := open(t, cfg).Embed(t.Context(), embed.Passage, texts)
	partial, ok := errors.AsType[*embed.PartialError](err)
	if !ok || len(partial.Failed) != 1 || partial.Failed[0].Index != 19 || !errors.Is(partial.Failed[0].Err, embed.ErrRejected) {
		t.Fatalf("error %v", err)
	}
	for i, v := range vectors {
		if (v == nil) != (i == 19) {
			t.Errorf("text %d has vector %v", i, v)
		}
	}
	if n := len(s.seen()); n > 11 {
		t.Errorf("%d requests", n)
	}
}

// A server that begins to answer with another dimension is another model: nothing of it gets in. (EMB-06)
func TestDimensionThatChanges(t *testing.T) {
	s := newServer(t)
	e := open(t, s.openAIConfig())
	if _, err := e.Embed(t.Context(), embed.Passage, []string{"one"}); err != nil {
		t.Fatal(err)
	}
	s.dim = 12
	if v, err := e.Embed(t.Context(), embed.Passage, []string{"two"}); !errors.Is(err, embed.ErrUnavailable) || len(v) != 0 {
		t.Errorf("%v, %v", v, err)
	}
}

// What makes another vector space, and what does not.
func TestIdentityOfAServer(t *testing.T) {
	model := func(provider, base, passage string) string {
		return open(t, embed.Config{Provider: provider, Model: "m", BaseURL: base, APIKey: "k", PassagePrefix: passage, QueryPrefix: passage}).Model().String()
	}
	base := model("openai", "", "")
	for _, same := range []string{"https://api.openai.com/v1", "https://API.openai.com/v1/", "https://api.openai.com/v1/embeddings"} {
		if got := model("openai", same, ""); got != base {
			t.Errorf("%s is %s, not %s", same, got, base)
		}
	}
	seen := map[string]bool{base: true}
	for _, other := range []string{
		model("openai", "http://localhost:8080/v1", ""), model("openai", "http://localhost:8081/v1", ""), model("openai", "", "doc: "),
		model("ollama", "", ""), model("ollama", "http://gpu:11434", ""),
	} {
		if seen[other] {
			t.Errorf("%s twice", other)
		}
		seen[other] = true
	}
	if got := model("openai", "http://user:secret@gpu:1/v1?key=secret", ""); strings.Contains(got, "secret") {
		t.Errorf("the identity tells a secret: %s", got)
	}
}

// OBS-02: a proxy that forbids is named as the cause, not the key.
func TestProxyThatForbids(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<html>blocked by policy</html>")
	}
	e := open(t, s.openAIConfig())
	_, err := e.Embed(t.Context(), embed.Query, []string{"one"})
	if !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "proxy") || strings.Contains(err.Error(), "API key") {
		t.Errorf("error %v", err)
	}
	down, ok := e.(embed.Reporter)
	if !ok || down.Unavailable() == nil || !strings.Contains(down.Unavailable().Reason, "403") {
		t.Errorf("the embedder does not tell how it is: %v", ok)
	}
}
