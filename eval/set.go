// Package eval measures recall offline, on public retrieval sets that are fetched by whoever runs
// it and are not part of this repository.
//
// A set is a folder of three files, plain or compressed with gzip:
//
//	docs.jsonl     {"id","conv","sess","idx","spk","date","text","extra"}, one turn of a conversation a line
//	queries.jsonl  {"id","conv","text","cat","date"}
//	qrels.txt      TREC: query 0 document relevance
//
// The candidates of a query are the documents of its own conversation. What is measured is the
// search itself, over stores filled as the engine fills them.
package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Doc is one turn of a conversation.
type Doc struct {
	ID    string `json:"id"`
	Conv  string `json:"conv"`
	Sess  string `json:"sess"`
	Idx   int    `json:"idx"` // in its session, from 0
	Spk   string `json:"spk"`
	Date  string `json:"date"` // of its session, as the set writes it
	Text  string `json:"text"`
	Extra string `json:"extra"` // caption of a picture
}

// Query is one question.
type Query struct {
	ID   string `json:"id"`
	Conv string `json:"conv"`
	Text string `json:"text"`
	Cat  string `json:"cat"`
	Date string `json:"date"`
}

// Set is a retrieval set.
type Set struct {
	Docs    []Doc
	Queries []Query
	Qrels   map[string]map[string]bool // relevant documents by query; a query without any is a negative
}

// Load reads the set in dir. Its errors name file and line.
func Load(dir string) (*Set, error) {
	s := &Set{Qrels: map[string]map[string]bool{}}
	if err := eachLine(dir, "docs.jsonl", func(line []byte) error {
		var d Doc
		err := json.Unmarshal(line, &d)
		s.Docs = append(s.Docs, d)
		return err
	}); err != nil {
		return nil, err
	}
	if err := eachLine(dir, "queries.jsonl", func(line []byte) error {
		var q Query
		err := json.Unmarshal(line, &q)
		s.Queries = append(s.Queries, q)
		return err
	}); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, d := range s.Docs {
		known[d.ID] = true
	}
	return s, eachLine(dir, "qrels.txt", func(line []byte) error {
		f := strings.Fields(string(line))
		if len(f) != 4 {
			return fmt.Errorf("%d fields, want query, 0, document and relevance", len(f))
		}
		if !known[f[2]] {
			return fmt.Errorf("document %s is not in the set", f[2])
		}
		if f[3] == "0" {
			return nil
		}
		if s.Qrels[f[0]] == nil {
			s.Qrels[f[0]] = map[string]bool{}
		}
		s.Qrels[f[0]][f[2]] = true
		return nil
	})
}

// eachLine calls fn for every line of dir/name or dir/name.gz.
func eachLine(dir, name string, fn func([]byte) error) (err error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
		f, err = os.Open(path)
	}
	if err != nil {
		return fmt.Errorf("load the set: %w", err)
	}
	defer func() { _ = f.Close() }() // only read from: nothing is lost
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := fn(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
