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

// The formats that Load recognises.
const (
	Plain       = "plain"       // docs.jsonl, queries.jsonl, qrels.txt
	History     = "history"     // a host's history with labelled queries
	BEIR        = "BEIR"        // corpus.jsonl, queries.jsonl, qrels/*.tsv
	LMEB        = "LMEB"        // the same with candidates.jsonl
	LoCoMo      = "LoCoMo"      // locomo10.json
	LongMemEval = "LongMemEval" // longmemeval_oracle.json, _s, _m
	BEAM        = "BEAM"        // folders with chat.json and probing_questions
	// beside Notes: a workspace's memory files
)

// ErrFormat says that a path holds no set that Load knows.
var ErrFormat = errors.New("no evaluation set in a known format")

// Load reads the set at path, a file or a folder, in whatever format it is; files may be
// compressed with gzip. history reads the sets that are a host's history; nil where there are
// none. A file that cannot be read is an error that names file and line; a label that cannot be
// used is in Set.Problems.
func Load(path string, history HistoryReader) (*Set, error) {
	s, err := load(path, history)
	if err != nil {
		return nil, err
	}
	if s.Name == "" {
		s.Name = setName(path)
	}
	if err := s.checkIDs(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(s.Docs) == 0 {
		return nil, fmt.Errorf("%s: the set has no documents", path)
	}
	return s, nil
}

func load(path string, history HistoryReader) (*Set, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	if !info.IsDir() {
		return loadFile(path)
	}
	switch {
	case has(path, "docs.jsonl"):
		return loadPlain(path)
	case has(path, "corpus.jsonl") && has(path, "candidates.jsonl"):
		return loadLMEB(path)
	case has(path, "corpus.jsonl"):
		return loadBEIR(path)
	case has(path, "set.json") || has(path, "history.jsonl"):
		return loadHistory(path, history)
	}
	for _, name := range []string{"locomo10.json", "locomo10.json.gz"} {
		if has(path, name) {
			return loadLoCoMo(filepath.Join(path, name))
		}
	}
	if chats := beamChats(path); len(chats) > 0 {
		return loadBEAM(path, chats)
	}
	return nil, fmt.Errorf("%w in %s: a set is a folder with docs.jsonl, queries.jsonl and qrels.txt, with BEIR's or LMEB's corpus.jsonl, "+
		"with set.json, with locomo10.json or with BEAM's chats, or a file of LoCoMo or LongMemEval", ErrFormat, path)
}

// loadFile reads the sets that are one JSON file, told apart by their first record.
func loadFile(path string) (*Set, error) {
	r, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	defer r.close()
	var first map[string]json.RawMessage
	dec := json.NewDecoder(r)
	if _, err := dec.Token(); err != nil || !dec.More() || dec.Decode(&first) != nil {
		return nil, fmt.Errorf("%w: %s is not a list of JSON objects", ErrFormat, path)
	}
	switch {
	case first["haystack_sessions"] != nil:
		return loadLongMemEval(path)
	case first["conversation"] != nil && first["qa"] != nil:
		return loadLoCoMo(path)
	}
	return nil, fmt.Errorf("%w: the records of %s have neither LoCoMo's nor LongMemEval's fields", ErrFormat, path)
}

// Find lists the sets at path: path itself, or the folders and files in it that Load would take.
func Find(path string) ([]string, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find sets: %w", err)
	}
	if isSet(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("find sets: %w", err)
	}
	var out []string
	for _, e := range entries {
		sub := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			if isSet(sub) {
				out = append(out, sub)
			}
		case strings.HasSuffix(strings.TrimSuffix(e.Name(), ".gz"), ".json") && (strings.HasPrefix(e.Name(), "longmemeval") || strings.HasPrefix(e.Name(), "locomo")):
			out = append(out, sub)
		}
	}
	if len(out) == 0 {
		_, err := load(path, nil)
		return nil, err
	}
	return out, nil
}

// isSet says whether a path is a set by itself.
func isSet(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return true
	}
	for _, name := range []string{"docs.jsonl", "corpus.jsonl", "set.json", "history.jsonl", "locomo10.json"} {
		if has(path, name) {
			return true
		}
	}
	return len(beamChats(path)) > 0
}

// setName names a set after its file or folder.
func setName(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(abs), ".gz"), ".json")
}

// has says whether dir has a file of that name, plain or compressed.
func has(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Join(dir, name+".gz"))
	}
	return err == nil
}

// reader is an open file, decompressed where its name says so.
type reader struct {
	io.Reader
	file *os.File
	path string
}

func (r *reader) close() { _ = r.file.Close() } // only read from: nothing is lost

// open opens a file, or the same with .gz.
func open(path string) (*reader, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, ".gz") {
		if g, gerr := os.Open(path + ".gz"); gerr == nil {
			f, err, path = g, nil, path+".gz"
		}
	}
	if err != nil {
		return nil, err
	}
	r := &reader{Reader: bufio.NewReaderSize(f, 1<<20), file: f, path: path}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(r.Reader)
		if err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r.Reader = z
	}
	return r, nil
}

// maxLine bounds a line of a set, in bytes.
const maxLine = 64 << 20

// eachLine calls fn for every line of a file that is not blank, with its number. The error of fn
// ends the reading and gets file and line.
func eachLine(path string, fn func(file string, line int, data []byte) error) error {
	r, err := open(path)
	if err != nil {
		return fmt.Errorf("load the set: %w", err)
	}
	defer r.close()
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := fn(r.path, n, line); err != nil {
			return fmt.Errorf("%s:%d: %w", r.path, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return nil
}

// jsonLines decodes every line of a file into a value and hands it on.
func jsonLines[T any](path string, fn func(v T, line int) error) error {
	return eachLine(path, func(_ string, line int, data []byte) error {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
		return fn(v, line)
	})
}
