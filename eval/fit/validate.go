package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"hark/eval"
	"hark/recall"
)

// Figures are the means over questions, in percent.
type Figures struct {
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	NDCG10   float64 `json:"nDCG@10"`
}

// Row is what the second look changes on one set.
type Row struct {
	Set       string  `json:"set"`
	Questions int     `json:"questions"`
	Before    Figures `json:"before"`
	After     Figures `json:"after"`
}

// Validate fits a network for every fold on the other folds and measures it on that fold, at the given
// share of what it adds. The rows are in the order in which the sets first appear.
func Validate(ctx context.Context, folds [][]eval.Labelled, share float64, o Options) ([]Row, error) {
	total, progress := 0, o.Progress
	at := map[string]int{}
	var rows []Row
	for f, asked := range folds {
		var others []eval.Labelled
		for g, fold := range folds {
			if g != f {
				others = append(others, fold...)
			}
		}
		if progress != nil {
			o.Progress = func(done, of int) { progress(total+done, len(folds)*of) }
		}
		net, err := Train(ctx, others, o)
		if err != nil {
			return nil, err
		}
		total += o.complete().Nets * o.complete().Epochs
		for _, q := range asked {
			i, ok := at[q.Set]
			if !ok {
				i = len(rows)
				at[q.Set], rows = i, append(rows, Row{Set: q.Set})
			}
			r := &rows[i]
			r.Questions++
			r.Before.add(figures(q, func(recall.Example) float64 { return 0 }))
			r.After.add(figures(q, func(e recall.Example) float64 { return share * net.Score(e.Features) }))
		}
	}
	for i := range rows {
		rows[i].Before.over(rows[i].Questions)
		rows[i].After.over(rows[i].Questions)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Set, b.Set) })
	return rows, nil
}

// Record writes into a network what it was fitted on and what cross-validation found.
func Record(n *recall.Net, rows []Row) error {
	b, err := json.Marshal(map[string]any{"what": "LambdaRank by hark eval fit; before and after by conversations it was not fitted on", "sets": rows})
	n.Fitted = b
	return err
}

func (f *Figures) add(g Figures) {
	f.Recall5 += g.Recall5
	f.Recall10 += g.Recall10
	f.NDCG10 += g.NDCG10
}

func (f *Figures) over(n int) {
	for _, v := range []*float64{&f.Recall5, &f.Recall10, &f.NDCG10} {
		*v = math.Round(1000**v/float64(n)) / 10
	}
}

// figures measures the order of one question's candidates by their score and what is added to it.
func figures(q eval.Labelled, add func(recall.Example) float64) Figures {
	type scored struct {
		score  float64
		answer bool
	}
	list := make([]scored, len(q.Candidates))
	for i, c := range q.Candidates {
		list[i] = scored{c.Score + add(c), q.Answers[i]}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var f Figures
	ideal := 0.0
	for i := range min(10, q.Gold) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	for i, c := range list[:min(10, len(list))] {
		if !c.answer {
			continue
		}
		if i < 5 {
			f.Recall5 += 1 / float64(q.Gold)
		}
		f.Recall10 += 1 / float64(q.Gold)
		f.NDCG10 += 1 / math.Log2(float64(i+2)) / ideal
	}
	return f
}
