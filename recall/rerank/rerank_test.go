package rerank

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// serve answers with a body at a path, and keeps what was asked.
func serve(t *testing.T, path string, status int, body string) (url string, asked *map[string]any) {
	t.Helper()
	asked = &map[string]any{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path || r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestServer(t *testing.T) {
	url, asked := serve(t, "/v1/rerank", 200, `{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":-2}]}`)
	for _, base := range []string{url + "/v1", url + "/v1/rerank/"} {
		c, err := New(Config{Provider: "server", Model: "m", BaseURL: base, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Rerank(t.Context(), "q", []string{"a", strings.Repeat("é", 2000)})
		if err != nil || !slices.Equal(got, []float64{-2, 0.9}) {
			t.Errorf("%v %v", got, err)
		}
	}
	docs := (*asked)["documents"].([]any)
	if (*asked)["query"] != "q" || (*asked)["model"] != "m" || len(docs[1].(string)) != maxText {
		t.Errorf("asked %v", *asked)
	}
}

func TestOllama(t *testing.T) {
	url, _ := serve(t, "/api/embed", 200, `{"embeddings":[[1,0],[0,2],[3,0]]}`)
	c, err := New(Config{Provider: "ollama", Model: "m", BaseURL: url, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Rerank(t.Context(), "q", []string{"a", "b"}); err != nil || !slices.Equal(got, []float64{0, 1}) {
		t.Errorf("%v %v", got, err)
	}
}

// What a server gets wrong is an error, and never a score; nothing that was sent is in it.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		provider, body string
		status         int
	}{
		{"server", `{"error":"secret text"}`, 500}, {"server", `{"results":[{"index":0,"relevance_score":1}]}`, 200},
		{"server", `{"results":[{"index":0,"relevance_score":1},{"index":7,"relevance_score":1}]}`, 200},
		{"server", `{"results":[{"index":0},{"index":1}]}`, 200}, {"server", `not json`, 200},
		{"ollama", `{"embeddings":[[1,0],[1,0]]}`, 200}, {"ollama", `{"embeddings":[[1,0],[1],[0,0]]}`, 200},
	} {
		path := map[string]string{"server": "/rerank", "ollama": "/api/embed"}[c.provider]
		url, _ := serve(t, path, c.status, c.body)
		r, err := New(Config{Provider: c.provider, Model: "m", BaseURL: url, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Rerank(t.Context(), "secret question", []string{"secret text", "b"}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v %v", c.body, got, err)
		}
	}
}

func TestConfig(t *testing.T) {
	if c, err := New(Config{}); c != nil || err != nil {
		t.Errorf("%v %v", c, err)
	}
	for _, c := range []Config{
		{Provider: "server", Model: "m"}, {Provider: "server", BaseURL: "http://x"}, {Provider: "cohere", Model: "m"}, {Provider: "server", Model: "m", BaseURL: "x"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
