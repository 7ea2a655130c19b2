package index

import (
	"encoding/binary"
	"errors"
	"sort"
	"time"

	"hark/index/terms"
)

// rec is a row in memory. Strings are numbers of columns.names.
type rec struct {
	seq     int64
	time    int64 // Unix milliseconds
	session uint32
	scope   uint32
	sender  uint32
	words   uint32
	doc     span
	role    uint32
	lang    uint32
	main    uint32 // language that was assumed for the analysis
	kind    Kind
	flags   uint8
}

const (
	flagQuestion = 1 << iota // the text ends in a question mark
	flagDetected             // the text told its language
	flagDead                 // forgotten: skipped everywhere
)

func (r *rec) alive() bool { return r.flags&flagDead == 0 }

// talk says whether the row can be recalled.
func (r *rec) talk() bool { return r.flags&flagDead == 0 && recallable(r.kind) }

func recallable(k Kind) bool { return k == Said || k == Tool }

// errDoc reports a body of the table docs that encodeDoc did not write.
var errDoc = errors.New("unreadable columns")

const docLayout = 1

// encodeDoc is the body of a row of docs:
//
//	byte    layout (1), kind, flags
//	uvarint session, scope, sender, role, language, assumed language (numbers of names)
//	varint  time in Unix milliseconds
//	rest    terms.Doc
func encodeDoc(h rec, doc terms.Doc) []byte {
	b := make([]byte, 0, 32+len(doc.Bytes()))
	b = append(b, docLayout, byte(h.kind), h.flags)
	for _, n := range [...]uint32{h.session, h.scope, h.sender, h.role, h.lang, h.main} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.AppendVarint(b, h.time)
	return append(b, doc.Bytes()...)
}

// decodeDoc reads a body; rest is the stored terms.Doc, a view of b.
func decodeDoc(b []byte) (h rec, rest []byte, err error) {
	if len(b) < 3 || b[0] != docLayout || b[1] > byte(Noise) || b[2]&^(flagQuestion|flagDetected) != 0 {
		return rec{}, nil, errDoc
	}
	h.kind, h.flags = Kind(b[1]), b[2]
	b = b[3:]
	var n [6]uint32
	for i := range n {
		v, k := binary.Uvarint(b)
		if k <= 0 || v > maxNames {
			return rec{}, nil, errDoc
		}
		n[i], b = uint32(v), b[k:]
	}
	h.session, h.scope, h.sender, h.role, h.lang, h.main = n[0], n[1], n[2], n[3], n[4], n[5]
	t, k := binary.Varint(b)
	if k <= 0 {
		return rec{}, nil, errDoc
	}
	h.time = t
	return h, b[k:], nil
}

// maxNames bounds the numbers of names that are believed.
const maxNames = 1 << 26

// names interns strings. Number 0 is the empty string.
type names struct {
	byID []string
	ids  map[string]uint32
}

func newNames() names { return names{byID: []string{""}, ids: map[string]uint32{"": 0}} }

func (n *names) set(id uint32, s string) {
	for int(id) >= len(n.byID) {
		n.byID = append(n.byID, "")
	}
	n.byID[id] = s
	n.ids[s] = id
}

func (n *names) drop(id uint32) {
	delete(n.ids, n.byID[id])
	n.byID[id] = ""
}

// arena keeps forward documents in large chunks: a million small slices would cost the
// garbage collector more than the documents.
type arena struct {
	chunks [][]byte
	last   int // the chunk being filled
}

// span is a place in an arena.
type span struct {
	chunk, off, n uint32
}

const chunkSize = 1 << 20

func (a *arena) add(b []byte) span {
	if len(b) > chunkSize/4 {
		a.chunks = append(a.chunks, append([]byte(nil), b...))
		return span{uint32(len(a.chunks) - 1), 0, uint32(len(b))}
	}
	if len(a.chunks) == 0 || cap(a.chunks[a.last])-len(a.chunks[a.last]) < len(b) {
		a.chunks = append(a.chunks, make([]byte, 0, chunkSize))
		a.last = len(a.chunks) - 1
	}
	c := a.chunks[a.last]
	off := len(c)
	a.chunks[a.last] = append(c, b...)
	return span{uint32(a.last), uint32(off), uint32(len(b))}
}

func (a *arena) bytes(s span) []byte { return a.chunks[s.chunk][s.off : s.off+s.n : s.off+s.n] }

// columns is the store in memory. It is guarded by Store.mu.
type columns struct {
	names    names
	rows     []rec // ascending by seq; forgotten rows stay, dead, until the next Open
	arena    arena
	sessions map[uint32]*session
	scopes   map[uint32]int    // recallable rows of each
	talk     [Noise + 1]bitset // rows that can be recalled, by kind
	runs     map[uint32][]run  // scope → its rows of any kind, ascending; forgotten ones stay
	kinds    [Noise + 1]int
	live     int
	sums     sums
}

func newColumns() *columns {
	return &columns{names: newNames(), sessions: map[uint32]*session{}, scopes: map[uint32]int{}, runs: map[uint32][]run{}, sums: newSums()}
}

// slot finds the place of a row that is alive.
func (c *columns) slot(seq int64) (int, bool) {
	if len(c.rows) == 0 {
		return 0, false
	}
	i := seq - c.rows[0].seq
	if i < 0 {
		return 0, false
	}
	if i >= int64(len(c.rows)) || c.rows[i].seq != seq {
		// Rows are missing before it, no more than are missing at all.
		missing := c.rows[len(c.rows)-1].seq - c.rows[0].seq + 1 - int64(len(c.rows))
		lo, hi := int(max(0, i-missing)), int(min(i, int64(len(c.rows))))
		j := lo + sort.Search(max(0, hi-lo), func(j int) bool { return c.rows[lo+j].seq >= seq })
		if j >= hi || c.rows[j].seq != seq {
			return 0, false
		}
		i = int64(j)
	}
	return int(i), c.rows[i].alive()
}

// after is the first slot whose row is greater than seq.
func (c *columns) after(seq int64) int {
	return sort.Search(len(c.rows), func(j int) bool { return c.rows[j].seq > seq })
}

func (c *columns) doc(r *rec) terms.Doc {
	d, err := terms.Parse(c.arena.bytes(r.doc))
	if err != nil {
		panic("index: a document changed in memory: " + err.Error()) // add parsed these bytes
	}
	return d
}

// add takes in a row. Where sorted is false the caller settles the sessions afterwards.
func (c *columns) add(r rec, raw []byte, d terms.Doc, sorted bool) {
	r.doc = c.arena.add(raw)
	r.words = uint32(d.Words())
	slot := len(c.rows)
	c.rows = append(c.rows, r)
	c.count(&c.rows[slot], d, 1)
	c.enrol(slot)
	c.mark(slot, true)
	s := c.session(r.session)
	if sorted {
		c.enlist(s, int32(slot))
		return
	}
	s.all = append(s.all, int32(slot))
}

func (c *columns) session(id uint32) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{}
		c.sessions[id] = s
	}
	return s
}

// replace puts a new document, kind and time in a row's place.
func (c *columns) replace(slot int, h rec, raw []byte, d terms.Doc) {
	r := &c.rows[slot]
	c.count(r, c.doc(r), -1)
	c.mark(slot, false)
	c.delist(c.sessions[r.session], int32(slot))
	r.kind, r.flags, r.lang, r.main, r.time = h.kind, h.flags, h.lang, h.main, h.time
	r.words, r.doc = uint32(d.Words()), c.arena.add(raw)
	c.count(r, d, 1)
	c.mark(slot, true)
	c.enlist(c.session(r.session), int32(slot))
}

// remove marks a row as forgotten.
func (c *columns) remove(slot int) {
	r := &c.rows[slot]
	c.count(r, c.doc(r), -1)
	c.mark(slot, false)
	s := c.sessions[r.session]
	c.delist(s, int32(slot))
	if len(s.all) == 0 {
		delete(c.sessions, r.session)
	}
	r.flags |= flagDead
	r.doc = span{}
}

// count keeps the totals; by is 1 or -1.
func (c *columns) count(r *rec, d terms.Doc, by int) {
	c.live += by
	c.kinds[r.kind] += by
	if !recallable(r.kind) {
		return
	}
	c.scopes[r.scope] += by
	if c.scopes[r.scope] == 0 {
		delete(c.scopes, r.scope)
	}
	c.sums.count(c, r, d, by)
}

func (c *columns) talks() int { return c.kinds[Said] + c.kinds[Tool] }

// row is the public form of a record.
func (c *columns) row(r *rec) Row {
	n := c.names.byID
	return Row{
		Seq: r.seq, Session: n[r.session], Scope: n[r.scope], Sender: n[r.sender], Role: n[r.role],
		Kind: r.kind, Time: time.UnixMilli(r.time).UTC(), Lang: terms.Lang(n[r.lang]),
		Words: int(r.words), Question: r.flags&flagQuestion != 0,
	}
}
