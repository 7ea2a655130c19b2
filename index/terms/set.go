package terms

import "encoding/binary"

// Set finds the terms of a question in documents: one look at each entry of a document, however
// many terms there are. It is immutable and safe to share.
type Set struct {
	sieve [64]uint64 // bit of the low 12 bits of every hash: turns away nearly all entries
	table []setSlot  // open addressing; a power of two long, at most a quarter full
	same  []int32    // term → the next one with its hash, -1 for none
}

type setSlot struct {
	hash uint32
	term int32 // -1: free
}

// NewSet makes a set of the terms with the given hashes (see Term.Hash), which are numbered in
// this order.
func NewSet(hashes []uint32) *Set {
	size := 16
	for size < 4*len(hashes) {
		size *= 2
	}
	s := &Set{table: make([]setSlot, size), same: make([]int32, len(hashes))}
	for i := range s.table {
		s.table[i].term = -1
	}
	for i := len(hashes) - 1; i >= 0; i-- {
		s.sieve[hashes[i]>>6&63] |= 1 << (hashes[i] & 63)
		at := s.place(hashes[i])
		for s.table[at].term >= 0 && s.table[at].hash != hashes[i] {
			at = (at + 1) & (size - 1)
		}
		s.same[i] = s.table[at].term
		s.table[at] = setSlot{hashes[i], int32(i)}
	}
	return s
}

func (s *Set) place(h uint32) int { return int(h*0x9E3779B1>>8) & (len(s.table) - 1) }

// find returns the first term with a hash, -1 for none.
func (s *Set) find(h uint32) int32 {
	for at := s.place(h); ; at = (at + 1) & (len(s.table) - 1) {
		if slot := s.table[at]; slot.term < 0 || slot.hash == h {
			return slot.term
		}
	}
}

// Visit calls visit for every posting of a document that is of a term of the set, in order of
// the entries: those of one term by part, ascending.
func (s *Set) Visit(d Doc, visit func(term int, p Posting)) {
	for e := d.entries; len(e) >= entrySize; e = e[entrySize:] {
		h := binary.LittleEndian.Uint32(e)
		if s.sieve[h>>6&63]>>(h&63)&1 == 0 {
			continue
		}
		for t := s.find(h); t >= 0; t = s.same[t] {
			visit(int(t), Posting{Part: e[4], TF: e[5]})
		}
	}
}

// Count adds the frequencies of the terms in a stored document, over all its parts, to counts.
// Bytes that are no document count nothing.
func (s *Set) Count(stored []byte, counts []int) {
	d, err := Parse(stored)
	if err != nil {
		return
	}
	for e := d.entries; len(e) >= entrySize; e = e[entrySize:] {
		h := binary.LittleEndian.Uint32(e)
		if s.sieve[h>>6&63]>>(h&63)&1 == 0 {
			continue
		}
		for t := s.find(h); t >= 0; t = s.same[t] {
			counts[t] += int(e[5])
		}
	}
}
