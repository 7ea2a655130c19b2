package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"hark/engine/mask"
	"hark/memorybridge"
)

// Assemble implements ContextEngine. It returns no error: what fails inside costs the recall or the
// window, never the turn, and the Trace says what it was. The input is not changed.
func (e *Engine) Assemble(ctx context.Context, p AssembleParams) (res AssembleResult, err error) {
	tr := &Trace{Model: p.Model}
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("assemble panicked; the host's messages are passed through", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			tr.note("internal error: the host's messages are passed through")
			res, err = passThrough(p, tr), nil
		}
	}()
	res = e.assemble(ctx, p, tr, nil)
	if !p.Inspect {
		if e.states.late() {
			tr.note("the store is busy: what is remembered of this call is written later")
		}
		e.accounts.assembled(tr)
	}
	return res, nil
}

// passThrough is the result that changes nothing, with a plain estimate.
func passThrough(p AssembleParams, tr *Trace) AssembleResult {
	res := AssembleResult{
		Messages: append([]json.RawMessage{}, p.Messages...), Kept: make([]int, len(p.Messages)), Insert: []Insertion{},
		PromptAuthority: Assembled, SystemPromptAddition: memorybridge.Render(p.MemoryPrompt, nil), Trace: tr,
		EstimatedTokens: Estimate(p.Messages),
	}
	for i := range p.Messages {
		res.Kept[i] = i
	}
	return res
}

func (tr *Trace) note(format string, args ...any) {
	tr.Notes = append(tr.Notes, fmt.Sprintf(format, args...))
}

// assemble is Assemble without its guard. watched, where it is not nil, is told of the rows it names.
func (e *Engine) assemble(ctx context.Context, p AssembleParams, tr *Trace, watched *watching) AssembleResult {
	b := chooseBudget(p.TokenBudget, p.RuntimeSettings)
	tr.Budget = BudgetTrace{Tokens: b.tokens, Source: b.source, Reason: b.reason}
	session := e.measuredAs(ctx, p)
	ms := e.measureOf(ctx, session, p.Messages)
	usable := e.applySettings(p.RuntimeSettings, b.usable, tr)
	tr.Budget.Usable = usable
	name := family(p.RuntimeSettings, p.Model)
	factor := e.factor(ctx, name, familyOf(tr.Model), ms, p.Inspect)
	tr.Budget.Family, tr.Budget.Factor = name, factor
	usable = int(float64(usable) / factor)
	theirs := func(ours int) int { return int(math.Ceil(float64(ours) * factor)) }

	owner := p.SenderIsOwner
	for i := len(ms) - 1; i >= 0 && owner == nil; i-- {
		if ms[i].isUser() && !ms[i].machine {
			owner = ms[i].owner
		}
	}
	sc := e.scopeOf(ctx, p, owner)
	tr.Session, tr.Scope = sc.Session, sc.Stored

	addition := e.addition(p, sc, usable)
	added := e.tokens.count(addition)
	limit := max(usable-added, 0)

	q := ask(p, ms)
	turn := ""
	if p.SessionID != "" { // without one it is somebody looking, who will want to see what is stored next time
		turn = turnOf(ms, q)
	}
	book := e.ledgerOf(ctx, sc)
	if p.Inspect && book.Now != nil && book.Now.Turn == turn {
		book.Now = nil
	}
	w, changed := e.window(ctx, sc, p, ms, limit, tr)

	earlier, tokens := e.earlierBlocks(ctx, sc, &book, turn, ms, w, limit, tr, p.Inspect)
	room := 0
	if e.roomForGuide(usable) {
		room = min(e.opts.RecallTokens, int(float64(b.tokens)/factor)/4, limit-w.tokens-tokens)
	}
	block := e.recall(ctx, recallCall{
		scope: sc, question: q, messages: ms, window: w, turn: turn, book: book, kept: earlier, inspect: p.Inspect, watch: watched,
		room: room,
	}, tr)

	res := e.compose(p, ms, w, changed, block, earlier, q.live)
	tr.Budget.History, tr.Budget.Recall = theirs(w.tokens), theirs(block.tokens+tokens)
	tr.Budget.Addition, tr.Budget.Prompt = theirs(added), theirs(e.tokens.count(p.Prompt))
	res.EstimatedTokens = theirs(w.tokens + block.tokens + tokens + added)
	res.SystemPromptAddition, res.Trace = addition, tr
	res.ContextProjection = projection(p.RuntimeSettings)
	if !p.Inspect {
		e.keepMeasures(session, p.Messages, ms)
	}
	if w.start > 0 || len(changed) > 0 || w.tokens+block.tokens+tokens > limit {
		res.PromptAuthority = PreassemblyMayOverflow
	}
	return res
}

// earlierBlocks returns the blocks of earlier turns that stay in place, and their tokens. All go at
// once where the window is cut anew, and where they would take the room of what is recalled now.
func (e *Engine) earlierBlocks(ctx context.Context, sc Scope, book *ledger, turn string, ms []*measure, w window, limit int, tr *Trace, inspect bool) (kept []keptBlock, tokens int) {
	past := book.Now != nil && book.Now.Turn != turn && len(book.Now.Parts) > 0 && e.stays(*book.Now, ms, w, limit)
	had := len(book.Kept) > 0 || past
	if had && !w.moved && e.mayNotRecall(sc) == "" {
		kept = e.keptBlocks(ctx, book, past, ms, w.start)
		for _, k := range kept {
			tokens += k.tokens
		}
		if w.tokens+tokens+e.opts.RecallTokens > limit {
			kept, tokens = nil, 0
			tr.Window.Anchored, tr.Window.Reason = true, w.reason+"; the blocks of earlier turns went for lack of room"
		}
	}
	tr.Recall.Kept = len(kept)
	if len(kept) > 0 || !had {
		return kept, tokens
	}
	book.Kept = nil
	if past {
		book.Now = nil
	}
	if !inspect {
		e.saveLedger(sc.Session, *book)
	}
	return nil, 0
}

// applySettings records what the host says about the run and tightens the budget where the model
// has just refused a context for its size.
func (e *Engine) applySettings(s *RuntimeSettings, usable int, tr *Trace) int {
	if s == nil {
		return usable
	}
	tr.Mode = s.Runtime.Mode
	if s.SchemaVersion > 1 {
		tr.note("runtime settings of schema version %d are read as version 1", s.SchemaVersion)
	}
	if s.Model.Resolved != nil && *s.Model.Resolved != "" {
		tr.Model = *s.Model.Resolved
	}
	if s.Diagnostics.FallbackReason != nil {
		tr.note("fallback: %s", plainLine(*s.Diagnostics.FallbackReason))
	}
	if reason := s.Diagnostics.DegradedReason; reason != nil {
		tr.note("degraded: %s", plainLine(*reason))
		if *reason == "context_overflow" {
			usable = int(cutTo * float64(usable))
			tr.note("the last request overflowed: %d tokens are used", usable)
		}
	}
	return usable
}

// projection is set where the host keeps its own thread and takes the context over turn by turn.
func projection(s *RuntimeSettings) *ContextProjection {
	if s == nil || !strings.Contains(s.ExecutionHost.ID, "codex") {
		return nil
	}
	return &ContextProjection{Mode: "per_turn"}
}

// addition is the text for the system prompt: the memory plugin's, then the guide to the block. It
// depends on the session, not on what is recalled, so that it stays the same from turn to turn. The
// guide is left out where it would take more than its share of the budget; there is no block then either.
func (e *Engine) addition(p AssembleParams, sc Scope, usable int) string {
	memory := memorybridge.Render(p.MemoryPrompt, &memorybridge.Options{
		Count: e.tokens.count, Citations: p.CitationsMode, Tools: p.AvailableTools,
	})
	if e.mayNotRecall(sc) != "" || !e.roomForGuide(usable) {
		return memory
	}
	if memory == "" {
		return Guide
	}
	return memory + "\n\n" + Guide
}

// roomForGuide reports that the guide takes no more than a tenth of the usable budget.
func (e *Engine) roomForGuide(usable int) bool { return e.tokens.count(Guide)*10 <= usable }

// window chooses what part of the history is kept, shortened where that is needed, and remembers
// where it starts, except for an inspection.
func (e *Engine) window(ctx context.Context, sc Scope, p AssembleParams, ms []*measure, limit int, tr *Trace) (window, map[int]json.RawMessage) {
	l := lay(ms).within(ms, limit)
	anchored := -1
	if len(ms) > 0 {
		anchored = e.findAnchor(ctx, sc.Session, ms, l)
	}
	w := l.choose(anchored, limit, len(ms) > 0 && !answered(ms))
	w, changed := e.fit(p.Messages, ms, l, w, limit)
	if w.moved && !p.Inspect {
		e.saveAnchor(sc.Session, ms, w.start)
	}
	tr.Window = WindowTrace{
		Messages: len(ms), Frames: w.frames, First: w.start, Dropped: w.start - len(w.head), Anchored: w.moved && w.start > 0, Reason: w.reason,
		Head: w.head, Shortened: slices.Sorted(maps.Keys(changed)),
	}
	if w.tokens > limit && len(ms) > 0 {
		tr.note("the last turn takes %d tokens where %d are left, even shortened", w.tokens, limit)
	}
	return w, changed
}

// fit makes a window that is over limit smaller: by shortening its texts; where there are too many, by
// a cut inside the last turn; then without the host's summary. changed are the shortened messages.
func (e *Engine) fit(raws []json.RawMessage, ms []*measure, l layout, w window, limit int) (_ window, changed map[int]json.RawMessage) {
	w, changed = e.shortened(raws, ms, w, limit)
	for w.tokens > limit {
		inside, ok := l.inside(limit)
		if ok {
			w, changed = e.shortened(raws, ms, inside, limit)
		}
		if w.tokens <= limit || l.lead == 0 {
			break
		}
		l = layAfter(ms, 0)
		if !ok {
			w, changed = e.shortened(raws, ms, l.startAt(l.live), limit)
			w.moved, w.reason = true, fmt.Sprintf("the last turn alone is over %d tokens", limit)
		}
	}
	return w, changed
}

// shortened shortens the messages of a window that is over limit.
func (e *Engine) shortened(raws []json.RawMessage, ms []*measure, w window, limit int) (window, map[int]json.RawMessage) {
	if w.tokens <= limit || len(ms) == 0 {
		return w, nil
	}
	at := w.kept(len(ms))
	kept, some := make([]json.RawMessage, len(at)), make([]*measure, len(at))
	for i, j := range at {
		kept[i], some[i] = raws[j], ms[j]
	}
	short, tokens := e.shorten(kept, some, limit)
	changed := make(map[int]json.RawMessage, len(short))
	for i, m := range short {
		changed[at[i]] = m
	}
	w.tokens = tokens
	return w, changed
}

// asked is the question of a call.
type asked struct {
	prompt   string    // what the person says now, cleaned
	previous string    // what a person said before
	live     int       // index of the current user message among the call's, -1 where the host appends it
	reason   string    // why nothing is asked
	stamp    time.Time // that the envelope of the prompt carries, in no zone; zero without one
}

// ask finds what a person says now: the prompt, or in the host's tool loop the last user message.
func ask(p AssembleParams, ms []*measure) asked {
	last := -1
	for i := len(ms) - 1; i >= 0 && last < 0; i-- {
		if ms[i].isUser() {
			last = i
		}
	}
	text, _ := sanitize(p.Prompt)
	now := clean(text)
	now.text, _ = mask.Text(now.text) // the question may go to an embedder on the network
	a := asked{prompt: now.text, live: -1, stamp: stampOf(text)}
	if now.machine {
		if a.prompt = taskOf(now.text); a.prompt == "" {
			a.reason = "not a person's words"
		}
	}
	if last >= 0 && !answered(ms) && (strings.TrimSpace(p.Prompt) == "" || textPrint(now.text) == ms[last].text) {
		a.live = last
		if a.prompt == "" && a.reason == "" && !ms[last].machine {
			a.prompt = wordsOf(p.Messages[last], ms[last])
		}
	}
	before := len(ms)
	if a.live >= 0 {
		before = a.live
	}
	for i := before - 1; i >= 0; i-- {
		if !ms[i].isUser() || ms[i].machine {
			continue
		}
		if a.previous = wordsOf(p.Messages[i], ms[i]); a.previous != "" {
			break
		}
	}
	return a
}

// taskOf returns the task in what the host tells a subagent, "" where there is none.
func taskOf(prompt string) string {
	_, task, ok := strings.Cut(prompt, "[Subagent Task]")
	if !ok {
		return ""
	}
	task, _, _ = strings.Cut(task, "\n\nBegin. Execute the assigned task")
	return strings.TrimSpace(task)
}

// answered reports that the history ends with a finished answer, so that no turn is running in it.
func answered(ms []*measure) bool {
	last := ms[len(ms)-1]
	return last.role == "assistant" && len(last.calls) == 0
}

// compose puts the kept messages and the blocks together, by value and by reference.
func (e *Engine) compose(p AssembleParams, ms []*measure, w window, changed map[int]json.RawMessage, block recalled, earlier []keptBlock, live int) AssembleResult {
	kept := w.kept(len(ms))
	res := AssembleResult{
		Messages: make([]json.RawMessage, 0, len(kept)+1), Kept: []int{}, Insert: []Insertion{},
		PromptAuthority: Assembled,
	}
	insert := func(m json.RawMessage) {
		res.Insert = append(res.Insert, Insertion{Position: len(res.Messages), Message: m})
		res.Messages = append(res.Messages, m)
	}
	some := make([]*measure, len(kept))
	for i, at := range kept {
		some[i] = ms[at]
	}
	order := arrange(some)
	if order == nil {
		order = make([]int, len(kept))
		for i := range order {
			order[i] = i
		}
	}
	last := -1
	for _, i := range order {
		at := kept[i]
		for len(earlier) > 0 && earlier[0].at <= at {
			if earlier[0].at == at {
				insert(earlier[0].message)
			}
			earlier = earlier[1:]
		}
		if at == live && block.message != nil {
			insert(block.message)
		}
		switch {
		case changed[at] != nil:
			insert(changed[at])
		case at < last: // moved: the caller's object cannot be named in order
			insert(p.Messages[at])
		default:
			last = at
			res.Kept = append(res.Kept, at)
			res.Messages = append(res.Messages, p.Messages[at])
		}
	}
	if live < 0 && block.message != nil {
		insert(block.message)
	}
	return res
}

// Rebuild makes the resulting list of messages from the call's own and what an AssembleResult
// refers to. It is for callers that received the result without Messages.
func Rebuild(messages []json.RawMessage, kept []int, inserted []Insertion) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(kept)+len(inserted))
	next := 0
	fill := func(until int) error {
		for ; len(out) < until; next++ {
			if next >= len(kept) || kept[next] < 0 || kept[next] >= len(messages) {
				return fmt.Errorf("rebuild: no message for position %d", len(out))
			}
			out = append(out, messages[kept[next]])
		}
		return nil
	}
	for _, in := range inserted {
		if in.Position < len(out) {
			return nil, fmt.Errorf("rebuild: insertion at %d is out of order", in.Position)
		}
		if err := fill(in.Position); err != nil {
			return nil, err
		}
		out = append(out, in.Message)
	}
	return out, fill(len(out) + len(kept) - next)
}
