package recall

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Net is a small network that looks at the features of a candidate and says how much better or
// worse it is than its fused score: one hidden layer of rectified units beside a linear part,
//
//	net(x) = linear·z + output·max(0, hidden·z + bias), z = clamp((x - mean)/sd, -4, 4)
//
// It is fitted by hark eval fit, with LambdaRank (Burges, 2010) over labelled questions.
// A Net is not changed after it was made and is safe for concurrent use.
type Net struct {
	Fitted   json.RawMessage `json:"fitted,omitempty"` // on what, and what it gained there; for readers
	Features []string        `json:"features"`         // what it looks at, in order
	Mean     []float32       `json:"mean"`
	SD       []float32       `json:"sd"`
	Linear   []float32       `json:"linear"`
	Hidden   [][]float32     `json:"hidden"` // a row a unit
	Bias     []float32       `json:"bias"`   // of each unit
	Output   []float32       `json:"output"` // of each unit
}

// FeatureNames are the features of a candidate, in the order of Example.Features.
func FeatureNames() []string { return slices.Clone(featureNames[:]) }

// Check reports why a Net cannot be used with this version's features.
func (n *Net) Check() error {
	k, h := len(featureNames), len(n.Hidden)
	switch {
	case !slices.Equal(n.Features, featureNames[:]):
		return errors.New("the network looks at other features than this version has: fit it again with hark eval fit")
	case len(n.Mean) != k || len(n.SD) != k || len(n.Linear) != k || len(n.Bias) != h || len(n.Output) != h:
		return errors.New("the network's layers do not fit together")
	}
	for i, row := range n.Hidden {
		if len(row) != k {
			return fmt.Errorf("unit %d of the network has %d weights for %d features", i, len(row), k)
		}
	}
	return nil
}

// Score returns what the network adds to the fused score of a candidate with these features.
func (n *Net) Score(x []float32) float64 {
	z := make([]float32, len(x))
	n.Standardise(x, z)
	out := float32(0)
	for i, w := range n.Linear {
		out += w * z[i]
	}
	for u, row := range n.Hidden {
		a := n.Bias[u]
		for i, w := range row {
			a += w * z[i]
		}
		if a > 0 {
			out += n.Output[u] * a
		}
	}
	return float64(out)
}

// farthest bounds a feature, in standard deviations: an outlier must not decide alone.
const farthest = 4

// Standardise writes the features in units of their spread where the Net was fitted into z.
func (n *Net) Standardise(x, z []float32) {
	for i, v := range x {
		v = (v - n.Mean[i]) / n.SD[i]
		if v != v { // not a number
			v = 0
		}
		z[i] = max(-farthest, min(farthest, v))
	}
}

//go:embed net.json
var netFile []byte

// defaultNet reads the network that ships with this version.
var defaultNet = sync.OnceValue(func() *Net {
	n := new(Net)
	if err := json.Unmarshal(netFile, n); err != nil {
		panic("recall: net.json: " + err.Error())
	}
	if err := n.Check(); err != nil {
		panic("recall: net.json: " + err.Error())
	}
	return n
})

// look orders the best candidates again by what the network makes of their features. The pool is
// ordered, best first, and stays so; those beyond the first looks keep their order behind them.
//
// Only differences between candidates mean anything to the network, so its mean over them is
// taken off: scores stay in the unit of fuse.
func (s *scorer) look(pool []*candidate, l *meaning, n *Net) {
	for _, c := range pool {
		c.fused = c.Score
	}
	if n == nil || s.w.Look == 0 {
		return
	}
	top := pool[:min(looks, len(pool))]
	x := s.features(pool, l)
	add, mean := make([]float64, len(top)), 0.0
	for i := range top {
		add[i] = s.w.Look * n.Score(x[i])
		mean += add[i] / float64(len(top))
	}
	for i, c := range top {
		c.Look = add[i] - mean
		c.Score += c.Look
	}
	order(top)
	for i := len(top); i < len(pool); i++ {
		pool[i].Score = math.Min(pool[i].Score, pool[i-1].Score)
	}
}

// looks is the number of candidates that are looked at twice. Of the evidence that is among the
// candidates, this share is among the first hundred (2026-12-01): LoCoMo 94 %, BEAM-100K 84 %, known
// items 100 %, CoSQA 92 %, QMSum, whose questions have 26 answers each, 57 %, XQuAD 100 %. Other numbers were not tried.
const looks = 100
