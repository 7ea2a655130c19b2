package embed_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/embed/static"
)

func openBuiltin(tb testing.TB) *embed.Builtin {
	tb.Helper()
	b, err := embed.NewBuiltin()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestBuiltinConforms(t *testing.T) {
	embedtest.Run(t, func(t *testing.T) embed.Embedder {
		t.Helper()
		return openBuiltin(t)
	})
}

func dot(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// What a user notices: the question is nearer to its answer than to anything else, without a word in common.
func TestBuiltinFindsMeaning(t *testing.T) {
	b := openBuiltin(t)
	answers := []string{
		"The doctor prescribed antibiotics for my sore throat.",
		"We booked flights to Lisbon and a hotel near the beach.",
		"She bakes bread with flour and yeast every Sunday.",
		"The server crashed and the database was corrupted.",
		"He practises the guitar and sings in a band.",
	}
	questions := []string{
		"What medicine did the physician give?",
		"Where are they travelling on vacation?",
		"What does she like cooking?",
		"Why did the software fail?",
		"Which musical instrument does he play?",
	}
	texts, err := b.Embed(t.Context(), embed.Passage, answers)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := b.Embed(t.Context(), embed.Query, questions)
	if err != nil {
		t.Fatal(err)
	}
	for q := range questions {
		best := 0
		for a := range answers {
			if dot(asked[q], texts[a]) > dot(asked[q], texts[best]) {
				best = a
			}
		}
		if best != q {
			t.Errorf("%q finds %q", questions[q], answers[best])
		}
	}
}

func TestBuiltinCoverage(t *testing.T) {
	b := openBuiltin(t)
	for _, tc := range []struct {
		text string
		want float64
	}{
		{"", 0},
		{"... !", 0},
		{"The RIVER runs", 1},
		{"river qqzzxv", 0.5},
		{"明天 river 下", 0.25},
		{strings.Repeat("y", 100) + " river", 0.5},
	} {
		if got := b.Coverage(tc.text); got != tc.want {
			t.Errorf("coverage of %q is %g, want %g", tc.text, got, tc.want)
		}
	}
	v, err := b.Embed(t.Context(), embed.Passage, []string{"qqzzxv 明天"})
	if err != nil || v[0] != nil {
		t.Errorf("unknown words only: %v, error %v", v, err)
	}
}

func TestBuiltinReadsWordsAsPeopleWriteThem(t *testing.T) {
	b := openBuiltin(t)
	v, err := b.Embed(t.Context(), embed.Passage, []string{"the river, the bread", "THE “River”—the… bread!", "bread the river the"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v[0], v[1]); diff != "" {
		t.Errorf("case and punctuation change the vector: %s", diff)
	}
	if diff := cmp.Diff(v[0], v[2]); diff != "" {
		t.Errorf("order of words changes the vector: %s", diff)
	}
}

// The table's content and its name change together, or vectors of two tables would be mixed in users' stores.
func TestBuiltinIdentity(t *testing.T) {
	data, err := os.ReadFile("builtin/table.hark")
	if err != nil {
		t.Fatal(err)
	}
	const want = "builtin/hark-static-40k-256@256 c4c9241ee608e40c5c8a42378c4846e281fbc59c957b31811e3bab686d3c11c2"
	if got := fmt.Sprintf("%v %x", openBuiltin(t).Model(), sha256.Sum256(data)); got != want {
		t.Errorf("table is\n%s, want\n%s", got, want)
	}
}

func BenchmarkBuiltin(b *testing.B) {
	e := openBuiltin(b)
	sentence := strings.Fields("yesterday the doctor told us that the new medicine works better if we take it before breakfast with a glass of water and I forgot to buy bread at the market near our old house by the river again so")
	for _, words := range []int{8, 40, 200} {
		var text []string
		for len(text) < words {
			text = append(text, sentence...)
		}
		one := strings.Join(text[:words], " ")
		b.Run(fmt.Sprintf("query/words=%d", words), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Embed(b.Context(), embed.Query, []string{one}); err != nil {
					b.Fatal(err)
				}
			}
		})
		batch := make([]string, 1024)
		for i := range batch {
			batch[i] = one
		}
		b.Run(fmt.Sprintf("batch/words=%d", words), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Embed(b.Context(), embed.Passage, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(batch)*b.N)/b.Elapsed().Seconds(), "texts/s")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	data, err := os.ReadFile("builtin/table.hark")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := static.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
