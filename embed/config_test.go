package embed

import "testing"

// A caller without a log gets an embedder that works, whatever its provider.
func TestNewWithoutLog(t *testing.T) {
	for _, cfg := range []Config{
		{Provider: "builtin"},
		{Provider: "openai", Model: "text-embedding-3-small", APIKey: "k", BaseURL: "http://127.0.0.1:1/v1"},
		{Provider: "ollama", Model: "nomic-embed-text", BaseURL: "http://127.0.0.1:1"},
	} {
		e, err := New(cfg, nil)
		if err != nil {
			t.Errorf("%s: %v", cfg.Provider, err)
			continue
		}
		if cfg.Provider == "builtin" {
			continue
		}
		if _, err := e.Embed(t.Context(), Query, []string{"hello"}); err == nil {
			t.Errorf("%s: a server that is not there answers", cfg.Provider)
		}
	}
}
