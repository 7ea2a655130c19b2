package eval

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Resamples is how many bootstrap samples an interval is read from, and Flips how many random
// assignments a randomisation test compares with.
const (
	Resamples = 1000
	Flips     = 10_000
)

// Estimate is a mean with its 95 % bootstrap interval.
type Estimate struct {
	N    int     `json:"n"` // queries
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// random returns a source of random numbers that depends on the names alone, so that a figure does
// not move when another one is added.
func random(names ...string) *rand.Rand {
	h := fnv.New64a()
	for _, n := range names {
		_, _ = h.Write([]byte(n)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(20240601, h.Sum64())) //nolint:gosec // statistics, not secrets
}

// estimate bootstraps the mean of values (Efron's percentile method).
func estimate(values []float64, rng *rand.Rand) Estimate {
	return estimateStrata([][]float64{values}, rng)
}

// estimateStrata is the mean over the groups' means, resampled within each group. With one group
// it is the plain mean. Empty groups do not count.
func estimateStrata(groups [][]float64, rng *rand.Rand) Estimate {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g []float64) bool { return len(g) == 0 })
	var e Estimate
	for _, g := range groups {
		e.N += len(g)
	}
	if e.N == 0 {
		return e
	}
	over := func(pick func(g []float64) float64) float64 {
		sum := 0.0
		for _, g := range groups {
			sum += pick(g)
		}
		return sum / float64(len(groups))
	}
	e.Mean = over(mean)
	samples := make([]float64, Resamples)
	for i := range samples {
		samples[i] = over(func(g []float64) float64 {
			sum := 0.0
			for range g {
				sum += g[rng.IntN(len(g))]
			}
			return sum / float64(len(g))
		})
	}
	sort.Float64s(samples)
	e.Mean, e.Low, e.High = round(e.Mean, 6), round(quantile(samples, 0.025), 6), round(quantile(samples, 0.975), 6)
	return e
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// quantile of ascending values, between neighbours linearly. NaN of none.
func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// AUROC is the probability that a question with an answer has a higher confidence than one
// without, ties counting half (Mann and Whitney): 1 tells them apart, 0.5 is chance.
func AUROC(with, without []float64) float64 {
	if len(with) == 0 || len(without) == 0 {
		return math.NaN()
	}
	type item struct {
		v   float64
		pos bool
	}
	items := make([]item, 0, len(with)+len(without))
	for _, v := range with {
		items = append(items, item{v, true})
	}
	for _, v := range without {
		items = append(items, item{v, false})
	}
	sort.Slice(items, func(i, j int) bool { return items[i].v < items[j].v })
	ranks := 0.0 // of the questions with an answer
	for i := 0; i < len(items); {
		j, pos := i, 0
		for ; j < len(items) && items[j].v == items[i].v; j++ {
			if items[j].pos {
				pos++
			}
		}
		ranks += float64(pos) * float64(i+j+1) / 2
		i = j
	}
	n := float64(len(with))
	return (ranks - n*(n+1)/2) / (n * float64(len(without)))
}

// Separation is how well the confidence tells answerable questions from others.
type Separation struct {
	With    int     `json:"answerable"`
	Without int     `json:"unanswerable"`
	AUROC   float64 `json:"auroc"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// separate bootstraps the AUROC; nil where one side has no questions.
func separate(with, without []float64, rng *rand.Rand) *Separation {
	if len(with) == 0 || len(without) == 0 {
		return nil
	}
	s := &Separation{With: len(with), Without: len(without), AUROC: round(AUROC(with, without), 6)}
	pick := func(from []float64) []float64 {
		out := make([]float64, len(from))
		for i := range out {
			out[i] = from[rng.IntN(len(from))]
		}
		return out
	}
	samples := make([]float64, Resamples/5) // sorting makes each sample dear
	for i := range samples {
		samples[i] = AUROC(pick(with), pick(without))
	}
	sort.Float64s(samples)
	s.Low, s.High = round(quantile(samples, 0.025), 6), round(quantile(samples, 0.975), 6)
	return s
}

// paired is the outcome of comparing two lists of values of the same queries.
type paired struct {
	n         int
	a, b      float64 // means
	low, high float64 // 95 % interval of b-a
	p         float64 // two-sided
}

// compare bootstraps the mean difference over pairs and tests it by randomisation: under the null
// hypothesis the two systems are the same and the sign of every difference is a coin toss (Smucker,
// Allan and Carterette 2007).
func compare(a, b []float64, rng *rand.Rand) paired {
	r := paired{n: len(a), p: 1}
	if r.n == 0 {
		return r
	}
	r.a, r.b = mean(a), mean(b)
	diffs := make([]float64, len(a))
	var moved []float64 // flipping a zero changes nothing
	for i := range a {
		if diffs[i] = b[i] - a[i]; diffs[i] != 0 {
			moved = append(moved, diffs[i])
		}
	}
	e := estimate(diffs, rng)
	r.low, r.high = e.Low, e.High
	if len(moved) == 0 {
		return r
	}
	seen := math.Abs(sum(moved)) - 1e-9
	extreme := 0
	for range Flips {
		total := 0.0
		var bits uint64
		for i, d := range moved {
			if i&63 == 0 {
				bits = rng.Uint64()
			}
			if bits>>(i&63)&1 == 0 {
				total += d
			} else {
				total -= d
			}
		}
		if math.Abs(total) >= seen {
			extreme++
		}
	}
	r.p = float64(extreme+1) / float64(Flips+1)
	return r
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// holm adjusts p-values of a family of tests, in place order (Holm 1979).
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return p[order[i]] < p[order[j]] })
	out := make([]float64, len(p))
	worst := 0.0
	for i, k := range order {
		worst = max(worst, min(1, p[k]*float64(len(p)-i)))
		out[k] = worst
	}
	return out
}
