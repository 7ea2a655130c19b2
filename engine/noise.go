package engine

import (
	"strings"

	"hark/index"
)

// classify gives every message of a delivery its kind: what it is, or Noise where it must not
// become memory. The flag is the host's own word for a heartbeat.
func classify(msgs []message, sc Scope, heartbeat bool) []index.Kind {
	kinds := make([]index.Kind, len(msgs))
	for i := range msgs {
		kinds[i], _ = msgs[i].kindOf()
		if heartbeat || isFailed(msgs[i].stop) || isSilent(msgs[i].said) && msgs[i].role == "assistant" {
			kinds[i] = index.Noise
		}
	}
	if sc.Stored == automaticScope {
		for i := range kinds {
			kinds[i] = index.Noise
		}
	}
	for start := 0; start < len(msgs); {
		end := start + 1
		for end < len(msgs) && msgs[end].role != "user" {
			end++
		}
		if isHeartbeatTurn(msgs[start:end]) || isFailedTurn(msgs[start:end]) {
			for i := start; i < end; i++ {
				kinds[i] = index.Noise
			}
		}
		start = end
	}
	return kinds
}

// markTasks notes that what a subagent is told comes from the agent that started it, not from a person,
// unless the host says who it is.
func markTasks(msgs []message, sc Scope) {
	if sc.Address.Audience != Subagent {
		return
	}
	for i := range msgs {
		if m := &msgs[i]; m.role == "user" && m.owner == nil && m.sender == "" {
			m.machine = true
		}
	}
}

// isFailed reports an assistant message that was cut off or is an error.
func isFailed(stop string) bool { return stop == "error" || stop == "aborted" }

// isSilent reports the words by which an agent tells its host that it says nothing.
func isSilent(text string) bool {
	text = strings.Trim(text, " \n\t*_`.!<>/b")
	return text == "HEARTBEAT_OK" || text == "NO_REPLY"
}

// isFailedTurn reports a turn in which the assistant came to nothing but failures.
func isFailedTurn(turn []message) bool {
	failed := false
	for _, m := range turn {
		if m.role != "assistant" {
			continue
		}
		if !isFailed(m.stop) {
			return false
		}
		failed = true
	}
	return failed
}

// isHeartbeatTurn recognises a heartbeat without the host's flag: the prompt speaks of the
// heartbeat and either names its file or answer, or is answered by it.
func isHeartbeatTurn(turn []message) bool {
	if turn[0].role != "user" || !strings.Contains(strings.ToLower(turn[0].said), "heartbeat") {
		return false
	}
	if strings.HasPrefix(turn[0].said, "Read HEARTBEAT.md") || strings.Contains(turn[0].said, "reply HEARTBEAT_OK") {
		return true
	}
	for _, m := range turn[1:] {
		if m.role == "assistant" && isSilent(m.said) {
			return true
		}
	}
	return false
}

// restatedFrom is the length in bytes from which a user's text that another session has word for
// word is taken for a boot file the host restates, not for something a person said twice.
const restatedFrom = 600
