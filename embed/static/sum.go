package static

import (
	"encoding/binary"
	"math"
)

// flushAfter words, 32-bit lanes move to the 64-bit sums: 256 x 65535 (scale) x 255 (code) is the last product of
// that shape under 2^32.
const flushAfter = 256

// sums accumulates scale x code for every dimension. A row is added eight codes at a time with four multiplications:
// each lanes word holds two dimensions in its halves (d and d+4 of every group of eight), which the excess-128 form of
// the codes keeps from borrowing into each other.
type sums struct {
	lanes [MaxDim / 2]uint64
	total [MaxDim]int64
	bias  int64 // sum of the scales added since the last flush
	n     int
}

func (s *sums) add(scale uint16, row []byte) {
	const even = 0x000000ff_000000ff
	k := uint64(scale)
	dim := len(row)
	lanes := s.lanes[:dim/2]
	for len(row) >= 8 && len(lanes) >= 4 {
		x := binary.LittleEndian.Uint64(row)
		to := (*[4]uint64)(lanes)
		to[0] += k * (x & even)
		to[1] += k * (x >> 8 & even)
		to[2] += k * (x >> 16 & even)
		to[3] += k * (x >> 24 & even)
		row, lanes = row[8:], lanes[4:]
	}
	s.bias += int64(scale)
	if s.n++; s.n == flushAfter {
		s.flush(dim)
	}
}

// flush moves the lanes of the first dim dimensions to the totals.
func (s *sums) flush(dim int) {
	bias := s.bias * 128
	for i, x := range s.lanes[:dim/2] {
		d := i/4*8 + i%4
		s.total[d] += int64(uint32(x)) - bias
		s.total[d+4] += int64(x>>32) - bias
		s.lanes[i] = 0
	}
	s.bias, s.n = 0, 0
}

// unit returns the sum's direction, or nil if it has none.
func (s *sums) unit(dim int) []float32 {
	s.flush(dim)
	var square float64
	for _, v := range s.total[:dim] {
		square += float64(float64(v) * float64(v)) // the conversion forbids a fused multiply-add: same bits everywhere
	}
	if square == 0 {
		return nil
	}
	norm := math.Sqrt(square)
	out := make([]float32, dim)
	for i := range out {
		out[i] = float32(float64(s.total[i]) / norm)
	}
	return out
}

// Vector returns the unit vector of text, nil if it has no known word (or its known words cancel out).
func (t *Table) Vector(text string) []float32 {
	var s sums
	known := false
	for words := (scanner{text: text}); ; {
		w, ok := words.next()
		if !ok {
			break
		}
		if id, ok := t.ids[string(w)]; ok {
			known = true
			s.add(t.scales[id], t.codes[int(id)*t.dim:(int(id)+1)*t.dim])
		}
	}
	if !known {
		return nil
	}
	return s.unit(t.dim)
}

// Rank returns how common a lower-case word is: 0 for the most common one, -1 for one that the table does not hold.
func (t *Table) Rank(word string) int {
	if id, ok := t.ids[word]; ok {
		return int(id)
	}
	return -1
}

// Coverage returns the share (0..1) of text's words that the table knows; 0 for a text without words.
func (t *Table) Coverage(text string) float64 {
	all, known := 0, 0
	for words := (scanner{text: text}); ; {
		w, ok := words.next()
		if !ok {
			break
		}
		all++
		if _, ok := t.ids[string(w)]; ok {
			known++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(known) / float64(all)
}
