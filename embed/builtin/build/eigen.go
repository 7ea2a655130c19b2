package main

import (
	"cmp"
	"math"
	"slices"
)

// principalAxes returns the unit eigenvectors of m's second moments, a row each, by falling eigenvalue. Each points to
// where its largest component is positive.
func principalAxes(m matrix) matrix {
	values, vectors := eigen(moments(m))
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	out := newMatrix(m.cols, m.cols)
	for to, from := range order {
		v := vectors[from]
		sign := 1.0
		if peak := slices.MaxFunc(v, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }); peak < 0 {
			sign = -1
		}
		for j, x := range v {
			out.row(to)[j] = float32(sign * x)
		}
	}
	return out
}

// moments returns the symmetric matrix of mean products of m's columns. The work is divided by output rows, so the
// order of every sum is fixed.
func moments(m matrix) [][]float64 {
	c := make([][]float64, m.cols)
	for a := range c {
		c[a] = make([]float64, m.cols)
	}
	parallel(m.cols, 32, func(lo, hi int) {
		for i := range m.rows {
			row := m.row(i)
			for a := lo; a < hi; a++ {
				x := float64(row[a]) / float64(m.rows)
				to := c[a][a:]
				for b, y := range row[a:] {
					to[b] += x * float64(y)
				}
			}
		}
	})
	for a := range c {
		for b := range a {
			c[a][b] = c[b][a]
		}
	}
	return c
}

// eigen diagonalises the symmetric matrix c, which it overwrites, with cyclic Jacobi rotations. vectors[i] belongs to
// values[i]. Rotations are applied to rows only and mirrored at the end of each, which keeps memory access sequential.
func eigen(c [][]float64) (values []float64, vectors [][]float64) {
	n := len(c)
	vectors = make([][]float64, n)
	for i := range vectors {
		vectors[i] = make([]float64, n)
		vectors[i][i] = 1
	}
	total := 0.0
	for _, row := range c {
		for _, x := range row {
			total += x * x
		}
	}
	const sweeps = 40
	for range sweeps {
		off := 0.0
		for p := range n {
			for q := p + 1; q < n; q++ {
				off += 2 * c[p][q] * c[p][q]
			}
		}
		if off <= 1e-22*total {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(c, vectors, p, q)
			}
		}
	}
	values = make([]float64, n)
	for i := range values {
		values[i] = c[i][i]
	}
	return values, vectors
}

// rotate zeroes c[p][q].
func rotate(c, vectors [][]float64, p, q int) {
	if c[p][q] == 0 {
		return
	}
	theta := (c[q][q] - c[p][p]) / (2 * c[p][q])
	t := math.Copysign(1/(math.Abs(theta)+math.Sqrt(theta*theta+1)), theta)
	cos := 1 / math.Sqrt(t*t+1)
	sin := t * cos
	pp := c[p][p] - t*c[p][q]
	qq := c[q][q] + t*c[p][q]
	turn := func(x, y []float64) {
		for i, a := range x {
			b := y[i]
			x[i] = cos*a - sin*b
			y[i] = sin*a + cos*b
		}
	}
	turn(c[p], c[q])
	c[p][p], c[q][q], c[p][q], c[q][p] = pp, qq, 0, 0
	for i := range c {
		if i != p && i != q {
			c[i][p], c[i][q] = c[p][i], c[q][i]
		}
	}
	turn(vectors[p], vectors[q])
}
