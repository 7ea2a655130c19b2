package memorybridge

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The times of a Watcher.
const (
	watchSettle = 300 * time.Millisecond // without events, until a change is told: editors write several times
	watchMost   = 3 * time.Second        // a change is told no later than this, however long it goes on
	pollWatched = time.Minute            // file systems of networks and containers may not tell of changes
	pollBlind   = 5 * time.Second        // where nothing can be watched
)

// maxWatched bounds the folders that are watched; more are polled.
const maxWatched = 4096

// Watcher tells when memory files of a workspace change: by the system's events, and by looking from
// time to time, more often where events cannot be had.
type Watcher struct {
	ws      Workspace
	log     *slog.Logger
	seen    func()
	settled func()

	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Watch begins to watch. seen is called at once with every event that may mean a change, settled when
// it is over for a moment; both from one goroutine, until Close returns.
func Watch(ws Workspace, seen, settled func(), log *slog.Logger) *Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{ws: ws, log: log, seen: seen, settled: settled, cancel: cancel}
	w.tasks.Go(func() { w.run(ctx) })
	return w
}

// Close ends the watching and waits for it.
func (w *Watcher) Close() {
	w.cancel()
	w.tasks.Wait()
}

func (w *Watcher) run(ctx context.Context) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.blind(err)
		w.poll(ctx, pollBlind)
		return
	}
	if err := w.cover(events); err != nil {
		w.blind(err)
		_ = events.Close() // nothing of it is used
		w.poll(ctx, pollBlind)
		return
	}
	defer events.Close()
	if w.follow(ctx, events) {
		w.poll(ctx, pollBlind)
	}
}

func (w *Watcher) blind(err error) {
	w.log.Info("memory files are looked at every few seconds, because they cannot be watched", "error", err)
}

// follow turns events into calls. It returns true where watching failed and polling has to take over.
func (w *Watcher) follow(ctx context.Context, events *fsnotify.Watcher) (failed bool) {
	var first time.Time
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	look := time.NewTicker(pollWatched)
	defer look.Stop()
	last := w.signature(ctx)
	for {
		select {
		case <-ctx.Done():
			quiet.Stop()
			return false
		case e, ok := <-events.Events:
			if !ok {
				return ctx.Err() == nil
			}
			if !w.concerns(e) {
				continue
			}
			w.seen()
			if first.IsZero() {
				first = time.Now()
			}
			quiet.Reset(min(watchSettle, max(0, watchMost-time.Since(first))))
		case err := <-events.Errors:
			// Events were lost: what changed is found by looking.
			w.log.Debug("watching memory files", "error", err)
			w.seen()
			quiet.Reset(watchSettle)
		case <-quiet.C:
			first = time.Time{}
			if err := w.cover(events); err != nil { // new folders
				w.blind(err)
				w.settled()
				return true
			}
			w.settled()
			last = w.signature(ctx)
		case <-look.C:
			if now := w.signature(ctx); now != last {
				last = now
				w.seen()
				w.settled()
			}
		}
	}
}

// concerns reports whether an event may be about memory.
func (w *Watcher) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return true // a file may have become readable, or not
	}
	name := w.ws.show(e.Name)
	if isMarkdown(name) {
		return filepath.Dir(e.Name) != w.ws.Dir || isFixed(name)
	}
	return name == "memory" || strings.HasPrefix(name, "memory/") || strings.HasPrefix(name, "../") || len(w.ws.Extra) > 0
}

func isFixed(name string) bool {
	_, ok := Classify(name)
	return ok
}

// cover watches every folder that holds memory files. Folders that are watched already stay so.
func (w *Watcher) cover(events *fsnotify.Watcher) error {
	n := 0
	add := func(dir string) error {
		if n++; n > maxWatched {
			return fmt.Errorf("there are more than %d folders", maxWatched)
		}
		err := events.Add(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	}
	if _, err := os.Stat(w.ws.Dir); err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	if err := add(w.ws.Dir); err != nil {
		return err
	}
	roots := []string{filepath.Join(w.ws.Dir, "memory")}
	for _, p := range w.ws.places()[1:] {
		if p.single != "" {
			if err := add(p.dir); err != nil {
				return err
			}
			continue
		}
		roots = append(roots, p.dir)
	}
	for _, root := range roots {
		if info, err := os.Lstat(root); err != nil || !info.IsDir() {
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case d == nil || !d.IsDir():
				return nil // what cannot be looked at is not watched
			case err != nil:
				return fs.SkipDir
			case path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".dreams":
				return fs.SkipDir
			}
			return add(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// poll looks again and again.
func (w *Watcher) poll(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := w.signature(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := w.signature(ctx); now != last && ctx.Err() == nil {
			last = now
			w.seen()
			w.settled()
		}
	}
}

// signature changes when a file is added, changed or removed.
func (w *Watcher) signature(ctx context.Context) uint64 {
	files, _, err := w.ws.Files(ctx)
	h := fnv.New64a()
	if err != nil {
		_, _ = h.Write([]byte(err.Error())) // never fails
	}
	for _, f := range files {
		_, _ = fmt.Fprintf(h, "%s\x00%d\x00%d\x00", f.Path, f.Size, f.ModTime.UnixNano())
	}
	return h.Sum64()
}
