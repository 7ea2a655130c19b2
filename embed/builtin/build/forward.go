package main

import "math"

// embedAll returns the unit vector of each text, a row each.
func (e *encoder) embedAll(texts []string) matrix {
	out := newMatrix(len(texts), modelDim)
	parallel(len(texts), wordsBatch, func(lo, hi int) {
		sequences := make([][]int32, hi-lo)
		for i := range sequences {
			ids := e.tokens.encode(texts[lo+i])
			sequences[i] = ids[:min(len(ids), maxTokens)]
		}
		vectors := e.forward(sequences)
		copy(out.data[lo*modelDim:], vectors.data)
	})
	return out
}

// forward runs the model over sequences laid end to end: every step but attention treats tokens alike, so nothing is padded.
func (e *encoder) forward(sequences [][]int32) matrix {
	x := e.lookUp(sequences)
	h := e.widen.apply(x)
	for i := range e.layers {
		l := &e.layers[i]
		input := h
		if i == 0 {
			input = x
		}
		add(h, l.project.apply(attend(l.qkv.apply(l.attendNorm.apply(input)), sequences)))
		hidden := l.in.apply(l.feedNorm.apply(h))
		for j, v := range hidden.data {
			hidden.data[j] = max(v, 0)
		}
		add(h, l.back.apply(hidden))
	}
	out := e.final.apply(meanPool(h, sequences))
	for i := range out.rows {
		row := out.row(i)
		for j, v := range row {
			row[j] = float32(math.Tanh(float64(v)))
		}
		normalise(row)
	}
	return out
}

// lookUp gives each token its embedding, doubled, plus the sines and cosines of its position.
func (e *encoder) lookUp(sequences [][]int32) matrix {
	n := 0
	for _, s := range sequences {
		n += len(s)
	}
	x := newMatrix(n, embedDim)
	at := 0
	for _, s := range sequences {
		for pos, id := range s {
			row := x.row(at)
			for j, v := range e.embeddings.row(int(id)) {
				row[j] = 2 * v
			}
			for j, f := range e.timing {
				sin, cos := math.Sincos(float64(float32(pos) * f))
				row[j] += float32(sin)
				row[embedDim/2+j] += float32(cos)
			}
			at++
		}
	}
	return x
}

func (n norms) apply(x matrix) matrix {
	out := newMatrix(x.rows, x.cols)
	for i := range x.rows {
		row, to := x.row(i), out.row(i)
		var mean, variance float32
		for _, v := range row {
			mean += v
		}
		mean /= float32(len(row))
		for _, v := range row {
			variance += (v - mean) * (v - mean)
		}
		inv := float32(1 / math.Sqrt(float64(variance/float32(len(row)))+1e-6))
		for j, v := range row {
			to[j] = (v-mean)*inv*n.scale[j] + n.bias[j]
		}
	}
	return out
}

// attend is scaled dot-product attention within each sequence; qkv holds queries, keys and values side by side.
func attend(qkv matrix, sequences [][]int32) matrix {
	width := qkv.cols / 3
	head := width / heads
	scale := float32(1 / math.Sqrt(float64(head)))
	out := newMatrix(qkv.rows, width)
	start := 0
	for _, s := range sequences {
		weights := make([]float32, len(s))
		for i := range s {
			row, to := qkv.row(start+i), out.row(start+i)
			for lo := 0; lo < width; lo += head {
				for j := range s {
					key := qkv.row(start + j)[width+lo : width+lo+head]
					weights[j] = scale * dot(row[lo:lo+head], key)
				}
				softmax(weights)
				for j, w := range weights {
					value := qkv.row(start + j)[2*width+lo : 2*width+lo+head]
					for k, v := range value {
						to[lo+k] += w * v
					}
				}
			}
		}
		start += len(s)
	}
	return out
}

func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v - top)))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func meanPool(h matrix, sequences [][]int32) matrix {
	out := newMatrix(len(sequences), h.cols)
	at := 0
	for i, s := range sequences {
		to := out.row(i)
		for range s {
			for j, v := range h.row(at) {
				to[j] += v / float32(len(s))
			}
			at++
		}
	}
	return out
}

func add(to, x matrix) {
	for i, v := range x.data {
		to.data[i] += v
	}
}

func normalise(x []float32) {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	if square == 0 {
		return
	}
	inv := 1 / math.Sqrt(square)
	for i, v := range x {
		x[i] = float32(float64(v) * inv)
	}
}
