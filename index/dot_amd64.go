//go:build !purego

package index

import "golang.org/x/sys/cpu"

//go:noescape
func dotAVX2(a, b *int8, n int) int32

// dotInt8 is dotGeneric, faster where the processor can.
func dotInt8(a, b []int8) int32 {
	n := len(a) &^ 15
	if n == 0 || len(b) < len(a) || !cpu.X86.HasAVX2 {
		return dotGeneric(a, b)
	}
	dot := dotAVX2(&a[0], &b[0], n)
	if n < len(a) {
		dot += dotGeneric(a[n:], b[n:len(a)])
	}
	return dot
}
