package mask

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
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
		text = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\u200b`, "\u200b", `\u200d`, "\u200d", `\u00ad`, "\u00ad").Replace(text)
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
	if positives < 250 || negatives < 250 {
		t.Errorf("the list is too short: %d and %d", positives, negatives)
	}
	if missed > 0 || false_ > 0 {
		t.Error("nothing is missed and nothing masked in vain on this list")
	}
	found := positives - missed
	t.Logf("recall %.3f (%d of %d secrets), precision %.3f (%d false alarms on %d look-alikes)",
		float64(found)/float64(positives), found, positives, float64(found)/float64(found+false_), false_, negatives)
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

// gitleaks' rules are read, and used beside the ones here.
func TestKeptRules(t *testing.T) {
	k := kept()
	if k.unknown != nil || len(k.rules) < 150 {
		t.Fatalf("%d rules, %v", len(k.rules), k.unknown)
	}
	for i := range k.rules {
		k.rules[i].expr() // panics where it is none
	}
	for text, kind := range map[string]string{
		"the key pnu_FAKE0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u is": "prefect api token",
		"okta = 00FAKE0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX":   "okta access token",
	} {
		found := k.find(text)
		if len(found) != 1 || found[0].Kind != kind || len(find(strings.Repeat("word ", 40)+text)) != 1 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

// What both find is masked once; what begins in what is masked already is not masked.
func TestMerge(t *testing.T) {
	own := []Finding{{5, 10, "a"}, {20, 30, "b"}}
	got := merge(own, []Finding{{40, 45, "e"}, {8, 12, "c"}, {12, 15, "d"}, {18, 35, "f"}, {43, 50, "g"}})
	want := []Finding{{5, 10, "a"}, {12, 15, "d"}, {20, 30, "b"}, {40, 45, "e"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Nothing that is invisible, and no break of a line, keeps a key from being masked, and what stands
// around it keeps its bytes.
func TestSplitKeys(t *testing.T) {
	const key = "ghp_FAKE0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u"
	for _, split := range []string{"\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ufe0f", "\u202e", "\U000e0041", "\n", "\r\n", "\\\n", "\n    "} {
		for _, at := range []int{6, 20, 33} {
			before, after := "«é\u200b» 密码 ", "\u200d end — ü"
			if strings.Contains(split, "\n") {
				after = "\nend"
			}
			got, n := Text(before + key[:at] + split + key[at:] + after)
			if want := before + Label("github token") + after; got != want || n != 1 {
				t.Errorf("%q at %d: %q", split, at, got)
			}
		}
	}
	wide := strings.Map(func(r rune) rune { return r - '!' + '\uff01' }, key)
	if got, _ := Text("全角 " + wide + "。"); got != "全角 "+Label("github token")+"。" {
		t.Errorf("full width: %q", got)
	}
}

// A usual message costs a few microseconds; the output of a tool may be megabytes, and full of words
// that secrets are named by.
func BenchmarkMask(b *testing.B) {
	prose := strings.Repeat("We moved the dentist appointment: it is on Tuesday at 10:30 now, and Ann said the landlord = Bob will call back about the leak. ", 5)
	cjk := strings.Repeat("我们把牙医的预约改到星期二十点半：安说房东会打电话来谈漏水的事。", 8)
	code := strings.Repeat("func (s *Store) Token(ctx context.Context, key string) (token string, err error) {\n\treturn s.read(ctx, `SELECT v FROM t WHERE k=?`, key) // sha256:e3b0c44298fc1c14\n}\n", 6)
	var dump strings.Builder
	for i := 0; dump.Len() < 5<<20; i++ {
		fmt.Fprintf(&dump, "2026-03-07T18:53:%02d.123Z INFO api server=%d path=/v1/users/%d token_count=%d status=200 {\"id\":\"550e8400-e29b-41d4-a716-%012d\",\"facebook\":null,\"linear\":%d}\n", i%60, i%9, i, i, i, i)
	}
	for _, v := range []struct{ name, text string }{{"chat600", prose}, {"chinese", cjk}, {"code1000", code}, {"dump5MB", dump.String()}, {"base64", strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w/+", 2000)}} {
		b.Run(v.name, func(b *testing.B) {
			b.SetBytes(int64(len(v.text)))
			for b.Loop() {
				if _, n := Text(v.text); n != 0 {
					b.Fatal("a false alarm")
				}
			}
		})
	}
}
