package engine

import (
	"encoding/json"
	"math"
	"testing"
)

// What a host changes about the description of a run does not cost the run.
func TestParamsDecodeLeniently(t *testing.T) {
	var p AssembleParams
	in := `{"sessionId":"s","tokenBudget":"many","availableTools":{},"runtimeSettings":{"schemaVersion":2,"runtime":{"mode":"degraded","host":7},"model":"x","limits":{"promptTokenBudget":900,"maxOutputTokens":null},"diagnostics":{"degradedReason":"context_overflow"}},"runtimeContext":{"model":{"id":"x"},"provider":"p","config":{"secret":"sk-1"}}}`
	if err := json.Unmarshal([]byte(in), &p); err != nil {
		t.Fatal(err)
	}
	s := p.RuntimeSettings
	if !math.IsNaN(float64(p.TokenBudget)) || s.Runtime.Mode != "degraded" || *s.Limits.PromptTokenBudget != 900 || p.RuntimeContext.Provider != "p" {
		t.Errorf("%+v %+v", p, s)
	}
	out, err := json.Marshal(p)
	if err != nil || len(out) == 0 {
		t.Fatal(err)
	}
	e := open(t, nil, nil)
	res, err := e.Assemble(t.Context(), p)
	if err != nil || res.Trace.Mode != "degraded" || res.Trace.Budget.Source != "settings" || len(res.Trace.Notes) < 2 {
		t.Errorf("%+v %v", res.Trace, err)
	}
}
