// Package static is a table of word vectors and the arithmetic over it: a text's vector is the normalised sum of its words' rows.
//
// It knows the stored format and nothing about where a table comes from (see embed/builtin/build) or who asks (see
// embed). All sums are integers, so the same table and text give the same bits on every architecture, in any order
// of words.
package static

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
)

// ErrFormat is wrapped by every error about a table's bytes: wrong magic, foreign version, damaged or truncated content.
var ErrFormat = errors.New("not a usable word table")

// Limits of the format. They bound what a damaged header can make Decode allocate.
const (
	MaxWords = 1 << 22
	MaxDim   = 1024
	maxName  = 128
)

// Layout of a stored table, all integers little-endian:
//
//	offset size
//	0      8    magic "HARKWORD"
//	8      4    version, 1
//	12     4    n, number of words
//	16     4    dim, a multiple of 8, at most MaxDim
//	20     4    length of the name in bytes
//	24     4    length of the word list in bytes
//	28     4    CRC-32C of everything from offset 32
//	32          name, UTF-8
//	            word list: n words joined by '\n', most frequent first, lower case, distinct
//	            n x uint16 scales
//	            n x dim bytes of int8 codes stored as code+128
//
// Row i is scale[i] * code[i]. Only the direction of a sum is used, so the common unit of the scales is not stored.
const (
	magic      = "HARKWORD"
	version    = 1
	headerSize = 32
)

// Table is an immutable set of words with one row each. It keeps references into the bytes it was decoded from.
// Safe for concurrent use.
type Table struct {
	name   string
	dim    int
	words  []string
	ids    map[string]int32
	scales []uint16
	codes  []byte // excess-128
}

// Decode reads a stored table. It keeps data, which must not change afterwards.
func Decode(data []byte) (*Table, error) {
	h, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	body := data[headerSize:]
	take := func(n int) []byte {
		part := body[:n:n]
		body = body[n:]
		return part
	}
	t := &Table{name: string(take(h.name)), dim: h.dim}
	words := string(take(h.list))
	t.scales = make([]uint16, h.n)
	for i, raw := 0, take(2*h.n); i < h.n; i++ {
		t.scales[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	t.codes = take(h.n * h.dim)
	if err := t.index(words, h.n); err != nil {
		return nil, err
	}
	return t, nil
}

type header struct{ n, dim, name, list int }

func readHeader(data []byte) (header, error) {
	if len(data) < headerSize || string(data[:8]) != magic {
		return header{}, fmt.Errorf("%w: no %s header", ErrFormat, magic)
	}
	field := func(off int) int { return int(binary.LittleEndian.Uint32(data[off:])) }
	if v := field(8); v != version {
		return header{}, fmt.Errorf("%w: version %d, this program reads %d", ErrFormat, v, version)
	}
	h := header{n: field(12), dim: field(16), name: field(20), list: field(24)}
	switch {
	case h.n < 1 || h.n > MaxWords:
		return header{}, fmt.Errorf("%w: %d words", ErrFormat, h.n)
	case h.dim < 8 || h.dim > MaxDim || h.dim%8 != 0:
		return header{}, fmt.Errorf("%w: dimension %d", ErrFormat, h.dim)
	case h.name < 1 || h.name > maxName:
		return header{}, fmt.Errorf("%w: name of %d bytes", ErrFormat, h.name)
	}
	if want := headerSize + h.name + h.list + 2*h.n + h.n*h.dim; len(data) != want {
		return header{}, fmt.Errorf("%w: %d bytes, its header says %d", ErrFormat, len(data), want)
	}
	if sum := crc32.Checksum(data[headerSize:], crc32.MakeTable(crc32.Castagnoli)); sum != uint32(field(28)) {
		return header{}, fmt.Errorf("%w: checksum differs", ErrFormat)
	}
	return h, nil
}

func (t *Table) index(list string, n int) error {
	t.words = make([]string, 0, n)
	t.ids = make(map[string]int32, n)
	for w := range strings.SplitSeq(list, "\n") {
		if w == "" || len(w) > MaxWord {
			return fmt.Errorf("%w: word %d has %d bytes", ErrFormat, len(t.words), len(w))
		}
		if _, dup := t.ids[w]; dup {
			return fmt.Errorf("%w: word %d appears twice", ErrFormat, len(t.words))
		}
		t.ids[w] = int32(len(t.words))
		t.words = append(t.words, w)
	}
	if len(t.words) != n {
		return fmt.Errorf("%w: %d words, its header says %d", ErrFormat, len(t.words), n)
	}
	return nil
}

// Encode writes the stored form of a table with the given rows (len(words) x dim, row-major float32). Each row is
// quantised to int8 with a scale of its own. It fails on rows that are not finite and on a shape Decode would refuse.
func Encode(name string, words []string, rows []float32) ([]byte, error) {
	n := len(words)
	if n == 0 || len(rows)%n != 0 {
		return nil, fmt.Errorf("encode table: %d values for %d words", len(rows), n)
	}
	dim := len(rows) / n
	list := strings.Join(words, "\n")
	out := make([]byte, headerSize, headerSize+len(name)+len(list)+2*n+n*dim)
	copy(out, magic)
	for i, v := range []int{version, n, dim, len(name), len(list)} {
		binary.LittleEndian.PutUint32(out[8+4*i:], uint32(v))
	}
	out = append(append(out, name...), list...)
	peaks, top := rowPeaks(rows, n, dim)
	if !(top > 0) || math.IsInf(float64(top), 0) {
		return nil, errors.New("encode table: the rows are zero or not finite")
	}
	for _, p := range peaks {
		out = binary.LittleEndian.AppendUint16(out, rowScale(p, top))
	}
	for i, p := range peaks {
		// The unit in which row i's codes count, after its scale was rounded.
		unit := float64(rowScale(p, top)) * float64(top) / (127 * math.MaxUint16)
		for _, v := range rows[i*dim : (i+1)*dim] {
			out = append(out, byte(int(quantise(float64(v), unit))+128))
		}
	}
	binary.LittleEndian.PutUint32(out[28:], crc32.Checksum(out[headerSize:], crc32.MakeTable(crc32.Castagnoli)))
	if _, err := Decode(out); err != nil {
		return nil, fmt.Errorf("encode table: %w", err)
	}
	return out, nil
}

func rowPeaks(rows []float32, n, dim int) (peaks []float32, top float32) {
	peaks = make([]float32, n)
	for i := range peaks {
		for _, v := range rows[i*dim : (i+1)*dim] {
			peaks[i] = max(peaks[i], max(v, -v)) // max keeps a NaN, which Encode then refuses
		}
		top = max(top, peaks[i])
	}
	return peaks, top
}

// rowScale rounds up, so that no code leaves [-127, 127].
func rowScale(peak, top float32) uint16 {
	return uint16(math.Ceil(float64(peak) / float64(top) * math.MaxUint16))
}

func quantise(v, unit float64) int8 {
	if unit == 0 {
		return 0
	}
	return int8(max(-127, min(127, math.RoundToEven(v/unit))))
}

// Name is the identity stored in the table. Tables with different content must carry different names.
func (t *Table) Name() string { return t.name }

// Dim is the length of every vector.
func (t *Table) Dim() int { return t.dim }

// Words lists the vocabulary, most frequent first. The caller must not change it.
func (t *Table) Words() []string { return t.words }
