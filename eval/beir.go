package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// corpusDoc is a line of corpus.jsonl; BEIR writes "_id", LMEB also "id".
type corpusDoc struct {
	UnderscoreID string `json:"_id"`
	ID           string `json:"id"`
	Title        string `json:"title"`
	Text         string `json:"text"`
}

// corpusQuery is a line of queries.jsonl.
type corpusQuery struct {
	UnderscoreID string `json:"_id"`
	ID           string `json:"id"`
	Text         string `json:"text"`
}

// loadBEIR reads corpus.jsonl, queries.jsonl and qrels/test.tsv (else dev or train; or qrels.tsv
// beside them). Every document is a candidate of every query. Queries without labels in the split
// belong to another one and are not asked.
func loadBEIR(dir string) (*Set, error) {
	s := &Set{Format: BEIR}
	if err := jsonLines(filepath.Join(dir, "corpus.jsonl"), func(d corpusDoc, line int) error {
		s.Docs = append(s.Docs, d.doc("corpus", "corpus", line-1))
		return nil
	}); err != nil {
		return nil, err
	}
	if err := jsonLines(filepath.Join(dir, "queries.jsonl"), func(q corpusQuery, _ int) error {
		s.Queries = append(s.Queries, Query{ID: q.UnderscoreID + q.ID, Conv: "corpus", Text: q.Text})
		return nil
	}); err != nil {
		return nil, err
	}
	file, split, err := qrelsFile(dir)
	if err != nil {
		return nil, err
	}
	l := newLabels(s)
	judged, err := l.tsv(file)
	if err != nil {
		return nil, err
	}
	l.finish()
	all := s.Queries
	s.Queries = nil
	for _, q := range all {
		if !judged[q.ID] {
			s.Unjudged++
			continue
		}
		q.Cat = split
		s.Queries = append(s.Queries, q)
	}
	return s, nil
}

func (d corpusDoc) doc(conv, sess string, idx int) Doc {
	return Doc{ID: d.UnderscoreID + d.ID, Conv: conv, Sess: sess, Idx: idx, Text: strings.TrimSpace(d.Title + "\n" + d.Text)}
}

// qrelsFile finds the labels of a BEIR set: the test split where there is one.
func qrelsFile(dir string) (file, split string, err error) {
	for _, split := range []string{"test", "dev", "train"} {
		if name := filepath.Join("qrels", split+".tsv"); has(dir, name) {
			return filepath.Join(dir, name), split, nil
		}
	}
	if has(dir, "qrels.tsv") {
		return filepath.Join(dir, "qrels.tsv"), "test", nil
	}
	return "", "", fmt.Errorf("load the set: %s has no qrels/test.tsv, dev.tsv or train.tsv", dir)
}

// tsv reads labels of three fields (query, document, grade; a header line is allowed) or TREC's
// four, and returns the queries that it mentions.
func (l *labels) tsv(path string) (judged map[string]bool, err error) {
	judged = map[string]bool{}
	err = eachLine(path, func(file string, line int, data []byte) error {
		f, record := strings.Fields(string(data)), strconv.Itoa(line)
		if len(f) == 4 {
			f = []string{f[0], f[2], f[3]}
		}
		if len(f) != 3 {
			l.bad(file, record, firstOf(f), "%d fields, want query, document and grade", len(f))
			judged[firstOf(f)] = true
			return nil
		}
		switch grade, err := strconv.ParseFloat(f[2], 64); {
		case err == nil:
			judged[f[0]] = true
			l.add(file, record, f[0], f[1], int(grade))
		case line > 1: // the first line is a header
			judged[f[0]] = true
			l.bad(file, record, f[0], "the grade %q is not a number", f[2])
		}
		return nil
	})
	return judged, err
}

// candidates is a line of candidates.jsonl: the documents that a query, or every query of a scene,
// is asked about.
type candidates struct {
	Query string   `json:"query_id"`
	Scene string   `json:"scene_id"`
	ID    string   `json:"id"`
	Docs  []string `json:"candidate_doc_ids"`
}

// loadLMEB reads a task folder of LMEB: corpus.jsonl and candidates.jsonl, with queries.jsonl and
// qrels.tsv beside them or in one folder a task, whose name is then the category. Queries with the
// same candidates share a conversation.
func loadLMEB(dir string) (*Set, error) {
	corpus := map[string]corpusDoc{}
	if err := jsonLines(filepath.Join(dir, "corpus.jsonl"), func(d corpusDoc, _ int) error {
		corpus[d.UnderscoreID+d.ID] = d
		return nil
	}); err != nil {
		return nil, err
	}
	s := &Set{Format: LMEB}
	convOf := map[string]string{} // query or scene → conversation
	seen := map[string]string{}   // candidates → conversation
	file := filepath.Join(dir, "candidates.jsonl")
	if err := jsonLines(file, func(c candidates, line int) error {
		name := c.Query + c.Scene + c.ID
		if name == "" {
			return errors.New("the record names neither query_id nor scene_id")
		}
		list := strings.Join(c.Docs, "\x00")
		if conv, ok := seen[list]; ok {
			convOf[name] = conv
			return nil
		}
		seen[list], convOf[name] = name, name
		return s.addCandidates(corpus, name, c.Docs)
	}); err != nil {
		return nil, err
	}
	tasks, err := lmebTasks(dir)
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		if err := jsonLines(filepath.Join(task.dir, "queries.jsonl"), func(q corpusQuery, _ int) error {
			id := q.UnderscoreID + q.ID
			conv, ok := sceneOf(convOf, id)
			if !ok {
				return fmt.Errorf("query %q has no candidates", id)
			}
			s.Queries = append(s.Queries, Query{ID: id, Conv: conv, Text: q.Text, Cat: task.cat})
			return nil
		}); err != nil {
			return nil, err
		}
	}
	l := newLabels(s)
	for _, task := range tasks {
		if _, err := l.tsv(filepath.Join(task.dir, "qrels.tsv")); err != nil {
			return nil, err
		}
	}
	l.finish()
	return s, nil
}

// sessionInID finds the session that LMEB's dialogue sets write into the ids of their documents.
var sessionInID = regexp.MustCompile(`^(.*session_[0-9]+)_`)

func (s *Set) addCandidates(corpus map[string]corpusDoc, conv string, ids []string) error {
	count := map[string]int{}
	for _, id := range ids {
		d, ok := corpus[id]
		if !ok {
			return fmt.Errorf("candidate %q is not in the corpus", id)
		}
		sess := conv
		if m := sessionInID.FindStringSubmatch(id); m != nil {
			sess = m[1]
		}
		s.Docs = append(s.Docs, d.doc(conv, sess, count[sess]))
		count[sess]++
	}
	return nil
}

// sceneOf finds the conversation of a query: by its own id, or by the scene its id begins with.
func sceneOf(convOf map[string]string, id string) (string, bool) {
	for name := id; ; {
		if conv, ok := convOf[name]; ok {
			return conv, true
		}
		i := strings.LastIndexByte(name, '_')
		if i < 0 {
			return "", false
		}
		name = name[:i]
	}
}

type lmebTask struct{ dir, cat string }

func lmebTasks(dir string) ([]lmebTask, error) {
	if has(dir, "queries.jsonl") {
		return []lmebTask{{dir, setName(dir)}}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	var out []lmebTask
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); e.IsDir() && has(sub, "queries.jsonl") {
			out = append(out, lmebTask{sub, e.Name()})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("load the set: no queries.jsonl in %s or a folder of it", dir)
	}
	slices.SortFunc(out, func(a, b lmebTask) int { return strings.Compare(a.cat, b.cat) })
	return out, nil
}
