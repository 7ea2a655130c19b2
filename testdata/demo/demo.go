// Package demo holds the bundled demo history and the questions asked of it. The README beside
// this folder describes both files.
package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

// History is a chat history, one JSON object a line.
//
//go:embed history.jsonl
var History []byte

//go:embed questions.json
var questions []byte

// Question is one question to ask of the history.
type Question struct {
	Session  string    `json:"session"`  // the new session it is asked in
	AskedAt  time.Time `json:"asked_at"` // the clock of the question
	Kind     string    `json:"kind"`
	Question string    `json:"question"`
	Expect   []string  `json:"expect"` // texts that the recalled messages have to hold
	Why      string    `json:"why"`    // what makes it hard
}

// Questions returns the questions in their order.
func Questions() ([]Question, error) {
	var out []Question
	if err := json.Unmarshal(questions, &out); err != nil {
		return nil, fmt.Errorf("read the demo questions: %w", err)
	}
	return out, nil
}
