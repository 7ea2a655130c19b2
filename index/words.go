package index

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	bleve "github.com/blevesearch/bleve_index_api"
	"go.etcd.io/bbolt"
	bolt "go.etcd.io/bbolt/errors"
)

// words is the lexical index, a follower of the rows: what it holds is what the rows up to
// its cursor say, and the cursor is written in the same batch as the documents. Its batches are
// not synced to disk; after a crash it is an older state of itself and replays from there.
//
// A document has the fields below, without stored text, doc values or positions. Its id is the
// row number, 8 bytes big-endian.
type words struct {
	s      *Store
	path   string
	owner  []byte // which store and analysis the index must belong to
	signal chan struct{}

	mu    sync.RWMutex // read-held while idx is used
	idx   bleve.Index  // nil while unavailable
	queue *bleve.AnalysisQueue

	follow followState
	coming *renewal // under way; the follower's own
}

const (
	fieldTerms   = "t"
	fieldScope   = "s"
	fieldSession = "l"
	fieldKind    = "k"
)

// The internal values of the index.
var (
	internalOwner  = []byte("owner")
	internalRow    = []byte("row")
	internalChange = []byte("change")
)

// wordDoc is what the lexical index takes in of one row. Rows that are not recallable pass
// through without a document.
type wordDoc struct {
	seq            int64
	keys           []string
	session, scope string
	kind           Kind
}

// spaceAnalyzer is the analyzer of the lexical index: package terms has done the work.
type spaceAnalyzer struct{}

// Analyze cuts at spaces.
func (spaceAnalyzer) Analyze(text []byte) analysis.TokenStream {
	out := make(analysis.TokenStream, 0, 1+bytes.Count(text, []byte{' '}))
	for at, pos := 0, 1; at < len(text); pos++ {
		end := bytes.IndexByte(text[at:], ' ')
		if end < 0 {
			end = len(text) - at
		}
		if end > 0 {
			out = append(out, &analysis.Token{Start: at, End: at + end, Term: text[at : at+end : at+end], Position: pos})
		}
		at += end + 1
	}
	return out
}

func (d *wordDoc) document() bleve.Document {
	doc := document.NewDocument(string(docID(d.seq)))
	add := func(name, value string, opts bleve.FieldIndexingOptions, an analysis.Analyzer) {
		doc.AddField(document.NewTextFieldCustom(name, nil, []byte(value), opts, an))
	}
	add(fieldTerms, strings.Join(d.keys, " "), bleve.IndexField, spaceAnalyzer{})
	add(fieldScope, d.scope, bleve.IndexField|bleve.SkipFreqNorm, nil)
	add(fieldSession, d.session, bleve.IndexField|bleve.SkipFreqNorm, nil)
	add(fieldKind, kindTerm(d.kind), bleve.IndexField|bleve.SkipFreqNorm, nil)
	doc.AddIDField()
	return doc
}

func kindTerm(k Kind) string { return string(rune('0' + k)) }

func docID(seq int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(seq)) }

func seqOf(id string) int64 {
	if len(id) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(id)))
}

// cursor is how far an index has followed the rows.
type cursor struct {
	row    int64 // rows up to this one are in
	change int64 // changes up to this one are in
}

func cursorOf(r bleve.IndexReader) (cursor, error) {
	row, err := r.GetInternal(internalRow)
	if err != nil {
		return cursor{}, err
	}
	change, err := r.GetInternal(internalChange)
	if err != nil {
		return cursor{}, err
	}
	c := cursor{}
	if len(row) == 8 {
		c.row = int64(binary.BigEndian.Uint64(row))
	}
	if len(change) == 8 {
		c.change = int64(binary.BigEndian.Uint64(change))
	}
	return c, nil
}

// openWords opens the lexical index, compares it with the rows and starts following them.
func (s *Store) openWords(ctx context.Context) error {
	w := &words{s: s, path: filepath.Join(s.dir, "words"), signal: make(chan struct{}, 1)}
	w.follow.init()
	s.words = w
	var id []byte
	if err := s.reads.QueryRowContext(ctx, `SELECT value FROM state WHERE bucket='store' AND key='id'`).Scan(&id); err != nil {
		return fmt.Errorf("store id: %w", err)
	}
	var made []byte // changes whenever all that is derived was made again
	err := s.reads.QueryRowContext(ctx, `SELECT value FROM state WHERE bucket='store' AND key='words'`).Scan(&made)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("owner of the lexical index: %w", err)
	}
	w.owner = []byte(hex.EncodeToString(id) + " analysis " + analysisVersion)
	if len(made) > 0 {
		w.owner = append(w.owner, " "+hex.EncodeToString(made)...)
	}
	if err := w.follow.load(ctx, s); err != nil {
		return err
	}
	w.open()
	s.tasks.Go(func() { w.run(s.ctx) })
	w.wake()
	return nil
}

// open makes an index ready, a new one where there is none or it cannot be trusted. Where it
// can be neither opened nor set aside, words are matched by scanning until it can.
func (w *words) open() {
	cur, fresh, err := w.attach()
	if err != nil && !transient(err) {
		w.s.trouble("lexical index set aside, to be rebuilt from the rows", err)
		if err = w.setAside(); err == nil {
			cur, fresh, err = w.attach()
		}
	}
	if err != nil {
		w.detach()
		w.s.trouble("lexical index unavailable; words are matched by scanning", err)
		w.follow.unavailable()
		return
	}
	w.follow.start(cur, fresh)
}

// transient errors say nothing about the index: deleting or replacing it would not help.
func transient(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, bolt.ErrTimeout) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EIO) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// attach opens the files and checks that they belong to the rows.
func (w *words) attach() (cur cursor, fresh bool, err error) {
	entries, err := os.ReadDir(w.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cursor{}, false, err
	}
	fresh = len(entries) == 0
	if err := wholeRoot(filepath.Join(w.path, "root.bolt")); err != nil {
		return cursor{}, false, err
	}
	err = guarded(func() error {
		idx, queue, err := openScorch(w.path)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.idx, w.queue = idx, queue
		w.mu.Unlock()
		if fresh {
			return idx.SetInternal(internalOwner, w.owner)
		}
		return nil
	})
	if err == nil && !fresh {
		cur, err = w.compare()
	}
	if err != nil {
		w.detach()
	}
	return cur, fresh, err
}

// openScorch opens an index, or makes it where there is none.
func openScorch(path string) (idx bleve.Index, queue *bleve.AnalysisQueue, err error) {
	queue = bleve.NewAnalysisQueue(2)
	err = guarded(func() error {
		idx, err = scorch.NewScorch(scorch.Name, map[string]any{
			"path": path, "unsafe_batch": true, "bolt_timeout": "2s", "numSnapshotsToKeep": 1,
		}, queue)
		if err == nil {
			err = idx.Open()
		}
		return err
	})
	if err != nil { // which may be a panic
		queue.Close()
		return nil, nil, err
	}
	return idx, queue, nil
}

// wholeRoot says what is missing of the index's root file. bleve maps it into memory and reads it in
// goroutines of its own, where a page beyond the end of the file would be the end of the process.
func wholeRoot(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new index
	}
	if err != nil {
		return err
	}
	return guarded(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 2 * time.Second})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("root.bolt has %d of %d bytes: %w", info.Size(), tx.Size(), errDamaged)
			}
			return nil
		})
	})
}

// compare checks an existing index against the rows as far as it has followed them.
func (w *words) compare() (cur cursor, err error) {
	err = guarded(func() error {
		r, err := w.idx.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		owner, err := r.GetInternal(internalOwner)
		if err != nil {
			return err
		}
		if !bytes.Equal(owner, w.owner) {
			return errors.New("it belongs to another store or version")
		}
		if cur, err = cursorOf(r); err != nil {
			return err
		}
		have, err := r.DocCount()
		if err != nil {
			return err
		}
		return w.follow.plausible(w.s, cur, int(have))
	})
	return cur, err
}

// guarded runs f so that a damaged memory-mapped file or a decoder that trips over it is an
// error and not the end of the process.
func guarded(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("lexical index: %w: %v", errDamaged, p)
		}
	}()
	return f()
}

// errDamaged marks what guarded caught.
var errDamaged = errors.New("damaged file")

// detach closes the index, if there is one.
func (w *words) detach() {
	w.mu.Lock()
	idx, queue := w.idx, w.queue
	w.idx, w.queue = nil, nil
	w.mu.Unlock()
	if idx == nil {
		return
	}
	if err := guarded(idx.Close); err != nil {
		w.s.errors.add("close lexical index", err)
	}
	queue.Close()
}

// WordsState says how the lexical index is: see Status.
func (s *Store) WordsState() string {
	if s.words == nil {
		return "not opened"
	}
	s.words.follow.mu.Lock()
	defer s.words.follow.mu.Unlock()
	return s.words.follow.state()
}

// closeWait bounds how long Close lets the index write what it holds in memory; the next Open
// replays what it did not.
const closeWait = 2 * time.Second

func (w *words) close() {
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-w.follow.onDisk():
	case <-t.C:
	}
	w.detach()
	if err := w.abandon(); err != nil {
		w.s.errors.add("remove an unfinished lexical index", err)
	}
}

// keptAside is how many damaged indexes are kept for inspection.
const keptAside = 2

// setAside renames the directory of a damaged index to words.broken-<n>.
func (w *words) setAside() error {
	w.detach()
	last := 0
	var kept []int
	old, err := filepath.Glob(w.path + ".broken-*")
	if err != nil {
		return err
	}
	for _, p := range old {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(p, w.path+".broken-"), "%d", &n); err == nil {
			kept = append(kept, n)
			last = max(last, n)
		}
	}
	for _, n := range kept {
		if n <= last+1-keptAside {
			if err := os.RemoveAll(fmt.Sprintf("%s.broken-%d", w.path, n)); err != nil {
				return err
			}
		}
	}
	return os.Rename(w.path, fmt.Sprintf("%s.broken-%d", w.path, last+1))
}
