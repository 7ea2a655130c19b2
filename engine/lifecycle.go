package engine

import (
	"context"
	"encoding/json"

	"hark/memorybridge"
)

// ContextEngine is the lifecycle of a context engine as its host drives it. The parameter and
// result types carry the host's field names, so that they are the wire format too.
//
// Messages travel as the host's own JSON. An implementation never changes the bytes of a message
// it was given. Calls of one session come one after another, calls of different sessions at once.
type ContextEngine interface {
	// Info describes the engine. It has no effect and never fails.
	Info() Info
	// Bootstrap prepares a session before a turn; it is called again on every turn and retry.
	Bootstrap(ctx context.Context, p BootstrapParams) (BootstrapResult, error)
	// Maintain does work that may be postponed, after a turn.
	Maintain(ctx context.Context, p MaintainParams) (MaintainResult, error)
	// Ingest stores one message.
	Ingest(ctx context.Context, p IngestParams) (IngestResult, error)
	// IngestBatch stores several messages of one session, in order.
	IngestBatch(ctx context.Context, p IngestBatchParams) (IngestBatchResult, error)
	// CommitTurn stores an accepted turn, atomically and once per advancement key: the same key
	// and turn again is a duplicate, the same key with another turn an error that stores nothing.
	CommitTurn(ctx context.Context, p CommitTurnParams) (CommitTurnResult, error)
	// AfterTurn stores what a turn added to the session's messages.
	AfterTurn(ctx context.Context, p AfterTurnParams) error
	// Assemble decides what the model sees.
	Assemble(ctx context.Context, p AssembleParams) (AssembleResult, error)
	// Compact shortens the session's history, or says truthfully that it did not.
	Compact(ctx context.Context, p CompactParams) (CompactResult, error)
	// PrepareSubagentSpawn records the relation of a child session to its parent. The caller
	// rolls the result back when the spawn fails; nil means there is nothing to roll back.
	PrepareSubagentSpawn(ctx context.Context, p SpawnParams) (*Spawn, error)
	// OnSubagentEnded forgets what PrepareSubagentSpawn recorded.
	OnSubagentEnded(ctx context.Context, p SubagentEndedParams) error
	// Dispose releases what this instance holds. The instance is not used afterwards.
	Dispose(ctx context.Context) error
}

// Runtime is what the host does for an engine.
type Runtime interface {
	// Compact runs the host's own compaction.
	Compact(ctx context.Context, p CompactParams) (CompactResult, error)
}

// BootstrapParams is the input of Bootstrap. SessionFile holds the session key on current hosts
// and is never opened.
type BootstrapParams struct {
	SessionID       string           `json:"sessionId"`
	SessionKey      string           `json:"sessionKey,omitempty"`
	SessionTarget   *SessionTarget   `json:"sessionTarget,omitempty"`
	SessionFile     string           `json:"sessionFile,omitempty"`
	RuntimeSettings *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext  `json:"runtimeContext,omitempty"`

	// History is what the session's transcript holds and the engine may not have seen, oldest
	// first; the plugin reads it with the host's transcript cursor. An extension of Hark.
	History []HistoryEntry `json:"history,omitempty"`
	// Complete says that History ends where the conversation does now: what is stored beyond it is on
	// a branch that was cut. An extension of Hark.
	Complete bool `json:"complete,omitempty"`
}

// HistoryEntry is one row of the host's transcript cursor.
type HistoryEntry struct {
	EntryID        string          `json:"entryId,omitempty"`
	ParentID       string          `json:"parentId,omitempty"`
	Seq            int64           `json:"seq,omitempty"`
	Role           string          `json:"role,omitempty"`
	CreatedAt      string          `json:"createdAt,omitempty"` // RFC 3339
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`
	Message        json.RawMessage `json:"message"`
}

// BootstrapResult is the outcome of Bootstrap.
type BootstrapResult struct {
	Bootstrapped     bool   `json:"bootstrapped"`
	ImportedMessages int    `json:"importedMessages"`
	Reason           string `json:"reason,omitempty"`
}

// MaintainParams is the input of Maintain.
type MaintainParams struct {
	SessionID       string           `json:"sessionId"`
	SessionKey      string           `json:"sessionKey,omitempty"`
	SessionTarget   *SessionTarget   `json:"sessionTarget,omitempty"`
	SessionFile     string           `json:"sessionFile,omitempty"`
	RuntimeSettings *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext  `json:"runtimeContext,omitempty"`
}

// MaintainResult tells the host what Maintain did to the transcript.
type MaintainResult struct {
	Changed          bool   `json:"changed"`
	BytesFreed       int64  `json:"bytesFreed"`
	RewrittenEntries int    `json:"rewrittenEntries"`
	Reason           string `json:"reason,omitempty"`
}

// IngestParams is the input of Ingest.
type IngestParams struct {
	SessionID   string          `json:"sessionId"`
	SessionKey  string          `json:"sessionKey,omitempty"`
	Message     json.RawMessage `json:"message"`
	IsHeartbeat bool            `json:"isHeartbeat,omitempty"`
}

// IngestResult says whether the message was new.
type IngestResult struct {
	Ingested bool `json:"ingested"`
}

// IngestBatchParams is the input of IngestBatch.
type IngestBatchParams struct {
	SessionID   string            `json:"sessionId"`
	SessionKey  string            `json:"sessionKey,omitempty"`
	Messages    []json.RawMessage `json:"messages"`
	IsHeartbeat bool              `json:"isHeartbeat,omitempty"`
}

// IngestBatchResult counts the messages that were new.
type IngestBatchResult struct {
	IngestedCount int `json:"ingestedCount"`
}

// EntryAnchor is a place in the host's transcript. StorePath differs between calls for the same
// transcript and identifies nothing.
type EntryAnchor struct {
	AgentID               string  `json:"agentId"`
	SessionID             string  `json:"sessionId"`
	SessionKey            string  `json:"sessionKey"`
	StorePath             string  `json:"storePath,omitempty"`
	Generation            string  `json:"generation"`
	EntryID               string  `json:"entryId"`
	RawSeq                int64   `json:"rawSeq"`
	EffectiveParentID     *string `json:"effectiveParentId"`
	ActiveMessagePosition int     `json:"activeMessagePosition"` // counts the whole transcript, never an index into a call's messages
	IdempotencyKey        string  `json:"idempotencyKey,omitempty"`
}

// Admission is the anchor of the user message that opened a turn.
type Admission struct {
	EntryAnchor
	LogicalTurnID string `json:"logicalTurnId"`
	Role          string `json:"role"`
}

// CommitTurnParams is the input of CommitTurn: one closed turn, from the user's message to the
// final answer.
type CommitTurnParams struct {
	AdvancementKey  string            `json:"advancementKey"`
	Admission       Admission         `json:"admission"`
	Terminal        EntryAnchor       `json:"terminal"`
	Messages        []json.RawMessage `json:"messages"`
	SessionID       string            `json:"sessionId"`
	SessionKey      string            `json:"sessionKey,omitempty"`
	SessionTarget   *SessionTarget    `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext   `json:"runtimeContext,omitempty"`
	IsHeartbeat     bool              `json:"isHeartbeat,omitempty"`
}

// The outcomes of CommitTurn.
const (
	Committed = "committed"
	Duplicate = "duplicate"
)

// CommitTurnResult is Committed or Duplicate.
type CommitTurnResult struct {
	Status string `json:"status"`
}

// AfterTurnParams is the input of AfterTurn: all messages of the session, of which the first
// PrePromptMessageCount were there before the turn.
type AfterTurnParams struct {
	SessionID             string            `json:"sessionId"`
	SessionKey            string            `json:"sessionKey,omitempty"`
	SessionTarget         *SessionTarget    `json:"sessionTarget,omitempty"`
	SessionFile           string            `json:"sessionFile,omitempty"`
	Messages              []json.RawMessage `json:"messages"`
	PrePromptMessageCount int               `json:"prePromptMessageCount"`
	AutoCompactionSummary string            `json:"autoCompactionSummary,omitempty"`
	IsHeartbeat           bool              `json:"isHeartbeat,omitempty"`
	TokenBudget           Tokens            `json:"tokenBudget,omitempty"`
	RuntimeSettings       *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext        *RuntimeContext   `json:"runtimeContext,omitempty"`
}

// AssembleParams is the input of Assemble. Messages are the history before the current user
// message, whose words are Prompt; in the host's tool loop the current turn is part of Messages.
type AssembleParams struct {
	SessionID       string            `json:"sessionId"`
	SessionKey      string            `json:"sessionKey,omitempty"`
	Messages        []json.RawMessage `json:"messages"`
	TokenBudget     Tokens            `json:"tokenBudget,omitempty"` // 0 is absent
	AvailableTools  Tools             `json:"availableTools,omitempty"`
	CitationsMode   string            `json:"citationsMode,omitempty"` // "auto", "on", "off" or ""
	Model           string            `json:"model,omitempty"`
	Prompt          string            `json:"prompt,omitempty"`
	RuntimeSettings *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext   `json:"runtimeContext,omitempty"`

	// MemoryPrompt is the text of the active memory plugin for the system prompt, which only the
	// host's process can render. An extension of Hark.
	MemoryPrompt memorybridge.Sections `json:"memoryPrompt,omitempty"`
	// SenderIsOwner says that the host knows the current prompt to be its owner's; nil where it
	// does not say. An extension of Hark.
	SenderIsOwner *bool `json:"senderIsOwner,omitempty"`
	// Inspect asks what the model would be given, without a turn: nothing is remembered of the call,
	// memory is searched even where the turn was asked about before, and the trace is whole. An
	// extension of Hark.
	Inspect bool `json:"inspect,omitempty"`
}

// The values of AssembleResult.PromptAuthority.
const (
	Assembled              = "assembled"
	PreassemblyMayOverflow = "preassembly_may_overflow"
)

// AssembleResult is what the model shall see.
//
// Messages is never nil. Kept and Insert describe the same list by reference, so that a caller in
// another process can put its own objects in place: see Rebuild. Encoding Messages again with
// encoding/json may escape or compact bytes; Kept and Insert exist to avoid that.
type AssembleResult struct {
	Messages             []json.RawMessage  `json:"messages"`
	EstimatedTokens      int                `json:"estimatedTokens"`
	PromptAuthority      string             `json:"promptAuthority,omitempty"`
	SystemPromptAddition string             `json:"systemPromptAddition,omitempty"`
	ContextProjection    *ContextProjection `json:"contextProjection,omitempty"`

	Kept   []int       `json:"kept"`   // indexes into the call's messages, ascending
	Insert []Insertion `json:"insert"` // messages that are not the caller's, by ascending position
	Trace  *Trace      `json:"trace,omitempty"`
}

// Insertion is a message of the engine's own at its index in the resulting list.
type Insertion struct {
	Position int             `json:"position"`
	Message  json.RawMessage `json:"message"`
}

// ContextProjection says how a host that keeps its own thread takes over the context.
type ContextProjection struct {
	Mode        string `json:"mode"` // "per_turn" or "thread_bootstrap"
	Epoch       string `json:"epoch,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// CompactParams is the input of Compact.
type CompactParams struct {
	SessionID          string           `json:"sessionId"`
	SessionKey         string           `json:"sessionKey"`
	AgentID            string           `json:"agentId,omitempty"`
	SessionTarget      *SessionTarget   `json:"sessionTarget,omitempty"`
	TokenBudget        Tokens           `json:"tokenBudget,omitempty"`
	Force              bool             `json:"force,omitempty"`
	CurrentTokenCount  Tokens           `json:"currentTokenCount,omitempty"`
	CompactionTarget   string           `json:"compactionTarget,omitempty"` // "budget" or "threshold"
	CustomInstructions string           `json:"customInstructions,omitempty"`
	RuntimeSettings    *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext     *RuntimeContext  `json:"runtimeContext,omitempty"`
}

// CompactResult is the outcome of Compact, passed on from the host unchanged.
type CompactResult struct {
	OK        bool        `json:"ok"`
	Compacted bool        `json:"compacted"`
	Reason    string      `json:"reason,omitempty"`
	Result    *Compaction `json:"result,omitempty"`
}

// Compaction describes a compaction that took place.
type Compaction struct {
	Summary          string          `json:"summary,omitempty"`
	FirstKeptEntryID string          `json:"firstKeptEntryId,omitempty"`
	TokensBefore     int             `json:"tokensBefore"`
	TokensAfter      *int            `json:"tokensAfter,omitempty"`
	Details          json.RawMessage `json:"details,omitempty"`
	SessionID        string          `json:"sessionId,omitempty"`
	SessionTarget    *SessionTarget  `json:"sessionTarget,omitempty"`
	SessionFile      string          `json:"sessionFile,omitempty"`
}

// The values of SpawnParams.ContextMode.
const (
	Isolated = "isolated"
	Fork     = "fork"
)

// SpawnParams is the input of PrepareSubagentSpawn.
type SpawnParams struct {
	ParentSessionKey  string `json:"parentSessionKey"`
	ChildSessionKey   string `json:"childSessionKey"`
	ContextMode       string `json:"contextMode,omitempty"` // Isolated (also when empty) or Fork
	ParentSessionID   string `json:"parentSessionId,omitempty"`
	ParentSessionFile string `json:"parentSessionFile,omitempty"`
	ChildSessionID    string `json:"childSessionId,omitempty"`
	ChildSessionFile  string `json:"childSessionFile,omitempty"`
	TTLMs             int64  `json:"ttlMs,omitempty"` // 0 means the engine's default
}

// Spawn is a prepared spawn. Rollback undoes the preparation; calling it twice does no harm.
type Spawn struct {
	ChildSessionKey string                          `json:"childSessionKey"`
	Rollback        func(ctx context.Context) error `json:"-"`
}

// SubagentEndedParams is the input of OnSubagentEnded.
type SubagentEndedParams struct {
	ChildSessionKey string `json:"childSessionKey"`
	Reason          string `json:"reason"` // "deleted", "completed", "swept" or "released"
	AgentDir        string `json:"agentDir,omitempty"`
	WorkspaceDir    string `json:"workspaceDir,omitempty"`
}

// SessionTarget names a session of the host.
type SessionTarget struct {
	AgentID    string          `json:"agentId,omitempty"`
	SessionID  string          `json:"sessionId,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"`
	StorePath  string          `json:"storePath,omitempty"`
	ThreadID   json.RawMessage `json:"threadId,omitempty"` // string or number
}
