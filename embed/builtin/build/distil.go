package main

import "math"

// The constants of the distillation, measured by dense R@5/R@10 at turn level on the development halves of LoCoMo, BEAM,
// CoSQA, XQuAD-R and tool-agent transcripts, one changed at a time. Removing one component of GloVe rather than two took
// LoCoMo from .412/.509 to .421/.515, removing one of the encoder's rather than none took XQuAD-R from .835/.881 to
// .838/.887. Three of GloVe, two of the encoder's, whitening .25, .35 and .7, rarity 2e-3, gloveScale .15, .25 and .3
// and a vocabulary without digits gave mixed or smaller results. Rarity 5e-4 gained .018 R@10 on BEAM and lost .014 R@5
// on CoSQA; 60,000 words gained about .01 R@10 on BEAM and CoSQA and nothing on LoCoMo for 5 MB more.
const (
	gloveComponents   = 1     // leading components of GloVe removed: they encode frequency, not meaning
	gloveScale        = 0.2   // brings a GloVe vector to about the length of the encoder's
	componentsFrom    = 50000 // most frequent words from which GloVe's mean and components are taken
	encoderComponents = 1     // leading components of the encoder's word vectors removed
	rarity            = 1e-3  // a of the smooth inverse frequency a/(a+p)
	zipfShift         = 2.7   // p(rank) = 1/((rank+2.7) H), the Zipf-Mandelbrot law
	zipfWords         = 400000
	whitening         = 0.5 // 0 keeps the components' variances, 1 makes them equal
)

// distil returns one row of dim values per word.
func distil(v vocabulary, encoded matrix, dim int) matrix {
	centre(v.vectors, componentsFrom)
	removeLeading(v.vectors, gloveComponents, componentsFrom)
	centre(encoded, encoded.rows)
	removeLeading(encoded, encoderComponents, encoded.rows)
	joined := newMatrix(len(v.words), v.vectors.cols+encoded.cols)
	for i := range v.words {
		w := inverseFrequency(v.ranks[i])
		row := joined.row(i)
		for j, x := range v.vectors.row(i) {
			row[j] = x * w * gloveScale
		}
		for j, x := range encoded.row(i) {
			row[v.vectors.cols+j] = x * w
		}
	}
	axes := principalAxes(joined)
	axes.rows = dim
	out := project(joined, axes)
	whiten(out)
	return out
}

func inverseFrequency(rank int) float32 {
	harmonic := 0.0
	for i := range zipfWords {
		harmonic += 1 / (float64(i) + zipfShift)
	}
	p := 1 / ((float64(rank) + zipfShift) * harmonic)
	return float32(rarity / (rarity + p))
}

// centre subtracts the mean of the first n rows from all.
func centre(m matrix, n int) {
	n = min(n, m.rows)
	mean := make([]float64, m.cols)
	for i := range n {
		for j, x := range m.row(i) {
			mean[j] += float64(x) / float64(n)
		}
	}
	for i := range m.rows {
		row := m.row(i)
		for j := range row {
			row[j] -= float32(mean[j])
		}
	}
}

// removeLeading takes the first k principal components of the first n rows out of all rows.
func removeLeading(m matrix, k, n int) {
	if k == 0 {
		return
	}
	n = min(n, m.rows)
	axes := principalAxes(matrix{n, m.cols, m.data[:n*m.cols]})
	for i := range m.rows {
		row := m.row(i)
		for a := range k {
			axis := axes.row(a)
			along := dot(row, axis)
			for j, x := range axis {
				row[j] -= along * x
			}
		}
	}
}

// project returns the coordinates of m's rows on the axes.
func project(m, axes matrix) matrix {
	out := newMatrix(m.rows, axes.rows)
	parallel(m.rows, 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for k := range axes.rows {
				out.row(i)[k] = dot(m.row(i), axes.row(k))
			}
		}
	})
	return out
}

// whiten divides each column by its root mean square to the power of whitening.
func whiten(m matrix) {
	square := make([]float64, m.cols)
	for i := range m.rows {
		for j, x := range m.row(i) {
			square[j] += float64(x) * float64(x) / float64(m.rows)
		}
	}
	for j, s := range square {
		square[j] = math.Pow(s+1e-9, -whitening/2)
	}
	for i := range m.rows {
		row := m.row(i)
		for j := range row {
			row[j] *= float32(square[j])
		}
	}
}
