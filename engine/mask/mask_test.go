package mask

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// sample is one line of the labelled list.
type sample struct {
	kind, text, want string
}

func labelled(tb testing.TB) []sample {
	tb.Helper()
	data, err := os.ReadFile("testdata/labelled.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var out []sample
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		kind, text, ok := strings.Cut(line, "\t")
		if !ok {
			tb.Fatalf("no tab in %q", line)
		}
		text = strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(text)
		s := sample{kind: kind, text: strings.NewReplacer("⟦", "", "⟧", "").Replace(text), want: text}
		if kind != "-" {
			head, rest, _ := strings.Cut(text, "⟦")
			_, tail, _ := strings.Cut(rest, "⟧")
			s.want = head + Label(kind) + tail
		}
		out = append(out, s)
	}
	return out
}

// Every secret of the list is masked in place with its kind, and nothing else is touched.
func TestLabelledList(t *testing.T) {
	var positives, negatives, missed, false_ int
	for _, s := range labelled(t) {
		got, _ := Text(s.text)
		if s.kind == "-" {
			negatives++
		} else {
			positives++
		}
		if got == s.want {
			continue
		}
		if s.kind == "-" {
			false_++
		} else {
			missed++
		}
		t.Errorf("%s\n text %q\n got  %q\n want %q", s.kind, s.text, got, s.want)
	}
	if positives+negatives < 200 || positives < 80 || negatives < 80 {
		t.Errorf("the list is too short: %d and %d", positives, negatives)
	}
	if missed > 0 || false_ > 0 {
		t.Error("both rates are 0 on this list")
	}
	t.Logf("missed %d of %d secrets (%.1f %%), false alarms %d of %d look-alikes (%.1f %%)",
		missed, positives, 100*float64(missed)/float64(positives), false_, negatives, 100*float64(false_)/float64(negatives))
}

func TestMaskingAgainChangesNothing(t *testing.T) {
	for _, s := range labelled(t) {
		once, _ := Text(s.text)
		if again, n := Text(once); again != once || n != 0 {
			t.Errorf("%q became %q", once, again)
		}
	}
}

// A secret inside JSON is masked whatever the encoding, and JSON stays JSON.
func TestJSON(t *testing.T) {
	for _, s := range labelled(t) {
		raw, err := json.Marshal(map[string]any{"role": "user", "content": []any{map[string]string{"type": "text", "text": s.text}}, "n": 1})
		if err != nil {
			t.Fatal(err)
		}
		masked, n := JSON(raw)
		if !json.Valid(masked) {
			t.Errorf("no JSON: %s", masked)
		}
		var v struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(masked, &v); err != nil || v.Content[0].Text != s.want {
			t.Errorf("%q\n got  %q\n want %q", s.text, v.Content[0].Text, s.want)
		}
		if (n == 0) != (s.kind == "-") {
			t.Errorf("%d found in %s", n, raw)
		}
		if n == 0 && string(masked) != string(raw) {
			t.Errorf("bytes changed: %s", masked)
		}
	}
	for in, want := range map[string]string{
		`{"arguments":{"env":{"API_KEY":"fake0123456789"}}}`:        `{"arguments":{"env":{"API_KEY":"[masked: secret value]"}}}`,
		`{"apiKey": "fake0123456789abcdef" , "x":1.0}`:              `{"apiKey": "[masked: secret value]" , "x":1.0}`,
		`{"password":"ask Ann","token":"a","k":"\ud83d"}`:           `{"password":"ask Ann","token":"a","k":"\ud83d"}`,
		`not json: Bearer fa4e0123456789abcdeffa4e`:                 `not json: [masked: bearer token]`,
		`{"cmd":"{\"apiKey\":\"fake0123456789abcdef\"}","z":"é< "}`: `{"cmd":"{\"apiKey\":\"[masked: secret value]\"}","z":"é< "}`,
	} {
		if got, _ := JSON(json.RawMessage(in)); strings.ReplaceAll(string(got), "Bearer ", "") != strings.ReplaceAll(want, "Bearer ", "") {
			t.Errorf("%s\n got  %s\n want %s", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range labelled(f) {
		f.Add(s.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, s := range Find(text) {
			if s.Start < at || s.End <= s.Start || s.End > len(text) || s.Kind == "" {
				t.Fatalf("%+v in %q", s, text)
			}
			at = s.End
		}
		raw, err := json.Marshal(text)
		if err == nil {
			if masked, _ := JSON(raw); !json.Valid(masked) {
				t.Fatalf("%s", masked)
			}
		}
		JSON(json.RawMessage(text))
	})
}

// A usual message costs under 20 µs.
func BenchmarkText(b *testing.B) {
	prose := strings.Repeat("We moved the dentist appointment: it is on Tuesday at 10:30 now, and Ann said the landlord = Bob will call back about the leak. ", 5)
	code := strings.Repeat("func (s *Store) Token(ctx context.Context, key string) (token string, err error) {\n\treturn s.read(ctx, `SELECT v FROM t WHERE k=?`, key) // sha256:e3b0c44298fc1c14\n}\n", 6)
	for name, text := range map[string]string{"prose600": prose, "code1000": code} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, n := Text(text); n != 0 {
					b.Fatal("a false alarm")
				}
			}
		})
	}
}
