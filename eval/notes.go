package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hark/engine"
	"hark/memorybridge"
	"hark/recall"
)

// Notes is the format of questions about a workspace's memory files.
const Notes = "notes"

// Memory is the system that memory_search is: engine.Memory over the files of a workspace, or over
// messages where the set has no files.
const Memory = "memory"

// notesConv is the one conversation of a set of notes.
const notesConv = "notes"

// notesQuery is a line of queries.jsonl of such a set. Evidence are lines, "PATH:LINE".
type notesQuery struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Cat      string   `json:"cat"`
	Date     string   `json:"date"`
	Evidence []string `json:"evidence"`
}

// loadNotes reads a workspace with questions about its memory files:
//
//	set.json       {"notes":"FOLDER","name":"NAME"}
//	queries.jsonl  {"id","text","cat","date","evidence":["PATH:LINE"…]}
//
// Its documents are the chunks that memory files are cut into, so that systems that know only
// messages can be asked too: to them each file is a session and each chunk a message.
func loadNotes(dir string, about historySet) (*Set, error) {
	root, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(about.Notes)))
	if err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	s := &Set{Format: Notes, Name: about.Name, notes: root}
	ws := memorybridge.Workspace{Dir: root}
	files, problems, err := ws.Files(context.Background())
	if err != nil {
		return nil, fmt.Errorf("load the set: %w", err)
	}
	for _, p := range problems {
		s.Problems = append(s.Problems, Problem{root, p.Path, p.Err.Error()})
	}
	for _, f := range files {
		_, data, err := ws.Read(f.Path)
		if err != nil {
			return nil, fmt.Errorf("load the set: %s: %w", f.Path, err)
		}
		text, _ := memorybridge.Decode(data)
		for i, c := range memorybridge.Parse(f.Path, text).Chunks {
			d := Doc{ID: memorybridge.Citation(f.Path, c.Start, c.End), Conv: notesConv, Sess: f.Path, Idx: i, Text: c.Text, Extra: c.Context}
			if !c.Date.IsZero() {
				d.Date = c.Date.Format(time.DateOnly)
			}
			s.Docs = append(s.Docs, d)
		}
	}
	file := filepath.Join(dir, "queries.jsonl")
	var all []notesQuery
	if err := jsonLines(file, func(q notesQuery, _ int) error {
		all = append(all, q)
		s.Queries = append(s.Queries, Query{ID: q.ID, Conv: notesConv, Text: q.Text, Cat: q.Cat, Date: q.Date})
		return nil
	}); err != nil {
		return nil, err
	}
	l := newLabels(s)
	for _, q := range all {
		for _, place := range q.Evidence {
			doc := docAt(s.Docs, place)
			if doc == "" {
				l.bad(file, q.ID, q.ID, "there is no text at %s", place)
				continue
			}
			l.add(file, q.ID, q.ID, doc, 1)
		}
	}
	l.finish()
	return s, nil
}

// docAt finds the chunk that holds a line, named "PATH:LINE".
func docAt(docs []Doc, place string) string {
	path, number, ok := strings.Cut(place, ":")
	line, err := strconv.Atoi(number)
	if !ok || err != nil {
		return ""
	}
	for _, d := range docs {
		if start, end, ok := linesOf(d.ID); ok && d.Sess == path && start <= line && line <= end {
			return d.ID
		}
	}
	return ""
}

// linesOf reads the lines of a chunk's id.
func linesOf(id string) (start, end int, ok bool) {
	_, lines, ok := strings.Cut(id, "#L")
	if !ok {
		return 0, 0, false
	}
	first, last, ok := strings.Cut(lines, "-L")
	if !ok {
		last = first
	}
	start, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	end, err = strconv.Atoi(last)
	return start, end, err == nil
}

// readSet reads a set.json.
func readSet(dir string) (historySet, error) {
	about := historySet{History: "history.jsonl"}
	if !has(dir, "set.json") {
		return about, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "set.json"))
	if err == nil {
		err = json.Unmarshal(data, &about)
	}
	if err != nil {
		return about, fmt.Errorf("%s: %w", filepath.Join(dir, "set.json"), err)
	}
	return about, nil
}

// toolSystem is memory_search as the agent's tool answers it. What it assembles is Hark's.
type toolSystem struct {
	*harkSystem
	memory *engine.Memory
}

// Rank asks the tool as the owner's main session.
func (t *toolSystem) Rank(ctx context.Context, q Query, k int) (Ranked, error) {
	t.now = t.lib.clock(q)
	started := time.Now()
	p := engine.MemorySearchParams{Query: q.Text, MaxResults: k, Corpus: engine.SourceSessions}
	p.SessionKey = "agent:" + t.lib.Agent + ":main"
	if t.lib.workspace != "" {
		p.Corpus, p.Workspace, p.Extra = engine.SourceMemory, t.lib.workspace, []memorybridge.Extra{}
	}
	res, err := t.memory.Search(ctx, p)
	if err != nil {
		return Ranked{}, fmt.Errorf("search: %w", err)
	}
	r := Ranked{Took: time.Since(started)}
	for _, hit := range res.Results {
		doc := t.lib.doc(hit.ID)
		if hit.Source == engine.SourceMemory {
			doc = docAt(t.lib.Docs, hit.Path+":"+strconv.Itoa(hit.StartLine))
		}
		if doc == "" {
			return r, fmt.Errorf("the search returned %s, which is no document of the conversation", hit.Path)
		}
		r.Docs, r.Scores = append(r.Docs, doc), append(r.Scores, hit.Score)
	}
	if len(r.Scores) > 0 {
		r.Confidence = r.Scores[0]
	}
	return r, nil
}

// newTool makes the tool over a filled store. Each has an index of the files for itself: several lanes
// may ask at a time.
func newTool(h *harkSystem, opts *recall.Options) (*toolSystem, error) {
	dir, err := os.MkdirTemp(h.lib.dir, "memory-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the index of notes: %w", err)
	}
	return &toolSystem{h, engine.NewMemory(h.engine, dir, &engine.MemoryOptions{Recall: opts, Patience: time.Hour})}, nil
}
