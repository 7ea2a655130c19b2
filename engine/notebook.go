package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hark/embed"
	"hark/index"
	"hark/memorybridge"
	"hark/recall"
)

// notebook is the index of one workspace's memory files: a store whose rows are chunks. It is derived:
// its folder can be deleted at any time and is made again from the files.
//
// A row's Session is the path, its Scope says who may see it, its key is a hash of all that is stored
// of it. The lines of a chunk are not in the row, so that a change above it costs nothing: they are in
// the manifest, one value for each file in the state bucket "files".
type notebook struct {
	dir         string
	store       *index.Store
	worker      *worker // nil: words only
	search      *recall.Searcher
	log         *slog.Logger
	keepSecrets bool                  // index them as they stand
	now         func() time.Time      // the clock of the file system, not the engine's
	watch       *memorybridge.Watcher // nil where nothing is watched

	ctx    context.Context // of syncs, which outlive their callers
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu       sync.Mutex
	ws       memorybridge.Workspace
	files    map[string]*noted
	chunks   map[string]chunkAt // by key
	problems []string
	running  *syncing // nil where none is
	next     *syncing // waits for running, takes in what changed meanwhile
	synced   time.Time
	dirty    bool
	closed   bool
}

// The scopes of chunks.
const (
	sharedFiles  = "shared"
	privateFiles = "private"
)

// noted is what the manifest holds of a file.
type noted struct {
	Size    int64              `json:"size"`
	ModMs   int64              `json:"mod"`
	Hash    string             `json:"hash"`
	Read    int64              `json:"read"` // when it was read, Unix milliseconds
	Class   memorybridge.Class `json:"class"`
	Private bool               `json:"private,omitempty"`
	Title   string             `json:"title,omitempty"`
	Problem string             `json:"problem,omitempty"` // why nothing of it is searched
	Chunks  []notedChunk       `json:"chunks"`
}

type notedChunk struct {
	Key   string `json:"k"`
	Start int    `json:"s"`
	End   int    `json:"e"`
}

// chunkAt is where a chunk stands.
type chunkAt struct {
	path       string
	start, end int
}

// notebookLayout is the version of chunks and manifest; a notebook of another one is made anew.
const notebookLayout = "2"

// openNotebook opens the index in dir, and makes it anew where it cannot be used.
func openNotebook(ctx context.Context, dir string, ws memorybridge.Workspace, emb embed.Embedder, opts *recall.Options, keepSecrets bool, log *slog.Logger) (*notebook, error) {
	nb := &notebook{dir: dir, keepSecrets: keepSecrets, ws: ws, log: log, now: time.Now, files: map[string]*noted{}, chunks: map[string]chunkAt{}, dirty: true}
	err := nb.load(ctx)
	if errors.Is(err, index.ErrLocked) || err != nil && ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		log.Warn("index of memory files is made anew", "dir", dir, "reason", err)
		err = nil
		if nb.store != nil {
			err = nb.store.Close()
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the index of memory files: %w", err)
		}
		nb.files, nb.chunks = map[string]*noted{}, map[string]chunkAt{}
		if err := nb.load(ctx); err != nil {
			return nil, err
		}
	}
	nb.ctx, nb.cancel = context.WithCancel(context.Background())
	nb.search = recall.NewSearcher(nb.store, emb, opts, log)
	if emb != nil {
		nb.worker = startWorker(nb.store, emb, log, func(string) {}) // the engine over the messages tells how the embedder is
	}
	return nb, nil
}

// load opens the store and reads the manifest.
func (nb *notebook) load(ctx context.Context) (err error) {
	if err := os.MkdirAll(nb.dir, 0o700); err != nil {
		return err
	}
	nb.store, err = index.Open(ctx, nb.dir, &index.Options{Log: nb.log})
	if err != nil {
		nb.store = nil
		return err
	}
	layout, err := nb.store.State(ctx, "notebook", "layout")
	if err != nil {
		return err
	}
	st, err := nb.store.Status(ctx)
	if err != nil {
		return err
	}
	if string(layout) != notebookLayout {
		if st.Rows > 0 {
			return fmt.Errorf("it has layout %q, this is %s", layout, notebookLayout)
		}
		return nb.store.SetState(ctx, "notebook", "layout", []byte(notebookLayout))
	}
	values, err := nb.store.States(ctx, "files")
	if err != nil {
		return err
	}
	for path, value := range values {
		f := &noted{}
		if err := json.Unmarshal(value, f); err != nil {
			return fmt.Errorf("what is noted of %s cannot be read: %w", path, err)
		}
		nb.note(path, f)
	}
	if st.Rows != len(nb.chunks) {
		return fmt.Errorf("it holds %d chunks where %d are noted", st.Rows, len(nb.chunks))
	}
	return nil
}

// note puts a file into the manifest in memory; nil takes it out.
func (nb *notebook) note(path string, f *noted) {
	if old := nb.files[path]; old != nil {
		for _, c := range old.Chunks {
			delete(nb.chunks, c.Key)
		}
	}
	if f == nil {
		delete(nb.files, path)
		return
	}
	nb.files[path] = f
	for _, c := range f.Chunks {
		nb.chunks[c.Key] = chunkAt{path, c.Start, c.End}
	}
}

// close ends the syncs and lets go of the store.
func (nb *notebook) close() error {
	nb.mu.Lock()
	nb.closed = true
	nb.mu.Unlock()
	if nb.watch != nil {
		nb.watch.Close()
	}
	nb.cancel()
	nb.tasks.Wait()
	var err error
	if nb.worker != nil {
		err = nb.worker.stop()
	}
	return errors.Join(err, nb.store.Close())
}

// at returns where a row stands in its file, false for one that is no longer noted.
func (nb *notebook) at(m index.Message) (chunkAt, string, bool) {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	c, ok := nb.chunks[chunkKeyOf(m)]
	if !ok || nb.files[c.path] == nil {
		return c, "", false
	}
	return c, nb.files[c.path].Title, true
}

func chunkKeyOf(m index.Message) string {
	if len(m.Keys) == 0 {
		return ""
	}
	return strings.TrimPrefix(m.Keys[0], "chunk:")
}

// private tells whether a file, as it was read last, is the owner's alone; one that was not read is
// judged by its path.
func (nb *notebook) private(path string) bool {
	nb.mu.Lock()
	defer nb.mu.Unlock()
	if f := nb.files[path]; f != nil {
		return f.Private
	}
	class, _ := memorybridge.Classify(path)
	return class.Private()
}

// rows makes the rows and the manifest of a file's chunks.
func chunkRows(path string, class memorybridge.Class, d memorybridge.Document) ([]index.Message, []notedChunk, bool) {
	private := d.Private || class.Private()
	scope := sharedFiles
	if private {
		scope = privateFiles
	}
	seen := map[string]int{}
	var rows []index.Message
	var list []notedChunk
	for _, c := range d.Chunks {
		same := strings.Join([]string{path, scope, c.Date.Format(time.DateOnly), c.Context, c.Text}, "\x00")
		seen[same]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", same, seen[same]))
		key := hex.EncodeToString(sum[:12])
		rows = append(rows, index.Message{
			Keys: []string{"chunk:" + key}, Session: path, Scope: scope, Kind: index.Said, Role: "user",
			Time: c.Date, Text: c.Text, Caption: c.Context,
		})
		list = append(list, notedChunk{key, c.Start, c.End})
	}
	return rows, list, private
}

// sortedPaths lists the noted files.
func (nb *notebook) sortedPaths() []string {
	out := make([]string, 0, len(nb.files))
	for path := range nb.files {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}
