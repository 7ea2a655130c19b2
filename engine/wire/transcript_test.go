package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the responses of the transcripts as the server gives them")

// TestTranscripts plays the client of every transcript against a server with a scripted engine. The
// plugin's tests play the server of the same files.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tr := parseTranscript(data)
			play(t, tr)
			if *update {
				if err := os.WriteFile(path, tr.format(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// transcript is a txtar archive; durable-turn.txtar says what its sections hold.
type transcript struct {
	comment  string
	sections []section
}

type section struct {
	name string
	data []byte
}

func parseTranscript(data []byte) *transcript {
	tr := &transcript{}
	at := -1
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		if name, ended := strings.CutSuffix(name, " --"); ok && ended {
			tr.sections = append(tr.sections, section{name: name})
			at++
			continue
		}
		if at < 0 {
			tr.comment += line
			continue
		}
		tr.sections[at].data = append(tr.sections[at].data, line...)
	}
	return tr
}

func (tr *transcript) format() []byte {
	out := []byte(tr.comment)
	for _, s := range tr.sections {
		out = fmt.Appendf(out, "-- %s --\n%s", s.name, s.data)
	}
	return out
}

// server is the script of the engine behind the transcript's server.
func (tr *transcript) server(t *testing.T) script {
	t.Helper()
	var s script
	if len(tr.sections) > 0 && tr.sections[0].name == "server" {
		if err := json.Unmarshal(tr.sections[0].data, &s); err != nil {
			t.Fatalf("section server: %v", err)
		}
	}
	return s
}

// play sends the requests of a transcript in order and compares what comes back.
func play(t *testing.T, tr *transcript) {
	t.Helper()
	e := newScripted(tr.server(t))
	var srv *Server
	stop := func() { srv.drain() }
	srv = NewServer(ServerOptions{Open: e.open, Version: "0.1.0", Classify: classify, Stop: stop})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		close(e.release)
		ts.Close()
		if err := srv.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	played := 0
	for i, s := range tr.sections {
		number, ok := strings.CutSuffix(s.name, " request")
		if !ok {
			continue
		}
		played++
		if i+1 >= len(tr.sections) || tr.sections[i+1].name != number+" response" {
			t.Fatalf("request %s has no response section after it", number)
		}
		got, want := send(t, ts, s.data), &tr.sections[i+1]
		if *update {
			want.data = got.merge(want.data)
			continue
		}
		got.check(t, number, want.data)
	}
	if played == 0 {
		t.Error("no request in this transcript")
	}
}

// answer is a response as transcripts have it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func send(t *testing.T, ts *httptest.Server, data []byte) answer {
	t.Helper()
	line, header, body := split(t, data)
	method, target, ok := strings.Cut(line, " ")
	if !ok {
		t.Fatalf("%q is no request line", line)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, ts.URL+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name := range header {
		req.Header.Set(name, wildcard.ReplaceAllString(header.Get(name), "$1"))
	}
	res, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, raw}
}

// split takes a section apart: first line, headers, and after an empty line the body without its
// last line break.
func split(t *testing.T, data []byte) (first string, header http.Header, body []byte) {
	t.Helper()
	head, body, _ := bytes.Cut(data, []byte("\n\n"))
	lines := strings.Split(strings.TrimRight(string(head), "\n"), "\n")
	header = http.Header{}
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, ": ")
		if !ok {
			t.Fatalf("%q is no header", l)
		}
		header.Set(name, value)
	}
	return lines[0], header, bytes.TrimSuffix(body, []byte("\n"))
}

func (a answer) check(t *testing.T, number string, data []byte) {
	t.Helper()
	first, header, body := split(t, data)
	if want, err := strconv.Atoi(first); err != nil || want != a.status {
		t.Errorf("response %s: status %d, want %s: %s", number, a.status, first, a.body)
	}
	for name := range header {
		if !matches(a.header.Get(name), header.Get(name)) {
			t.Errorf("response %s: %s is %q, want %q", number, name, a.header.Get(name), header.Get(name))
		}
	}
	var got, want any
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatalf("response %s is not JSON: %s", number, a.body)
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("section %s response: %v", number, err)
	}
	if diff := cmp.Diff(want, got, cmp.FilterValues(anyValue, cmp.Ignore())); diff != "" {
		t.Errorf("response %s (-want +got):\n%s", number, diff)
	}
}

var wildcard = regexp.MustCompile(`^<any ?(.*)>$`)

// anyValue ignores a pair of values of which one is a wildcard.
func anyValue(a, b any) bool {
	for _, v := range []any{a, b} {
		if s, ok := v.(string); ok && wildcard.MatchString(s) {
			return true
		}
	}
	return false
}

func matches(got, want string) bool { return got == want || wildcard.MatchString(want) }

// merge is the section for what came back, with the wildcards and headers of the old section.
func (a answer) merge(old []byte) []byte {
	_, oldHead, _ := strings.Cut(string(old), "\n")
	head, oldBody, _ := strings.Cut(oldHead, "\n\n")
	var value, before any
	if json.Unmarshal(a.body, &value) != nil {
		return old
	}
	_ = json.Unmarshal([]byte(oldBody), &before)
	body := &bytes.Buffer{}
	enc := json.NewEncoder(body)
	enc.SetEscapeHTML(false)
	if wild(before) {
		_ = enc.Encode(keepWild(value, before))
	} else {
		body.Write(a.body)
	}
	if head = strings.TrimSpace(head); strings.HasPrefix(head, "{") || head == "" {
		return fmt.Appendf(nil, "%d\n\n%s", a.status, body)
	}
	return fmt.Appendf(nil, "%d\n%s\n\n%s", a.status, head, body)
}

func wild(v any) bool {
	switch v := v.(type) {
	case string:
		return wildcard.MatchString(v)
	case map[string]any:
		for _, x := range v {
			if wild(x) {
				return true
			}
		}
	}
	return false
}

func keepWild(value, before any) any {
	if s, ok := before.(string); ok && wildcard.MatchString(s) {
		return s
	}
	v, ok1 := value.(map[string]any)
	b, ok2 := before.(map[string]any)
	if ok1 && ok2 {
		for k := range v {
			v[k] = keepWild(v[k], b[k])
		}
	}
	return value
}
