package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"hark/embed"
	"hark/index"
)

// dumpHistory writes what other search engines need to be measured on the same data:
//
//	texts.jsonl      {"id", "text"}, a message a line: what can be recalled
//	texts.f32        their vectors, float32 little-endian, zeros where the model knows no word
//	questions.jsonl  {"text", "source"}: source is the text of the message that is asked for
//	questions.f32    their vectors
//	meta.json        {"dim", "texts", "questions"}
func dumpHistory(ctx context.Context, m *memory, questions []synthQuestion, dir string) (err error) {
	if m.emb == nil {
		return usage("--dump writes vectors, and no embedder is configured")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the history: %w", err)
	}
	texts, err := newDumpFiles(dir, "texts")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, texts.close()) }()
	sessions, err := m.store.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, ses := range sessions {
		page, err := m.store.Session(ctx, ses.Session, 0, 0)
		if err != nil {
			return err
		}
		var lines []any
		var said []string
		for _, msg := range page {
			if msg.Kind == index.Said || msg.Kind == index.Tool {
				lines, said = append(lines, map[string]any{"id": msg.Seq, "text": msg.Text}), append(said, msg.Text)
			}
		}
		vs, err := m.emb.Embed(ctx, embed.Passage, said)
		if err != nil {
			return err
		}
		if err := texts.add(lines, vs); err != nil {
			return err
		}
	}
	asked, err := newDumpFiles(dir, "questions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asked.close()) }()
	var lines []any
	var text []string
	for _, q := range questions {
		lines, text = append(lines, map[string]string{"text": q.Text, "source": q.Source}), append(text, q.Text)
	}
	vs, err := m.emb.Embed(ctx, embed.Query, text)
	if err != nil {
		return err
	}
	asked.dim = texts.dim
	if err := asked.add(lines, vs); err != nil {
		return err
	}
	meta, err := json.Marshal(map[string]int{"dim": texts.dim, "texts": texts.n, "questions": asked.n})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "meta.json"), append(meta, '\n'), 0o644)
}

// dumpFiles is a file of JSON lines and one of vectors beside it.
type dumpFiles struct {
	lines, vectors *os.File
	text, floats   *bufio.Writer
	n, dim         int
}

func newDumpFiles(dir, name string) (d *dumpFiles, err error) {
	d = &dumpFiles{}
	if d.lines, err = os.Create(filepath.Join(dir, name+".jsonl")); err != nil {
		return nil, fmt.Errorf("write the history: %w", err)
	}
	if d.vectors, err = os.Create(filepath.Join(dir, name+".f32")); err != nil {
		return nil, errors.Join(fmt.Errorf("write the history: %w", err), d.lines.Close())
	}
	d.text, d.floats = bufio.NewWriter(d.lines), bufio.NewWriter(d.vectors)
	return d, nil
}

func (d *dumpFiles) add(lines []any, vs [][]float32) error {
	for _, v := range vs {
		d.dim = max(d.dim, len(v))
	}
	for i, line := range lines {
		b, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("write the history: %w", err)
		}
		if _, err := d.text.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write the history: %w", err)
		}
		v := vs[i]
		if v == nil {
			v = make([]float32, d.dim)
		}
		if err := binary.Write(d.floats, binary.LittleEndian, v); err != nil {
			return fmt.Errorf("write the history: %w", err)
		}
		d.n++
	}
	return nil
}

func (d *dumpFiles) close() error {
	return errors.Join(d.text.Flush(), d.floats.Flush(), d.lines.Close(), d.vectors.Close())
}
