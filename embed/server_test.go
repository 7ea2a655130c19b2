package embed_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"hark/embed"
	"hark/embed/embedtest"
)

// openAIRequest is what the server received, decoded.
type openAIRequest struct {
	Input          []string `json:"input"`
	Model          string   `json:"model"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     int      `json:"dimensions"`

	path, auth string
}

// server speaks the OpenAI protocol at /v1/embeddings and Ollama's at /api/embeddings, with hashed vectors. It fails
// the test when it is sent what must not be sent.
type server struct {
	*httptest.Server
	dim    int
	poison string           // inputs containing it are refused
	limit  int              // in letters; longer inputs are over the "context length"; 0 = none
	answer http.HandlerFunc // instead of all that, if set

	mu       sync.Mutex
	requests []openAIRequest
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{dim: 24, poison: "cyanide"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) { s.openAI(t, w, r) })
	mux.HandleFunc("POST /api/embeddings", func(w http.ResponseWriter, r *http.Request) { s.ollama(t, w, r) })
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("request to %s %s", r.Method, r.URL) })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) record(t *testing.T, r *http.Request, q openAIRequest) {
	t.Helper()
	q.path, q.auth = r.URL.Path, r.Header.Get("Authorization")
	for _, text := range q.Input {
		if strings.TrimSpace(text) == "" || strings.Contains(text, "\x00") {
			t.Errorf("%q was sent", text)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
}

func (s *server) seen() []openAIRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]openAIRequest(nil), s.requests...)
}

func (s *server) openAI(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	var q openAIRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		t.Errorf("request: %v", err)
	}
	s.record(t, r, q)
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	for _, text := range q.Input {
		if strings.Contains(text, s.poison) {
			fail(w, http.StatusBadRequest, "invalid_request_error", "'$.input' is invalid")
			return
		}
		if s.limit > 0 && len([]rune(text)) > s.limit {
			fail(w, http.StatusBadRequest, "invalid_request_error", "This model's maximum context length is exceeded")
			return
		}
	}
	type embedding struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	data := make([]embedding, 0, len(q.Input))
	for i, v := range s.vectors(t, q.Input) {
		data = append([]embedding{{i, v}}, data...) // the last first: order is in the index
	}
	reply(w, map[string]any{"object": "list", "data": data, "model": q.Model, "usage": nil})
}

func (s *server) ollama(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	var q struct{ Model, Prompt string }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		t.Errorf("request: %v", err)
	}
	s.record(t, r, openAIRequest{Model: q.Model, Input: []string{q.Prompt}})
	switch {
	case s.answer != nil:
		s.answer(w, r)
	case strings.Contains(q.Prompt, s.poison):
		w.WriteHeader(http.StatusBadRequest)
	case s.limit > 0 && len([]rune(q.Prompt)) > s.limit:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		reply(w, map[string]any{"embedding": s.vectors(t, []string{q.Prompt})[0]})
	}
}

// vectors are three times as long as they should be; a text of no words still gets one, as from a real model.
func (s *server) vectors(t *testing.T, texts []string) [][]float32 {
	t.Helper()
	out, err := embedtest.Hashed(s.dim).Embed(t.Context(), embed.Passage, texts)
	if err != nil {
		t.Errorf("server: %v", err)
	}
	for i := range out {
		if out[i] == nil {
			out[i] = make([]float32, s.dim)
			out[i][0] = 1
		}
		for j := range out[i] {
			out[i][j] *= 3
		}
	}
	return out
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	reply(w, map[string]any{"error": map[string]any{"message": message, "type": code, "code": code}})
}

func reply(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, cfg embed.Config) embed.Embedder {
	t.Helper()
	e, err := embed.New(cfg, silent())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *server) openAIConfig() embed.Config {
	return embed.Config{Provider: "openai", Model: "some-model", BaseURL: s.URL + "/v1"}
}

func (s *server) ollamaConfig() embed.Config {
	return embed.Config{Provider: "ollama", Model: "some-model", BaseURL: s.URL}
}
