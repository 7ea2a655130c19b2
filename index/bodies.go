package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// part is the vector of a message (0) or of one of its passages.
type part struct {
	n int
	v []float32
}

var errBody = errors.New("unreadable vectors")

// encodeFloats is the body of a row of floats: a byte that tells the length of the header, 1 or 2,
// so that the whole is of odd length, then per part uint16 number, float32 scale and three bytes a
// component, little-endian; component = number·scale. That is as exact as the sums that are made of
// float32, and three quarters of it. Bodies of even length are of before: float32, without header
// and scale. No parts: there is nothing to embed.
func encodeFloats(parts []part) []byte {
	if len(parts) == 0 {
		return []byte{}
	}
	size := len(parts) * floatsSize(len(parts[0].v))
	b := make([]byte, 1+size%2, 2+size)
	b[0] = byte(len(b))
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint16(b, uint16(p.n))
		scale := largest(p.v) / most24
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
		for _, x := range p.v {
			n := int32(0)
			if scale > 0 {
				n = int32(max(-most24, min(most24, math.RoundToEven(float64(x)/float64(scale)))))
			}
			b = append(b, byte(n), byte(n>>8), byte(n>>16))
		}
	}
	return b
}

const most24 = 1<<23 - 1 // the largest number of three bytes

func floatsSize(dim int) int { return 6 + 3*dim }

// cutFloats returns the parts of a body without its header, and whether they are of three bytes a
// component.
func cutFloats(b []byte, dim int) (parts []byte, compact bool, err error) {
	size := 2 + 4*dim
	if len(b)%2 == 1 {
		if int(b[0]) < 1 || int(b[0]) > min(2, len(b)) {
			return nil, false, errBody
		}
		b, size, compact = b[b[0]:], floatsSize(dim), true
	}
	if len(b)%size != 0 {
		return nil, false, errBody
	}
	return b, compact, nil
}

func decodeFloats(b []byte, dim int) ([]part, error) {
	b, compact, err := cutFloats(b, dim)
	if err != nil {
		return nil, err
	}
	size := 2 + 4*dim
	if compact {
		size = floatsSize(dim)
	}
	out := make([]part, len(b)/size)
	for i := range out {
		p := b[i*size:]
		v := make([]float32, dim)
		for k := range v {
			if compact {
				v[k] = float32(int24At(p[6+3*k:])) * float32At(p[2:])
			} else {
				v[k] = float32At(p[2+4*k:])
			}
		}
		out[i] = part{int(binary.LittleEndian.Uint16(p)), v}
	}
	return out, nil
}

// int24At reads a little-endian number of three bytes.
func int24At(b []byte) int32 { return int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8 }

// encodeQuantised is the body of a row of vectors: per part, uint16 number, float32 scale and
// one signed byte a component; component = byte·scale.
func encodeQuantised(parts []part) []byte {
	b := []byte{}
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint16(b, uint16(p.n))
		q, scale := quantise(p.v)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
		for _, x := range q {
			b = append(b, byte(x))
		}
	}
	return b
}

// quantise maps the largest component to 127.
func quantise(v []float32) ([]int8, float32) {
	q := make([]int8, len(v))
	scale := largest(v) / 127
	if scale == 0 {
		return q, 0
	}
	for i, x := range v {
		q[i] = int8(math.RoundToEven(float64(x / scale)))
	}
	return q, scale
}

// largest is the greatest absolute value of a component.
func largest(v []float32) (top float32) {
	for _, x := range v {
		top = max(top, max(x, -x))
	}
	return top
}

// unit checks a vector and brings it to length 1.
func unit(v []float32, dim int) ([]float32, error) {
	if len(v) != dim {
		return nil, fmt.Errorf("%d components where the space has %d: %w", len(v), dim, ErrSpace)
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	norm := math.Sqrt(sum)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil, fmt.Errorf("a component is not a number: %w", ErrSpace)
	}
	if norm < 1e-12 {
		return nil, fmt.Errorf("all components are zero: %w", ErrSpace)
	}
	if math.Abs(norm-1) < 1e-6 {
		return v, nil
	}
	out := make([]float32, dim)
	for i, x := range v {
		out[i] = float32(float64(x) / norm)
	}
	return out, nil
}
