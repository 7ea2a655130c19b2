package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"hark/embed"
	"hark/index"
	"hark/index/terms"
	"hark/recall"
)

// Ranking is what a search returned for one query: document ids, best first.
type Ranking struct {
	Query Query
	Docs  []string
	Took  time.Duration
}

// Run puts every conversation of a set into a store of its own under dir and searches it for the
// conversation's queries, k hits each. emb may be nil for words only. The rankings are in the
// order of the set's queries.
func Run(ctx context.Context, set *Set, dir string, emb embed.Embedder, k int) ([]Ranking, error) {
	var convs []string
	docs := map[string][]Doc{}
	for _, d := range set.Docs {
		if docs[d.Conv] == nil {
			convs = append(convs, d.Conv)
		}
		docs[d.Conv] = append(docs[d.Conv], d)
	}
	results := map[string]Ranking{}
	for i, conv := range convs {
		if err := runConv(ctx, set, docs[conv], filepath.Join(dir, strconv.Itoa(i)), emb, k, results); err != nil {
			return nil, fmt.Errorf("conversation %s: %w", conv, err)
		}
	}
	out := make([]Ranking, 0, len(set.Queries))
	for _, q := range set.Queries {
		r, ok := results[q.ID]
		if !ok {
			return nil, fmt.Errorf("query %s asks a conversation that is not in the set: %s", q.ID, q.Conv)
		}
		out = append(out, r)
	}
	return out, nil
}

func runConv(ctx context.Context, set *Set, docs []Doc, dir string, emb embed.Embedder, k int, results map[string]Ranking) (err error) {
	store, err := index.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := store.Close(); err == nil {
			err = cerr
		}
	}()
	ids, last, err := fill(ctx, store, docs)
	if err != nil {
		return err
	}
	if emb != nil {
		if err := embedAll(ctx, store, emb); err != nil {
			return err
		}
	}
	search := recall.NewSearcher(store, emb, nil, nil)
	for _, q := range set.Queries {
		if q.Conv != docs[0].Conv {
			continue
		}
		now := last
		if t, ok := parseDate(q.Date); ok {
			now = t
		}
		start := time.Now()
		res, err := search.Search(ctx, recall.Request{Question: recall.Question{Text: q.Text}, Filter: index.Filter{AllScopes: true}, Now: now, K: k})
		if err != nil {
			return fmt.Errorf("search for %s: %w", q.ID, err)
		}
		r := Ranking{Query: q, Took: time.Since(start)}
		for _, h := range res.Hits {
			r.Docs = append(r.Docs, ids[h.Message.Seq])
		}
		results[q.ID] = r
	}
	return nil
}

// fill stores the turns of a conversation, and returns their ids by row and the last turn's time.
func fill(ctx context.Context, store *index.Store, docs []Doc) (ids map[int64]string, last time.Time, err error) {
	ids = map[int64]string{}
	batch := index.Batch{}
	flush := func() error {
		done, err := store.Append(ctx, batch)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		for i, seq := range done.Seqs {
			ids[seq] = batch.Messages[i].Keys[0][len("doc:"):]
		}
		batch.Messages = nil
		return nil
	}
	for _, d := range docs {
		at, ok := parseDate(d.Date)
		if ok {
			at = at.Add(time.Duration(d.Idx) * time.Second)
		} else {
			at = time.Date(2000, 1, 1, 0, 0, len(ids)+len(batch.Messages), 0, time.UTC) // the set has no times: the order counts
		}
		last = at
		role := "user"
		if d.Spk == "assistant" {
			role = "assistant"
		}
		batch.Messages = append(batch.Messages, index.Message{
			Keys: []string{"doc:" + d.ID}, Session: d.Conv + "/" + d.Sess, SessionID: d.Sess, Scope: "owner",
			Kind: index.Said, Role: role, Sender: d.Spk, Time: at, Text: d.Text, Caption: d.Extra,
		})
		if len(batch.Messages) == 500 {
			if err := flush(); err != nil {
				return nil, last, err
			}
		}
	}
	return ids, last, flush()
}

// embedAll gives every message its vectors: the whole text, and its passages where there are several.
func embedAll(ctx context.Context, store *index.Store, emb embed.Embedder) error {
	model := emb.Model()
	space := index.Space{ID: model.String(), Dim: model.Dim}
	if err := store.UseSpace(ctx, space); err != nil {
		return err
	}
	for {
		rows, err := store.Pending(ctx, space, 500)
		if err != nil || len(rows) == 0 {
			return err
		}
		var texts []string
		var vectors []index.Vector
		for _, m := range rows {
			texts, vectors = append(texts, m.Text), append(vectors, index.Vector{Seq: m.Seq})
			if parts := terms.Passages(m.Text); len(parts) > 1 {
				for i, p := range parts {
					texts, vectors = append(texts, p), append(vectors, index.Vector{Seq: m.Seq, Part: i + 1})
				}
			}
		}
		vs, err := emb.Embed(ctx, embed.Passage, texts)
		if err != nil {
			return fmt.Errorf("embed: %w", err)
		}
		for i, v := range vs {
			vectors[i].V = v
		}
		if err := store.SetVectors(ctx, space, vectors); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
	}
}

// parseDate reads the ways in which sets write dates.
func parseDate(s string) (time.Time, bool) {
	for _, layout := range []string{"3:04 pm on 2 January, 2006", time.RFC3339, "2006-01-02 15:04:05", time.DateOnly, "January-2-2006", "2006/01/02 (Mon) 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// Recall is the share of a query's relevant documents among the first k of its ranking, averaged
// over the queries that have any (micro average), and the number of those queries.
func Recall(set *Set, rankings []Ranking, k int) (share float64, queries int) {
	for _, r := range rankings {
		gold := set.Qrels[r.Query.ID]
		if len(gold) == 0 {
			continue
		}
		found := 0
		for _, d := range r.Docs[:min(k, len(r.Docs))] {
			if gold[d] {
				found++
			}
		}
		share += float64(found) / float64(len(gold))
		queries++
	}
	if queries > 0 {
		share /= float64(queries)
	}
	return share, queries
}
