// Package memorybridge joins Hark to the agent's memory plugin: it turns the prompt sections of the
// active memory slot into the part of the system prompt an engine must add, because the host leaves
// them out as soon as an engine other than legacy is active.
//
// The text is the memory plugin's own. It is normalised, never rewritten, and the same sections
// always give the same bytes, so that the host's prompt cache holds.
package memorybridge

import (
	"encoding/json"
	"fmt"
)

// Sections is what the memory plugin wants in the system prompt, in order: either its raw lines, or
// one string. It encodes as an array and decodes from a string, an array of strings, or null.
type Sections []string

// UnmarshalJSON decodes a string, an array of strings, or null.
func (s *Sections) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = nil
		if one != "" {
			*s = Sections{one}
		}
		return nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return fmt.Errorf("memory prompt is neither a string nor a list of strings: %w", err)
	}
	*s = lines
	return nil
}
