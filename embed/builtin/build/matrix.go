package main

import (
	"runtime"
	"sync"
)

// matrix is row-major.
type matrix struct {
	rows, cols int
	data       []float32
}

func newMatrix(rows, cols int) matrix {
	return matrix{rows, cols, make([]float32, rows*cols)}
}

func (m matrix) row(i int) []float32 { return m.data[i*m.cols : (i+1)*m.cols] }

// affine returns a x w + bias, computed in panels of columns that keep the output in the first-level cache and two
// rows at a time, which halves the reads of w.
func affine(a, w matrix, bias []float32) matrix {
	const panel = 64
	out := newMatrix(a.rows, w.cols)
	for i := range out.rows {
		copy(out.row(i), bias)
	}
	for lo := 0; lo < w.cols; lo += panel {
		hi := min(lo+panel, w.cols)
		i := 0
		for ; i+2 <= a.rows; i += 2 {
			addProduct2(out.row(i)[lo:hi], out.row(i + 1)[lo:hi], a.row(i), a.row(i+1), w, lo)
		}
		if i < a.rows {
			scratch := make([]float32, hi-lo)
			addProduct2(out.row(i)[lo:hi], scratch, a.row(i), a.row(i), w, lo)
		}
	}
	return out
}

// addProduct2 adds x0 and x1 times w's columns from lo to y0 and y1. len(x0) is a multiple of 4.
func addProduct2(y0, y1, x0, x1 []float32, w matrix, lo int) {
	n := len(y0)
	y1 = y1[:n]
	for p := 0; p < len(x0); p += 4 {
		a0, a1, a2, a3 := x0[p], x0[p+1], x0[p+2], x0[p+3]
		b0, b1, b2, b3 := x1[p], x1[p+1], x1[p+2], x1[p+3]
		w0 := w.row(p)[lo : lo+n]
		w1 := w.row(p + 1)[lo : lo+n]
		w2 := w.row(p + 2)[lo : lo+n]
		w3 := w.row(p + 3)[lo : lo+n]
		for j := range n {
			v0, v1, v2, v3 := w0[j], w1[j], w2[j], w3[j]
			y0[j] += a0*v0 + a1*v1 + a2*v2 + a3*v3
			y1[j] += b0*v0 + b1*v1 + b2*v2 + b3*v3
		}
	}
}

func dot(a, b []float32) float32 {
	var s float32
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// parallel calls fn with consecutive ranges of at most size that cover [0, n), on all cores, and waits. What fn
// computes for an index must not depend on the range it comes in.
func parallel(n, size int, fn func(lo, hi int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for lo := 0; lo < n; lo += size {
		slots <- struct{}{}
		wg.Go(func() {
			fn(lo, min(lo+size, n))
			<-slots
		})
	}
	wg.Wait()
}
