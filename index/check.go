package index

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	bleve "github.com/blevesearch/bleve_index_api"

	"hark/index/terms"
)

// maxDifferences bounds what Check spells out.
const maxDifferences = 50

func (r *Report) differ(format string, args ...any) {
	r.Problems++
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// Check compares the rows with their columns, the lexical index and the vectors, after letting
// the lexical index catch up. It reads everything; the error says that it could not finish,
// differences are in the Report. Where there are any, the next Open for writing makes all that is
// derived from the rows again.
func (s *Store) Check(ctx context.Context) (Report, error) {
	if err := s.enter(); err != nil {
		return Report{}, err
	}
	defer s.leave()
	if s.words != nil {
		if err := s.words.until(ctx, func(f *followState) bool { return f.down || f.settled() }); err != nil {
			return Report{}, err
		}
	}
	// Nobody writes while the sides are compared.
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	var r Report
	for _, part := range []func(context.Context, *Report) error{s.checkLog, s.checkRows, s.checkIdentities, s.checkWords, s.checkVectors} {
		if err := part(ctx, &r); err != nil {
			return r, fmt.Errorf("check: %w", err)
		}
	}
	if !r.OK() && !s.opts.ReadOnly {
		if _, err := execute(ctx, s.durable, `INSERT OR REPLACE INTO state VALUES('store', 'derive', '1')`); err != nil {
			return r, fmt.Errorf("check: note the differences: %w", err)
		}
	}
	return r, nil
}

// checkLog asks SQLite for the state of its file.
func (s *Store) checkLog(ctx context.Context, r *Report) error {
	rows, err := s.reads.QueryContext(ctx, `PRAGMA quick_check(10)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			r.differ("log.sqlite: %s", line)
		}
	}
	return rows.Err()
}

// checkRows compares every row with what is kept of it in memory.
func (s *Store) checkRows(ctx context.Context, r *Report) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT m.seq, m.session, m.scope, m.sender, m.role, m.kind, m.time_ms, m.text, m.caption, d.body
		FROM messages m LEFT JOIN docs d USING(seq) ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var m Message
		var ms int64
		var body []byte
		if err := rows.Scan(&m.Seq, &m.Session, &m.Scope, &m.Sender, &m.Role, &m.Kind, &ms, &m.Text, &m.Caption, &body); err != nil {
			return err
		}
		m.Time = unixMilli(ms)
		r.Rows++
		if recallable(m.Kind) {
			r.Recallable++
		}
		s.checkRow(&m, body, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.cols.live != r.Rows {
		r.differ("memory has %d rows, the log %d", s.cols.live, r.Rows)
	}
	var orphans int
	err = s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs WHERE seq NOT IN (SELECT seq FROM messages)`).Scan(&orphans)
	if orphans > 0 {
		r.differ("docs: %d rows without a message", orphans)
	}
	return err
}

func (s *Store) checkRow(m *Message, body []byte, r *Report) {
	h, raw, err := decodeDoc(body)
	if err != nil {
		r.differ("row %d: docs: %v", m.Seq, err)
		return
	}
	doc, _, _ := s.analyzer.Doc(input(m, s.langName(h.main)))
	if string(doc.Bytes()) != string(raw) {
		r.differ("row %d: its terms are not those of its text", m.Seq)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	slot, ok := s.cols.slot(m.Seq)
	if !ok {
		r.differ("row %d: not in memory", m.Seq)
		return
	}
	rec := &s.cols.rows[slot]
	row := s.cols.row(rec)
	if row.Session != m.Session || row.Scope != m.Scope || row.Sender != m.Sender || row.Role != m.Role ||
		row.Kind != m.Kind || !row.Time.Equal(m.Time) || row.Question != terms.EndsInQuestion(m.Text) {
		r.differ("row %d: columns differ from the log", m.Seq)
	}
	if string(s.cols.arena.bytes(rec.doc)) != string(raw) {
		r.differ("row %d: forward document differs from the log", m.Seq)
	}
}

// checkIdentities looks for keys of rows that are gone and rows whose keys are unknown.
func (s *Store) checkIdentities(ctx context.Context, r *Report) error {
	var dangling int
	if err := s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM identities WHERE seq > 0 AND seq NOT IN (SELECT seq FROM messages)`).Scan(&dangling); err != nil {
		return err
	}
	if dangling > 0 {
		r.differ("identities: %d keys of rows that do not exist", dangling)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, keys FROM messages ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	known, err := s.reads.PrepareContext(ctx, `SELECT COUNT(*) FROM identities WHERE hash=?`)
	if err != nil {
		return err
	}
	defer known.Close()
	for rows.Next() {
		var seq int64
		var keys string
		if err := rows.Scan(&seq, &keys); err != nil {
			return err
		}
		first, _, _ := strings.Cut(keys, "\n")
		var n int
		if err := known.QueryRowContext(ctx, hashKey(first)).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			r.differ("row %d: its key is not among the identities", seq)
		}
	}
	return rows.Err()
}

// checkWords compares the documents of the lexical index with the recallable rows.
func (s *Store) checkWords(ctx context.Context, r *Report) error {
	if s.words == nil {
		return nil
	}
	w := s.words
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.idx == nil {
		r.differ("words: the lexical index is unavailable")
		return nil
	}
	var ids []int64
	err := guarded(func() (err error) {
		ids, err = indexedRows(w.idx)
		return err
	})
	if err != nil {
		r.differ("words: %v", err)
		w.damaged(err)
		return nil
	}
	r.Words = len(ids)
	slices.Sort(ids)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, seq := range ids {
		if slot, ok := s.cols.slot(seq); !ok || !s.cols.rows[slot].talk() {
			r.differ("words: row %d is indexed and not recallable", seq)
		}
		if i > 0 && ids[i-1] == seq {
			r.differ("words: row %d is indexed twice", seq)
		}
	}
	for i := range s.cols.rows {
		if rec := &s.cols.rows[i]; rec.talk() {
			if _, ok := slices.BinarySearch(ids, rec.seq); !ok {
				r.differ("words: row %d is missing", rec.seq)
			}
		}
	}
	return nil
}

func indexedRows(idx bleve.Index) ([]int64, error) {
	reader, err := idx.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	all, err := reader.DocIDReaderAll()
	if err != nil {
		return nil, err
	}
	defer all.Close()
	var out []int64
	for {
		id, err := all.Next()
		if err != nil || id == nil {
			return out, err
		}
		ext, err := reader.ExternalID(id)
		if err != nil {
			return nil, err
		}
		out = append(out, seqOf(ext))
	}
}

// checkVectors decodes every vector and compares its two forms.
func (s *Store) checkVectors(ctx context.Context, r *Report) error {
	s.mu.RLock()
	dims := map[int64]int{}
	for _, sp := range s.spaces {
		dims[sp.n] = sp.Dim
	}
	s.mu.RUnlock()
	rows, err := s.reads.QueryContext(ctx, `SELECT v.key, v.body, f.body, f.key IS NOT NULL FROM vectors v LEFT JOIN floats f USING(key) ORDER BY v.key`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		var q, f []byte
		var both bool
		if err := rows.Scan(&key, &q, &f, &both); err != nil {
			return err
		}
		r.Vectors++
		s.checkVector(key, dims[key>>40], q, f, both, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var alone int
	err = s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM floats WHERE key NOT IN (SELECT key FROM vectors)`).Scan(&alone)
	if alone > 0 {
		r.differ("floats: %d rows without quantised vectors", alone)
	}
	return err
}

func (s *Store) checkVector(key int64, dim int, q, f []byte, both bool, r *Report) {
	seq := key & seqMask
	s.mu.RLock()
	_, alive := s.cols.slot(seq)
	s.mu.RUnlock()
	switch {
	case dim == 0:
		r.differ("vectors: row %d belongs to no space", seq)
		return
	case !alive:
		r.differ("vectors: row %d is not in the log", seq)
	case !both:
		r.differ("vectors: row %d has no exact form", seq)
		return
	}
	parts, err := decodeFloats(f, dim)
	if err != nil {
		r.differ("vectors: row %d: %v", seq, err)
		return
	}
	for _, p := range parts {
		if _, err := unit(p.v, dim); err != nil {
			r.differ("vectors: row %d, part %d: %v", seq, p.n, err)
		}
	}
	if string(encodeQuantised(parts)) != string(q) {
		r.differ("vectors: row %d: quantised and exact form differ", seq)
	}
}

// Status describes the store.
func (s *Store) Status(ctx context.Context) (Status, error) {
	if err := s.enter(); err != nil {
		return Status{}, err
	}
	defer s.leave()
	st := Status{Dir: s.dir, Schema: schemaVersion, WordsState: "not opened", Errors: s.errors.list()}
	if err := s.reads.QueryRowContext(ctx, `SELECT COALESCE((SELECT value FROM state WHERE bucket='store' AND key='forgotten'), 0)`).Scan(&st.Forgotten); err != nil {
		return st, fmt.Errorf("status: %w", err)
	}
	if s.words != nil {
		s.words.status(&st)
	}
	s.mu.RLock()
	wants := make([]Space, 0, len(s.spaces))
	for want := range s.spaces {
		wants = append(wants, want)
	}
	s.mu.RUnlock()
	for _, want := range wants {
		if _, err := s.space(ctx, want, false); err != nil {
			return st, fmt.Errorf("status: %w", err)
		}
	}
	s.mu.RLock()
	st.Rows, st.Recallable, st.Sessions = s.cols.live, s.cols.talks(), len(s.cols.sessions)
	for _, sp := range s.spaces {
		st.Spaces = append(st.Spaces, s.spaceStatus(sp))
	}
	s.mu.RUnlock()
	slices.SortFunc(st.Spaces, func(a, b SpaceStatus) int { return strings.Compare(a.Space.ID, b.Space.ID) })
	st.Bytes = s.sizes()
	return st, nil
}

func (s *Store) spaceStatus(sp *space) SpaceStatus {
	out := SpaceStatus{Space: sp.Space, Stored: sp.has.count(), Pending: s.cols.pending(sp), Failed: len(sp.failed), InUse: s.use == sp}
	if sp.leg != nil {
		out.Leg, out.Loaded = sp.leg.name(), sp.leg.count()
	}
	return out
}

func (w *words) status(st *Status) {
	w.follow.mu.Lock()
	st.WordsState, st.WordsLag = w.follow.state(), int(w.follow.lag())
	w.follow.mu.Unlock()
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.idx == nil {
		return
	}
	err := guarded(func() error {
		r, err := w.idx.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		n, err := r.DocCount()
		st.Words = int(n)
		return err
	})
	if err != nil {
		st.Errors = append(st.Errors, "lexical index: "+err.Error())
	}
}

// sizes adds up the files of each part; what vanishes meanwhile counts as nothing.
func (s *Store) sizes() map[string]int64 {
	out := map[string]int64{"log": 0, "words": 0, "set aside": 0}
	_ = filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it vanished meanwhile
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it vanished meanwhile
		}
		rel, _ := filepath.Rel(s.dir, path)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		switch {
		case strings.HasPrefix(top, "log.sqlite"):
			out["log"] += info.Size()
		case top == "words" || top == "words.next":
			out["words"] += info.Size()
		case strings.HasPrefix(top, "words.broken-"):
			out["set aside"] += info.Size()
		}
		return nil
	})
	return out
}
