package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"hark/engine"
)

// Protocol is the version of the wire protocol. A change that an older peer would misread raises it.
const Protocol = 1

// The headers of the protocol.
const (
	HeaderProtocol = "Hark-Protocol"    // a number; a request without it is taken as current
	HeaderDeadline = "Hark-Deadline-Ms" // how long the client waits for this answer
	HeaderTrace    = "Hark-Trace"       // "1" asks assemble for its trace
)

// The limits of a server.
const (
	MaxBody       = 64 << 20 // bytes of one request body
	MaxConcurrent = 64       // calls at a time
)

// The codes of Error, which a client branches on.
const (
	CodeProtocol     = "protocol"       // 426: the two sides speak different versions
	CodeBadRequest   = "bad-request"    // 400
	CodeForbidden    = "forbidden"      // 403: another user, or no valid token
	CodeTooLarge     = "too-large"      // 413
	CodeUnknown      = "unknown-method" // 404
	CodeNotFound     = "not-found"      // 404: nothing is stored for this agent
	CodeDeadline     = "deadline"       // 504: not done in time
	CodeResend       = "resend"         // 409: send the messages in full
	CodeConflict     = "conflict"       // 409: the advancement key belongs to another turn
	CodeLocked       = "locked"         // 423: another process holds the store
	CodeNewer        = "newer-schema"   // 501: the store was written by a newer Hark
	CodeDiskFull     = "disk-full"      // 507
	CodeInternal     = "internal"       // 500
	CodeBusy         = "busy"           // 503: too many calls at once
	CodeShuttingDown = "shutting-down"  // 503: connect again, to the next daemon
)

// Error is a refusal or failure as it travels. It never holds conversation text.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"` // what the reader can do about it
}

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + ": " + e.Remedy
}

// Is makes errors.Is compare by code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// status is the HTTP status of a code.
func (e *Error) status() int {
	switch e.Code {
	case CodeProtocol:
		return http.StatusUpgradeRequired
	case CodeBadRequest:
		return http.StatusBadRequest
	case CodeForbidden:
		return http.StatusForbidden
	case CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeUnknown, CodeNotFound:
		return http.StatusNotFound
	case CodeDeadline:
		return http.StatusGatewayTimeout
	case CodeResend, CodeConflict:
		return http.StatusConflict
	case CodeLocked:
		return http.StatusLocked
	case CodeNewer:
		return http.StatusNotImplemented
	case CodeDiskFull:
		return http.StatusInsufficientStorage
	case CodeBusy, CodeShuttingDown:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// errorBody is the body of every answer that is not a success.
type errorBody struct {
	Error *Error `json:"error"`
}

// Hello is the answer of GET /v1/hello: who serves.
type Hello struct {
	Protocol   int      `json:"protocol"`
	Version    string   `json:"version"`
	PID        int      `json:"pid"`
	UptimeMs   int64    `json:"uptimeMs"`
	Agents     []string `json:"agents"` // open ones, sorted
	IdleExitMs int64    `json:"idleExitMs"`
}

// AssembleRequest is the body of assemble. History, where given, stands for Messages.
type AssembleRequest struct {
	engine.AssembleParams
	Messages []json.RawMessage `json:"messages,omitempty"` // hides the embedded field
	History  *History          `json:"history,omitempty"`
}

// History names messages by what the server has seen already: the first Count messages have the
// chain value Base, and Messages follow them.
type History struct {
	Base     string            `json:"base"` // hex, see Chain
	Count    int               `json:"count"`
	Messages []json.RawMessage `json:"messages"`
}

// AssembleResponse is the answer of assemble. It names the caller's messages and never repeats them.
type AssembleResponse struct {
	Kept                 [][2]int                  `json:"kept"` // half-open ranges of indexes into the call's messages, ascending
	Insert               []engine.Insertion        `json:"insert"`
	EstimatedTokens      int                       `json:"estimatedTokens"`
	PromptAuthority      string                    `json:"promptAuthority,omitempty"`
	SystemPromptAddition string                    `json:"systemPromptAddition,omitempty"`
	ContextProjection    *engine.ContextProjection `json:"contextProjection,omitempty"`
	Shortened            []int                     `json:"shortened,omitempty"` // indexes of messages whose shorter copy is in Insert
	Trace                *engine.Trace             `json:"trace,omitempty"`
}

// BootstrapRequest is the body of bootstrap: a page of the host's transcript and the host's cursor
// after it.
type BootstrapRequest struct {
	engine.BootstrapParams
	Cursor string `json:"cursor,omitempty"`
}

// CursorResponse is the answer of GET …/cursor; the cursor is empty where none is stored.
type CursorResponse struct {
	Cursor string `json:"cursor"`
}

// SpawnResponse is the answer of prepareSubagentSpawn. Prepared false means that there is nothing
// to roll back.
type SpawnResponse struct {
	Prepared        bool   `json:"prepared"`
	ChildSessionKey string `json:"childSessionKey,omitempty"`
}

// RollbackRequest is the body of rollbackSubagentSpawn.
type RollbackRequest struct {
	ChildSessionKey string `json:"childSessionKey"`
}

// CompactedRequest is the body of compacted: the host compacted this session.
type CompactedRequest struct {
	SessionID  string `json:"sessionId"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// deadlineOf reads the deadline header; none means 0.
func deadlineOf(h http.Header) (time.Duration, error) {
	v := h.Get(HeaderDeadline)
	if v == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(v, 10, 64)
	if err != nil || ms <= 0 || ms > int64(24*time.Hour/time.Millisecond) {
		return 0, &Error{Code: CodeBadRequest, Message: HeaderDeadline + " is not a number of milliseconds: " + strconv.Quote(clip(v, 40))}
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// clip keeps a caller's text from filling a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
