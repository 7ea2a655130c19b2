package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"hark/engine"
)

type host struct{ err error }

func (h host) Compact(context.Context, engine.CompactParams) (engine.CompactResult, error) {
	return engine.CompactResult{OK: true, Compacted: true}, h.err
}

func TestPassesThrough(t *testing.T) {
	if err := engine.Validate(engine.LegacyID, Engine{}); err != nil {
		t.Error(err)
	}
	in := []json.RawMessage{json.RawMessage(`{ "role":"user","content":"0123456789","n":1.0 }`), json.RawMessage(`{"role":"x"}`)}
	res, err := Engine{}.Assemble(t.Context(), engine.AssembleParams{Messages: in, TokenBudget: 1, MemoryPrompt: []string{"## Memory  ", ""}})
	if err != nil || len(res.Messages) != 2 || string(res.Messages[0]) != string(in[0]) || len(res.Insert) != 0 {
		t.Errorf("%+v %v", res, err)
	}
	if res.EstimatedTokens != 3 || res.SystemPromptAddition != "## Memory" {
		t.Errorf("%d tokens, addition %q", res.EstimatedTokens, res.SystemPromptAddition)
	}
	if res, _ = (Engine{}).Assemble(t.Context(), engine.AssembleParams{}); res.Messages == nil || res.Kept == nil {
		t.Error("no messages became null")
	}
}

func TestCompact(t *testing.T) {
	if res, err := (Engine{}).Compact(t.Context(), engine.CompactParams{}); err != nil || res.Compacted || res.Reason == "" {
		t.Errorf("%+v %v", res, err)
	}
	if res, err := (Engine{Runtime: host{}}).Compact(t.Context(), engine.CompactParams{}); err != nil || !res.Compacted {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := (Engine{Runtime: host{errors.New("no")}}).Compact(t.Context(), engine.CompactParams{}); err == nil {
		t.Error("the host's failure is lost")
	}
}

// The two engines stand in for each other behind a guard.
func TestGuardFallsBackToLegacy(t *testing.T) {
	g := engine.NewGuard("hark", nil, Engine{}, nil, nil, nil)
	in := []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}
	res, err := g.Assemble(t.Context(), engine.AssembleParams{Messages: in})
	if err != nil || len(res.Messages) != 1 || g.Info().ID != engine.LegacyID {
		t.Errorf("%+v %v", res, err)
	}
}
