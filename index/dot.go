package index

import (
	"encoding/binary"
	"math"
)

// dotGeneric is the product of two vectors of equal length. Products of signed bytes fit in
// 32 bits up to 131,072 components, above maxDim.
func dotGeneric(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

// float32At reads a little-endian float32.
func float32At(b []byte) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}
