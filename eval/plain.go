package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// loadPlain reads the shape that the development sets have:
//
//	docs.jsonl     {"id","conv","sess","idx","spk","date","text","extra"}, a message a line
//	queries.jsonl  {"id","conv","text","cat","date"}
//	qrels.txt      TREC: query 0 document grade
func loadPlain(dir string) (*Set, error) {
	s := &Set{Format: Plain}
	if err := jsonLines(filepath.Join(dir, "docs.jsonl"), func(d Doc, _ int) error {
		s.Docs = append(s.Docs, d)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := jsonLines(filepath.Join(dir, "queries.jsonl"), func(q Query, _ int) error {
		s.Queries = append(s.Queries, q)
		return nil
	}); err != nil {
		return nil, err
	}
	l := newLabels(s)
	err := eachLine(filepath.Join(dir, "qrels.txt"), func(file string, line int, data []byte) error {
		f, record := strings.Fields(string(data)), strconv.Itoa(line)
		if len(f) != 4 {
			l.bad(file, record, firstOf(f), "%d fields, want query, 0, document and grade", len(f))
			return nil
		}
		if grade, err := strconv.Atoi(f[3]); err == nil {
			l.add(file, record, f[0], f[2], grade)
		} else {
			l.bad(file, record, f[0], "the grade %q is not a whole number", f[3])
		}
		return nil
	})
	l.finish()
	return s, err
}

func firstOf(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// historySet is set.json: where the history is that the queries beside it ask about.
type historySet struct {
	History string `json:"history"` // path relative to the folder
	Notes   string `json:"notes"`   // instead: a workspace whose memory files are asked about
	Name    string `json:"name"`
	// Silence is a file of {"text","kind"}: turns that need no memory, asked of the same history.
	Silence string `json:"silence"`
}

// historyQuery is a line of queries.jsonl of such a set. Evidence and stale are numbers of lines.
type historyQuery struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Cat      string `json:"cat"`
	Date     string `json:"date"`
	Evidence []int  `json:"evidence"`
	Stale    []int  `json:"stale"`
}

// loadHistory reads a history as a host keeps it, with questions about it:
//
//	set.json       {"history":"PATH","name":"NAME"}; without it the history is history.jsonl
//	queries.jsonl  {"id","text","cat","date","evidence":[line…],"stale":[line…]}
func loadHistory(dir string, read HistoryReader) (*Set, error) {
	about, err := readSet(dir)
	switch {
	case err != nil:
		return nil, err
	case about.Notes != "":
		return loadNotes(dir, about)
	case read == nil:
		return nil, errors.New("this set is a host's history, and nothing here reads one")
	}
	s := &Set{Format: History, Name: about.Name}
	if s.history, err = read(filepath.Join(dir, filepath.FromSlash(about.History))); err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	for _, h := range s.history {
		for i, e := range h.Entries {
			s.Docs = append(s.Docs, Doc{
				ID: e.EntryID, Conv: historyConv, Sess: h.Key, Idx: i, Spk: e.Role, Date: e.CreatedAt, Text: messageText(e.Message),
			})
		}
	}
	file := filepath.Join(dir, "queries.jsonl")
	var all []historyQuery
	if err := jsonLines(file, func(q historyQuery, _ int) error {
		all = append(all, q)
		query := Query{ID: q.ID, Conv: historyConv, Text: q.Text, Cat: q.Cat, Date: q.Date}
		for _, n := range q.Stale {
			query.Stale = append(query.Stale, strconv.Itoa(n))
		}
		s.Queries = append(s.Queries, query)
		return nil
	}); err != nil {
		return nil, err
	}
	if about.Silence != "" {
		if err := s.silence(filepath.Join(dir, filepath.FromSlash(about.Silence))); err != nil {
			return nil, err
		}
	}
	l := newLabels(s)
	for _, q := range all {
		for _, n := range q.Evidence {
			l.add(file, q.ID, q.ID, strconv.Itoa(n), 1)
		}
		for _, n := range q.Stale {
			if id := strconv.Itoa(n); !l.known[[2]string{historyConv, id}] {
				l.bad(file, q.ID, "", "the stale document %s is not in the history", id)
			}
		}
	}
	l.finish()
	return s, nil
}

// Ordinary is the category of turns that need no memory.
const Ordinary = "ordinary turn"

// silence adds the turns of a file for which nothing should be recalled.
func (s *Set) silence(path string) error {
	return jsonLines(path, func(t struct {
		Text string `json:"text"`
	}, line int) error {
		s.Queries = append(s.Queries, Query{ID: fmt.Sprintf("turn-%03d", line), Conv: historyConv, Text: t.Text, Cat: Ordinary})
		return nil
	})
}

// historyConv is the one conversation of a set that is a history.
const historyConv = "history"

// messageText is what a report shows of a host's message.
func messageText(raw json.RawMessage) string {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text      string          `json:"text"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil {
		return ""
	}
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Text != "":
			parts = append(parts, b.Text)
		case b.Name != "":
			parts = append(parts, b.Name+" "+string(b.Arguments))
		}
	}
	return strings.Join(parts, "\n")
}
