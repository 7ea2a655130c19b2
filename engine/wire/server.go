package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Defaults of ServerOptions, and limits that are nobody's to set.
const (
	defaultDeadline = 60 * time.Second       // of a call whose client names none
	bodyTimeout     = 30 * time.Second       // for a request to arrive
	lastWords       = 100 * time.Millisecond // that the work of a call ends before the call, at most
)

var errShuttingDown = &Error{
	Code: CodeShuttingDown, Message: "this daemon is shutting down",
	Remedy: "connect again; the next daemon takes over",
}

// ServerOptions describe a Server. Open is required.
type ServerOptions struct {
	Open     OpenFunc
	Version  string
	IdleExit time.Duration                // only reported, in hello
	Classify func(error) *Error           // gives the code of an engine's error; nil, or a nil result: internal
	Stop     func()                       // what POST /v1/shutdown does, after the answer is on its way
	Log      *slog.Logger                 // nil discards
	Now      func() time.Time             // nil means time.Now
	Touch    func() (done func())         // called around each call that counts as use; nil: not counted
	Allow    func(r *http.Request) *Error // refuses a peer; nil: everyone who can connect
	Metrics  http.Handler                 // serves GET /metrics; nil: there are none
	Observe  Observer                     // hears of every answered call of an agent; nil: nobody does
}

// Observer hears how a call was answered. failed is nil where it was served; the method may be any
// text a client made up. It must not block.
type Observer func(agent, method string, took time.Duration, failed *Error)

// Server is the HTTP surface of a daemon. It is safe for concurrent use.
type Server struct {
	opts      ServerOptions
	log       *slog.Logger
	mux       *http.ServeMux
	agents    *agents
	histories *histories
	spawns    spawns
	started   time.Time
	slots     chan struct{} // one token for each call that runs, answered or not

	ctx  context.Context // of all work
	stop context.CancelFunc
	// ending is done when no more calls are let in: bodies that have not arrived are given up.
	ending context.Context
	end    context.CancelFunc

	giving sync.Mutex // held while memory is given back

	mu       sync.Mutex
	failing  map[complaint]string // by code: calls that failed when they were last made
	draining bool
	running  sync.WaitGroup // Add under mu while not draining
}

// NewServer returns a server that has opened nothing yet.
func NewServer(opts ServerOptions) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Touch == nil {
		opts.Touch = func() func() { return func() {} }
	}
	s := &Server{
		opts: opts, log: opts.Log, started: opts.Now(), mux: http.NewServeMux(),
		histories: newHistories(maxHistoryBytes), slots: make(chan struct{}, MaxConcurrent), failing: map[complaint]string{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.ending, s.end = context.WithCancel(context.Background())
	s.agents = newAgents(s.ctx, opts.Open, s.log)
	s.routes()
	return s
}

func (s *Server) routes() {
	s.mux.HandleFunc("GET /v1/hello", s.hello)
	s.mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	})
	if s.opts.Metrics != nil {
		s.mux.Handle("GET /metrics", s.opts.Metrics)
	}
	s.mux.HandleFunc("POST /v1/shutdown", s.shutdown)
	s.mux.HandleFunc("GET /v1/status", s.counted(s.status))
	s.mux.HandleFunc("GET /v1/agents/{agent}/cursor", s.counted(s.cursor))
	s.mux.HandleFunc("POST /v1/agents/{agent}/{method}", s.counted(s.method))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{Code: CodeUnknown, Message: "there is no " + r.Method + " " + clip(r.URL.Path, 100),
			Remedy: "see the README of engine/wire for the routes"})
	})
}

// ServeHTTP answers one request: the peer, the protocol and the state of the server are checked here.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(HeaderProtocol, strconv.Itoa(Protocol))
	defer func() {
		if p := recover(); p != nil {
			writeError(w, panicked(s.log, r.Method, r.URL.Path, p))
		}
	}()
	r = r.WithContext(context.WithValue(r.Context(), began{}, time.Now()))
	if s.opts.Allow != nil {
		if refused := s.opts.Allow(r); refused != nil {
			writeError(w, refused)
			return
		}
	}
	if v := r.Header.Get(HeaderProtocol); v != "" && v != strconv.Itoa(Protocol) {
		writeError(w, &Error{
			Code:    CodeProtocol,
			Message: fmt.Sprintf("this daemon speaks protocol %d and the client %s", Protocol, clip(v, 20)),
			Remedy:  "use the same version of hark and of the plugin: update the older one, then stop this daemon with POST /v1/shutdown",
		})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// counted keeps the daemon from ending while it is used, and refuses calls once it ends.
func (s *Server) counted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		done := s.opts.Touch()
		defer done()
		if !s.enter() {
			writeError(w, errShuttingDown)
			return
		}
		defer s.running.Done()
		next(w, r)
	}
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.running.Add(1)
	return true
}

// Close refuses new calls, waits for those that run, and closes every agent. When ctx ends first,
// running calls are cancelled, and those that do not heed it are left behind with their store open,
// which is as safe as a crash.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	idle := make(chan struct{})
	go func() { s.running.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		s.stop()
		select {
		case <-idle:
		case <-time.After(time.Second):
			return errors.New("calls are still running: their stores are left as they are")
		}
	}
	defer s.stop()
	return s.agents.close(ctx)
}

// drain refuses new calls from here on.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.end()
}

func (s *Server) hello(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		writeError(w, errShuttingDown)
		return
	}
	writeJSON(w, http.StatusOK, s.describe())
}

func (s *Server) describe() Hello {
	return Hello{
		Protocol: Protocol, Version: s.opts.Version, PID: os.Getpid(),
		UptimeMs: s.opts.Now().Sub(s.started).Milliseconds(),
		Agents:   s.agents.names(), IdleExitMs: s.opts.IdleExit.Milliseconds(),
	}
}

func (s *Server) shutdown(w http.ResponseWriter, _ *http.Request) {
	s.log.Info("shutdown requested")
	writeJSON(w, http.StatusOK, map[string]bool{"stopping": true})
	if s.opts.Stop != nil {
		s.opts.Stop()
	}
}

// acquire takes one of the slots, which bound how much is read and done at a time.
func (s *Server) acquire() error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
		return &Error{Code: CodeBusy, Message: fmt.Sprintf("%d calls are running already", MaxConcurrent), Remedy: "try again in a moment"}
	}
}

func (s *Server) release() { <-s.slots }

// run reads the body of a call and does its work, within its deadline. The work has a goroutine of
// its own, so that the answer is in time even where the engine does not heed its context; it keeps
// its slot until it ends, which bounds how many such there are.
func (s *Server) run(w http.ResponseWriter, r *http.Request, agent, method string, work func(ctx context.Context, body json.RawMessage) (any, error)) (any, error) {
	limit, err := deadlineOf(r.Header)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = defaultDeadline
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	// A body that does not arrive holds its slot no longer than the call may take, and does not
	// hold up the end of the daemon.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(min(limit, bodyTimeout))) // not every writer has deadlines; those of connections do
	interrupted := context.AfterFunc(s.ending, func() { _ = conn.SetReadDeadline(time.Now()) })
	body, err := readBody(w, r)
	if !interrupted() && err != nil {
		err = errShuttingDown
	}
	if err != nil {
		s.release()
		if ctx.Err() != nil && s.ending.Err() == nil {
			err = ctx.Err()
		}
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	defer context.AfterFunc(s.ctx, cancel)()
	// The work ends a little before the call does, so that what is ready, or why nothing is, gets out.
	at, _ := ctx.Deadline()
	inTime, stopWork := context.WithDeadline(ctx, at.Add(-min(limit/8, lastWords)))
	defer stopWork()

	type outcome struct {
		value any
		err   error
	}
	done := make(chan outcome, 1)
	s.running.Go(func() {
		defer s.release()
		defer s.giveBack(len(body))
		var out outcome
		defer func() {
			if p := recover(); p != nil {
				out.value, out.err = nil, panicked(s.log, method, agent, p)
			}
			done <- out
		}()
		out.value, out.err = work(inTime, body)
	})
	select {
	case out := <-done:
		return out.value, out.err
	case <-ctx.Done():
		select {
		case out := <-done: // it was in time
			return out.value, out.err
		default:
			return nil, ctx.Err()
		}
	}
}

// answer writes the outcome of a call and logs a failure once.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, agent, method string, value any, err error) {
	if err == nil {
		s.observe(r, agent, method, nil)
		s.calm(agent, method)
		writeJSON(w, http.StatusOK, value)
		return
	}
	e := s.classify(r, err)
	s.observe(r, agent, method, e)
	if e.status() >= 500 || e.Code == CodeConflict || e.Code == CodeLocked {
		s.complain(agent, method, e)
	}
	writeError(w, e)
}

// hugeBody is the size from which the memory a body took is given back to the system when its call is
// done: the runtime would keep several times as much for minutes.
const hugeBody = 8 << 20

// giveBack gives memory back after a huge body, one at a time.
func (s *Server) giveBack(size int) {
	if size < hugeBody || !s.giving.TryLock() {
		return
	}
	defer s.giving.Unlock()
	debug.FreeOSMemory()
}

// complaint is a call of an agent that fails.
type complaint struct{ agent, method string }

// maxComplaints bounds what is remembered of them.
const maxComplaints = 1024

// complain logs a failure, once until the call is served again or fails otherwise: a full disk fails
// every turn, and says so once.
func (s *Server) complain(agent, method string, e *Error) {
	s.mu.Lock()
	was := s.failing[complaint{agent, method}]
	if len(s.failing) < maxComplaints {
		s.failing[complaint{agent, method}] = e.Code
	}
	s.mu.Unlock()
	if was == e.Code {
		s.log.Debug("call not served again", "agent", agent, "method", method, "code", e.Code, "error", e.Message)
		return
	}
	s.log.Warn("call not served", "agent", agent, "method", method, "code", e.Code, "error", e.Message, "remedy", e.Remedy)
}

// calm notes that a call is served again.
func (s *Server) calm(agent, method string) {
	s.mu.Lock()
	code, failing := s.failing[complaint{agent, method}]
	delete(s.failing, complaint{agent, method})
	s.mu.Unlock()
	if failing && code != CodeConflict {
		s.log.Info("served again", "agent", agent, "method", method)
	}
}

// began is when a request came, in its context.
type began struct{}

func (s *Server) observe(r *http.Request, agent, method string, failed *Error) {
	if s.opts.Observe == nil || agent == "" {
		return
	}
	at, _ := r.Context().Value(began{}).(time.Time)
	s.opts.Observe(agent, method, time.Since(at), failed)
}

func (s *Server) classify(r *http.Request, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case s.ctx.Err() != nil:
		return errShuttingDown
	}
	if s.opts.Classify != nil {
		if e := s.opts.Classify(err); e != nil {
			return e
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: CodeDeadline, Message: "not done within the deadline" + named(r)}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeDeadline, Message: "the client went away"}
	case isDiskFull(err):
		return &Error{Code: CodeDiskFull, Message: err.Error(), Remedy: "free some disk space; nothing that was stored is lost"}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

func named(r *http.Request) string {
	if v := r.Header.Get(HeaderDeadline); v != "" {
		return " of " + v + " ms"
	}
	return fmt.Sprintf(" of %d ms", defaultDeadline.Milliseconds())
}

// readBody reads a whole body within its limits.
func readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	if r.ContentLength > MaxBody {
		return nil, tooLarge()
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, tooLarge()
	case err != nil:
		return nil, &Error{Code: CodeBadRequest, Message: "the body did not arrive: " + err.Error()}
	}
	if len(bytes.TrimSpace(buf.Bytes())) == 0 {
		return json.RawMessage("{}"), nil
	}
	return buf.Bytes(), nil
}

func tooLarge() *Error {
	return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the body is larger than %d MiB", MaxBody>>20)}
}

// decode reads a body into v. Fields it does not know are the host's to add.
func decode(body json.RawMessage, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return &Error{Code: CodeBadRequest, Message: "the body is not what this method takes: " + describe(err)}
	}
	return nil
}

// describe words a decoding error without any of the text that was decoded.
func describe(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("invalid JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		field := kind.Field
		if field == "" {
			field = "the body"
		}
		value, _, _ := strings.Cut(kind.Value, " ") // without the number itself
		return fmt.Sprintf("%s cannot be a JSON %s", field, value)
	}
	return "invalid JSON"
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		_ = json.NewEncoder(&buf).Encode(errorBody{&Error{Code: CodeInternal, Message: "the answer cannot be encoded"}})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = io.Copy(w, &buf) // a client that went away reads nothing
}

func writeError(w http.ResponseWriter, e *Error) { writeJSON(w, e.status(), errorBody{e}) }

// panicked logs a panic, which is a bug, and makes the error the client is told. The value may hold
// conversation text, so only the runtime's own are logged.
func panicked(log *slog.Logger, what, where string, p any) *Error {
	cause := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		cause = err.Error()
	}
	log.Error("panic", "in", what, "of", where, "cause", cause, "stack", string(debug.Stack()))
	return &Error{Code: CodeInternal, Message: "an internal error; the daemon goes on", Remedy: "the daemon's log has the details"}
}
