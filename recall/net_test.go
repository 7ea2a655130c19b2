package recall

import (
	"math"
	"testing"
)

// flat is a network over this version's features that adds nothing.
func flat() *Net {
	k := len(featureNames)
	n := &Net{Features: FeatureNames(), Mean: make([]float32, k), SD: make([]float32, k), Linear: make([]float32, k)}
	for i := range n.SD {
		n.SD[i] = 1
	}
	return n
}

func TestNetScore(t *testing.T) {
	n := flat()
	n.Mean[0], n.SD[0], n.Linear[0] = 1, 2, 3
	n.Hidden, n.Bias, n.Output = [][]float32{make([]float32, len(featureNames))}, []float32{-1}, []float32{10}
	n.Hidden[0][1] = 2
	x := make([]float32, len(featureNames))
	for _, tc := range []struct {
		a, b float32
		want float64
	}{
		{5, 0, 6},    // linear: (5-1)/2*3; the unit is below its threshold
		{1, 3, 50},   // (2*3-1)*10
		{1e9, 0, 12}, // an outlier counts as four deviations
		{float32(math.NaN()), 0, 0},
	} {
		x[0], x[1] = tc.a, tc.b
		if got := n.Score(x); got != tc.want {
			t.Errorf("%v, %v: %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestNetCheck(t *testing.T) {
	if err := defaultNet().Check(); err != nil {
		t.Error("the network that ships:", err)
	}
	for what, spoil := range map[string]func(*Net){
		"another feature": func(n *Net) { n.Features[3] = "moon phase" },
		"a layer short":   func(n *Net) { n.Linear = n.Linear[1:] },
		"a unit short":    func(n *Net) { n.Hidden, n.Bias, n.Output = [][]float32{{1}}, []float32{0}, []float32{0} },
		"a bias missing":  func(n *Net) { n.Hidden = [][]float32{make([]float32, len(featureNames))} },
	} {
		n := flat()
		spoil(n)
		if n.Check() == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// BenchmarkNet is the second look at one candidate, its features given.
func BenchmarkNet(b *testing.B) {
	n, x := defaultNet(), make([]float32, len(featureNames))
	for i := range x {
		x[i] = float32(i%7) / 3
	}
	b.ReportAllocs()
	for b.Loop() {
		n.Score(x)
	}
}
