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

// encodeFloats is the body of a row of floats: per part, uint16 number and the components as
// float32, little-endian. No parts: there is nothing to embed.
func encodeFloats(parts []part) []byte {
	b := []byte{}
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint16(b, uint16(p.n))
		for _, x := range p.v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

func decodeFloats(b []byte, dim int) ([]part, error) {
	size := 2 + 4*dim
	if len(b)%size != 0 {
		return nil, errBody
	}
	out := make([]part, len(b)/size)
	for i := range out {
		p := b[i*size:]
		v := make([]float32, dim)
		for k := range v {
			v[k] = math.Float32frombits(binary.LittleEndian.Uint32(p[2+4*k:]))
		}
		out[i] = part{int(binary.LittleEndian.Uint16(p)), v}
	}
	return out, nil
}

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
	var top float32
	for _, x := range v {
		top = max(top, max(x, -x))
	}
	q := make([]int8, len(v))
	scale := top / 127
	if scale == 0 {
		return q, 0
	}
	for i, x := range v {
		q[i] = int8(math.RoundToEven(float64(x / scale)))
	}
	return q, scale
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
