package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Forget removes rows with all that was derived from them and returns how many. Their
// identity keys stay, as hashes, so that storing the same messages again does not bring them
// back. Deleted content is overwritten in the log at once; the files of the lexical index are
// made anew in the background (Status says "erasing", Settle waits for it), which the next Open
// resumes.
func (s *Store) Forget(ctx context.Context, sel Selection) (int, error) {
	return s.remove(ctx, sel, removal{bury: true, erase: true})
}

// removal says what is left of rows that are removed.
type removal struct {
	bury  bool // their identities stay, so that they do not come back
	erase bool // their words are erased from the files of the lexical index
}

func (s *Store) remove(ctx context.Context, sel Selection, how removal) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	done, err := s.write(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	s.mu.RLock()
	seqs := s.cols.selected(sel)
	s.mu.RUnlock()
	if len(seqs) == 0 {
		return 0, nil
	}
	changes, err := s.forget(ctx, sel, seqs, how)
	if err != nil {
		return 0, fmt.Errorf("forget: %w", err)
	}
	s.mu.Lock()
	for _, seq := range seqs {
		if slot, ok := s.cols.slot(seq); ok {
			s.dropInMemory(slot)
			s.cols.remove(slot)
		}
	}
	s.words.announce(nil, changes)
	if how.erase {
		s.words.eraseSoon()
	}
	s.mu.Unlock()
	s.relift()
	if err := s.dropNames(ctx); err != nil {
		s.trouble("drop unused names", err)
	}
	if how.erase {
		if err := s.words.dropAside(); err != nil {
			s.trouble("remove damaged indexes", err)
		}
		if err := s.truncateLog(ctx); err != nil {
			s.trouble("truncate the write-ahead log", err)
		}
	}
	s.words.wake()
	return len(seqs), nil
}

// truncateLog empties the write-ahead log, which holds pages as they were before. Readers can hold it
// for as long as one query takes.
func (s *Store) truncateLog(ctx context.Context) error {
	const limit = 10 * time.Second
	for start := time.Now(); time.Since(start) < limit; {
		var busy, pages, moved int
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.durable.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
			return err
		}
		if busy == 0 {
			return nil
		}
	}
	return errors.New("a reader holds it: what was forgotten is in it until the store is closed")
}

// dropAside removes the damaged indexes that were kept: they hold words of what was forgotten.
func (w *words) dropAside() error {
	old, err := filepath.Glob(w.path + ".broken-*")
	for _, p := range old {
		err = errors.Join(err, os.RemoveAll(p))
	}
	return err
}

// Oldest returns the n oldest rows, in order of time, then row; all where
// there are fewer.
func (s *Store) Oldest(n int) []int64 {
	type aged struct{ time, seq int64 }
	s.mu.RLock()
	rows := make([]aged, 0, s.cols.live)
	for i := range s.cols.rows {
		if r := &s.cols.rows[i]; r.alive() {
			rows = append(rows, aged{r.time, r.seq})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(rows, func(a, b aged) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.seq, b.seq)) })
	out := make([]int64, 0, max(0, min(n, len(rows))))
	for _, r := range rows[:cap(out)] {
		out = append(out, r.seq)
	}
	return out
}

// Used returns how many bytes of the store's files hold something: without the pages that deleted
// rows left behind, which are used again.
func (s *Store) Used(ctx context.Context) (int64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if s.words != nil { // files that are being made anew are not yet as large as they will be
		if err := s.words.until(ctx, func(f *followState) bool { return f.down || f.settled() }); err != nil {
			return 0, err
		}
		select {
		case <-s.words.follow.onDisk():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	var pages, free, size int64
	for stmt, to := range map[string]*int64{"PRAGMA page_count": &pages, "PRAGMA freelist_count": &free, "PRAGMA page_size": &size} {
		if err := s.reads.QueryRowContext(ctx, stmt).Scan(to); err != nil {
			return 0, fmt.Errorf("measure the log: %w", err)
		}
	}
	sizes := s.sizes()
	return (pages-free)*size + sizes["words"] + sizes["set aside"], nil
}

// Shrink gives the space that deleted rows left behind back to the file system. It writes the log
// anew, during which appends wait.
func (s *Store) Shrink(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := patient(ctx, func() error {
		_, err := s.durable.ExecContext(ctx, `VACUUM`)
		return err
	}); err != nil {
		return fmt.Errorf("shrink the log: %w", err)
	}
	if err := s.truncateLog(ctx); err != nil {
		return fmt.Errorf("shrink the log: %w", err)
	}
	return nil
}

// gone is when what is selected is forgotten.
func (sel Selection) gone() time.Time {
	if sel.At.IsZero() {
		return time.Now()
	}
	return sel.At
}

// selected lists the rows of a selection, ascending.
func (c *columns) selected(sel Selection) []int64 {
	var out []int64
	if len(sel.Seqs) == 0 && sel.Session == "" && sel.Before.IsZero() && !sel.All {
		return nil
	}
	want := make(map[int64]bool, len(sel.Seqs))
	for _, seq := range sel.Seqs {
		want[seq] = true
	}
	session, known := c.names.ids[sel.Session]
	for i := range c.rows {
		r := &c.rows[i]
		if !r.alive() || len(want) > 0 && !want[r.seq] ||
			sel.Session != "" && (!known || r.session != session) ||
			!sel.Before.IsZero() && r.time >= sel.Before.UnixMilli() {
			continue
		}
		out = append(out, r.seq)
	}
	return out
}

func (s *Store) forget(ctx context.Context, sel Selection, seqs []int64, how removal) ([]change, error) {
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	list := jsonInts(seqs)
	unname := `DELETE FROM identities WHERE hash=?`
	if how.bury {
		unname = fmt.Sprintf(`UPDATE identities SET seq=%d WHERE hash=?`, -sel.gone().UnixMilli())
	}
	if err := eachIdentity(ctx, tx, list, unname); err != nil {
		return nil, err
	}
	if how.bury { // a message has several identities: how many messages went is counted apart from them
		if _, err := tx.ExecContext(ctx, `INSERT INTO state VALUES('store', 'forgotten', (SELECT COUNT(*) FROM messages WHERE seq IN (SELECT value FROM json_each(?))))
			ON CONFLICT DO UPDATE SET value = value + excluded.value`, list); err != nil {
			return nil, err
		}
	}
	for _, stmt := range []string{
		`DELETE FROM messages WHERE seq IN (SELECT value FROM json_each(?))`,
		`DELETE FROM docs WHERE seq IN (SELECT value FROM json_each(?))`,
		`DELETE FROM failures WHERE seq IN (SELECT value FROM json_each(?))`,
	} {
		if _, err := tx.ExecContext(ctx, stmt, list); err != nil {
			return nil, err
		}
	}
	for _, n := range s.spaceNumbers() {
		keys := make([]int64, len(seqs))
		for i, seq := range seqs {
			keys[i] = vectorKey(n, seq)
		}
		for _, table := range []string{"vectors", "floats"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE key IN (SELECT value FROM json_each(?))`, jsonInts(keys)); err != nil {
				return nil, err
			}
		}
	}
	if how.erase {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO state VALUES('store', 'erase', '1')`); err != nil {
			return nil, err
		}
	}
	changes, err := addChanges(ctx, tx, seqs)
	if err != nil {
		return nil, err
	}
	return changes, tx.Commit()
}

// eachIdentity does something to the identities of rows.
func eachIdentity(ctx context.Context, tx *sql.Tx, list, stmt string) error {
	rows, err := tx.QueryContext(ctx, `SELECT keys FROM messages WHERE seq IN (SELECT value FROM json_each(?))`, list)
	if err != nil {
		return err
	}
	defer rows.Close()
	var hashes [][]byte
	for rows.Next() {
		var keys string
		if err := rows.Scan(&keys); err != nil {
			return err
		}
		for key := range strings.SplitSeq(keys, "\n") {
			hashes = append(hashes, hashKey(key))
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	set, err := tx.PrepareContext(ctx, stmt)
	if err != nil {
		return err
	}
	defer set.Close()
	for _, h := range hashes {
		if _, err := set.ExecContext(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func addChanges(ctx context.Context, tx *sql.Tx, seqs []int64) ([]change, error) {
	add, err := tx.PrepareContext(ctx, `INSERT INTO changes(seq) VALUES(?)`)
	if err != nil {
		return nil, err
	}
	defer add.Close()
	out := make([]change, len(seqs))
	for i, seq := range seqs {
		res, err := add.ExecContext(ctx, seq)
		if err != nil {
			return nil, err
		}
		n, err := res.LastInsertId()
		if err != nil {
			return nil, err
		}
		out[i] = change{n, seq}
	}
	return out, nil
}

// dropNames deletes strings that no row refers to any more: a session's key can name a person.
func (s *Store) dropNames(ctx context.Context) error {
	s.mu.RLock()
	c := s.cols
	used := make([]bool, len(c.names.byID))
	for i := range c.rows {
		if r := &c.rows[i]; r.alive() {
			for _, id := range [...]uint32{r.session, r.scope, r.sender, r.role, r.lang, r.main} {
				used[id] = true
			}
		}
	}
	var unused []int64
	for id, name := range c.names.byID {
		if id > 0 && name != "" && !used[id] {
			unused = append(unused, int64(id))
		}
	}
	s.mu.RUnlock()
	if len(unused) == 0 {
		return nil
	}
	if _, err := execute(ctx, s.durable, `DELETE FROM names WHERE id IN (SELECT value FROM json_each(?))`, jsonInts(unused)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Backward(unused) {
		c.names.drop(uint32(id))
	}
	return nil
}
