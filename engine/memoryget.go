package engine

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"hark/index"
	"hark/memorybridge"
)

// sessionPaths begin the paths of messages.
const sessionPaths = "sessions/"

// messagePath names a message like a file: sessions/<session>/<id>.md. The session is for the reader;
// the id alone says which message it is.
func (m *Memory) messagePath(msg index.Message) string {
	key := strings.TrimPrefix(canonicalKey(msg.Session), "agent:"+m.engine.scopes.agent+":")
	var b strings.Builder
	for _, r := range key {
		if b.Len() >= 60 {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	return sessionPaths + strings.Trim(b.String(), "-") + "/" + msg.ID + ".md"
}

// messageOf finds the message that a path names, if the requester may see it.
func (m *Memory) messageOf(ctx context.Context, s seen, path string) (index.Message, bool, error) {
	rest, ok := strings.CutPrefix(path, sessionPaths)
	if !ok {
		return index.Message{}, false, nil
	}
	_, name, ok := strings.Cut(rest, "/")
	if !ok || strings.Contains(name, "/") {
		return index.Message{}, false, nil
	}
	msg, ok, err := m.message(ctx, s, strings.TrimSuffix(name, ".md"))
	if !ok || err != nil || m.messagePath(msg) != path {
		return index.Message{}, false, err
	}
	return msg, true, nil
}

// message finds a message by its id, if the requester may see it. One that may not be seen is not
// told from one that is not there.
func (m *Memory) message(ctx context.Context, s seen, id string) (index.Message, bool, error) {
	found, err := m.engine.store.Find(ctx, id)
	if errors.Is(err, index.ErrNotFound) {
		return index.Message{}, false, nil
	}
	if err != nil {
		return index.Message{}, false, err
	}
	return found[0], s.admits(found[0]), nil
}

// Get reads lines of a memory file or of a message. What is not there, or not for the requester, is
// MemoryNotFound; a path that cannot be one of a memory file is a RequestError.
func (m *Memory) Get(ctx context.Context, p MemoryGetParams) (MemoryText, error) {
	p.Path = strings.TrimSpace(p.Path)
	if p.Path == "" {
		return MemoryText{}, badRequest("the path is empty: name the path of a search result")
	}
	if p.From < 0 || p.Lines < 0 {
		return MemoryText{}, badRequest("from and lines count from 1")
	}
	out := MemoryText{Status: MemoryNotFound, Path: p.Path}
	s := m.seen(ctx, p.Requester)
	if strings.HasPrefix(p.Path, sessionPaths) {
		msg, ok, err := m.messageOf(ctx, s, p.Path)
		if err != nil || !ok || p.Corpus == SourceMemory {
			return out, err
		}
		return out.read(msg.Text, p), nil
	}
	if p.Corpus == SourceSessions {
		return out, nil
	}
	c, err := m.corpora(ctx, p.Corpora)
	if err != nil {
		return out, err
	}
	if c.Workspace == "" {
		return out, badRequest("name the workspace whose memory files are meant")
	}
	ws := memorybridge.Workspace{Dir: c.Workspace, Extra: c.Extra, Home: m.opts.Home}
	f, data, err := ws.Read(p.Path)
	if f.Path != "" {
		out.Path = f.Path
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case errors.Is(err, memorybridge.ErrNotMemory), errors.Is(err, memorybridge.ErrTooLarge):
		return out, badRequest("%v", err)
	case err != nil:
		return out, &RequestError{problem(out.Path, err)}
	}
	text, ok := memorybridge.Decode(data)
	if !ok {
		return out, badRequest("%s: this is no text", out.Path)
	}
	if !s.owner && (f.Class.Private() || memorybridge.Parse(f.Path, text).Private) {
		return out, nil
	}
	return out.read(text, p), nil
}

// read fills in the lines that were asked for.
func (t MemoryText) read(text string, p MemoryGetParams) MemoryText {
	e := memorybridge.Cut(text, p.From, p.Lines)
	t.Status, t.Text, t.From, t.Lines, t.Total = MemoryOK, e.Text, e.From, e.Lines, e.Total
	t.Truncated, t.NextFrom = e.Truncated, e.NextFrom
	return t
}

// Authorize tells which hits a session may see.
func (m *Memory) Authorize(ctx context.Context, p MemoryAuthorizeParams) (MemoryAllowed, error) {
	out := MemoryAllowed{Allowed: []int{}}
	s := m.seen(ctx, p.Requester)
	nb, err := m.notebook(ctx, p.Corpora)
	if err != nil && !errors.Is(err, index.ErrLocked) {
		return out, err
	}
	for i, h := range p.Hits {
		var allowed bool
		switch {
		case h.Source == SourceSessions || strings.HasPrefix(h.Path, sessionPaths):
			if _, allowed, err = m.messageOf(ctx, s, h.Path); err != nil {
				return out, err
			}
		case s.owner:
			allowed = true
		case nb != nil:
			allowed = !nb.private(h.Path)
		default:
			class, _ := memorybridge.Classify(h.Path)
			allowed = !class.Private()
		}
		if allowed {
			out.Allowed = append(out.Allowed, i)
		}
	}
	return out, nil
}

// Classify tells what paths of a workspace are, as they were read last.
func (m *Memory) Classify(ctx context.Context, p MemoryClassifyParams) (MemoryClasses, error) {
	out := MemoryClasses{Private: []string{}, Classifications: []MemoryClass{}}
	nb, err := m.notebook(ctx, p.Corpora)
	if err != nil && !errors.Is(err, index.ErrLocked) {
		return out, err
	}
	for _, path := range p.Paths {
		class, _ := memorybridge.Classify(path)
		private := class.Private()
		if nb != nil {
			private = nb.private(path)
		}
		if private {
			out.Private = append(out.Private, path)
		}
		out.Classifications = append(out.Classifications, MemoryClass{path, class.Origin()})
	}
	return out, nil
}
