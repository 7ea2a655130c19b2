package fit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hark/eval"
	"hark/recall"
)

// questions makes labelled questions whose answer shows in one feature and not in the score.
func questions(set string, n int) []eval.Labelled {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	features := len(recall.FeatureNames())
	var out []eval.Labelled
	for i := range n {
		q := eval.Labelled{Set: set, Conv: fmt.Sprint("c", i%6), Query: fmt.Sprint(set, i), Gold: 1}
		for c := range 20 {
			x := make([]float32, features)
			for k := range x {
				x[k] = rng.Float32()
			}
			x[10] += 2 * float32(b2i(c == i%20))
			q.Candidates = append(q.Candidates, recall.Example{Seq: int64(c), Score: rng.Float64(), Features: x})
			q.Answers = append(q.Answers, c == i%20)
		}
		out = append(out, q)
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestFitFindsWhatTells(t *testing.T) {
	qs := append(questions("a", 90), questions("b", 60)...)
	rows, err := Validate(context.Background(), Folds(qs, 3), 1, Options{Units: 4, Epochs: 12, Rate: .02})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Questions != 90 || rows[1].Questions != 60 {
		t.Fatalf("%+v", rows)
	}
	for _, r := range rows {
		if r.Before.Recall5 > 50 || r.After.Recall5 < 90 {
			t.Errorf("%s: from %v to %v", r.Set, r.Before, r.After)
		}
	}
}

func TestFitIsTheSameEveryTime(t *testing.T) {
	qs := questions("a", 40)
	one, err := Train(context.Background(), qs, Options{Units: 3, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	two, _ := Train(context.Background(), qs, Options{Units: 3, Epochs: 2})
	if d := cmp.Diff(one, two); d != "" {
		t.Error(d)
	}
	if err := one.Check(); err != nil {
		t.Error(err)
	}
}

// No fold is measured on a conversation that its network was fitted on; sets of one conversation are
// divided by question.
func TestFolds(t *testing.T) {
	qs := append(questions("a", 60), questions("b", 60)...)
	for i := range qs[60:] {
		qs[60+i].Conv = "only"
	}
	at := map[string]int{}
	n := 0
	for f, fold := range Folds(qs, 3) {
		if len(fold) < 30 {
			t.Errorf("fold %d has %d questions", f, len(fold))
		}
		n += len(fold)
		for _, q := range fold {
			if before, ok := at[q.Conv]; ok && q.Conv != "only" && before != f {
				t.Fatalf("conversation %s is in folds %d and %d", q.Conv, before, f)
			}
			at[q.Conv] = f
		}
	}
	if n != len(qs) {
		t.Errorf("%d of %d questions", n, len(qs))
	}
}

func TestLeaveLeavesKindsOut(t *testing.T) {
	qs := append(append(questions("x-de", 3), questions("y", 2)...), questions("x-zh", 4)...)
	folds := Leave(qs)
	if len(folds) != 2 || len(folds[0]) != 7 || len(folds[1]) != 2 {
		t.Errorf("%d folds", len(folds))
	}
}

func TestFitStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Train(ctx, questions("a", 5), Options{}); err == nil {
		t.Error("a cancelled fit went on")
	}
}
