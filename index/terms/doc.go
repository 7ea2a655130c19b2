package terms

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"time"
)

// Input is what is indexed of one message.
type Input struct {
	Text    string
	Caption string // secondary text
	Sender  string // display name; "" for the assistant and unnamed people
	Time    time.Time
	Main    Lang // the language to assume where Text does not tell
}

// The fields of a message as part numbers of its Doc. Smaller numbers are passages of the text.
const (
	maxPassages = 250
	PartCaption = 253
	PartSender  = 254
	PartDate    = 255
)

// Posting says how often a term occurs in one part of a message.
type Posting struct {
	Part uint8
	TF   uint8 // saturates at 255
}

// Doc is the forward form of a message: lengths and term frequencies per part. It is a view
// of its bytes and safe to share.
//
//	byte    version (1)
//	uvarint words, grams, passages
//	uvarint words of each passage
//	6 bytes per entry, sorted by hash then part: hash uint32 LE, part, tf
type Doc struct {
	words, grams int
	passages     int
	lengths      []byte // of the passages, as stored
	entries      []byte
	raw          []byte
}

const (
	docVersion = 1
	entrySize  = 6
)

// ErrDoc reports bytes that are no Doc.
var ErrDoc = errors.New("terms: not a forward document of this version")

// Words is the length of the text in content words; a pair of Han characters counts as two.
func (d Doc) Words() int { return d.words }

// Grams is the number of 4-grams of the text.
func (d Doc) Grams() int { return d.grams }

// Passages is the number of passages, at least one.
func (d Doc) Passages() int { return d.passages }

// PassageWords is the length of passage i in content words. It takes time in proportion to i.
func (d Doc) PassageWords(i int) int {
	at := 0
	for {
		v, n := binary.Uvarint(d.lengths[at:])
		if i == 0 || n <= 0 {
			return int(v)
		}
		i, at = i-1, at+n
	}
}

// Bytes is the stored form.
func (d Doc) Bytes() []byte { return d.raw }

// Len is the number of distinct (term, part) entries.
func (d Doc) Len() int { return len(d.entries) / entrySize }

// At returns entry i, in order of hash, then part.
func (d Doc) At(i int) (hash uint32, p Posting) {
	e := d.entries[i*entrySize : i*entrySize+entrySize]
	return binary.LittleEndian.Uint32(e), Posting{Part: e[4], TF: e[5]}
}

// Lookup appends the postings of a term to dst.
func (d Doc) Lookup(hash uint32, dst []Posting) []Posting {
	lo, hi := 0, d.Len()
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if binary.LittleEndian.Uint32(d.entries[m*entrySize:]) < hash {
			lo = m + 1
		} else {
			hi = m
		}
	}
	for ; lo < d.Len(); lo++ {
		h, p := d.At(lo)
		if h != hash {
			break
		}
		dst = append(dst, p)
	}
	return dst
}

// Parse reads a stored Doc without copying b.
func Parse(b []byte) (Doc, error) {
	d := Doc{raw: b}
	if len(b) == 0 || b[0] != docVersion {
		return Doc{}, ErrDoc
	}
	at := 1
	var nums [3]int
	for i := range nums {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 || v > 1<<31 {
			return Doc{}, ErrDoc
		}
		nums[i], at = int(v), at+n
	}
	if nums[2] < 1 || nums[2] > maxPassages {
		return Doc{}, ErrDoc
	}
	d.words, d.grams, d.passages = nums[0], nums[1], nums[2]
	start := at
	for range d.passages {
		v, n := binary.Uvarint(b[at:])
		if n <= 0 || v > 1<<16-1 {
			return Doc{}, ErrDoc
		}
		at += n
	}
	if (len(b)-at)%entrySize != 0 {
		return Doc{}, ErrDoc
	}
	d.lengths = b[start:at]
	d.entries = b[at:]
	return d, nil
}

type entry struct {
	hash uint32
	part uint8
}

// docBuilder collects the entries of one message.
type docBuilder struct {
	seen  []entry
	keys  map[string]bool
	words int
	grams int
}

// Doc analyses a message. keys are the distinct terms for the lexical index, sorted: those that
// are Keyed. The others are left to the forward form.
func (a *Analyzer) Doc(in Input) (d Doc, keys []string, lang Lang) {
	lang = Detect(in.Text)
	main := in.Main
	if main == "" {
		main = English
	}
	if lang == "" {
		lang = main
	}
	b := docBuilder{keys: map[string]bool{}}
	var lens []uint16
	for i, p := range Passages(in.Text) {
		before := b.words
		part := uint8(min(i, maxPassages-1))
		a.scan(p, lang, func(t token) { b.add(t, part) })
		n := uint16(min(b.words-before, 1<<16-1))
		if i < maxPassages {
			lens = append(lens, n)
		} else {
			lens[maxPassages-1] = uint16(min(int(lens[maxPassages-1])+int(n), 1<<16-1))
		}
	}
	words, g := b.words, b.grams
	if in.Caption != "" {
		a.scan(in.Caption, lang, func(t token) { b.add(t, PartCaption) })
	}
	if in.Sender != "" {
		a.scan(in.Sender, lang, func(t token) { b.add(t, PartSender) })
	}
	if !in.Time.IsZero() {
		a.scan(dateWords(in.Time, lang), lang, func(t token) { b.add(t, PartDate) })
	}
	d = b.doc(words, g, lens)
	for k := range b.keys {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return d, keys, lang
}

func (b *docBuilder) add(t token, part uint8) {
	if t.first {
		b.words++
	}
	switch t.Class {
	case Gram:
		b.grams++
		if part >= maxPassages {
			return // names and dates are matched whole
		}
	case Phrase:
		if part >= maxPassages {
			return
		}
	}
	if t.Keyed() {
		b.keys[t.Key()] = true
	}
	b.seen = append(b.seen, entry{t.Hash(), part})
}

func (b *docBuilder) doc(words, grams int, lens []uint16) Doc {
	sort.Slice(b.seen, func(i, j int) bool {
		x, y := b.seen[i], b.seen[j]
		return x.hash < y.hash || x.hash == y.hash && x.part < y.part
	})
	raw := make([]byte, 0, 16+3*len(lens)+entrySize*len(b.seen))
	raw = append(raw, docVersion)
	raw = binary.AppendUvarint(raw, uint64(words))
	raw = binary.AppendUvarint(raw, uint64(grams))
	raw = binary.AppendUvarint(raw, uint64(len(lens)))
	begin := len(raw)
	for _, n := range lens {
		raw = binary.AppendUvarint(raw, uint64(n))
	}
	start := len(raw)
	for i := 0; i < len(b.seen); {
		j := i
		for j < len(b.seen) && b.seen[j] == b.seen[i] {
			j++
		}
		raw = binary.LittleEndian.AppendUint32(raw, b.seen[i].hash)
		raw = append(raw, b.seen[i].part, uint8(min(j-i, 255)))
		i = j
	}
	return Doc{words: words, grams: grams, passages: len(lens), lengths: raw[begin:start], entries: raw[start:], raw: raw}
}
