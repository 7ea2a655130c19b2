package memorybridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MaxFile is how large a memory file may be, in bytes; larger ones are left out and reported.
const MaxFile = 16 << 20

// maxFiles bounds how many files of one workspace are memory.
const maxFiles = 100_000

var (
	// ErrNotMemory means that a path is not one of a memory file, or leads out of where those are.
	ErrNotMemory = errors.New("this path is not a memory file: use MEMORY.md, USER.md, a Markdown file under memory/ or one of the configured extra paths")
	// ErrTooLarge means that a file exceeds MaxFile.
	ErrTooLarge = fmt.Errorf("the file is larger than %d MiB: split it", MaxFile>>20)
)

// Workspace says where memory files are: MEMORY.md (or the memory.md of old workspaces), USER.md and
// memory/**/*.md of a folder, and the extra places. Symbolic links are never followed below it, and
// no path leads out of it, whatever changes while it is read: everything is opened through os.Root.
type Workspace struct {
	Dir   string // absolute
	Extra []Extra
	Home  string // what "~/" of an extra path means; "" leaves such paths out
}

// File is a memory file as it was found.
type File struct {
	Path    string // as it is shown and asked for: relative to the workspace, with slashes; "../notes/a.md" for extra places beside it
	Class   Class
	Size    int64
	ModTime time.Time
}

// Problem is a file or folder that could not be read.
type Problem struct {
	Path string
	Err  error
}

// place is one root and what of it is memory.
type place struct {
	dir    string // of the root
	shown  string // how paths of the root begin, "" or ending in a slash
	single string // the only file of the root that is meant, "" for all
	extra  Extra
	own    bool // the workspace itself
}

// Files lists the memory files, by path, and what could not be looked at. The error is the context's,
// or that of a workspace that cannot be opened; one that does not exist has no files.
func (w Workspace) Files(ctx context.Context) ([]File, []Problem, error) {
	var out []File
	var problems []Problem
	for _, p := range w.places() {
		files, bad, err := p.files(ctx)
		problems = append(problems, bad...)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if p.own {
				return nil, nil, fmt.Errorf("open the workspace: %w", err)
			}
			problems = append(problems, Problem{p.shown, err})
		}
		out = append(out, files...)
	}
	slices.SortStableFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	out = slices.CompactFunc(out, func(a, b File) bool { return a.Path == b.Path })
	if len(out) > maxFiles {
		problems = append(problems, Problem{out[maxFiles].Path, fmt.Errorf("there are more than %d memory files: this one and those after it are left out", maxFiles)})
		out = out[:maxFiles]
	}
	return out, problems, nil
}

func (w Workspace) places() []place {
	out := []place{{dir: w.Dir, own: true}}
	for _, e := range w.Extra {
		dir, ok := w.abs(e.Path)
		if !ok {
			continue
		}
		info, err := os.Lstat(dir)
		switch {
		case err != nil || info.Mode()&fs.ModeSymlink != 0:
		case info.IsDir():
			out = append(out, place{dir: dir, shown: w.show(dir) + "/", extra: e})
		case info.Mode().IsRegular() && isMarkdown(dir):
			parent := filepath.Dir(dir)
			out = append(out, place{dir: parent, shown: w.show(parent) + "/", single: filepath.Base(dir), extra: e})
		}
	}
	return out
}

// abs resolves a path of a user or a model.
func (w Workspace) abs(name string) (string, bool) {
	name = strings.TrimSpace(name)
	if name == "" || strings.ContainsRune(name, 0) {
		return "", false
	}
	if name == "~" || strings.HasPrefix(name, "~/") || strings.HasPrefix(name, `~\`) {
		if w.Home == "" {
			return "", false
		}
		name = filepath.Join(w.Home, name[1:])
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.Dir, filepath.FromSlash(name))
	}
	return filepath.Clean(name), true
}

// show is how an absolute path is named: relative to the workspace where the system has a way there.
func (w Workspace) show(abs string) string {
	rel, err := filepath.Rel(w.Dir, abs)
	if err != nil {
		return filepath.ToSlash(abs)
	}
	return filepath.ToSlash(rel)
}

// files lists one place.
func (p place) files(ctx context.Context) ([]File, []Problem, error) {
	root, err := os.OpenRoot(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	l := &listing{ctx: ctx, root: root, place: p}
	switch {
	case p.single != "":
		l.file(p.single)
	case p.own:
		err = l.workspace()
	default:
		err = l.walk(".")
	}
	return l.out, l.problems, err
}

// listing is one walk.
type listing struct {
	ctx      context.Context
	root     *os.Root
	place    place
	out      []File
	problems []Problem
}

// workspace lists the fixed places. Names are compared as the folder spells them, also where the file
// system does not mind the case: memory.md and MEMORY.md are two names of one file there.
func (l *listing) workspace() error {
	dir, err := l.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range []string{"MEMORY.md", "USER.md"} {
		if slices.Contains(names, name) {
			l.file(name)
		}
	}
	if !slices.Contains(names, "MEMORY.md") && slices.Contains(names, "memory.md") {
		l.file("memory.md")
	}
	info, err := l.root.Lstat("memory")
	if err != nil || !info.IsDir() { // a link is none
		return nil
	}
	return l.walk("memory")
}

// walk lists a folder and what is below it, without hidden folders and without links.
func (l *listing) walk(from string) error {
	return fs.WalkDir(l.root.FS(), from, func(name string, d fs.DirEntry, err error) error {
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // it went meanwhile
				l.problems = append(l.problems, Problem{l.place.shown + name, err})
			}
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if base := path.Base(name); name != from && strings.HasPrefix(base, ".") && base != ".dreams" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !isMarkdown(name) || !l.place.own && !l.place.extra.admits(name) {
			return nil
		}
		l.file(name)
		return nil
	})
}

// file adds one file.
func (l *listing) file(name string) {
	info, err := l.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problems = append(l.problems, Problem{l.place.shown + name, err})
		}
		return
	}
	if !info.Mode().IsRegular() {
		return
	}
	shown := path.Clean(l.place.shown + name)
	if info.Size() > MaxFile {
		l.problems = append(l.problems, Problem{shown, ErrTooLarge})
		return
	}
	class, ok := Classify(shown)
	if !ok {
		class = Outside
	}
	l.out = append(l.out, File{shown, class, info.Size(), info.ModTime()})
}

func isMarkdown(name string) bool { return strings.HasSuffix(name, ".md") }

// Read returns the content of a memory file, named as Files does or by its absolute path.
// What is not there is fs.ErrNotExist, what is no memory file ErrNotMemory, whether it is there or not.
func (w Workspace) Read(name string) (File, []byte, error) {
	abs, ok := w.abs(name)
	if !ok || !isMarkdown(abs) {
		return File{}, nil, ErrNotMemory
	}
	for _, p := range w.places() {
		rel, err := filepath.Rel(p.dir, abs)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		slashed := filepath.ToSlash(rel)
		shown := path.Clean(p.shown + slashed)
		class, own := Classify(shown)
		switch {
		case p.own && !own, p.single != "" && rel != p.single, !p.own && !p.extra.admits(slashed):
			continue
		case !own:
			class = Outside
		}
		data, info, err := p.read(rel)
		if err != nil {
			return File{Path: shown, Class: class}, nil, err
		}
		return File{shown, class, info.Size(), info.ModTime()}, data, nil
	}
	return File{Path: w.show(abs)}, nil, ErrNotMemory
}

// read reads a file of a place. Every step of its path is looked at: one that is a link is refused.
// A step that becomes a link after it was looked at leads nowhere outside, which os.Root sees to.
func (p place) read(rel string) ([]byte, fs.FileInfo, error) {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	var seen fs.FileInfo
	step := ""
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		step = filepath.Join(step, part)
		if seen, err = root.Lstat(step); err != nil {
			return nil, nil, err
		}
		if seen.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, ErrNotMemory
		}
	}
	if !seen.Mode().IsRegular() {
		return nil, nil, ErrNotMemory
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular() || !os.SameFile(seen, info):
		return nil, nil, ErrNotMemory
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(data) > MaxFile:
		return nil, nil, ErrTooLarge
	}
	return data, info, nil
}
