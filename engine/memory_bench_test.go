package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hark/embed"
)

// BenchmarkMemory measures a workspace of 5,000 notes and one of a single file of 5 MB: the first
// reading, one that finds a single changed file, and a search.
func BenchmarkMemory(b *testing.B) {
	emb, err := embed.NewBuiltin()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		files, size int
	}{{"files=5000", 5000, 2000}, {"file=5MB", 1, 5 << 20}} {
		ws := b.TempDir()
		random := rand.New(rand.NewPCG(1, 2))
		for i := range c.files {
			writeNote(b, ws, fmt.Sprintf("memory/%02d/note-%04d.md", i%50, i), wordyNote(random, i, c.size))
		}
		b.Run("first/"+c.name, func(b *testing.B) {
			for b.Loop() {
				m := benchMemory(b, emb)
				out, err := m.Sync(b.Context(), MemorySyncParams{Corpora: Corpora{Workspace: ws}})
				if err != nil || out.Files != c.files {
					b.Fatal(out, err)
				}
				b.ReportMetric(float64(out.Chunks), "chunks")
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		m := benchMemory(b, emb)
		if _, err := m.Sync(b.Context(), MemorySyncParams{Corpora: Corpora{Workspace: ws}}); err != nil {
			b.Fatal(err)
		}
		b.Run("again/"+c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				file := filepath.Join(ws, "memory", "00", "note-0000.md")
				data, err := os.ReadFile(file)
				if err != nil {
					b.Fatal(err)
				}
				head, rest, _ := strings.Cut(string(data), "## Part")
				text := fmt.Sprintf("%s\n\nthe change %d of this note\n\n## Part%s", strings.Split(head, "\n")[0], n, rest)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
				if _, err := m.Sync(b.Context(), MemorySyncParams{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("search/"+c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				p := MemorySearchParams{Query: fmt.Sprintf("what did the %s say about number %d", benchWords[n%len(benchWords)], n), Requester: Requester{SessionKey: mainKey}}
				if _, err := m.Search(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchMemory(b *testing.B, emb embed.Embedder) *Memory {
	b.Helper()
	e := open(b, emb, nil)
	return NewMemory(e, b.TempDir(), &MemoryOptions{})
}

var benchWords = strings.Fields(`harbour kettle lantern meadow orchard pebble quarry ribbon saddle timber umbrella valley walnut
	anchor barrel candle drawer engine feather garden hammer island jacket kitchen ladder mirror needle oyster pillow rocket
	sailor tunnel violin window yellow zephyr bridge copper dancer falcon glacier hollow insect jungle`)

// wordyNote makes a note of about size bytes under headings.
func wordyNote(random *rand.Rand, n, size int) string {
	var s strings.Builder
	_, _ = fmt.Fprintf(&s, "# Note %d\n\n", n) // a Builder does not fail
	for s.Len() < size {
		_, _ = fmt.Fprintf(&s, "## Part %d\n\n", s.Len())
		for range 6 {
			for range 12 {
				s.WriteString(benchWords[random.IntN(len(benchWords))])
				s.WriteByte(' ')
			}
			_, _ = fmt.Fprintf(&s, "%d.\n", random.IntN(100000))
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func writeNote(tb testing.TB, ws, name, text string) {
	tb.Helper()
	file := filepath.Join(ws, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}
