package engine

import (
	"bytes"
	"encoding/json"
	"sort"
)

// shortest is what a shortened text keeps at least, in tokens, and minPiece the size from which a
// text is worth shortening, in bytes.
const (
	shortest = 24
	minPiece = 160
)

// The order in which texts of a turn that is too long give way; a person's words come last.
const (
	pieceTool = iota
	pieceCall
	pieceAssistant
	pieceUser
	pieceClasses
)

// piece is one text inside a message that may be shortened.
type piece struct {
	message int
	class   int
	text    string
	tokens  int
	set     func(string) // replaces the text in the tree it belongs to
}

// shorten makes the messages take at most limit tokens by cutting the middle out of their longest
// texts, tool output first. Every message, call and result stays, and so do thinking and signed
// blocks. It returns the changed messages by index and the tokens of all of them.
func (e *Engine) shorten(raws []json.RawMessage, ms []*measure, limit int) (changed map[int]json.RawMessage, tokens int) {
	for _, m := range ms {
		tokens += m.tokens
	}
	trees := make([]*object, len(raws))
	var pieces []piece
	for i, raw := range raws {
		if ms[i].odd {
			continue
		}
		tree, err := parseObject(raw)
		if err != nil {
			continue
		}
		trees[i] = tree
		pieces = append(pieces, e.pieces(i, ms[i], tree)...)
	}
	touched := map[int]bool{}
	for class := 0; class < pieceClasses && tokens > limit; class++ {
		tokens = e.squeeze(pieces, class, tokens, limit, touched)
	}
	changed = map[int]json.RawMessage{}
	for i := range touched {
		changed[i] = trees[i].encode()
	}
	return changed, tokens
}

// squeeze shortens the texts of one class to a common length under which the total fits.
func (e *Engine) squeeze(pieces []piece, class, tokens, limit int, touched map[int]bool) int {
	var mine []*piece
	sum, longest := 0, 0
	for i := range pieces {
		if p := &pieces[i]; p.class == class && len(p.text) >= minPiece {
			mine = append(mine, p)
			sum += p.tokens
			longest = max(longest, p.tokens)
		}
	}
	if len(mine) == 0 {
		return tokens
	}
	allowed := limit - (tokens - sum)
	at := sort.Search(longest, func(c int) bool { // the first cap that is too long
		total := 0
		for _, p := range mine {
			total += min(p.tokens, c+1)
		}
		return total > allowed
	})
	for _, p := range mine {
		if p.tokens <= at {
			continue
		}
		short, n := e.toTokens(p.text, p.tokens, max(at, shortest))
		if n >= p.tokens {
			continue
		}
		tokens += n - p.tokens
		p.set(short)
		touched[p.message] = true
	}
	return tokens
}

// toTokens cuts the middle out of text until it has at most want tokens, its mark included.
func (e *Engine) toTokens(text string, have, want int) (string, int) {
	limit := len(text) * want / max(have, 1)
	for range 12 {
		short := excerpt(text, max(limit-40, 24))
		n := e.tokens.count(short)
		if n <= want || limit <= 64 {
			return short, n
		}
		limit = limit * 9 / 10 * want / max(n*9/10, 1)
	}
	short := excerpt(text, 24)
	return short, e.tokens.count(short)
}

// pieces lists the texts of a message that may be shortened.
func (e *Engine) pieces(i int, m *measure, tree *object) []piece {
	class := pieceAssistant
	switch m.role {
	case "tool":
		class = pieceTool
	case "user":
		class = pieceUser
	}
	var out []piece
	add := func(class int, text string, set func(string)) {
		out = append(out, piece{message: i, class: class, text: text, tokens: e.tokens.count(text), set: set})
	}
	for _, key := range []string{"content", "summary", "output", "command"} {
		if text, ok := tree.text(key); ok {
			add(class, text, func(s string) { tree.setText(key, s) })
		}
	}
	blocks, ok := tree.objects("content")
	if !ok {
		return out
	}
	for _, b := range blocks {
		if b == nil {
			continue
		}
		kind, _ := b.text("type")
		switch {
		case kind == "text" && b.value("textSignature") == nil:
			if text, ok := b.text("text"); ok {
				add(class, text, func(s string) { b.setText("text", s) })
			}
		case block{Type: kind}.isCall() && b.value("thoughtSignature") == nil:
			args, err := parseObject(b.value("arguments"))
			if err != nil {
				continue
			}
			b.set("arguments", args)
			for _, f := range args.fields {
				if text, ok := args.text(f.key); ok {
					key := f.key
					add(pieceCall, text, func(s string) { args.setText(key, s) })
				}
			}
		}
	}
	return out
}

// object is a JSON object whose unchanged parts keep their bytes and order.
type object struct {
	fields []field
}

type field struct {
	key    string
	raw    json.RawMessage
	child  *object
	list   []*object // elements of an array, where they are objects
	others []json.RawMessage
}

func parseObject(raw json.RawMessage) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil || t != json.Delim('{') {
		return nil, errNotMessage
	}
	o := &object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.fields = append(o.fields, field{key: key.(string), raw: value})
	}
	return o, nil
}

func (o *object) at(key string) *field {
	for i := range o.fields {
		if o.fields[i].key == key {
			return &o.fields[i]
		}
	}
	return nil
}

func (o *object) value(key string) json.RawMessage {
	if f := o.at(key); f != nil {
		return f.raw
	}
	return nil
}

func (o *object) text(key string) (string, bool) {
	raw := o.value(key)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

func (o *object) setText(key, text string) {
	if f := o.at(key); f != nil {
		f.raw = encodeText(text)
	}
}

func (o *object) set(key string, child *object) {
	if f := o.at(key); f != nil {
		f.child = child
	}
}

// objects parses the array under key; elements that are no objects stay as they are.
func (o *object) objects(key string) ([]*object, bool) {
	f := o.at(key)
	if f == nil || len(f.raw) == 0 || f.raw[0] != '[' || json.Unmarshal(f.raw, &f.others) != nil {
		return nil, false
	}
	for _, raw := range f.others {
		child, err := parseObject(raw)
		if err != nil {
			child = nil
		}
		f.list = append(f.list, child)
	}
	return f.list, true
}

func (o *object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encodeText(f.key))
		b.WriteByte(':')
		switch {
		case f.child != nil:
			b.Write(f.child.encode())
		case f.list != nil:
			b.WriteByte('[')
			for j, child := range f.list {
				if j > 0 {
					b.WriteByte(',')
				}
				if child == nil {
					b.Write(f.others[j])
				} else {
					b.Write(child.encode())
				}
			}
			b.WriteByte(']')
		default:
			b.Write(f.raw)
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

func encodeText(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimRight(b.Bytes(), "\n")
}
