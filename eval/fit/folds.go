package fit

import (
	"slices"
	"strings"

	"hark/eval"
)

// kind is the family of a set: sets that differ in language only, and are labelled alike, are one.
func kind(set string) string {
	if i := strings.LastIndexByte(set, '-'); i > 0 && len(set)-i == 3 {
		return set[:i]
	}
	return set
}

// Folds deals questions out to n folds by conversation, so that no fold is asked about a conversation
// that another one was fitted on; by question in sets with fewer conversations than folds.
func Folds(qs []eval.Labelled, n int) [][]eval.Labelled {
	convs := map[string][]string{}
	for _, q := range qs {
		if !slices.Contains(convs[q.Set], q.Conv) {
			convs[q.Set] = append(convs[q.Set], q.Conv)
		}
	}
	out, asked := make([][]eval.Labelled, n), map[string]int{}
	for _, q := range qs {
		f := slices.Index(convs[q.Set], q.Conv) % n
		if len(convs[q.Set]) < n {
			f = asked[q.Set] % n
			asked[q.Set]++
		}
		out[f] = append(out[f], q)
	}
	return out
}

// Leave deals the questions out by kind of set: what a network is worth on a kind it has not seen.
func Leave(qs []eval.Labelled) [][]eval.Labelled {
	var kinds []string
	var out [][]eval.Labelled
	for _, q := range qs {
		i := slices.Index(kinds, kind(q.Set))
		if i < 0 {
			i = len(kinds)
			kinds, out = append(kinds, kind(q.Set)), append(out, nil)
		}
		out[i] = append(out[i], q)
	}
	return out
}
