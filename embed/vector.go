package embed

import (
	"errors"
	"fmt"
	"math"
)

var errNoDirection = errors.New("the vector is zero or not finite")

// normalise scales v to length one, or says why it cannot.
func normalise(v []float32) error {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	// A NaN or an infinity anywhere makes the sum one of the two; float32 squares cannot overflow a float64.
	if !(square > 0) || math.IsInf(square, 0) {
		return errNoDirection
	}
	norm := math.Sqrt(square)
	for i, x := range v {
		v[i] = float32(float64(x) / norm)
	}
	return nil
}

// check makes an answer to n texts usable or says what is wrong with it. It fixes the dimension at the first good answer.
func (r *Remote) check(vectors [][]float32, n int) error {
	if len(vectors) != n {
		return &fault{kind: refused, reason: fmt.Sprintf("%d vectors for %d texts", len(vectors), n)}
	}
	for i, v := range vectors {
		if len(v) == 0 {
			return &fault{kind: refused, reason: "no vector for a text"}
		}
		if err := normalise(v); err != nil {
			return &fault{kind: refused, reason: "unusable answer", err: err}
		}
		r.dim.CompareAndSwap(0, int64(len(vectors[i])))
		if want := int(r.dim.Load()); len(v) != want {
			return &fault{kind: misconfigured, reason: fmt.Sprintf("the server's vectors have %d dimensions, not %d: set the dimension to what the model gives, or check which model answers", len(v), want)}
		}
	}
	return nil
}
