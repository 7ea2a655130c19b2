package embed

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// Config chooses an embedder. The zero value of every field but Provider means its default.
type Config struct {
	Provider string // builtin (also when empty), openai, ollama, none
	Model    string // openai: text-embedding-3-small, but required with a BaseURL; ollama: nomic-embed-text
	BaseURL  string // openai: https://api.openai.com/v1; ollama: http://localhost:11434
	APIKey   string // openai: may be empty with a BaseURL
	Dim      int    // insist on this dimension (openai: ask for it); 0 takes what the model gives

	// Put before texts. Empty means what the model is known to have been trained with, unless NoPrefix.
	QueryPrefix, PassagePrefix string
	NoPrefix                   bool

	Batch       int           // texts in a request, 64
	Concurrency int           // requests at a time, 2; queries have as many of their own
	Timeout     time.Duration // of one request, 30 s
	MaxTokens   int           // longer texts are embedded in parts; default: what is known of the model, else 8000
	CacheBytes  int           // query vectors kept, 4 MiB; negative keeps none

	Rand func() float64 // in [0, 1), for the jitter of waits; default math/rand
}

// providers in the order errors list them.
const providers = "builtin, openai, ollama, none"

// New returns the embedder cfg asks for; (nil, nil) for "none". It opens no connection: a server that is down shows at
// the first Embed. log hears when a provider becomes unavailable and recovers, never a text or a key; nil discards.
func New(cfg Config, log *slog.Logger) (Embedder, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	switch cfg.Provider {
	case "none":
		return nil, nil
	case "builtin", "":
		return NewBuiltin()
	case "openai":
		return newOpenAI(cfg, log)
	case "ollama":
		return newOllama(cfg, log), nil
	}
	return nil, fmt.Errorf("unknown embedding provider %q: use one of %s", cfg.Provider, providers)
}

// check finds what no default can mend.
func (c Config) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"dimension", c.Dim}, {"batch", c.Batch}, {"concurrency", c.Concurrency}, {"timeout", int(c.Timeout)}, {"token limit", c.MaxTokens}} {
		if f.value < 0 {
			return fmt.Errorf("embedding %s is negative (%d): use 0 for the default", f.name, f.value)
		}
	}
	if c.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("embedding base URL %q is not of the form http(s)://host[:port][/path]", c.BaseURL)
	}
	return nil
}

// withDefaults fills what is unset and the same for all remote providers.
func (c Config) withDefaults() Config {
	known := knownModel(c.Model)
	if !c.NoPrefix {
		c.QueryPrefix = cmp.Or(c.QueryPrefix, known.query)
		c.PassagePrefix = cmp.Or(c.PassagePrefix, known.passage)
	}
	c.Batch = cmp.Or(c.Batch, 64)
	c.Concurrency = cmp.Or(c.Concurrency, 2)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxTokens = cmp.Or(c.MaxTokens, known.tokens, 8000)
	c.CacheBytes = cmp.Or(c.CacheBytes, 4<<20)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// instruction identifies the prefixes in Model.
func (c Config) instruction() string {
	if c.QueryPrefix == "" && c.PassagePrefix == "" {
		return ""
	}
	return fmt.Sprintf("%q/%q", c.PassagePrefix, c.QueryPrefix)
}

// serverOf identifies the server of a base URL, without what may be secret in it; "" is the usual one.
func serverOf(base string) string {
	u, err := url.Parse(trimURL(base, "/embeddings", "/embed"))
	if base == "" || err != nil {
		return ""
	}
	server := strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimSuffix(u.Path, "/")
	switch server {
	case "https://api.openai.com/v1", "http://localhost:11434", "http://localhost:11434/api", "http://127.0.0.1:11434", "http://127.0.0.1:11434/api":
		return ""
	}
	return server
}

var errNoModel = errors.New("no embedding model is named for the given base URL: set the model as the server calls it")

func trimURL(s string, suffixes ...string) string {
	s = strings.TrimRight(s, "/")
	for _, suffix := range suffixes {
		s = strings.TrimSuffix(s, suffix)
	}
	return s
}
