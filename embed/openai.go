package embed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// openAI speaks the OpenAI embeddings protocol to any server that has it.
type openAI struct {
	client *openai.Client
	model  string
	dim    int // 0 asks for none
	batch  int
}

func newOpenAI(cfg Config, log *slog.Logger) (*Remote, error) {
	if cfg.BaseURL == "" && cfg.APIKey == "" {
		return nil, errors.New("embedding provider openai needs an API key, or the base URL of a server that asks for none")
	}
	if cfg.BaseURL != "" && cfg.Model == "" {
		return nil, errNoModel
	}
	cfg.Model = cmp.Or(cfg.Model, string(openai.SmallEmbedding3))
	cfg = cfg.withDefaults()
	conf := openai.DefaultConfig(cfg.APIKey)
	if cfg.BaseURL != "" {
		conf.BaseURL = trimURL(cfg.BaseURL, "/embeddings")
	}
	conf.HTTPClient = newDoer()
	b := &openAI{client: openai.NewClientWithConfig(conf), model: cfg.Model, dim: cfg.Dim, batch: cfg.Batch}
	return newRemote("openai", b, cfg, log), nil
}

func (o *openAI) maxBatch() int { return min(o.batch, 2048) }

func (o *openAI) send(ctx context.Context, texts []string) ([][]float32, error) {
	answer, err := o.client.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{
		Input:          texts,
		Model:          openai.EmbeddingModel(o.model),
		EncodingFormat: openai.EmbeddingEncodingFormatFloat,
		Dimensions:     o.dim,
	})
	if err != nil {
		return nil, decodeFault(err)
	}
	return ordered(answer.Data, len(texts))
}

// decodeFault sorts what go-openai says of an answer whose status was fine.
func decodeFault(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if strings.HasPrefix(wrong.Value, "number") { // beyond float32
			return &fault{kind: refused, reason: "a number out of range", err: err}
		}
		reason := "the answer is not in the OpenAI format"
		if wrong.Value == "string" {
			reason = "the server answers base64 although float was asked for; it or a proxy before it does not honour encoding_format"
		}
		return &fault{kind: misconfigured, reason: reason, err: err}
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok { // NaN is no JSON: one text of the batch may be why
		return &fault{kind: refused, reason: "the answer is not JSON", err: err}
	}
	return asFault(err)
}

// ordered puts the vectors where their index says. Servers that leave the index out answer in order.
func ordered(data []openai.Embedding, n int) ([][]float32, error) {
	if len(data) != n {
		return nil, &fault{kind: refused, reason: fmt.Sprintf("%d vectors for %d texts", len(data), n)}
	}
	out := make([][]float32, n)
	if !slices.ContainsFunc(data, func(e openai.Embedding) bool { return e.Index != 0 }) {
		for i, e := range data {
			out[i] = e.Embedding
		}
		return out, nil
	}
	seen := make([]bool, n)
	for _, e := range data {
		if e.Index < 0 || e.Index >= n || seen[e.Index] {
			return nil, &fault{kind: refused, reason: fmt.Sprintf("index %d twice or out of range", e.Index)}
		}
		seen[e.Index] = true
		out[e.Index] = e.Embedding
	}
	return out, nil
}

// doer is the HTTP client given to go-openai. go-openai drops headers and bodies of failures and takes an error in a
// successful answer for no data; doer turns all of these into faults while they can still be seen.
type doer struct{ client *http.Client }

func newDoer() *doer {
	return &doer{&http.Client{
		Transport: sayingProxy(),
		// Following would send texts to an address the user never named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// sayingProxy is the usual transport, which names the proxy where that one refuses a connection.
func sayingProxy() http.RoundTripper {
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t := usual.Clone()
	t.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
		if res.StatusCode == http.StatusOK {
			return nil
		}
		return &fault{kind: misconfigured, reason: fmt.Sprintf("the proxy %s refuses the connection (HTTP %s): check HTTPS_PROXY and NO_PROXY", proxy.Host, res.Status)}
	}
	return t
}

// maxAnswer bounds an answer: 2048 vectors of 4096 numbers in JSON are about 100 MB.
const maxAnswer = 256 << 20

var nullElement = regexp.MustCompile(`[\[,]\s*null\s*[,\]]`)

// Do implements openai.HTTPDoer.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusFault(resp.StatusCode, resp.Header, body)
	}
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) == 0 || trimmed[0] != '{':
		return nil, &fault{kind: misconfigured, reason: "the answer is not JSON: the base URL does not lead to an embeddings API"}
	case bytes.Contains(body, []byte(`"error"`)) && parseAPIError(body).present:
		return nil, errorFault(parseAPIError(body), http.StatusBadRequest, resp.Header)
	case bytes.Contains(body, []byte("null")) && nullElement.Match(body):
		return nil, &fault{kind: refused, reason: "null where a number belongs"} // would decode as 0
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
