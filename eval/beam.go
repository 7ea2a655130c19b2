package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// beamChats lists the chat folders below dir: those with a chat and probing questions.
func beamChats(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read is no chat
		if err != nil {
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(dir, path)
		if !e.IsDir() {
			return nil
		}
		if strings.Count(filepath.ToSlash(rel), "/") > 2 {
			return fs.SkipDir
		}
		if has(path, filepath.Join("probing_questions", "probing_questions.json")) && beamChat(path) != "" {
			out = append(out, path)
			return fs.SkipDir
		}
		return nil
	})
	return out
}

// beamChat is the file of a chat: the truncated one where there is one, as the set's own programs
// choose.
func beamChat(dir string) string {
	for _, name := range []string{"chat_trunecated.json", "chat.json"} {
		if has(dir, name) {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// loadBEAM reads chat folders of BEAM (Tavakoli and others, 2025): chat.json, and the probing
// questions with the ids of the messages they are about. Abstention questions name none.
func loadBEAM(dir string, chats []string) (*Set, error) {
	s := &Set{Format: BEAM}
	var probes []beamProbe
	for _, chat := range chats {
		conv := filepath.Base(chat)
		if rel, err := filepath.Rel(dir, chat); err == nil && rel != "." {
			conv = strings.ReplaceAll(filepath.ToSlash(rel), "/", "-")
		}
		docs, err := beamTurns(beamChat(chat), conv)
		if err != nil {
			return nil, err
		}
		s.Docs = append(s.Docs, docs...)
		file := filepath.Join(chat, "probing_questions", "probing_questions.json")
		var byCategory map[string][]struct {
			Question string          `json:"question"`
			Sources  json.RawMessage `json:"source_chat_ids"`
		}
		if err := readJSON(file, &byCategory); err != nil {
			return nil, err
		}
		for _, cat := range sortedKeys(byCategory) {
			for i, q := range byCategory[cat] {
				id := fmt.Sprintf("%s-%s-%d", conv, cat, i)
				s.Queries = append(s.Queries, Query{ID: id, Conv: conv, Text: q.Question, Cat: cat, Abstain: cat == "abstention"})
				probes = append(probes, beamProbe{file, fmt.Sprintf("%s[%d]", cat, i), len(s.Queries) - 1, q.Sources})
			}
		}
	}
	l := newLabels(s)
	for _, p := range probes {
		l.beam(p)
	}
	l.finish()
	return s, nil
}

type beamProbe struct {
	file, record string
	query        int
	sources      json.RawMessage
}

// beam adds the messages that a probing question names: numbers in lists, or in lists under keys.
// What is under original_info was replaced by what is under updated_info.
func (l *labels) beam(p beamProbe) {
	q := &l.set.Queries[p.query]
	if q.Abstain {
		return
	}
	var v any
	if len(p.sources) == 0 || json.Unmarshal(p.sources, &v) != nil {
		l.bad(p.file, p.record, q.ID, "source_chat_ids is missing or no JSON")
		return
	}
	found := 0
	var walk func(v any, key string)
	walk = func(v any, key string) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x, key)
			}
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(v[k], k)
			}
		case float64:
			found++
			doc := q.Conv + "/" + strconv.Itoa(int(v))
			l.add(p.file, p.record, q.ID, doc, 1)
			if key == "original_info" && l.known[[2]string{q.Conv, doc}] {
				q.Stale = append(q.Stale, doc)
			}
		default:
			l.bad(p.file, p.record, q.ID, "source_chat_ids has %v, which is no message's number", v)
		}
	}
	walk(v, "")
	if found == 0 {
		l.bad(p.file, p.record, q.ID, "source_chat_ids names no message")
	}
}

// beamMark is the number that the set's generator left at the end of a user's message.
var beamMark = regexp.MustCompile(`\s*->->\s*[0-9]+\s*,\s*[0-9]+\s*$`)

type beamTurn struct {
	Role    string `json:"role"`
	ID      int    `json:"id"`
	Anchor  string `json:"time_anchor"`
	Content string `json:"content"`
}

type beamBatch struct {
	Number int          `json:"batch_number"`
	Turns  [][]beamTurn `json:"turns"`
}

// beamTurns reads the messages of a chat: a list of batches, or for the longest chats a list of
// plans that hold them. A batch is a session.
func beamTurns(file, conv string) ([]Doc, error) {
	var items []json.RawMessage
	if err := readJSON(file, &items); err != nil {
		return nil, err
	}
	var docs []Doc
	add := func(b beamBatch, plan string) {
		idx, date := 0, ""
		for _, exchange := range b.Turns {
			for _, t := range exchange {
				if t.Anchor != "" {
					date = t.Anchor
				}
				docs = append(docs, Doc{
					ID: conv + "/" + strconv.Itoa(t.ID), Conv: conv, Sess: plan + strconv.Itoa(b.Number), Idx: idx,
					Spk: t.Role, Date: date, Text: beamMark.ReplaceAllString(t.Content, ""),
				})
				idx++
			}
		}
	}
	for i, raw := range items {
		var b beamBatch
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, fmt.Errorf("%s: batch %d: %w", file, i, err)
		}
		if b.Turns != nil {
			add(b, "")
			continue
		}
		var plans map[string][]beamBatch
		if err := json.Unmarshal(raw, &plans); err != nil {
			return nil, fmt.Errorf("%s: plan %d: %w", file, i, err)
		}
		names := sortedKeys(plans)
		slices.SortStableFunc(names, func(a, b string) int { return planNumber(a) - planNumber(b) })
		for _, name := range names {
			for _, b := range plans[name] {
				add(b, name+"/")
			}
		}
	}
	return docs, nil
}

func planNumber(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "plan-"))
	return n
}

// readJSON decodes one file.
func readJSON(path string, v any) error {
	r, err := open(path)
	if err != nil {
		return fmt.Errorf("load the set: %w", err)
	}
	defer r.close()
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return nil
}
