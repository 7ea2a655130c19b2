// Package eval measures recall offline: no model, no judge, no network, and the same bytes from two
// runs. It answers three questions about a system: does it rank the evidence high, is the evidence
// in the context that the model really gets, and does it stay silent where there is nothing to
// recall.
//
// # Life of a run
//
// Load reads a Set in any of the formats in formats.go and keeps a list of the labels it could not
// use. Run fills a store for every conversation (or one for all), builds the System under test over
// it and asks every query twice: Rank, which is what "hark search" does, and Assemble at several
// token budgets, which is what the engine does for a turn. What comes back is an Outcome a query:
// where the evidence was ranked, what became of it, what was injected. Everything else is
// arithmetic over outcomes: metrics.go defines the numbers, stats.go their intervals, compare.go
// the difference of two runs, and report.go, trec.go and html.go write them down.
//
// It is not for tuning: it changes no weight. A document of another conversation in an answer ends
// the run with an error, because no number is worth anything then.
package eval

import (
	"fmt"
	"slices"
	"sort"

	"hark/engine"
)

// Doc is one message of a set.
type Doc struct {
	ID    string `json:"id"` // unique in its conversation
	Conv  string `json:"conv"`
	Sess  string `json:"sess"`
	Idx   int    `json:"idx"`  // in its session, from 0
	Spk   string `json:"spk"`  // a name, or "user", "assistant", "tool NAME"
	Date  string `json:"date"` // of its session or its own, as the set writes it
	Text  string `json:"text"`
	Extra string `json:"extra"` // caption of a picture, a place
}

// Query is one question of a set.
type Query struct {
	ID   string `json:"id"`
	Conv string `json:"conv"` // whose documents are the candidates
	Text string `json:"text"`
	Cat  string `json:"cat"`
	Date string `json:"date"` // when it is asked; "" means after the last document

	// Stale are documents whose content a later one replaced: returning them is no credit.
	Stale []string `json:"stale,omitempty"`
	// Abstain marks a question that its set calls unanswerable, whatever its labels are.
	Abstain bool `json:"-"`
}

// Problem is a label that cannot be used.
type Problem struct {
	File   string `json:"file"`
	Record string `json:"record"` // line number or id of the record
	Reason string `json:"reason"`
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s: %s", p.File, p.Record, p.Reason) }

// Set is a retrieval set.
type Set struct {
	Name    string
	Format  string
	Docs    []Doc
	Queries []Query
	// Qrels are the grades of the relevant documents, at least 1, by query. A query without any is
	// a negative: nothing should be recalled for it.
	Qrels map[string]map[string]int
	// Sessions are the relevant sessions by query where the set labels them itself; nil means
	// those of the relevant documents.
	Sessions map[string]map[string]bool
	// Problems are the labels that were left out. A query none of whose labels can be used is in
	// Unusable and not asked: it must not pass for a negative.
	Problems []Problem
	Unusable map[string]bool
	// Unjudged counts queries of the files that belong to another split and have no labels here.
	Unjudged int

	// history is the set's documents as host messages; such a set is stored by the engine itself.
	history []HistorySession
	// notes is the workspace that the set's documents were read from, "" for none.
	notes string
}

// HistorySession is a session of a host's history, for sets that are one.
type HistorySession struct {
	Key     string
	ID      string
	Entries []engine.HistoryEntry // EntryID is the id of the document
}

// HistoryReader reads a file of host history. The documents' ids are the numbers of its lines.
type HistoryReader func(path string) ([]HistorySession, error)

// Counts are the sizes of a set: they head every report.
type Counts struct {
	Conversations   int `json:"conversations"`
	Documents       int `json:"documents"`
	Queries         int `json:"queries"`  // in the set's files
	Asked           int `json:"asked"`    // of them, how many are asked
	WithEvidence    int `json:"evidence"` // asked, with usable labels
	WithoutEvidence int `json:"noEvidence"`
	Labels          int `json:"labels"`
	SkippedLabels   int `json:"skippedLabels"`
	SkippedQueries  int `json:"skippedQueries"` // not asked: none of their labels can be used
	Unjudged        int `json:"unjudged,omitempty"`
}

// Counts counts.
func (s *Set) Counts() Counts {
	c := Counts{
		Documents: len(s.Docs), Queries: len(s.Queries) + s.Unjudged, SkippedLabels: len(s.Problems),
		Conversations: len(s.conversations()), Unjudged: s.Unjudged,
	}
	for _, q := range s.Queries {
		switch {
		case s.Unusable[q.ID]:
			c.SkippedQueries++
			continue
		case s.negative(q):
			c.WithoutEvidence++
		default:
			c.WithEvidence++
		}
		c.Asked++
		c.Labels += len(s.Qrels[q.ID])
	}
	return c
}

// negative says that nothing should be recalled for a query.
func (s *Set) negative(q Query) bool {
	return q.Abstain || len(s.Qrels[q.ID]) == 0 && len(s.Sessions[q.ID]) == 0
}

// conversations lists the conversations in the order of their first document.
func (s *Set) conversations() []string {
	var out []string
	seen := map[string]bool{}
	for _, d := range s.Docs {
		if !seen[d.Conv] {
			seen[d.Conv] = true
			out = append(out, d.Conv)
		}
	}
	return out
}

// Categories lists the categories of the queries that are asked, most queries first.
func (s *Set) Categories() []string {
	n := map[string]int{}
	for _, q := range s.Queries {
		if !s.Unusable[q.ID] {
			n[q.Cat]++
		}
	}
	out := make([]string, 0, len(n))
	for c := range n {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool {
		if n[out[i]] != n[out[j]] {
			return n[out[i]] > n[out[j]]
		}
		return out[i] < out[j]
	})
	return out
}

// labels collects the labels of a set while it is read, and what is wrong with them.
type labels struct {
	set    *Set
	known  map[[2]string]bool // conversation and document
	asked  map[string]string  // query → conversation
	failed map[string]bool    // queries with a label that cannot be used
}

func newLabels(s *Set) *labels {
	l := &labels{set: s, known: map[[2]string]bool{}, asked: map[string]string{}, failed: map[string]bool{}}
	s.Qrels = map[string]map[string]int{}
	for _, d := range s.Docs {
		l.known[[2]string{d.Conv, d.ID}] = true
	}
	for _, q := range s.Queries {
		l.asked[q.ID] = q.Conv
	}
	return l
}

func (l *labels) bad(file, record, query, format string, args ...any) {
	l.set.Problems = append(l.set.Problems, Problem{file, record, fmt.Sprintf(format, args...)})
	if query != "" {
		l.failed[query] = true
	}
}

// add adds a label. A grade below 1 says that a document is not relevant and adds none.
func (l *labels) add(file, record, query, doc string, grade int) {
	conv, ok := l.asked[query]
	switch {
	case !ok:
		l.bad(file, record, "", "query %q is not in the set", query)
		return
	case !l.known[[2]string{conv, doc}]:
		l.bad(file, record, query, "document %q is not among the candidates of query %q", doc, query)
		return
	case grade < 1:
		return
	}
	if l.set.Qrels[query] == nil {
		l.set.Qrels[query] = map[string]int{}
	}
	l.set.Qrels[query][doc] = grade
}

// finish settles which queries cannot be asked.
func (l *labels) finish() {
	l.set.Unusable = map[string]bool{}
	for q := range l.failed {
		if len(l.set.Qrels[q]) == 0 {
			l.set.Unusable[q] = true
		}
	}
}

// checkIDs reports the first query or document whose id is empty or used twice, and the first
// query that asks a conversation without documents.
func (s *Set) checkIDs() error {
	convs := map[string]bool{}
	docs := map[[2]string]bool{}
	for i, d := range s.Docs {
		key := [2]string{d.Conv, d.ID}
		switch {
		case d.ID == "":
			return fmt.Errorf("document %d has no id", i+1)
		case docs[key]:
			return fmt.Errorf("the id %q is used for two documents of conversation %q", d.ID, d.Conv)
		}
		docs[key], convs[d.Conv] = true, true
	}
	queries := map[string]bool{}
	for i, q := range s.Queries {
		switch {
		case q.ID == "":
			return fmt.Errorf("query %d has no id", i+1)
		case queries[q.ID]:
			return fmt.Errorf("the id %q is used for two queries", q.ID)
		case !convs[q.Conv]:
			return fmt.Errorf("query %s asks conversation %q, which has no documents", q.ID, q.Conv)
		}
		queries[q.ID] = true
	}
	return nil
}

// sortedKeys are the keys of a map, ascending.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
