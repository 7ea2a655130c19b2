package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"hark/engine"
	"hark/memorybridge"
)

// importedNotes is the outcome for a workspace whose memory files were taken in.
type importedNotes struct {
	Workspace string   `json:"workspace"`
	Files     int      `json:"files"`
	New       int      `json:"new"`
	Changed   int      `json:"changed"`
	Duplicate int      `json:"duplicate"`
	Removed   int      `json:"removed"`
	Parts     int      `json:"parts"`
	Problems  []string `json:"problems,omitempty"`
}

// split tells workspaces with memory files from what is read as history. The state folder of OpenClaw
// is both: the agent's transcripts and its workspace.
func (a *app) split(paths []string) (history, workspaces []string) {
	for _, p := range paths {
		agents := filepath.Join(p, "agents", safeName(a.set.Agent))
		switch {
		case isWorkspace(p):
			workspaces = append(workspaces, p)
		case isDir(agents) && isWorkspace(filepath.Join(p, "workspace")):
			history = append(history, agents)
			workspaces = append(workspaces, filepath.Join(p, "workspace"))
		default:
			history = append(history, p)
		}
	}
	return history, workspaces
}

// isWorkspace recognises a folder by the names of the memory files that lie in it.
func isWorkspace(dir string) bool {
	for _, name := range []string{"MEMORY.md", "USER.md", "memory.md"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	notes, err := filepath.Glob(filepath.Join(dir, "memory", "*.md"))
	return err == nil && len(notes) > 0
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// notes takes in the memory files of a workspace. They stay where they are: what is stored is an index
// of them, in which each is once however often it is imported.
func (im *importer) notes(ctx context.Context, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", dir, err)
	}
	home, _ := im.app.env("HOME")
	files, _, err := memorybridge.Workspace{Dir: abs, Home: home}.Files(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	out := importedNotes{Workspace: abs, Files: len(files), New: len(files)}
	if !im.flags.dryRun {
		if im.flags.progress == "plain" {
			_, _ = fmt.Fprintf(im.app.err, "reading %s\n", count(len(files), "memory file"))
		}
		p := engine.MemorySyncParams{Corpora: engine.Corpora{Workspace: abs}, Reason: "import"}
		done, err := remembering[engine.MemorySyncParams, engine.MemorySynced]{"memorySync", (*engine.Memory).Sync}.ask(ctx, im.app, p)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		out.Files, out.New, out.Changed, out.Removed, out.Parts = done.Files, done.Added, done.Changed, done.Removed, done.Chunks
		out.Duplicate, out.Problems = done.Files-done.Added-done.Changed, done.Problems
	}
	im.out.Notes = append(im.out.Notes, out)
	for _, p := range out.Problems {
		im.app.note("%s %s: %s", im.app.term.yellow("warning:"), dir, clean(p))
	}
	return nil
}

// reportNotes tells what became of memory files.
func (im *importer) reportNotes() {
	for _, n := range im.out.Notes {
		if im.out.DryRun {
			im.app.printf("would index %s of %s\n", count(n.Files, "memory file"), clean(n.Workspace))
			continue
		}
		im.app.printf("indexed %s (%d new, %d changed, %d duplicate, %d gone) of %s\n", count(n.Files, "memory file"), n.New, n.Changed, n.Duplicate, n.Removed, clean(n.Workspace))
	}
}
