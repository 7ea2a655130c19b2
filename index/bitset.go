package index

import "math/bits"

// bitset is a set of slots.
type bitset []uint64

func (b *bitset) add(i int) {
	for i>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b bitset) drop(i int) {
	if i>>6 < len(b) {
		b[i>>6] &^= 1 << (i & 63)
	}
}

func (b bitset) has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 == 1 }

func (b bitset) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// addRange adds the numbers from from up to, not including, to.
func (b *bitset) addRange(from, to int) {
	if from >= to {
		return
	}
	for (to-1)>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	first, last := from>>6, (to-1)>>6
	head, rest := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if first == last {
		(*b)[first] |= head & rest
		return
	}
	(*b)[first] |= head
	for i := first + 1; i < last; i++ {
		(*b)[i] = ^uint64(0)
	}
	(*b)[last] |= rest
}
