// Package rerank asks a server how well texts answer a question: the optional second stage of a
// search. A server with a rerank endpoint (vLLM, llama.cpp, Jina, Cohere and others speak the same) is
// asked for its scores; of Ollama, which has none, the cosines of a larger embedding model are taken.
//
// It neither caches nor repeats: a search waits for it for a moment only and goes on without.
package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Config chooses a server.
type Config struct {
	Provider string // none (also when empty), server, ollama
	Model    string // required but for none
	BaseURL  string // server: required, with or without /rerank; ollama: http://localhost:11434
	APIKey   string // may be empty
}

const (
	maxText     = 2000    // bytes of a text that are judged
	maxResponse = 8 << 20 // bytes
)

// Client is a reranker over HTTP. It is safe for concurrent use.
type Client struct {
	url, model, key string
	vectors         bool // scores are cosines
	http            *http.Client
}

// New returns the reranker cfg asks for, (nil, nil) for none. It opens no connection.
func New(cfg Config) (*Client, error) {
	c := &Client{model: cfg.Model, key: cfg.APIKey, http: &http.Client{}}
	base := strings.TrimRight(cfg.BaseURL, "/")
	switch cfg.Provider {
	case "none", "":
		return nil, nil
	case "server":
		if base == "" {
			return nil, errors.New("rerank.provider is server and rerank.base_url is empty: give the address of the server, like http://localhost:8000/v1")
		}
		c.url = strings.TrimSuffix(base, "/rerank") + "/rerank"
	case "ollama":
		if base == "" {
			base = "http://localhost:11434"
		}
		c.url, c.vectors = strings.TrimSuffix(base, "/api")+"/api/embed", true
	default:
		return nil, fmt.Errorf("unknown rerank provider %q: use none, server or ollama", cfg.Provider)
	}
	if cfg.Model == "" {
		return nil, errors.New("rerank.model is empty: name the model that the server has")
	}
	if u, err := url.Parse(c.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("rerank.base_url %q is not of the form http(s)://host[:port][/path]", cfg.BaseURL)
	}
	return c, nil
}

// Rerank returns a score for each text, higher for a better answer; their scale is the model's. It
// fails where the server does, or gives no score for some text.
func (c *Client) Rerank(ctx context.Context, question string, texts []string) ([]float64, error) {
	short := make([]string, len(texts))
	for i, t := range texts {
		short[i] = clip(t)
	}
	if c.vectors {
		return c.cosines(ctx, append([]string{question}, short...))
	}
	var out struct {
		Results []struct {
			Index int      `json:"index"`
			Score *float64 `json:"relevance_score"`
			Plain *float64 `json:"score"`
		} `json:"results"`
	}
	err := c.post(ctx, map[string]any{"model": c.model, "query": question, "documents": short, "top_n": len(short), "return_documents": false}, &out)
	if err != nil {
		return nil, err
	}
	scores, have := make([]float64, len(texts)), make([]bool, len(texts))
	for _, r := range out.Results {
		if r.Score == nil {
			r.Score = r.Plain
		}
		if r.Index < 0 || r.Index >= len(texts) || r.Score == nil || math.IsNaN(*r.Score) || have[r.Index] {
			return nil, errors.New("rerank: the server's answer has no usable score for every text")
		}
		scores[r.Index], have[r.Index] = *r.Score, true
	}
	if len(out.Results) != len(texts) {
		return nil, fmt.Errorf("rerank: %d scores for %d texts", len(out.Results), len(texts))
	}
	return scores, nil
}

func (c *Client) cosines(ctx context.Context, texts []string) ([]float64, error) {
	var out struct {
		Embeddings [][]float64 `json:"embeddings"`
	}
	if err := c.post(ctx, map[string]any{"model": c.model, "input": texts, "truncate": true}, &out); err != nil {
		return nil, err
	}
	if len(out.Embeddings) != len(texts) {
		return nil, fmt.Errorf("rerank: %d vectors for %d texts", len(out.Embeddings), len(texts))
	}
	q := out.Embeddings[0]
	scores := make([]float64, 0, len(texts)-1)
	for _, v := range out.Embeddings[1:] {
		cos := cosine(q, v)
		if math.IsNaN(cos) {
			return nil, errors.New("rerank: the server's vectors cannot be compared")
		}
		scores = append(scores, cos)
	}
	return scores, nil
}

// cosine is NaN where there is none.
func cosine(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	dot, na, nb := 0.0, 0.0, 0.0
	for i := range a {
		dot, na, nb = dot+a[i]*b[i], na+a[i]*a[i], nb+b[i]*b[i]
	}
	return dot / math.Sqrt(na*nb)
}

func (c *Client) post(ctx context.Context, body map[string]any, out any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("rerank: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("rerank: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("rerank: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // its body may quote what was sent
		return fmt.Errorf("rerank: the server says %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(out); err != nil {
		return fmt.Errorf("rerank: unreadable answer: %w", err)
	}
	return nil
}

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
