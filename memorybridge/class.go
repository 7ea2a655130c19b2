package memorybridge

import (
	"path"
	"strings"
)

// Class is what a memory file is to the host, by its path.
type Class string

// The classes of memory files.
const (
	Curated Class = "curated" // MEMORY.md and USER.md: what the agent is to know about its owner
	Note    Class = "note"    // memory/**/*.md
	Dream   Class = "dream"   // what the host's dreaming wrote: DREAMS.md, memory/dreaming, memory/.dreams
	Outside Class = "extra"   // a configured extra path
)

// Private reports whether files of the class are for the owner's conversations only. The host loads
// MEMORY.md in the owner's private sessions only; dreams are made of all conversations.
func (c Class) Private() bool { return c == Curated || c == Dream }

// Origin is the host's word for where the text of such a file comes from.
func (c Class) Origin() string {
	switch c {
	case Dream:
		return "system"
	case Outside:
		return "untrusted"
	}
	return "agent"
}

// Classify tells the class of a path relative to the workspace, with slashes, and whether it is a
// memory file of the workspace at all.
func Classify(rel string) (c Class, ok bool) {
	rel = path.Clean(rel)
	switch {
	case !strings.HasSuffix(rel, ".md") || path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../"):
		return Outside, false
	case rel == "MEMORY.md", rel == "memory.md", rel == "USER.md":
		return Curated, true
	case rel == "DREAMS.md", rel == "dreams.md",
		strings.HasPrefix(rel, "memory/dreaming/"), strings.HasPrefix(rel, "memory/.dreams/"):
		return Dream, true
	case strings.HasPrefix(rel, "memory/"):
		return Note, true
	}
	return Outside, false
}
