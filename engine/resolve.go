package engine

import (
	"context"
	"slices"
	"strings"

	"hark/index"
)

// A message is stored once however it arrives. What decides is, in this order:
//
//  1. Its place: entry id, idempotency key, generation with position, the provider's response id.
//  2. The moment it was said, with session, role and words. Where a copy's time is coarser, a whole
//     second or minute, it is the message of that second or minute; where a copy has no time, it is a
//     message at any time; and a message that has one is a copy without it that was stored after it.
//  3. How often: one stored message is one message of a delivery and of the pages that follow it, so
//     that what a delivery holds twice was said twice. Places that exclude each other make two
//     messages of equal ones.
//
// What was forgotten takes part like what is stored: a copy of it is dropped. A message that says it was
// said after the forgetting is another one, unless its moment is exactly that of what was forgotten.
type resolver struct {
	e         *Engine
	sessionID string
	strict    bool // not the session from its beginning: places that differ count
	restoring bool // messages of an export: their keys are theirs already
	claims    *claims
	known     map[string]index.Identity
	rows      map[int64]*index.Message
	mine      map[string]bool // keys of places in this delivery
}

// claims are the messages that are taken already by others of a delivery.
type claims struct {
	rows map[int64]bool
	gone map[string]bool // keys of what was forgotten
	skip map[string]int  // by kind of key: numbers up to this one are taken
}

func newClaims() *claims {
	return &claims{rows: map[int64]bool{}, gone: map[string]bool{}, skip: map[string]int{}}
}

// run is an import in pages, whose claims last from page to page.
type run struct {
	sessionID string
	last      int64  // place of the last entry
	lastID    string // its id
	whole     bool   // from the beginning of the session
	claims    *claims
}

// follows reports that a page goes on where the run is: with its last entry or behind it.
func (p *run) follows(d delivery) bool {
	first := d.items[0]
	return p.sessionID == d.sessionID && len(p.claims.rows) <= maxClaims &&
		(first.seq > p.last || first.seq == p.last && first.place.entryID != "" && first.place.entryID == p.lastID)
}

// maxClaims bounds the rows a run remembers; beyond it the pages that follow stand alone.
const maxClaims = 1 << 17

// maxRuns bounds the sessions whose runs are remembered.
const maxRuns = 16

// resolver prepares for a delivery; the caller holds Engine.ingest.
func (e *Engine) resolver(session string, d delivery) *resolver {
	r := &resolver{
		e: e, sessionID: d.sessionID, strict: d.partial, claims: newClaims(),
		known: map[string]index.Identity{}, rows: map[int64]*index.Message{}, mine: map[string]bool{},
	}
	if !d.page || len(d.items) == 0 {
		return r
	}
	p := e.paging[session]
	if p == nil || !p.follows(d) {
		if p = (&run{sessionID: d.sessionID, whole: !d.partial, claims: newClaims()}); e.paging == nil || len(e.paging) >= maxRuns {
			e.paging = map[string]*run{}
		}
		e.paging[session] = p
	}
	last := d.items[len(d.items)-1]
	p.last, p.lastID = last.seq, last.place.entryID
	r.claims, r.strict = p.claims, !p.whole
	return r
}

// settle notes which rows a delivery's messages became.
func (r *resolver) settle(rows []int64) {
	for _, seq := range rows {
		if seq > 0 {
			r.claims.rows[seq] = true
		}
	}
}

// candidate is a message of a delivery as far as its identity goes.
type candidate struct {
	content
	at      int      // which message of the delivery
	own     []string // keys of its place, most reliable first
	version index.Version
	text    string
	timed   bool // of the message itself
}

// prefetch looks up at once what most messages need.
func (r *resolver) prefetch(ctx context.Context, all []candidate) error {
	var keys []string
	for i := range all {
		keys = append(append(keys, all[i].own...), all[i].exact(1))
	}
	if err := r.look(ctx, keys); err != nil {
		return err
	}
	keys = keys[:0]
	var rows []int64
	for i := range all {
		c := &all[i]
		stored := false
		for _, key := range append(slices.Clone(c.own), c.exact(1)) {
			if id := r.known[key]; id.Seq != index.Unknown {
				stored = true
				if id.Seq > 0 {
					rows = append(rows, id.Seq)
				}
			}
		}
		if stored {
			continue
		}
		keys = append(keys, c.kin(1), c.untimed(1))
		if c.ms != 0 {
			for _, second := range c.buckets() {
				keys = append(keys, c.within(second)(1))
			}
		}
	}
	if err := r.look(ctx, keys); err != nil {
		return err
	}
	return r.load(ctx, rows)
}

// look reads what is known of keys, once.
func (r *resolver) look(ctx context.Context, keys []string) error {
	var missing []string
	for _, key := range keys {
		if _, ok := r.known[key]; !ok {
			r.known[key] = index.Identity{Seq: index.Unknown}
			missing = append(missing, key)
		}
	}
	found, err := r.e.store.Identities(ctx, missing...)
	if err != nil {
		return err
	}
	for i, id := range found {
		r.known[missing[i]] = id
	}
	return nil
}

func (r *resolver) load(ctx context.Context, seqs []int64) error {
	seqs = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(seqs))), func(seq int64) bool { return r.rows[seq] != nil })
	rows, err := r.e.store.Get(ctx, seqs...)
	if err != nil {
		return err
	}
	for i := range rows {
		r.rows[rows[i].Seq] = &rows[i]
	}
	return nil
}

func (r *resolver) row(ctx context.Context, seq int64) (*index.Message, error) {
	if r.rows[seq] == nil {
		if err := r.load(ctx, []int64{seq}); err != nil {
			return nil, err
		}
	}
	return r.rows[seq], nil
}

// resolve returns the keys under which the index finds the row that a message is, or stores a new one,
// and with what version.
func (r *resolver) resolve(ctx context.Context, c candidate) (keys []string, v index.Version, err error) {
	defer func() {
		for _, key := range c.own {
			r.mine[key] = true
		}
	}()
	if c.role == "summary" { // the same words about the same history are the same summary
		return append(slices.Clone(c.own), c.exact(1)), c.version, nil
	}
	if slices.ContainsFunc(c.own, func(key string) bool { return r.mine[key] }) {
		return c.own, c.version, nil // it is there twice
	}
	if keys, v, ok, err := r.byPlace(ctx, c); ok || err != nil {
		return keys, v, err
	}
	hit, err := r.byContent(ctx, c)
	if err != nil {
		return nil, v, err
	}
	if hit.key == "" {
		more, err := r.freshKeys(ctx, c, true)
		return append(slices.Clone(c.own), more...), c.version, err
	}
	keys = append(slices.Clone(c.own), hit.key)
	if hit.Seq == 0 && c.ms != 0 && hit.key != c.exact(1) {
		// What is known of a forgotten message's moment now keeps out copies that tell less of it.
		more, err := r.freshKeys(ctx, c, false)
		return append(keys, more...), c.version, err
	}
	if hit.Seq <= 0 {
		return keys, c.version, nil
	}
	row, err := r.row(ctx, hit.Seq)
	if err != nil {
		return nil, v, err
	}
	return r.complete(ctx, c, row, keys)
}

// byPlace finds a message by the keys of its place.
func (r *resolver) byPlace(ctx context.Context, c candidate) (keys []string, v index.Version, ok bool, err error) {
	if err := r.look(ctx, c.own); err != nil {
		return nil, v, false, err
	}
	for i, key := range c.own {
		id := r.known[key]
		if id.Seq == index.Unknown {
			continue
		}
		if id.Seq == 0 {
			_, found, err := r.chain(ctx, c.exact, func(_ string, id index.Identity) (bool, error) { return id.Seq == 0, nil })
			if found || err != nil || r.restoring {
				return c.own, c.version, true, err
			}
			// What it says now was not known when it was forgotten; copies without its place say it too.
			more, err := r.freshKeys(ctx, c, true)
			return append(slices.Clone(c.own), more...), c.version, true, err
		}
		row, err := r.row(ctx, id.Seq)
		if err != nil {
			return nil, v, false, err
		}
		if i == 0 && r.reused(c, row) {
			continue
		}
		r.claims.rows[id.Seq] = true
		keys, v, err = r.complete(ctx, c, row, slices.Clone(c.own))
		return keys, v, true, err
	}
	return nil, v, false, nil
}

// reused reports that an entry's id names another message in the row: see index.Store.Append.
func (r *resolver) reused(c candidate, row *index.Message) bool {
	return strings.HasPrefix(c.own[0], "entry:") && row.SessionID != r.sessionID && row.Text != c.text &&
		row.TimeSource == index.FromMessage && c.timed && row.Time.UnixMilli() != c.version.Said.UnixMilli()
}

// maxKeys bounds the keys of a row: a host that dates a message anew each time shall not grow it.
const maxKeys = 16

// complete completes the keys of a message that is a known row: with those of its moment and words where
// the row lacks them.
func (r *resolver) complete(ctx context.Context, c candidate, row *index.Message, keys []string) ([]string, index.Version, error) {
	c.version.Old = isOlder(row, c.version, c.text)
	c.version.Dates = c.timed && row.TimeSource != index.FromMessage && c.role != "summary"
	moments, marked := momentsOf(row.Keys, c.mark)
	if r.restoring || len(row.Keys) >= maxKeys || marked && (c.ms == 0 || slices.Contains(moments, c.ms)) {
		return keys, c.version, nil
	}
	more, err := r.freshKeys(ctx, c, !marked)
	return append(keys, more...), c.version, err
}

// freshKeys are the keys of a message's moment and, with all, of its words, under numbers that are free.
func (r *resolver) freshKeys(ctx context.Context, c candidate, all bool) (keys []string, err error) {
	kinds := []func(int) string{c.exact}
	if c.ms != 0 {
		kinds = append(kinds, c.within(c.ms/1000))
		if all {
			kinds = append(kinds, c.kin)
		}
	}
	for _, kind := range kinds {
		n, err := r.free(ctx, kind)
		if err != nil {
			return nil, err
		}
		key := kind(n)
		r.known[key] = index.Identity{Seq: pending}
		keys = append(keys, key)
	}
	return keys, nil
}

// free is the first number that no message has: those that are given are without gaps.
func (r *resolver) free(ctx context.Context, kind func(int) string) (int, error) {
	taken := func(n int) (bool, error) {
		err := r.look(ctx, []string{kind(n)})
		return r.known[kind(n)].Seq != index.Unknown, err
	}
	low, high := 0, 1 // low is taken
	for {
		used, err := taken(high)
		if err != nil {
			return 0, err
		}
		if !used {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		used, err := taken((low + high) / 2)
		if err != nil {
			return 0, err
		}
		if used {
			low = (low + high) / 2
		} else {
			high = (low + high) / 2
		}
	}
	return high, nil
}

// pending is the row of a key that this delivery adds.
const pending = index.Unknown - 1

// hit is a message that was found, by its key.
type hit struct {
	index.Identity
	key string
}

// chained is how many numbers are looked up at a time.
const chained = 64

// chain walks the messages of one kind of key by their numbers, and claims the first that is free and
// accepted.
func (r *resolver) chain(ctx context.Context, kind func(int) string, accept func(key string, id index.Identity) (bool, error)) (hit, bool, error) {
	base, leading := kind(1), true
	for n, size := r.claims.skip[base]+1, 1; ; n, size = n+size, chained {
		keys := make([]string, size)
		for i := range keys {
			keys[i] = kind(n + i)
		}
		if err := r.look(ctx, keys); err != nil {
			return hit{}, false, err
		}
		for i, key := range keys {
			id := r.known[key]
			if id.Seq == index.Unknown {
				return hit{}, false, nil
			}
			if id.Seq == pending || r.claims.rows[id.Seq] || id.Seq == 0 && r.claims.gone[key] {
				if leading {
					r.claims.skip[base] = n + i
				}
				continue
			}
			leading = false
			ok, err := accept(key, id)
			if err != nil {
				return hit{}, false, err
			}
			if !ok {
				continue
			}
			if id.Seq > 0 {
				r.claims.rows[id.Seq] = true
			} else {
				r.claims.gone[key] = true
			}
			return hit{id, key}, true, nil
		}
	}
}

// byContent finds a message by what it says and when.
func (r *resolver) byContent(ctx context.Context, c candidate) (hit, error) {
	if c.ms == 0 {
		for _, kind := range []func(int) string{c.kin, c.untimed} {
			h, ok, err := r.chain(ctx, kind, r.accepts(ctx, c, func(*index.Message) bool { return true }))
			if ok || err != nil {
				return h, err
			}
		}
		return hit{}, nil
	}
	h, ok, err := r.chain(ctx, c.exact, func(_ string, id index.Identity) (bool, error) {
		if id.Seq == 0 {
			return true, nil
		}
		row, err := r.row(ctx, id.Seq)
		return err == nil && !r.contradicted(c, row), err
	})
	if ok || err != nil {
		return h, err
	}
	for _, second := range c.buckets() {
		h, ok, err := r.chain(ctx, c.within(second), r.accepts(ctx, c, func(row *index.Message) bool {
			return slices.ContainsFunc(finest(row.Keys, c.mark), func(ms int64) bool { return sameMoment(ms, c.ms) })
		}))
		if ok || err != nil {
			return h, err
		}
	}
	h, _, err = r.chain(ctx, c.untimed, r.accepts(ctx, c, func(row *index.Message) bool {
		moments, _ := momentsOf(row.Keys, c.mark)
		return len(moments) == 0 && c.ms <= row.Time.Add(clockSlack).UnixMilli()
	}))
	return h, err
}

// accepts is what a row has to meet to be the message, or what was forgotten.
func (r *resolver) accepts(ctx context.Context, c candidate, meets func(*index.Message) bool) func(string, index.Identity) (bool, error) {
	return func(_ string, id index.Identity) (bool, error) {
		if id.Seq == 0 {
			return id.Gone.IsZero() || c.seen.IsZero() || !c.seen.After(id.Gone.Add(clockSlack)), nil
		}
		row, err := r.row(ctx, id.Seq)
		return err == nil && meets(row) && !r.contradicted(c, row), err
	}
}

func (r *resolver) contradicted(c candidate, row *index.Message) bool {
	return r.strict && contradicts(row.Keys, c.own, c.ms == 0 && row.TimeSource != index.FromMessage)
}
