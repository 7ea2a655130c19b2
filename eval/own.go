package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"hark/embed"
	"hark/engine"
	"hark/index"
)

// Own is the format of questions made from a user's store.
const Own = "own history"

// The categories of questions that are made from a store.
const (
	OwnIdentifier = "identifier"
	OwnPhrase     = "rare phrase"
	OwnDropped    = "dropped words"
	OwnLink       = "cross-session"
	OwnUpdate     = "update"
	OwnNothing    = "nothing to recall"
)

// FromStore makes questions from what a store holds, at most n of each kind, without a model and
// the same ones every time:
//
//   - identifier: a rare identifier; every message that holds it is evidence
//   - rare phrase: five words that stand together in one message only
//   - dropped words: every other content word of a message, without its rarest
//   - cross-session: a rare word that two sessions share, with another of each
//   - update: what two messages have in common but for a number; the newer is evidence
//   - nothing to recall: questions about things that the store does not mention
//
// What is said twice in other words counts once here, so that the figures are lower bounds. Only
// what the owner's sessions may recall is asked about; visible tells by a row's scope, nil admits
// every scope.
func FromStore(ctx context.Context, store *index.Store, agent string, visible func(scope string) bool, n int) (*Set, *Library, error) {
	l := &Library{Store: store, Agent: agent, byID: map[string]int{}, rows: map[string]row{}}
	set := &Set{Name: "own", Format: Own, Qrels: map[string]map[string]int{}, Unusable: map[string]bool{}}
	sessions, err := store.Sessions(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list sessions: %w", err)
	}
	sort.Slice(sessions, func(i, j int) bool { return sessions[i].Session < sessions[j].Session })
	m := &maker{n: n, set: set, holds: map[string][]int{}}
	for _, s := range sessions {
		rows, err := store.Session(ctx, s.Session, 0, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("read session %s: %w", s.Session, err)
		}
		for i, msg := range rows {
			if msg.Kind != index.Said && msg.Kind != index.Tool {
				continue
			}
			l.Docs = append(l.Docs, Doc{ID: msg.ID, Conv: "own", Sess: msg.Session, Idx: i, Spk: msg.Role, Date: msg.Time.UTC().Format(time.RFC3339), Text: msg.Text})
			l.note(len(l.Docs)-1, msg)
			m.add(msg, visible == nil || visible(msg.Scope))
		}
	}
	set.Docs = l.Docs
	m.make()
	if len(set.Queries) == 0 {
		return nil, nil, fmt.Errorf("no questions can be made of %d messages: import more of your history first", len(l.Docs))
	}
	return set, l, nil
}

// RunOwn evaluates a system on questions made from a store, which is only read.
func RunOwn(ctx context.Context, set *Set, l *Library, spec Spec, o Options) (*Result, error) {
	started := time.Now()
	o.complete()
	r := &run{set: set, spec: spec, opts: o, queries: set.Queries, res: &Result{Set: set, Spec: spec}}
	r.res.Outcomes, r.res.Rankings = make([]Outcome, len(r.queries)), make([]Ranking, len(r.queries))
	if err := warm(ctx, l.Store, spec.Embedder); err != nil {
		return nil, err
	}
	all := make([]int, len(r.queries))
	for i := range all {
		all[i] = i
	}
	if err := r.put(ctx, l, all, make(chan struct{}, o.Parallel)); err != nil {
		return nil, err
	}
	status, err := l.Store.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	t := &r.res.Timing
	sort.Float64s(t.Rank)
	sort.Float64s(t.Assemble)
	for _, name := range sortedKeys(status.Bytes) {
		t.Bytes += status.Bytes[name]
	}
	t.Documents, t.Stores, t.Parallel, t.Wall = len(l.rows), 1, o.Parallel, time.Since(started)
	return r.res, nil
}

// warm waits until the vectors of a store are in memory: a search before that finds fewer, and
// another number of them from run to run.
func warm(ctx context.Context, store *index.Store, emb embed.Embedder) error {
	if emb == nil {
		return nil
	}
	vs, err := emb.Embed(ctx, embed.Query, []string{"hello"})
	if err != nil {
		return fmt.Errorf("embed: %w", err)
	}
	if len(vs) != 1 || vs[0] == nil {
		return nil
	}
	space := index.Space{ID: emb.Model().String(), Dim: len(vs[0])}
	if err := store.UseSpace(ctx, space); err != nil && !errors.Is(err, index.ErrReadOnly) {
		return fmt.Errorf("use vector space: %w", err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		near, err := store.Nearest(ctx, space, vs[0], index.Filter{AllScopes: true}, 1)
		switch {
		case errors.Is(err, index.ErrSpace):
			return nil // the store has no vectors of this model: words answer alone
		case err != nil:
			return fmt.Errorf("load vectors: %w", err)
		case !near.Partial:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// OwnerSees returns which scopes the owner's sessions recall under a policy.
func OwnerSees(policy engine.Policy) func(scope string) bool {
	if policy == engine.PolicyAgent {
		return nil
	}
	return func(scope string) bool { return scope == ownerScope }
}

// source is one message that questions may be made of.
type source struct {
	id, session, sender string
	at                  time.Time
	ask                 bool // a person's words that the owner's sessions may recall
	words               []string
	order               uint64 // of picking: a hash of the id, so that the picks are spread
}

// maker makes questions.
type maker struct {
	n       int
	set     *Set
	sources []source
	holds   map[string][]int // sources by word, ascending, each once
}

func (m *maker) add(msg index.Message, visible bool) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(msg.ID)) // never fails
	s := source{
		id: msg.ID, session: msg.Session, sender: msg.Role + msg.Sender, at: msg.Time, words: words(msg.Text), order: h.Sum64(),
		ask: visible && msg.Kind == index.Said && msg.Role == "user" && len(msg.Text) <= 2000,
	}
	n := len(m.sources)
	m.sources = append(m.sources, s)
	for _, w := range s.words {
		if at := m.holds[w]; len(at) == 0 || at[len(at)-1] != n {
			m.holds[w] = append(at, n)
		}
	}
}

// words are the lower-case words of a text: runs of letters, digits and what joins them in
// identifiers.
func words(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./#@", r)
	})
	out := fields[:0]
	for _, f := range fields {
		if f = strings.Trim(f, "_-./#@"); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// make makes all questions, kind by kind.
func (m *maker) make() {
	order := make([]int, len(m.sources))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool {
		a, b := &m.sources[order[i]], &m.sources[order[j]]
		return a.order < b.order || a.order == b.order && a.id < b.id
	})
	for _, kind := range []struct {
		cat string
		ask func(i int) (text string, evidence, stale []int)
	}{
		{OwnIdentifier, m.identifier}, {OwnPhrase, m.phrase}, {OwnDropped, m.dropped}, {OwnLink, m.link}, {OwnUpdate, m.update},
	} {
		asked := map[string]bool{}
		for _, i := range order {
			if len(asked) == m.n {
				break
			}
			if !m.sources[i].ask {
				continue
			}
			text, evidence, stale := kind.ask(i)
			if text != "" && !asked[text] {
				asked[text] = true
				m.question(kind.cat, len(asked), text, evidence, stale)
			}
		}
	}
	m.nothing()
}

func (m *maker) question(cat string, nth int, text string, evidence, stale []int) {
	q := Query{ID: fmt.Sprintf("%s-%03d", strings.ReplaceAll(cat, " ", "-"), nth), Conv: "own", Text: text, Cat: cat}
	for _, i := range stale {
		q.Stale = append(q.Stale, m.sources[i].id)
	}
	if len(evidence) > 0 {
		m.set.Qrels[q.ID] = map[string]int{}
		for _, i := range evidence {
			m.set.Qrels[q.ID][m.sources[i].id] = 1
		}
	}
	m.set.Queries = append(m.set.Queries, q)
}

// identifier asks for the rarest identifier of a message.
func (m *maker) identifier(i int) (string, []int, []int) {
	best := ""
	for _, w := range m.sources[i].words {
		if isIdentifier(w) && len(m.holds[w]) <= 3 && (best == "" || len(m.holds[w]) < len(m.holds[best])) {
			best = w
		}
	}
	if best == "" {
		return "", nil, nil
	}
	return best, m.holds[best], nil
}

// isIdentifier says whether a word looks made rather than spoken: letters and digits mixed, or
// parts joined.
func isIdentifier(w string) bool {
	letters, digits, joints := 0, 0, 0
	for _, r := range w {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case strings.ContainsRune("_/#@.", r):
			joints++
		}
	}
	return len(w) >= 5 && len(w) <= 60 && (letters > 0 && digits > 1 || joints > 0 && letters > 3)
}

// phrase asks with five words that stand together nowhere else.
func (m *maker) phrase(i int) (string, []int, []int) {
	const length = 5
	w := m.sources[i].words
	best, rarity := -1, 0.0
	for at := 0; at+length <= len(w); at++ {
		r := 0.0
		for _, x := range w[at : at+length] {
			r += 1 / float64(len(m.holds[x]))
		}
		if r > rarity {
			best, rarity = at, r
		}
	}
	if best < 0 || len(w) < 8 {
		return "", nil, nil
	}
	p := w[best : best+length]
	for _, j := range m.holds[rarest(m, p)] {
		if j != i && contains(m.sources[j].words, p) {
			return "", nil, nil
		}
	}
	return strings.Join(p, " "), []int{i}, nil
}

func rarest(m *maker, of []string) string {
	best := of[0]
	for _, w := range of {
		if len(m.holds[w]) < len(m.holds[best]) {
			best = w
		}
	}
	return best
}

// contains says whether part stands in words.
func contains(words, part []string) bool {
	for i := 0; i+len(part) <= len(words); i++ {
		if slices.Equal(words[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// content are the distinct words of a message that a question could be made of: not too short, not
// in every fifth message.
func (m *maker) content(i int) []string {
	var out []string
	for _, w := range m.sources[i].words {
		if len([]rune(w)) >= 3 && len(m.holds[w])*5 <= len(m.sources)+20 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// dropped asks with every other content word of a message, the rarest left out.
func (m *maker) dropped(i int) (string, []int, []int) {
	c := m.content(i)
	if len(c) < 8 {
		return "", nil, nil
	}
	rare := rarest(m, c)
	var kept []string
	for at, w := range c {
		if at%2 == 0 && w != rare && len(kept) < 6 {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " "), []int{i}, nil
}

// link asks for two messages of different sessions that share a rare word.
func (m *maker) link(i int) (string, []int, []int) {
	a := &m.sources[i]
	for _, w := range m.content(i) {
		at := m.holds[w]
		if len(at) != 2 {
			continue
		}
		j := at[0] + at[1] - i
		b := &m.sources[j]
		if !b.ask || b.session == a.session || i > j {
			continue
		}
		x, y := m.other(i, w), m.other(j, w)
		if x == "" || y == "" || x == y {
			continue
		}
		return strings.Join([]string{w, x, y}, " "), []int{i, j}, nil
	}
	return "", nil, nil
}

// other is a content word of a message that is neither w nor its rarest.
func (m *maker) other(i int, w string) string {
	c := m.content(i)
	if len(c) < 4 {
		return ""
	}
	rare := rarest(m, c)
	for _, x := range c {
		if x != w && x != rare {
			return x
		}
	}
	return ""
}

// update asks for what two messages of one sender have in common while a number in them differs.
func (m *maker) update(i int) (string, []int, []int) {
	a := m.content(i)
	if len(a) < 4 || len(a) > 40 {
		return "", nil, nil
	}
	for _, j := range m.holds[rarest(m, plainWords(a))] {
		b := &m.sources[j]
		if j == i || !b.ask || b.sender != m.sources[i].sender || !b.at.After(m.sources[i].at) {
			continue
		}
		c := m.content(j)
		var shared []string
		for _, w := range a {
			if !hasDigit(w) && slices.Contains(c, w) {
				shared = append(shared, w)
			}
		}
		if len(shared) >= 3 && 2*len(shared) >= min(len(plainWords(a)), len(plainWords(c))) && otherNumbers(a, c) {
			return strings.Join(shared[:min(6, len(shared))], " "), []int{j}, []int{i}
		}
	}
	return "", nil, nil
}

func hasDigit(w string) bool { return strings.ContainsAny(w, "0123456789") }

// plainWords leaves out words with digits; of nothing but such it returns all.
func plainWords(of []string) []string {
	out := slices.DeleteFunc(slices.Clone(of), hasDigit)
	if len(out) == 0 {
		return of
	}
	return out
}

// otherNumbers says that both have numbers and not the same ones.
func otherNumbers(a, b []string) bool {
	x := slices.DeleteFunc(slices.Clone(a), func(w string) bool { return !hasDigit(w) })
	y := slices.DeleteFunc(slices.Clone(b), func(w string) bool { return !hasDigit(w) })
	slices.Sort(x)
	slices.Sort(y)
	return len(x) > 0 && len(y) > 0 && !slices.Equal(x, y)
}

// nothing asks about things that no message mentions: of each question at most half of the content
// words are in the store at all.
func (m *maker) nothing() {
	asked := 0
	for _, q := range []string{
		"how deep is the Mariana trench", "who painted the ceiling of the Sistine chapel", "what is the capital of Burkina Faso",
		"how do I poach a pear in red wine", "when did the Visigoths sack Rome", "what is the boiling point of bromine",
		"how many strings does a theorbo have", "which planets have retrograde rotation", "how does a heat pump extract warmth from frozen ground",
		"who wrote the Epic of Gilgamesh", "what do okapi eat in captivity", "why is the Dead Sea so salty",
		"how do I prune a wisteria in winter", "what was the tonnage of the Cutty Sark", "how is Roquefort cheese ripened",
		"what is the plural of octopus in Latin grammar", "how tall is the Eiffel tower with its antenna", "who won the 1934 Giro d'Italia",
		"how do I knit a cable stitch", "what is the half-life of caesium", "which chess opening begins with pawn to b4",
		"how do bees signal distance in their waggle dance", "who invented the spinning jenny", "what is a Fresnel lens made of",
	} {
		known, all := 0, 0
		for _, w := range words(q) {
			if len(w) >= 4 {
				all++
				if len(m.holds[w]) > 0 {
					known++
				}
			}
		}
		if 2*known <= all && asked < m.n {
			asked++
			m.question(OwnNothing, asked, q, nil, nil)
		}
	}
}
