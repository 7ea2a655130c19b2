package fit

import (
	"cmp"
	"math"
	"slices"
)

// learn adds the gradient of one question.
func (t *trainer) learn(q *sample, g []float32) {
	rows := len(q.fused)
	active := make([]float32, rows*t.units)
	scores := make([]float64, rows)
	for i := range rows {
		scores[i] = q.fused[i] + float64(t.forward(q.z[i*t.n:(i+1)*t.n], active[i*t.units:(i+1)*t.units]))
	}
	for i, d := range lambdas(q, scores) {
		if d == 0 {
			continue
		}
		t.backward(q.z[i*t.n:(i+1)*t.n], active[i*t.units:(i+1)*t.units], float32(d*q.weight), g)
	}
}

// forward returns what the network adds, and leaves in active what each hidden unit gives.
func (t *trainer) forward(z, active []float32) float32 {
	out := float32(0)
	for i, w := range t.w[t.li:] {
		out += w * z[i]
	}
	for u := range active {
		a := t.w[t.bias+u]
		for i, w := range t.w[u*t.n : (u+1)*t.n] {
			a += w * z[i]
		}
		active[u] = max(0, a)
		out += t.w[t.out+u] * active[u]
	}
	return out
}

// backward adds the gradient of one candidate whose score wants to move against d.
func (t *trainer) backward(z, active []float32, d float32, g []float32) {
	for i, v := range z {
		g[t.li+i] += d * v
	}
	for u, a := range active {
		if a <= 0 {
			continue
		}
		g[t.out+u] += d * a
		du := d * t.w[t.out+u]
		g[t.bias+u] += du
		row := g[u*t.n : (u+1)*t.n]
		for i, v := range z {
			row[i] += du * v
		}
	}
}

// lambdas is the gradient of every candidate's score: over all pairs of an answer and another, what
// swapping them changes in nDCG, times how far they are from being in order.
func lambdas(q *sample, scores []float64) []float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	worth := make([]float64, len(scores))
	for rank, i := range order {
		worth[i] = discount(rank)
	}
	out := make([]float64, len(scores))
	for i, answers := range q.answers {
		if !answers {
			continue
		}
		for j, other := range q.answers {
			if other {
				continue
			}
			gain := math.Abs(worth[i]-worth[j]) / q.ideal
			if gain < 1e-4 {
				continue
			}
			l := gain / (1 + math.Exp(scores[i]-scores[j]))
			out[i] -= l
			out[j] += l
		}
	}
	return out
}
