package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hark/embed"
	"hark/embed/embedtest"
)

func TestOpenAIConforms(t *testing.T) {
	openOne := func(t *testing.T) embed.Embedder {
		t.Helper()
		return open(t, newServer(t).openAIConfig())
	}
	embedtest.Run(t, openOne)
	embedtest.RunPoison(t, openOne, "a cup of cyanide")
}

func TestOllamaConforms(t *testing.T) {
	openOne := func(t *testing.T) embed.Embedder {
		t.Helper()
		return open(t, newServer(t).ollamaConfig())
	}
	embedtest.Run(t, openOne)
	embedtest.RunPoison(t, openOne, "a cup of cyanide")
}

// Any chromem-go embedding function serves, with the same checks.
func TestChromemFunctionConforms(t *testing.T) {
	embedtest.Run(t, func(t *testing.T) embed.Embedder {
		t.Helper()
		return embed.NewFunc("mine", func(ctx context.Context, text string) ([]float32, error) {
			vectors, err := embedtest.Hashed(16).Embed(ctx, embed.Passage, []string{text})
			if err == nil && vectors[0] == nil {
				vectors[0] = []float32{15: 2}
			}
			return vectors[0], err
		}, embed.Config{Model: "hash"}, silent())
	})
	e := embed.NewFunc("mine", func(context.Context, string) ([]float32, error) {
		return []float32{float32(math.NaN()), 1}, nil
	}, embed.Config{Model: "nan"}, silent())
	if v, err := e.Embed(t.Context(), embed.Query, []string{"one"}); !errors.Is(err, embed.ErrRejected) || v[0] != nil {
		t.Errorf("NaN: %v, error %v", v, err)
	}
}

// Without a key the given server is asked and nothing else, even with a key for another one in the environment. (EMB-11, EMB-13)
func TestOpenAIRequest(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-somebody-else")
	s := newServer(t)
	cfg := s.openAIConfig()
	cfg.Dim, cfg.QueryPrefix, cfg.PassagePrefix, cfg.Batch = 24, "ask: ", "doc: ", 2
	e := open(t, cfg)
	if _, err := e.Embed(t.Context(), embed.Passage, []string{"one", " ", "two", "three"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), embed.Query, []string{"four"}); err != nil {
		t.Fatal(err)
	}
	base := openAIRequest{Model: "some-model", EncodingFormat: "float", Dimensions: 24, path: "/v1/embeddings"}
	want := []openAIRequest{base, base, base}
	want[0].Input, want[1].Input, want[2].Input = []string{"ask: four"}, []string{"doc: one", "doc: two"}, []string{"doc: three"}
	got := s.seen()
	slices.SortFunc(got, func(a, b openAIRequest) int { return strings.Compare(a.Input[0], b.Input[0]) })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(openAIRequest{})); diff != "" {
		t.Errorf("requests: %s", diff)
	}
	if got, want := e.Model().String(), "openai/some-model@24~"+s.URL+`/v1#"doc: "/"ask: "`; got != want {
		t.Errorf("model %s, want %s", got, want)
	}
}

func TestOpenAISendsTheKey(t *testing.T) {
	s := newServer(t)
	cfg := s.openAIConfig()
	cfg.APIKey = "sk-mine"
	if _, err := open(t, cfg).Embed(t.Context(), embed.Query, []string{"one"}); err != nil {
		t.Fatal(err)
	}
	if got := s.seen()[0].auth; got != "Bearer sk-mine" {
		t.Errorf("authorization %q", got)
	}
}

// Whatever a server answers, no bad vector gets out, and the error says what to do. (EMB-06, EMB-11, OBS-02)
func TestOpenAIBadAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   error
		says   string
	}{
		{"null vector", 200, `{"data":[{"index":0,"embedding":null}]}`, embed.ErrRejected, "no vector"},
		{"no vector", 200, `{"data":[{"index":0}]}`, embed.ErrRejected, "no vector"},
		{"empty vector", 200, `{"data":[{"index":0,"embedding":[]}]}`, embed.ErrRejected, "no vector"},
		{"null number", 200, `{"data":[{"index":0,"embedding":[0.5, null]}]}`, embed.ErrRejected, "null"},
		{"NaN", 200, `{"data":[{"index":0,"embedding":[0.5, NaN]}]}`, embed.ErrRejected, "not JSON"},
		{"infinite", 200, `{"data":[{"index":0,"embedding":[0.5, 1e300]}]}`, embed.ErrRejected, "out of range"},
		{"zero vector", 200, `{"data":[{"index":0,"embedding":[0, 0, 0]}]}`, embed.ErrRejected, "zero"},
		{"no data", 200, `{"data":[]}`, embed.ErrRejected, "0 vectors for 1 texts"},
		{"data null", 200, `{"data":null}`, embed.ErrRejected, "0 vectors"},
		{"too much data", 200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`, embed.ErrRejected, "2 vectors"},
		{"wrong index", 200, `{"data":[{"index":3,"embedding":[1]}]}`, embed.ErrRejected, "index 3"},
		{"wrong dimension", 200, `{"data":[{"index":0,"embedding":[1, 1]}]}`, embed.ErrUnavailable, "2 dimensions, not 24"},
		{"base64", 200, `{"data":[{"index":0,"embedding":"AACAPwAAgD8="}]}`, embed.ErrUnavailable, "base64"},
		{"error with 200", 200, `{"error":{"message":"no such model","code":"model_not_found"}}`, embed.ErrUnavailable, "no such model"},
		{"error text with 200", 200, `{"error":"quota: insufficient_quota"}`, embed.ErrUnavailable, "quota"},
		{"web page", 200, `<html>Log in</html>`, embed.ErrUnavailable, "base URL"},
		{"nothing", 200, ``, embed.ErrUnavailable, "base URL"},
		{"cut off", 200, `{"data":[{"index":0,"embed`, embed.ErrUnavailable, ""},
		{"wrong key", 401, `{"error":{"message":"Incorrect API key"}}`, embed.ErrUnavailable, "API key"},
		{"no quota", 429, `{"error":{"message":"You exceeded","code":"insufficient_quota"}}`, embed.ErrUnavailable, "quota is used up"},
		{"busy", 429, `{"error":{"message":"slow down"}}`, embed.ErrUnavailable, "slow down"},
		{"down", 503, `upstream`, embed.ErrUnavailable, "503"},
		{"moved", 307, ``, embed.ErrUnavailable, "redirects"},
		{"unknown path", 404, `404 page not found`, embed.ErrUnavailable, "does not know"},
		{"refused", 422, `{"detail":"bad text"}`, embed.ErrRejected, "bad text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://elsewhere.invalid/")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}
			cfg := s.openAIConfig()
			cfg.Dim = 24
			vectors, err := open(t, cfg).Embed(t.Context(), embed.Query, []string{"one"})
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %v saying %q", err, tc.want, tc.says)
			}
			if len(vectors) > 0 && vectors[0] != nil {
				t.Errorf("vector %v", vectors[0])
			}
		})
	}
}

// A text in a batch whose vector is unusable fails alone. (EMB-06)
func TestOpenAIIsolatesBadVectors(t *testing.T) {
	for _, bad := range []string{"null", "[0,0,0]", "[NaN,1,1]", "[null,1,1]", "[1e99,1,1]"} {
		s := newServer(t)
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			requests := s.seen()
			var data []string
			for i, text := range requests[len(requests)-1].Input {
				v := "[1,2,3]"
				if strings.Contains(text, "bad") {
					v = bad
				}
				data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, v))
			}
			_, _ = fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
		}
		cfg := s.openAIConfig()
		cfg.Concurrency = 1
		vectors, err := open(t, cfg).Embed(t.Context(), embed.Passage, []string{"one", "two", "bad", "four", "five"})
		partial, ok := errors.AsType[*embed.PartialError](err)
		if !ok || len(partial.Failed) != 1 || partial.Failed[0].Index != 2 {
			t.Fatalf("%s: error %v", bad, err)
		}
		for i, v := range vectors {
			if (v == nil) != (i == 2) {
				t.Errorf("%s: text %d has vector %v", bad, i, v)
			}
		}
	}
}

// Texts over the model's limit are embedded in parts, in whatever script they are, with the others of their batch. (EMB-03)
func TestLongTextsAreEmbeddedInParts(t *testing.T) {
	colons := strings.Repeat("：", 600)
	large := strings.Repeat("the river runs by the market and the garden ", 100<<10/44)
	whole, err := embedtest.Hashed(24).Embed(t.Context(), embed.Passage, []string{large})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]func(*server) embed.Config{"openai": (*server).openAIConfig, "ollama": (*server).ollamaConfig} {
		for _, known := range []int{0, 512} {
			t.Run(fmt.Sprintf("%s/known=%d", name, known), func(t *testing.T) {
				s := newServer(t)
				s.limit = 512
				cfg := config(s)
				cfg.MaxTokens = known
				vectors, err := open(t, cfg).Embed(t.Context(), embed.Passage, []string{"a river", colons, large, "bread"})
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range vectors {
					if v == nil {
						t.Errorf("text %d has no vector", i)
					}
				}
				if c := dot(vectors[2], whole[0]); c < 0.98 {
					t.Errorf("the long text in parts and whole: cosine %g", c)
				}
				if n := len(s.seen()); n > 1200 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

// A provider that hangs costs a query its own deadline and the request is cancelled; others are not held up by it.
func TestSlowServerCostsTheDeadlineOnly(t *testing.T) {
	for name, config := range map[string]func(*server) embed.Config{"openai": (*server).openAIConfig, "ollama": (*server).ollamaConfig} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			cancelled := make(chan struct{}, 10)
			s.answer = func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				cancelled <- struct{}{}
			}
			e := open(t, config(s))
			failed := make(chan error, 5)
			for i := range 5 {
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
					defer cancel()
					_, err := e.Embed(ctx, embed.Query, []string{fmt.Sprint("question ", i)})
					failed <- err
				}()
			}
			for range 5 {
				if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
			}
			<-cancelled
		})
	}
}

func TestConfigErrorsSayWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		cfg  embed.Config
		says string
	}{
		{embed.Config{Provider: "sbert"}, "builtin, openai, ollama, none"},
		{embed.Config{Provider: "openai"}, "API key"},
		{embed.Config{Provider: "openai", BaseURL: "localhost:8080"}, "http(s)://"},
		{embed.Config{Provider: "openai", BaseURL: "http://localhost:8080/v1"}, "model"},
		{embed.Config{Provider: "ollama", Batch: -1}, "batch is negative"},
	} {
		if _, err := embed.New(tc.cfg, silent()); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: error %v, want one saying %q", tc.cfg, err, tc.says)
		}
	}
	if e, err := embed.New(embed.Config{Provider: "none"}, silent()); e != nil || err != nil {
		t.Errorf("none: %v, %v", e, err)
	}
	if e := open(t, embed.Config{}); e.Model().Provider != "builtin" {
		t.Errorf("default is %v", e.Model())
	}
}

// Models are asked with the prefixes of their model card, and Model tells apart vectors made with others.
func TestKnownPrefixes(t *testing.T) {
	s := newServer(t)
	cfg := s.ollamaConfig()
	cfg.Model = "nomic-embed-text:v1.5"
	e := open(t, cfg)
	for _, kind := range []embed.Kind{embed.Passage, embed.Query} {
		if _, err := e.Embed(t.Context(), kind, []string{"river"}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, q := range s.seen() {
		got = append(got, q.Input...)
	}
	if diff := cmp.Diff([]string{"search_document: river", "search_query: river"}, got); diff != "" {
		t.Errorf("sent: %s", diff)
	}
	cfg.NoPrefix = true
	if plain := open(t, cfg).Model(); plain.Instruction != "" || plain.String() == e.Model().String() {
		t.Errorf("models %v and %v", plain, e.Model())
	}
}

// Equal questions cost one request, at the same time or later; different ones and passages are not mixed up.
func TestQueriesAreCached(t *testing.T) {
	s := newServer(t)
	e := open(t, s.openAIConfig())
	var first [][]float32
	for i := range 3 {
		v, err := e.Embed(t.Context(), embed.Query, []string{"where is the river"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = v
		}
		if diff := cmp.Diff(first, v, cmpopts.EquateApprox(0, 0)); diff != "" {
			t.Errorf("answer %d: %s", i, diff)
		}
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("%d requests for one question", n)
	}
	if _, err := e.Embed(t.Context(), embed.Query, []string{"another"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d requests for two questions", n)
	}
}

func FuzzOpenAIAnswer(f *testing.F) {
	f.Add(`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}]}`)
	f.Add(`{"data":[{"index":1,"embedding":[1,null]},{"index":1}],"error":null}`)
	f.Add(`{"error":{"message":["a"],"code":3}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) && len(body) > 200 {
			return
		}
		s := newServer(t)
		s.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
		vectors, err := open(t, s.openAIConfig()).Embed(t.Context(), embed.Query, []string{"one", "two"})
		if err == nil && (len(vectors) != 2 || vectors[0] == nil || vectors[1] == nil) {
			t.Fatalf("%q gives %v without an error", body, vectors)
		}
		for _, v := range vectors {
			if v != nil && !(dot(v, v) > 0.999 && dot(v, v) < 1.001) {
				t.Fatalf("%q gives %v", body, v)
			}
		}
	})
}
