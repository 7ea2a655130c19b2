package engine

import (
	"time"

	"hark/memorybridge"
)

// Requester says who asks. Its scope is computed as everywhere: without a key no message is seen, and
// of the files only those that are nobody's in particular.
type Requester struct {
	SessionKey    string `json:"sessionKey,omitempty"`
	Sandboxed     bool   `json:"sandboxed,omitempty"` // messages of this session only
	SenderIsOwner *bool  `json:"senderIsOwner,omitempty"`
}

// Corpora is where memory files are. Without a workspace the one that was named last is meant.
type Corpora struct {
	Workspace string               `json:"workspace,omitempty"`  // an absolute path
	Extra     []memorybridge.Extra `json:"extraPaths,omitempty"` // nil: as before
}

// The sources of a hit.
const (
	SourceMemory   = "memory"
	SourceSessions = "sessions"
)

// MemorySearchParams is a search in memory files and messages.
type MemorySearchParams struct {
	Requester
	Corpora
	Query       string   `json:"query"`
	MaxResults  int      `json:"maxResults,omitempty"`  // default 8, at most 100
	MinScore    float64  `json:"minScore,omitempty"`    // 0 to 1
	Corpus      string   `json:"corpus,omitempty"`      // "memory", "sessions" or "all", the default
	Sources     []string `json:"sources,omitempty"`     // restricts further
	LexicalOnly bool     `json:"lexicalOnly,omitempty"` // no embedder is asked
	Citations   string   `json:"citations,omitempty"`   // "auto" (the default), "on" or "off"
}

// MemoryHit is one result. Scores are 0 to 1 and comparable between queries.
type MemoryHit struct {
	ID          string  `json:"id,omitempty"` // of a message
	Path        string  `json:"path"`
	StartLine   int     `json:"startLine"`
	EndLine     int     `json:"endLine"`
	Score       float64 `json:"score"`
	VectorScore float64 `json:"vectorScore,omitempty"`
	TextScore   float64 `json:"textScore,omitempty"`
	Snippet     string  `json:"snippet"`
	Source      string  `json:"source"`
	Citation    string  `json:"citation,omitempty"`
	Title       string  `json:"title,omitempty"`
	Role        string  `json:"role,omitempty"`
	Speaker     string  `json:"speaker,omitempty"`
	Date        string  `json:"date,omitempty"` // of a message: RFC 3339; of a note: its day
	SessionKey  string  `json:"sessionKey,omitempty"`
}

// MemoryResults are hits, best first.
type MemoryResults struct {
	Results  []MemoryHit `json:"results"`
	Provider string      `json:"provider"`
	Model    string      `json:"model"`
	Mode     string      `json:"mode"`              // "hybrid", or "lexical" where only words were searched
	Partial  bool        `json:"partial,omitempty"` // something that was asked for was not searched
	Stale    bool        `json:"stale,omitempty"`   // files have changed since they were read
	Warning  string      `json:"warning,omitempty"`
	Files    int         `json:"files"`    // of the results, those in files
	Messages int         `json:"messages"` // of the results, those that are messages
}

// MemoryGetParams asks for lines of a memory file, or of a message by the path of a hit.
type MemoryGetParams struct {
	Requester
	Corpora
	Path   string `json:"path"`
	From   int    `json:"from,omitempty"`  // default 1
	Lines  int    `json:"lines,omitempty"` // default 120
	Corpus string `json:"corpus,omitempty"`
}

// The statuses of MemoryText.
const (
	MemoryOK       = "ok"
	MemoryNotFound = "not_found"
)

// MemoryText is what was read.
type MemoryText struct {
	Status    string `json:"status"`
	Path      string `json:"path"`
	Text      string `json:"text"`
	From      int    `json:"from,omitempty"`
	Lines     int    `json:"lines,omitempty"`
	Total     int    `json:"total,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	NextFrom  int    `json:"nextFrom,omitempty"`
}

// MemoryStatus describes what the memory tools search.
type MemoryStatus struct {
	Backend      string         `json:"backend"`
	Provider     string         `json:"provider"`
	Model        string         `json:"model"`
	WorkspaceDir string         `json:"workspaceDir,omitempty"`
	ExtraPaths   []string       `json:"extraPaths,omitempty"`
	Files        int            `json:"files"`
	Chunks       int            `json:"chunks"`
	Messages     int            `json:"messages"`
	Dirty        bool           `json:"dirty"`
	Sources      []string       `json:"sources"`
	SourceCounts []SourceCount  `json:"sourceCounts"`
	FTS          FTSStatus      `json:"fts"`
	Vector       VectorStatus   `json:"vector"`
	Custom       map[string]any `json:"custom"`
	Warning      string         `json:"warning,omitempty"`
}

// SourceCount counts one source: files and their chunks, sessions and their messages.
type SourceCount struct {
	Source string `json:"source"`
	Files  int    `json:"files"`
	Chunks int    `json:"chunks"`
}

// FTSStatus says whether words are searched. They always are.
type FTSStatus struct {
	Enabled   bool `json:"enabled"`
	Available bool `json:"available"`
}

// VectorStatus says whether the meaning is searched.
type VectorStatus struct {
	Enabled   bool `json:"enabled"`
	Available bool `json:"available"`
	Dims      int  `json:"dims,omitempty"`
	Pending   int  `json:"pending,omitempty"` // chunks and messages without a vector
}

// MemorySyncParams asks for the index of memory files to be brought up to date.
type MemorySyncParams struct {
	Corpora
	Reason string `json:"reason,omitempty"` // for the log
	Force  bool   `json:"force,omitempty"`  // make it anew
}

// MemorySynced says what a sync did.
type MemorySynced struct {
	Files    int      `json:"files"`
	Added    int      `json:"added"`
	Changed  int      `json:"changed"`
	Removed  int      `json:"removed"`
	Chunks   int      `json:"chunks"`
	Ms       int64    `json:"ms"`
	Problems []string `json:"problems,omitempty"` // files that could not be read, each with why
}

// MemoryAuthorizeParams asks which of some hits a session may see.
type MemoryAuthorizeParams struct {
	Requester
	Corpora
	Hits []MemoryRef `json:"hits"`
}

// MemoryRef names a hit.
type MemoryRef struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// MemoryAllowed lists the hits that may be seen, by their index, ascending.
type MemoryAllowed struct {
	Allowed []int `json:"allowed"`
}

// MemoryClassifyParams asks what paths of a workspace are.
type MemoryClassifyParams struct {
	Corpora
	Paths []string `json:"paths"`
}

// MemoryClasses says of each path where its text comes from, in the host's words, and which of them
// are for the owner's conversations only.
type MemoryClasses struct {
	Private         []string      `json:"private"`
	Classifications []MemoryClass `json:"classifications"`
}

// MemoryClass is the class of one path.
type MemoryClass struct {
	RelativePath string `json:"relativePath"`
	OriginClass  string `json:"originClass"`
}

// OpenParams asks for a message in its surroundings.
type OpenParams struct {
	Requester
	ID        string `json:"id"`
	Before    *int   `json:"before,omitempty"`    // messages before it; default 3, at most 50
	After     *int   `json:"after,omitempty"`     // messages after it; default 3, at most 50
	MaxTokens int    `json:"maxTokens,omitempty"` // of all texts; default 2,000
}

// Opened is a message in its surroundings, in order.
type Opened struct {
	Messages []OpenedMessage `json:"messages"`
	Session  string          `json:"session"`
}

// OpenedMessage is one message of an Opened.
type OpenedMessage struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	Speaker string    `json:"speaker,omitempty"`
	Date    time.Time `json:"date"`
	Text    string    `json:"text"`
	Cut     bool      `json:"cut,omitempty"` // Text is a part: there was no room for all of it
}

// ForgetOneParams asks for one message to be forgotten; without Confirm it only tells which it is.
type ForgetOneParams struct {
	Requester
	ID      string `json:"id"`
	Confirm bool   `json:"confirm,omitempty"`
}

// ForgottenOne is the outcome of ForgetOne.
type ForgottenOne struct {
	Found     bool           `json:"found"`
	Preview   *ForgetPreview `json:"preview,omitempty"`
	Forgotten bool           `json:"forgotten"`
}

// ForgetPreview describes a message without its text.
type ForgetPreview struct {
	Role  string    `json:"role"`
	Date  time.Time `json:"date"`
	Chars int       `json:"chars"`
}
