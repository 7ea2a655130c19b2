package engine

// ID is the id Hark registers under and the value of plugins.slots.contextEngine that selects it.
const ID = "hark"

// The two fixed values of TranscriptSemantics. The host serves a turn with an engine only when
// both are declared and commitTurn exists.
const (
	FenceBeforeCurrentTurn = "before-current-turn-entry-v1"
	AtomicIdempotent       = "atomic-idempotent-v1"
)

// Info describes an engine to its host.
type Info struct {
	ID                  string                     `json:"id"`
	Name                string                     `json:"name"`
	Version             string                     `json:"version,omitempty"`
	OwnsCompaction      bool                       `json:"ownsCompaction"`
	TurnMaintenanceMode string                     `json:"turnMaintenanceMode,omitempty"` // "foreground" or "background"
	TranscriptSemantics *TranscriptSemantics       `json:"transcriptSemantics,omitempty"`
	HostRequirements    map[string]HostRequirement `json:"hostRequirements,omitempty"` // by operation: "agent-run", "manual-compact", "subagent-spawn"
	AcceptedHostParams  []string                   `json:"acceptedHostParams,omitempty"`
}

// TranscriptSemantics declares what the engine guarantees about turns.
type TranscriptSemantics struct {
	CurrentTurnFence           string `json:"currentTurnFence,omitempty"`
	TurnAdvancementIdempotency string `json:"turnAdvancementIdempotency,omitempty"`
}

// complete reports that both guarantees are declared, without which no turn is served.
func (s *TranscriptSemantics) complete() bool {
	return s != nil && s.CurrentTurnFence == FenceBeforeCurrentTurn && s.TurnAdvancementIdempotency == AtomicIdempotent
}

// HostRequirement names the host capabilities one operation cannot do without.
type HostRequirement struct {
	RequiredCapabilities []string `json:"requiredCapabilities"`
	UnsupportedMessage   string   `json:"unsupportedMessage,omitempty"`
}

// The operations a HostRequirement is declared for.
const (
	AgentRun      = "agent-run"
	ManualCompact = "manual-compact"
	SubagentSpawn = "subagent-spawn"
)

// The capabilities a host may have.
const (
	CanBootstrap        = "bootstrap"
	CanAssemble         = "assemble-before-prompt"
	CanAfterTurn        = "after-turn"
	CanMaintain         = "maintain"
	CanCompact          = "compact"
	CanComplete         = "runtime-llm-complete"
	CanProjectBootstrap = "thread-bootstrap-projection"
)
