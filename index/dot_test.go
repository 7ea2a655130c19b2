package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func bytesOf(r *rand.Rand, n int) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = int8(r.IntN(255) - 127)
	}
	return out
}

func TestDotIsTheSameEverywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n := range 400 {
		a, b := bytesOf(r, n), bytesOf(r, n)
		if n%7 == 0 {
			for i := range a {
				a[i], b[i] = -127, 127
			}
		}
		want := int32(0)
		for i := range a {
			want += int32(a[i]) * int32(b[i])
		}
		if got := dotInt8(a, b); got != want {
			t.Fatalf("%d components: %d, want %d", n, got, want)
		}
		if got := dotGeneric(a, b); got != want {
			t.Fatalf("%d components, generic: %d, want %d", n, got, want)
		}
	}
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 4))
	x, y := bytesOf(r, 256), bytesOf(r, 256)
	for name, dot := range map[string]func(a, b []int8) int32{"generic": dotGeneric, "best": dotInt8} {
		b.Run(fmt.Sprint(name, "-256"), func(b *testing.B) {
			for b.Loop() {
				dot(x, y)
			}
		})
	}
}
