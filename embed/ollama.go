package embed

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/philippgille/chromem-go"
)

// single is a provider that takes one text at a time, spoken to through a chromem-go embedding function. chromem-go
// reports nothing of a failure but its status line.
type single struct {
	embed chromem.EmbeddingFunc
	name  string
}

func newOllama(cfg Config, log *slog.Logger) *Remote {
	cfg.Model = cmp.Or(cfg.Model, "nomic-embed-text")
	base := trimURL(cmp.Or(cfg.BaseURL, "http://localhost:11434"), "/embeddings", "/embed")
	if u, err := url.Parse(base); err == nil && (u.Path == "" || u.Path == "/") {
		base += "/api"
	}
	return NewFunc("ollama", chromem.NewEmbeddingFuncOllama(cfg.Model, base), cfg, log)
}

// NewFunc makes an embedder of any chromem-go embedding function (chromem has them for Cohere, Vertex and others), with
// the checks, limits and manners of Remote. provider and cfg.Model identify the vectors; cfg's Provider, BaseURL,
// APIKey and Batch are not used.
func NewFunc(provider string, fn chromem.EmbeddingFunc, cfg Config, log *slog.Logger) *Remote {
	return newRemote(provider, &single{fn, provider}, cfg.withDefaults(), log)
}

func (s *single) maxBatch() int { return 1 }

func (s *single) send(ctx context.Context, texts []string) ([][]float32, error) {
	v, err := s.embed(ctx, texts[0])
	if err != nil {
		return nil, s.sort(err, texts[0])
	}
	return [][]float32{v}, nil
}

var chromemStatus = regexp.MustCompile(`error response from the embedding API: (\d{3})`)

// mayBeTooLong is the number of tokens from which a bare "400" or "500" is first taken for a text over the limit:
// Ollama says 500 to these, and to a crashed runner alike. Below it, halving stops.
const mayBeTooLong = 100

func (s *single) sort(err error, text string) error {
	m := chromemStatus.FindStringSubmatch(err.Error())
	if m == nil {
		if strings.Contains(err.Error(), "no embeddings found") {
			return &fault{kind: refused, reason: "no vector for the text"}
		}
		return decodeFault(err)
	}
	status, _ := strconv.Atoi(m[1]) // three digits
	if (status == http.StatusBadRequest || status == http.StatusInternalServerError) && tokensOf(text) >= mayBeTooLong {
		return &fault{kind: tooLong, reason: "HTTP " + m[1], err: err}
	}
	f := statusFault(status, nil, nil)
	if status == http.StatusNotFound && s.name == "ollama" {
		f.reason = "Ollama does not have the model: run \"ollama pull\" with its name"
	}
	f.err = err
	return f
}
