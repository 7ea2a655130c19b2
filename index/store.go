package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"hark/index/terms"
)

// Store is the memory of one agent, in one directory. All methods are safe for concurrent
// use: appends, forgetting and storing vectors take turns, reads go on beside them.
type Store struct {
	dir      string
	log      *slog.Logger
	opts     Options
	lock     *os.File // nil when read-only
	copied   string   // folder with a copy of the log, "" where it is read in place
	analyzer *terms.Analyzer

	durable *sql.DB // one connection, synchronous=FULL: rows
	bulk    *sql.DB // one connection, synchronous=NORMAL: vectors, which can be made again
	reads   *sql.DB
	stmts   statements

	life   sync.RWMutex // read-held during every call; Close takes it
	closed atomic.Bool
	stop   context.CancelFunc // ends the background work
	ctx    context.Context    // of the background work
	tasks  sync.WaitGroup

	writing chan struct{} // holds one token while somebody writes; taken before mu

	mu     sync.RWMutex // cols, spaces, use
	cols   *columns
	spaces map[Space]*space
	use    *space

	salts atomic.Pointer[[][]byte] // of the marks

	words  *words // nil when read-only
	errors errorLog
}

const lockWait = 3 * time.Second

// Open opens or creates the store in dir, and replays into the lexical index what it lacks;
// a long replay goes on in the background. Another writer is waited for no longer than
// Options.LockWait and then reported as ErrLocked; a newer schema as ErrNewer.
func Open(ctx context.Context, dir string, opts *Options) (*Store, error) {
	s, err := prepare(dir, opts)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, remedied(err)), s.release())
	}
	return s, nil
}

// remedied adds what to do to errors of SQLite about its file.
func remedied(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("log.sqlite, which holds the messages, is damaged: restore it from a backup, or move the folder away and import again: %w", err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("the folder cannot be written: make it writable, or copy it to where it is: %w", err)
	}
	return err
}

func prepare(dir string, opts *Options) (*Store, error) {
	s := &Store{
		dir: dir, analyzer: terms.New(), writing: make(chan struct{}, 1),
		cols: newColumns(), spaces: map[Space]*space{},
	}
	if opts != nil {
		s.opts = *opts
	}
	switch s.opts.Vectors {
	case "":
		s.opts.Vectors = "auto"
	case "auto", "exact", "flat":
	default:
		return nil, fmt.Errorf("index: vectors %q: use auto, exact or flat", s.opts.Vectors)
	}
	if s.opts.LockWait == 0 {
		s.opts.LockWait = lockWait
	}
	if s.log = s.opts.Log; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.opts.ReadOnly {
		if _, err := os.Stat(filepath.Join(s.dir, "log.sqlite")); err != nil {
			return err
		}
	} else {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		if s.lock, err = lockDir(ctx, s.dir, s.opts.LockWait); err != nil {
			return err
		}
		if err := s.openWriters(ctx); err != nil {
			return err
		}
	}
	if s.reads, err = openDB(s.dir, "", true, 4); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		if err := s.readable(ctx); err != nil {
			return err
		}
	}
	if have, err := schemaOf(ctx, s.reads); err != nil {
		return err
	} else if have > schemaVersion {
		return newer(s.dir, have)
	} else if have == 0 && s.hasWords() {
		return errNoRows
	} else if have < schemaVersion {
		return fmt.Errorf("schema version %d: open it for writing once, so that it can be brought to %d", have, schemaVersion)
	}
	err = s.load(ctx)
	if !s.opts.ReadOnly && (errors.Is(err, errDoc) || errors.Is(err, terms.ErrDoc)) {
		// What is kept of the rows beside them can be made again.
		s.trouble("columns unreadable, analysing all messages again", err)
		s.cols, s.spaces = newColumns(), map[Space]*space{}
		if err = s.reanalyse(ctx); err == nil {
			err = s.load(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	if s.opts.ReadOnly {
		return nil
	}
	if err := s.stmts.prepare(ctx, s.durable); err != nil {
		return err
	}
	return s.openWords(ctx)
}

// private makes a file that only its owner may read and write, or makes it so. An empty file is a new
// database.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err = f.Chmod(0o600)
	}
	return errors.Join(err, f.Close())
}

// readable makes the log readable where nothing can be written beside it, as SQLite's shared memory has
// to be: without a journal as it lies there, with one from a copy.
func (s *Store) readable(ctx context.Context) error {
	_, err := schemaOf(ctx, s.reads)
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	if code := e.Code() & 0xff; code != sqlite3.SQLITE_CANTOPEN && code != sqlite3.SQLITE_READONLY {
		return err
	}
	s.reads.Close()
	dir := s.dir
	if info, err := os.Stat(filepath.Join(s.dir, "log.sqlite-wal")); err == nil && info.Size() > 0 {
		if s.copied, err = copyLog(s.dir); err != nil {
			return fmt.Errorf("copy the log, because its folder cannot be written (TMPDIR says where to): %w", err)
		}
		if s.reads, err = openDB(s.copied, "", true, 4); err != nil {
			return err
		}
		_, err = schemaOf(ctx, s.reads)
		return err
	}
	s.reads, err = sql.Open("sqlite", dsn(dir, "", true)+"&immutable=1")
	if err != nil {
		return err
	}
	_, err = schemaOf(ctx, s.reads)
	return err
}

// copyLog copies the log with its journal into a folder of its own.
func copyLog(dir string) (to string, err error) {
	if to, err = os.MkdirTemp("", "hark-log-"); err != nil {
		return "", err
	}
	for _, name := range []string{"log.sqlite", "log.sqlite-wal"} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
			return "", errors.Join(err, os.RemoveAll(to))
		}
	}
	return to, nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (s *Store) openWriters(ctx context.Context) (err error) {
	// A newer schema must be refused before anything is written, the switch to WAL included.
	if _, err := os.Stat(filepath.Join(s.dir, "log.sqlite")); err == nil {
		ro, err := openDB(s.dir, "", true, 1)
		if err != nil {
			return err
		}
		have, err := schemaOf(ctx, ro)
		ro.Close()
		if err != nil {
			return err
		}
		if have > schemaVersion {
			return newer(s.dir, have)
		}
		if have == 0 && s.hasWords() {
			return errNoRows
		}
	} else if errors.Is(err, fs.ErrNotExist) && s.hasWords() {
		return errNoRows
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// SQLite would let others read what it makes; its other files follow this one.
	if err := private(filepath.Join(s.dir, "log.sqlite")); err != nil {
		return err
	}
	if s.durable, err = openDB(s.dir, "FULL", false, 1); err != nil {
		return err
	}
	if err := migrate(ctx, s.durable, s.dir); err != nil {
		return err
	}
	if err := watch(ctx, s.durable); err != nil {
		return err
	}
	s.bulk, err = openDB(s.dir, "NORMAL", false, 1)
	return err
}

// errNoRows: the rows are the truth, and an index without them is a store that lost its messages.
var errNoRows = errors.New("log.sqlite, which holds the messages, is empty or missing beside a filled index: restore it from a backup, or move the folder away to start anew")

// hasWords says whether the store has a lexical index, which nothing but rows brings about.
func (s *Store) hasWords() bool {
	entries, err := os.ReadDir(filepath.Join(s.dir, "words"))
	return err == nil && len(entries) > 0
}

// analysisVersion is the version of the forward documents and lexical terms. A store analysed
// otherwise is analysed again from its texts on Open.
const analysisVersion = "1"

// load reads the columns of all rows into memory.
func (s *Store) load(ctx context.Context) error {
	var done []byte
	err := s.reads.QueryRowContext(ctx, `SELECT value FROM state WHERE bucket='store' AND key='analysis'`).Scan(&done)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var due bool
	if err := s.reads.QueryRowContext(ctx, `SELECT EXISTS(SELECT 1 FROM state WHERE bucket='store' AND key='derive')`).Scan(&due); err != nil {
		return err
	}
	if !s.opts.ReadOnly && (string(done) != analysisVersion || due) {
		if err := s.reanalyse(ctx); err != nil {
			return fmt.Errorf("analyse again: %w", err)
		}
	}
	if err := s.loadSalts(ctx); err != nil {
		return err
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT id, name FROM names`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id uint32
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		if id > maxNames {
			return errDoc
		}
		s.cols.names.set(id, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := s.loadSpaces(ctx); err != nil {
		return err
	}
	return s.loadDocs(ctx)
}

func (s *Store) loadDocs(ctx context.Context) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, body FROM docs ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	c := s.cols
	var seq int64
	var body sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&seq, &body); err != nil {
			return err
		}
		h, raw, err := decodeDoc(body)
		if err != nil {
			return fmt.Errorf("row %d: %w", seq, err)
		}
		d, err := terms.Parse(raw)
		if err != nil {
			return fmt.Errorf("row %d: %w", seq, err)
		}
		for _, n := range [...]uint32{h.session, h.scope, h.sender, h.role, h.lang, h.main} {
			if int(n) >= len(c.names.byID) {
				return fmt.Errorf("row %d: %w", seq, errDoc)
			}
		}
		h.seq = seq
		c.add(h, raw, d, false)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if !s.opts.ReadOnly { // beside a writer the two readings may differ
		var n int
		if err := s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM messages`).Scan(&n); err != nil {
			return err
		}
		if n != c.live {
			return fmt.Errorf("%d of %d rows: %w", c.live, n, errDoc)
		}
	}
	c.settle()
	c.sums.liftAt = liftStep(c.talks())
	c.sums.lift = c.lift(c.sums.liftAt)
	return nil
}

// enter begins a call; leave ends it.
func (s *Store) enter() error {
	s.life.RLock()
	if s.closed.Load() {
		s.life.RUnlock()
		return ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// write waits for the turn to write; the returned function ends it.
func (s *Store) write(ctx context.Context) (done func(), err error) {
	if s.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.writing <- struct{}{}:
		return func() { <-s.writing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close waits for calls in progress, ends the background work and lets go of the directory.
// The lexical index may close behind the rows: the next Open replays the rest.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.life.Lock()
	defer s.life.Unlock()
	return s.release()
}

func (s *Store) release() error {
	s.stop()
	s.tasks.Wait()
	var errs []error
	if s.words != nil {
		s.words.close()
	}
	s.stmts.close()
	for _, db := range []*sql.DB{s.reads, s.bulk, s.durable} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.copied != "" {
		errs = append(errs, os.RemoveAll(s.copied))
	}
	unlockDir(s.lock)
	return errors.Join(errs...)
}

// errorLog keeps the last errors of background work, for Status.
type errorLog struct {
	mu   sync.Mutex
	last []string
}

func (l *errorLog) add(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, time.Now().UTC().Format(time.RFC3339)+" "+what+": "+err.Error())
	if len(l.last) > 10 {
		l.last = l.last[1:]
	}
}

func (l *errorLog) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.last...)
}

// trouble records and logs an error of background work that nobody is there to receive.
func (s *Store) trouble(what string, err error) {
	s.errors.add(what, err)
	s.log.Warn("background work failed", "what", what, "dir", s.dir, "error", err)
}

// relift brings the lift up to date after rows changed; the caller has the turn to write, so
// that the columns hold still while it is computed beside the readers.
func (s *Store) relift() {
	s.mu.RLock()
	c := s.cols
	n := liftStep(c.talks())
	stale := n != c.sums.liftAt
	var lift float64
	if stale {
		lift = c.lift(n)
	}
	s.mu.RUnlock()
	if stale {
		s.mu.Lock()
		c.sums.liftAt, c.sums.lift = n, lift
		s.mu.Unlock()
	}
}
