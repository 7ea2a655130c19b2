package recall

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"hark/index"
)

func hitAt(seq int64, text string, spans ...Span) Hit {
	return Hit{Message: index.Message{Seq: seq, ID: fmt.Sprint("m", seq), Text: text}, Matched: spans}
}

func texts(items []Item) (out []string) {
	for _, it := range items {
		out = append(out, it.Text)
	}
	return out
}

func TestPackSkipsWhatDoesNotFit(t *testing.T) {
	cost := func(it Item) int { return len(it.Text) }
	hits := []Hit{hitAt(1, "aaaaaaaaaa"), hitAt(2, "bbbbbbbbbbbbbbbbbbbb"), hitAt(3, "cccc")}
	items, dropped := Pack(hits, PackOptions{Tokens: 15, Cost: cost})
	if got := strings.Join(texts(items), " "); got != "aaaaaaaaaa cccc" {
		t.Errorf("packed %q", got)
	}
	if len(dropped) != 1 || dropped[0].Seq != 2 || dropped[0].Reason != OverBudget {
		t.Errorf("dropped %v", dropped)
	}
	if items, _ := Pack(hits, PackOptions{Cost: cost}); len(items) != 0 {
		t.Errorf("no budget packed %d items", len(items))
	}
}

func TestPackShowsTheNewerFirst(t *testing.T) {
	hits := []Hit{hitAt(1, "ssh listens on 22"), hitAt(2, "the server is in the attic"), hitAt(4, "ssh moves to 49222")}
	for i, score := range []float64{10, 8, 1.5} {
		hits[i].Score = score
	}
	hits[0].Newer = 4
	items, dropped := Pack(hits, PackOptions{Tokens: 1000})
	if got := strings.Join(texts(items), "|"); got != "ssh moves to 49222|ssh listens on 22|the server is in the attic" {
		t.Errorf("packed %q", got)
	}
	if len(dropped) != 0 {
		t.Errorf("dropped %v", dropped)
	}
}

func TestPackNearCopies(t *testing.T) {
	hits := []Hit{hitAt(1, "Fire the test!"), hitAt(2, "fire the TEST"), hitAt(3, "ssh listens on port 22 now"), hitAt(4, "ssh listens on port 49222 now"), hitAt(5, "  ")}
	items, dropped := Pack(hits, PackOptions{Tokens: 1000})
	if got := strings.Join(texts(items), "|"); got != "Fire the test!|ssh listens on port 22 now|ssh listens on port 49222 now" {
		t.Errorf("packed %q", got)
	}
	if len(dropped) != 2 || dropped[0].Reason != NearCopy || dropped[1].Reason != NoText {
		t.Errorf("dropped %v", dropped)
	}
}

// What ranks by its neighbours alone and says nothing is not worth a line.
func TestPackLeavesOutInterjections(t *testing.T) {
	hits := []Hit{hitAt(1, "oh no"), hitAt(2, "🎯"), hitAt(3, "In Paris"), hitAt(4, "ok", Span{0, 2})}
	items, dropped := Pack(hits, PackOptions{Tokens: 1000})
	if got := strings.Join(texts(items), "|"); got != "In Paris|ok" || len(dropped) != 2 || dropped[0].Reason != SaysNought {
		t.Errorf("packed %q, dropped %v", got, dropped)
	}
}

func TestExcerptHoldsTheMatch(t *testing.T) {
	text := strings.Repeat("noise and more noise ", 300) + "the vault code is 4417 " + strings.Repeat("rest of the story ", 300)
	at := strings.Index(text, "vault")
	items, _ := Pack([]Hit{hitAt(1, text, Span{at, at + 5})}, PackOptions{Tokens: 10000})
	got := items[0].Text
	if !strings.Contains(got, "vault code is 4417") || !items[0].Excerpt || len(got) > 1010 {
		t.Errorf("excerpt of %d bytes: %q", len(got), got)
	}
	if !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") {
		t.Errorf("cuts are not marked: %.10q %q", got, got[len(got)-10:])
	}
}

// A cut at any byte leaves characters and what joins to them whole.
func TestExcerptCutsBetweenClusters(t *testing.T) {
	for _, cluster := range []string{"ab💰家👨‍👩‍👧é", "e\u0301\u0323", "🇳🇱🇩🇪", "👍🏽", "字"} {
		text := strings.Repeat(cluster, 60)
		for n := range len(cluster) + 1 {
			got := strings.TrimSuffix(excerpt(text, nil, 100+n), " …")
			if !utf8.ValidString(got) {
				t.Fatalf("invalid at %d: %q", n, got)
			}
			rest := strings.TrimPrefix(text, got)
			r, _ := utf8.DecodeRuneInString(rest)
			if r == 0x200D || r == 0x301 || r == 0x323 || r >= 0x1F3FB && r <= 0x1F3FF {
				t.Fatalf("cut inside a cluster at %d: …%q|%q…", n, got[max(0, len(got)-8):], rest[:8])
			}
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("some text with é and 👍🏽", 3, 7, 5)
	f.Fuzz(func(t *testing.T, text string, a, b, n int) {
		if n < 1 || n > 1<<16 || a < 0 || b < a || b > len(text) {
			return
		}
		got := excerpt(text, []Span{{a, b}}, n)
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("%q from %q", got, text)
		}
	})
}
