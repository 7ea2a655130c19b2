// Package legacy is the engine that changes nothing: the host's messages go to the model as they
// are, nothing is stored and nothing is recalled. It stands in where another engine fails, and it is
// what an evaluation compares with.
package legacy

import (
	"context"
	"encoding/json"
	"fmt"

	"hark/engine"
	"hark/memorybridge"
)

// Engine is the pass-through engine. The zero value has no host to compact with. It holds no state
// and is safe for concurrent use.
type Engine struct {
	Runtime engine.Runtime // the host's compaction; nil where there is none
}

var _ engine.ContextEngine = Engine{}

// Info implements engine.ContextEngine.
func (Engine) Info() engine.Info {
	return engine.Info{
		ID: engine.LegacyID, Name: "Legacy", Version: engine.Version,
		TurnMaintenanceMode: "foreground",
		TranscriptSemantics: &engine.TranscriptSemantics{
			CurrentTurnFence:           engine.FenceBeforeCurrentTurn,
			TurnAdvancementIdempotency: engine.AtomicIdempotent,
		},
	}
}

// Bootstrap has nothing to prepare.
func (Engine) Bootstrap(context.Context, engine.BootstrapParams) (engine.BootstrapResult, error) {
	return engine.BootstrapResult{Bootstrapped: true, Reason: "legacy keeps no state"}, nil
}

// Maintain does nothing.
func (Engine) Maintain(context.Context, engine.MaintainParams) (engine.MaintainResult, error) {
	return engine.MaintainResult{Reason: "legacy keeps no state"}, nil
}

// Ingest stores nothing: the host keeps the transcript.
func (Engine) Ingest(context.Context, engine.IngestParams) (engine.IngestResult, error) {
	return engine.IngestResult{}, nil
}

// IngestBatch stores nothing.
func (Engine) IngestBatch(context.Context, engine.IngestBatchParams) (engine.IngestBatchResult, error) {
	return engine.IngestBatchResult{}, nil
}

// CommitTurn acknowledges the turn, which the host's transcript holds.
func (Engine) CommitTurn(context.Context, engine.CommitTurnParams) (engine.CommitTurnResult, error) {
	return engine.CommitTurnResult{Status: engine.Committed}, nil
}

// AfterTurn does nothing.
func (Engine) AfterTurn(context.Context, engine.AfterTurnParams) error { return nil }

// Assemble returns the messages it was given, with the host's kind of estimate, and the memory
// plugin's text where the caller passes it because its host leaves it out.
func (Engine) Assemble(_ context.Context, p engine.AssembleParams) (engine.AssembleResult, error) {
	res := engine.AssembleResult{
		Messages: append([]json.RawMessage{}, p.Messages...), Kept: make([]int, len(p.Messages)), Insert: []engine.Insertion{},
		EstimatedTokens: engine.Estimate(p.Messages), PromptAuthority: engine.Assembled,
		SystemPromptAddition: memorybridge.Render(p.MemoryPrompt, nil),
	}
	for i := range res.Kept {
		res.Kept[i] = i
	}
	return res, nil
}

// Compact passes the call to the host.
func (e Engine) Compact(ctx context.Context, p engine.CompactParams) (engine.CompactResult, error) {
	if e.Runtime == nil {
		return engine.CompactResult{Reason: "not compacted: no host runtime is attached"}, nil
	}
	res, err := e.Runtime.Compact(ctx, p)
	if err != nil {
		return engine.CompactResult{}, fmt.Errorf("compact through the host: %w", err)
	}
	return res, nil
}

// PrepareSubagentSpawn has nothing to prepare.
func (Engine) PrepareSubagentSpawn(context.Context, engine.SpawnParams) (*engine.Spawn, error) {
	return nil, nil
}

// OnSubagentEnded does nothing.
func (Engine) OnSubagentEnded(context.Context, engine.SubagentEndedParams) error { return nil }

// Dispose does nothing.
func (Engine) Dispose(context.Context) error { return nil }
