package eval

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// tag names the system in a run file: one word.
func (s Spec) tag() string {
	return strings.ReplaceAll(strings.ReplaceAll(s.String(), ", ", "+"), " ", "-")
}

// scoreStep is the least difference between two scores of a run file. Programs that read it keep
// scores in 32 bits and break ties by document id; scores this far apart survive.
const scoreStep = 1e-4

// WriteRun writes rankings as a TREC run: query Q0 document rank score tag. Scores are the
// system's, lowered where needed so that they strictly decrease and no reader re-orders them.
func WriteRun(w io.Writer, rankings []Ranking, tag string) error {
	b := bufio.NewWriter(w)
	for _, r := range rankings {
		last := math.Inf(1)
		for i, doc := range r.Docs {
			score := math.Round(r.Scores[i]/scoreStep) * scoreStep
			if score > last-scoreStep/2 {
				score = last - scoreStep
			}
			last = score
			_, _ = fmt.Fprintf(b, "%s Q0 %s %d %s %s\n", word(r.Query), word(doc), i+1, strconv.FormatFloat(score, 'f', 4, 64), tag) // Flush reports it
		}
	}
	return b.Flush()
}

// WriteQrels writes the labels of the queries that are asked: query 0 document grade.
func WriteQrels(w io.Writer, s *Set) error {
	b := bufio.NewWriter(w)
	for _, q := range s.Queries {
		if s.Unusable[q.ID] || q.Abstain {
			continue
		}
		for _, doc := range sortedKeys(s.Qrels[q.ID]) {
			_, _ = fmt.Fprintf(b, "%s 0 %s %d\n", word(q.ID), word(doc), s.Qrels[q.ID][doc]) // Flush reports it
		}
	}
	return b.Flush()
}

// word makes an id one field.
func word(id string) string { return strings.Join(strings.Fields(id), "_") }
