package embed

import (
	"context"
	_ "embed"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"hark/embed/static"
)

//go:generate go run ./builtin/build -o builtin/table.hark

// The table that embed/builtin/build made; embed/builtin/NOTICE says from what.
//
//go:embed builtin/table.hark
var builtinTable []byte

// loadBuiltin decodes the table on first use. It is the one value this package keeps: a constant in all but syntax.
var loadBuiltin = sync.OnceValues(func() (*static.Table, error) { return static.Decode(builtinTable) })

// Builtin embeds with the word table compiled into the program: English, no network, deterministic to the bit. Words
// it does not know contribute nothing. Kinds are treated alike. Safe for concurrent use.
type Builtin struct{ table *static.Table }

// NewBuiltin returns the built-in embedder. The first call in a process loads the table (milliseconds), later ones share it.
func NewBuiltin() (*Builtin, error) {
	t, err := loadBuiltin()
	if err != nil {
		return nil, err
	}
	return &Builtin{t}, nil
}

// Model implements Embedder. The name changes whenever the table does.
func (b *Builtin) Model() Model {
	return Model{Provider: "builtin", Name: b.table.Name(), Dim: b.table.Dim()}
}

// InProcess reports true.
func (b *Builtin) InProcess() bool { return true }

// Coverage implements Coverer: the share of the words of text that are in the table, 0 for a text without words.
func (b *Builtin) Coverage(text string) float64 { return b.table.Coverage(text) }

// Rank returns how common a lower-case English word is in print: 0 for the most common one, -1 for a word outside the
// 40,000 of the built-in table.
func Rank(word string) int {
	t, err := loadBuiltin()
	if err != nil {
		return -1 // the table is part of the program: its tests read it
	}
	return t.Rank(word)
}

// parallelFrom is the number of texts at which a second goroutine pays, chunk what it takes at a time: a text is about
// five microseconds, a goroutine about one.
const (
	parallelFrom = 32
	chunk        = 16
)

// Embed implements Embedder. Its only errors are ctx's.
func (b *Builtin) Embed(ctx context.Context, _ Kind, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	if len(texts) < parallelFrom {
		if err := b.fill(ctx, out, texts); err != nil {
			return nil, err
		}
		return out, nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for lo := 0; lo < len(texts); lo += chunk {
		hi := min(lo+chunk, len(texts))
		g.Go(func() error { return b.fill(ctx, out[lo:hi], texts[lo:hi]) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (b *Builtin) fill(ctx context.Context, out [][]float32, texts []string) error {
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		out[i] = b.table.Vector(text)
	}
	return nil
}
