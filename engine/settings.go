package engine

import (
	"encoding/json"
	"math"
	"strconv"
)

// Tokens is a number of tokens as a host gives it: absent, null and anything that is no number
// decode without error, as 0 or NaN, because a bad budget must not cost the turn.
type Tokens float64

// UnmarshalJSON accepts any JSON value.
func (t *Tokens) UnmarshalJSON(data []byte) error {
	var f *float64
	switch bad := json.Unmarshal(data, &f) != nil; {
	case bad:
		*t = Tokens(math.NaN())
	case f == nil:
		*t = 0
	default:
		*t = Tokens(*f)
	}
	return nil
}

// MarshalJSON writes null for what JSON cannot carry.
func (t Tokens) MarshalJSON() ([]byte, error) {
	f := float64(t)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
}

// RuntimeSettings is the host's description of the run, schema version 1. Pointers are the
// host's nullable fields.
type RuntimeSettings struct {
	SchemaVersion int `json:"schemaVersion"`
	Runtime       struct {
		Host      string  `json:"host"`
		Mode      string  `json:"mode"` // "normal", "fallback" or "degraded"
		HarnessID *string `json:"harnessId"`
		RuntimeID *string `json:"runtimeId"`
	} `json:"runtime"`
	Model struct {
		Requested *string `json:"requested"`
		Resolved  *string `json:"resolved"`
		Provider  *string `json:"provider"`
		Family    *string `json:"family"`
	} `json:"model"`
	ContextEngineSelection struct {
		SelectedID *string `json:"selectedId"`
		Source     string  `json:"source"` // "configured", "default" or "unknown"
	} `json:"contextEngineSelection"`
	ExecutionHost struct {
		ID    string  `json:"id"`
		Label *string `json:"label"`
	} `json:"executionHost"`
	Limits struct {
		PromptTokenBudget *Tokens `json:"promptTokenBudget"`
		MaxOutputTokens   *Tokens `json:"maxOutputTokens"`
	} `json:"limits"`
	Diagnostics struct {
		FallbackReason *string `json:"fallbackReason"`
		DegradedReason *string `json:"degradedReason"`
	} `json:"diagnostics"`
}

// RuntimeContext holds the few fields of the host's runtime context that an engine uses. The rest,
// among it the host's configuration with its keys, is dropped while decoding.
type RuntimeContext struct {
	Provider           string `json:"provider,omitempty"`
	Model              string `json:"model,omitempty"`
	ModelID            string `json:"modelId,omitempty"`
	ModelContextWindow Tokens `json:"modelContextWindow,omitempty"`
	TokenBudget        Tokens `json:"tokenBudget,omitempty"`
	CurrentTokenCount  Tokens `json:"currentTokenCount,omitempty"`
	Trigger            string `json:"trigger,omitempty"`
	WorkspaceDir       string `json:"workspaceDir,omitempty"`
}

// UnmarshalJSON leaves fields of an unexpected type empty: what a host adds to or changes in its
// description of a run must not cost the run.
func (s *RuntimeSettings) UnmarshalJSON(data []byte) error {
	type plain RuntimeSettings
	return lenient(data, (*plain)(s))
}

// UnmarshalJSON leaves fields of an unexpected type empty.
func (c *RuntimeContext) UnmarshalJSON(data []byte) error {
	type plain RuntimeContext
	return lenient(data, (*plain)(c))
}

// Tools are the names of the tools a model has. The host's own value is a set, which JSON has no
// form for: anything but an array decodes as not known.
type Tools []string

// UnmarshalJSON accepts any JSON value.
func (t *Tools) UnmarshalJSON(data []byte) error {
	var names []string
	if json.Unmarshal(data, &names) != nil {
		names = nil
	}
	*t = names
	return nil
}
