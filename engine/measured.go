package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"

	"hark/index"
)

// A history of megabytes takes a good part of a second to decode and count. An engine that has just
// started finds what it measured before in the store: a list for each session, by the hash of the
// messages' bytes. It holds counts, ids and fingerprints, and no text.

const (
	// measuredBucket is the state bucket of the lists, by session.
	measuredBucket = "measured"
	// worthReading is from how many bytes of messages on that were not seen yet the list is read.
	worthReading = 64 << 10
	// worthWriting is how many bytes of messages are measured before the list is written anew.
	worthWriting = 64 << 10
)

// measuredForm names what wrote a list: another version may measure otherwise.
const measuredForm = Version + "/1"

// bytesKey identifies the bytes of a message, in any process.
type bytesKey [16]byte

func bytesKeyOf(raw json.RawMessage) bytesKey {
	sum := sha256.Sum256(raw)
	return bytesKey(sum[:16])
}

// measuredList is a list as it is stored, in gob.
type measuredList struct {
	Form     string
	Messages []storedMeasure
}

// storedMeasure is a measure without the words of a person.
type storedMeasure struct {
	Key                           bytesKey
	Role, Result, Stop, Custom    string
	Calls                         []string
	Machine, Odd, MadeUp, Picture bool
	Owner                         int8 // 1 yes, -1 no, 0 not said
	At                            int64
	Tokens, Billed, Cached        int
	Print, Text, Model            string
}

func storedOf(m *measure, key bytesKey) storedMeasure {
	s := storedMeasure{
		Key: key, Role: m.role, Result: m.result, Stop: m.stop, Custom: m.custom, Calls: m.calls,
		Machine: m.machine, Odd: m.odd, MadeUp: m.madeUp, Picture: m.picture, At: m.ms,
		Tokens: m.tokens, Billed: m.billed, Cached: m.cached, Print: m.print, Text: m.text, Model: m.model,
	}
	if m.owner != nil {
		if s.Owner = -1; *m.owner {
			s.Owner = 1
		}
	}
	return s
}

func (s storedMeasure) measure() *measure {
	m := &measure{
		role: s.Role, result: s.Result, stop: s.Stop, custom: s.Custom, calls: s.Calls,
		machine: s.Machine, odd: s.Odd, madeUp: s.MadeUp, picture: s.Picture, ms: s.At,
		tokens: s.Tokens, billed: s.Billed, cached: s.Cached, print: s.Print, text: s.Text, model: s.Model,
		wordless: s.Role == "user",
	}
	if s.Owner != 0 {
		owner := s.Owner > 0
		m.owner = &owner
	}
	return m
}

// measuredAs is the session under which a call's measures are kept, "" where it has no key.
func (e *Engine) measuredAs(ctx context.Context, p AssembleParams) string {
	if key := canonicalKey(p.SessionKey); key != "" || p.SessionID == "" {
		return key
	}
	return e.lineage(ctx, "", p.SessionID)
}

// knownMeasures fills out at the indexes whose messages the session's list has, and returns the others.
func (e *Engine) knownMeasures(ctx context.Context, session string, raws []json.RawMessage, fresh []int, out []*measure) (rest []int) {
	size := 0
	for _, i := range fresh {
		size += len(raws[i])
	}
	if session == "" || size < worthReading {
		return fresh
	}
	value, err := e.store.State(ctx, measuredBucket, session)
	if err != nil || len(value) == 0 {
		return fresh
	}
	var list measuredList
	if err := gob.NewDecoder(bytes.NewReader(value)).Decode(&list); err != nil || list.Form != measuredForm {
		return fresh
	}
	known := make(map[bytesKey]int, len(list.Messages))
	for i, s := range list.Messages {
		known[s.Key] = i
	}
	keys := bytesKeys(raws, fresh)
	for n, i := range fresh {
		if at, ok := known[keys[n]]; ok {
			out[i] = list.Messages[at].measure()
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// bytesKeys are those of the messages at the given indexes.
func bytesKeys(raws []json.RawMessage, at []int) []bytesKey {
	out := make([]bytesKey, len(at))
	inParallel(len(at), func(n int) { out[n] = bytesKeyOf(raws[at[n]]) })
	return out
}

// keepMeasures writes the session's list in the background where enough was measured since the last
// time. Losing one costs the next process the measuring.
func (e *Engine) keepMeasures(session string, raws []json.RawMessage, ms []*measure) {
	e.mu.Lock()
	due := e.unwritten[session] >= worthWriting
	if due {
		delete(e.unwritten, session)
	}
	forgets := e.forgets
	e.mu.Unlock()
	if !due {
		return
	}
	e.keeping.Go(func() {
		all := make([]int, len(raws))
		for i := range all {
			all[i] = i
		}
		list := measuredList{Form: measuredForm, Messages: make([]storedMeasure, len(raws))}
		for i, key := range bytesKeys(raws, all) {
			list.Messages[i] = storedOf(ms[i], key)
		}
		var b bytes.Buffer
		err := gob.NewEncoder(&b).Encode(list)
		e.writing.Lock()
		defer e.writing.Unlock()
		e.mu.Lock()
		late := e.forgets != forgets
		e.mu.Unlock()
		if late {
			return
		}
		if err == nil {
			err = e.store.SetState(context.Background(), measuredBucket, session, b.Bytes())
		}
		if err != nil && !errors.Is(err, index.ErrReadOnly) {
			e.log.Warn("the counts of a session were not kept: they are made again after a restart", "error", fmt.Errorf("keep measures: %w", err))
		}
	})
}

// forgetMeasures drops the lists of sessions of which something is forgotten.
func (e *Engine) forgetMeasures(ctx context.Context, sessions []string) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	e.forgets++ // what is about to be written is not
	e.mu.Unlock()
	for _, session := range sessions {
		if err := e.store.SetState(ctx, measuredBucket, session, nil); err != nil {
			return err
		}
	}
	return nil
}

// wordsOf are the words of a person's message, shortened.
func wordsOf(raw json.RawMessage, m *measure) string {
	if !m.wordless {
		return m.words
	}
	d, err := decode(raw)
	if err != nil {
		return ""
	}
	return shortWords(&d)
}
