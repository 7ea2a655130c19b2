package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// ErrNotRunning says that no daemon answers in the state directory.
var ErrNotRunning = errors.New("no daemon is running")

// ClientOptions are the tunables of a Client.
type ClientOptions struct {
	// Spawn starts a daemon for the state directory and returns without waiting for it. nil: a
	// daemon that is not there is ErrNotRunning.
	Spawn func(ctx context.Context) error
	// StartWait is how long a started daemon may take until it answers; default 10 s.
	StartWait time.Duration
	Trace     bool // ask assemble for its trace
}

// Client speaks to the daemon of one state directory. It is safe for concurrent use, finds a daemon
// that was replaced by itself, and starts one where Spawn is given.
//
// A call that cannot have been answered because the daemon went away is made again, once there is
// one: every method does nothing the second time. Errors are *Error where the daemon answered.
type Client struct {
	state string
	opts  ClientOptions
	http  *http.Client

	starting sync.Mutex // held by the call that starts a daemon; the others wait for it
}

// NewClient returns a client; nothing is opened before the first call.
func NewClient(state string, opts ClientOptions) *Client {
	if opts.StartWait <= 0 {
		opts.StartWait = 10 * time.Second
	}
	c := &Client{state: state, opts: opts}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: c.dial, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
	}}
	return c
}

// Find returns a client for the daemon that serves a state directory, or ErrNotRunning. It takes no
// longer than wait where something holds the socket and does not answer.
func Find(ctx context.Context, state string, wait time.Duration) (*Client, Hello, error) {
	c := NewClient(state, ClientOptions{})
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	hello, err := c.Hello(ctx)
	if err != nil {
		c.Close()
		return nil, Hello{}, err
	}
	return c, hello, nil
}

// Close lets go of idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Hello asks who serves. It starts nothing.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	var h Hello
	err := c.once(ctx, http.MethodGet, "/v1/hello", nil, &h)
	if err == nil && h.Protocol != Protocol {
		err = &Error{Code: CodeProtocol, Message: fmt.Sprintf("the daemon speaks protocol %d and this program %d", h.Protocol, Protocol),
			Remedy: "update the older of the two"}
	}
	return h, err
}

// Start makes sure that a daemon answers, and starts one if need be.
func (c *Client) Start(ctx context.Context) (Hello, error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	hello, err := c.Hello(ctx)
	if err == nil || !absent(err) || c.opts.Spawn == nil {
		return hello, err
	}
	if err := c.opts.Spawn(ctx); err != nil {
		return hello, fmt.Errorf("start the daemon: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.StartWait)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if hello, err = c.Hello(ctx); err == nil || !absent(err) {
			return hello, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return hello, fmt.Errorf("the daemon was started but does not answer; its log is in the state directory under logs: %w", err)
		}
	}
}

// absent says whether an error means that there is no daemon to ask, or none any more: nothing
// listens, the connection broke, or the answer was that it is ending.
func absent(err error) bool {
	var answered *Error
	switch {
	case errors.As(err, &answered):
		return answered.Code == CodeShuttingDown
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return false
	}
	return true
}

// Call calls a method of an agent with params as its JSON body and decodes the answer into out,
// which may be nil. The deadline of ctx travels with it.
func (c *Client) Call(ctx context.Context, agent, method string, params, out any) error {
	body, err := encode(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return c.do(ctx, http.MethodPost, agentPath(agent, method), body, out)
}

// Cursor returns the host's cursor after the last page of a session that is stored, "" for none.
func (c *Client) Cursor(ctx context.Context, agent, sessionKey, sessionID string) (string, error) {
	var out CursorResponse
	q := url.Values{"session": {sessionKey}, "sessionId": {sessionID}}
	err := c.do(ctx, http.MethodGet, agentPath(agent, "cursor")+"?"+q.Encode(), nil, &out)
	return out.Cursor, err
}

// Status decodes the daemon's status into out; with an agent, that agent's too.
func (c *Client) Status(ctx context.Context, agent string, out any) error {
	path := "/v1/status"
	if agent != "" {
		path += "?" + url.Values{"agent": {agent}}.Encode()
	}
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Shutdown asks the daemon to end. It does not wait for that.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.once(ctx, http.MethodPost, "/v1/shutdown", nil, nil)
}

func agentPath(agent, method string) string {
	return "/v1/agents/" + url.PathEscape(agent) + "/" + url.PathEscape(method)
}

// do makes a call, and makes it again where the daemon went away before it answered.
func (c *Client) do(ctx context.Context, verb, path string, body []byte, out any) error {
	const attempts = 3 // the daemon ends, so does the one that was found instead, the next one stays
	var err error
	for range attempts {
		if err = c.once(ctx, verb, path, body, out); err == nil || !absent(err) {
			return err
		}
		if _, serr := c.Start(ctx); serr != nil {
			if absent(serr) {
				return err
			}
			return serr
		}
	}
	return err
}

func (c *Client) once(ctx context.Context, verb, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, verb, "http://hark"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set(HeaderProtocol, strconv.Itoa(Protocol))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opts.Trace {
		req.Header.Set(HeaderTrace, "1")
	}
	if at, ok := ctx.Deadline(); ok {
		req.Header.Set(HeaderDeadline, strconv.FormatInt(max(1, time.Until(at).Milliseconds()), 10))
	}
	if rec, err := ReadRecord(c.state); err == nil && rec.Token != "" {
		req.Header.Set("Authorization", "Bearer "+rec.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return cause
		}
		return unwrapURL(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	if res.StatusCode/100 != 2 {
		var e errorBody
		if json.Unmarshal(data, &e) != nil || e.Error == nil {
			return &Error{Code: CodeInternal, Message: "the daemon answered " + res.Status}
		}
		return e.Error
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Error{Code: CodeInternal, Message: "the daemon's answer cannot be read: " + describe(err)}
	}
	return nil
}

// unwrapURL takes off what http adds: the made-up address of the request.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// dial connects to where the daemon of the state directory is now.
func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	rec, err := ReadRecord(c.state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	network, address := "unix", rec.Socket
	switch {
	case rec.Address != "":
		network, address = "tcp", rec.Address
	case address == "":
		address = filepath.Join(c.state, socketFile) // somebody removed the record
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return conn, err
}

// encode writes a body without escaping what JSON does not require, so that the bytes of messages
// stay what they were.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
