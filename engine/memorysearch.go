package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hark/index"
	"hark/memorybridge"
	"hark/recall"
)

const (
	defaultMemoryResults = 8
	maxMemoryResults     = 100
	maxMemoryQuery       = 10_000 // bytes; a longer one is cut
)

// seen is what a requester may see.
type seen struct {
	scope Scope
	files []string // scopes of chunks
	owner bool     // the owner's private files too
	group bool
}

// seen computes the scope of a requester. It leaves no mark of what it was told.
func (m *Memory) seen(ctx context.Context, r Requester) seen {
	sc := m.engine.scopeOf(ctx, AssembleParams{SessionKey: r.SessionKey, Inspect: true}, r.SenderIsOwner)
	if r.Sandboxed && sc.forbidden == "" {
		sc.all, sc.only = false, sc.Session
		sc.visible = append(slices.Clone(sc.visible), sc.Stored)
	}
	s := seen{scope: sc, files: []string{sharedFiles}, group: sc.Address.Audience == Group}
	s.owner = sc.forbidden == "" && (sc.all || slices.Contains(sc.visible, ownerScope))
	if s.owner {
		s.files = append(s.files, privateFiles)
	}
	return s
}

// admits reports whether a message may be seen.
func (s seen) admits(m index.Message) bool {
	if ok, _ := s.scope.mayRecall(); !ok || m.Kind == index.Noise || m.Kind == index.Summary {
		return false
	}
	if s.scope.only != "" && m.Session != s.scope.only {
		return false
	}
	return s.scope.all || slices.Contains(s.scope.visible, m.Scope)
}

// found is a hit with what the ranking needs.
type found struct {
	hit recall.Hit
	out MemoryHit
}

// Search finds what answers a query in memory files and messages, as one ranking. Words answer when the
// meaning is late or an index is not ready; the result then says what was not searched.
func (m *Memory) Search(ctx context.Context, p MemorySearchParams) (MemoryResults, error) {
	out := MemoryResults{Results: []MemoryHit{}, Mode: "lexical"}
	out.Provider, out.Model = m.provider()
	files, sessions, err := p.complete()
	if err != nil {
		return out, err
	}
	s := m.seen(ctx, p.Requester)
	var notes searchNotes
	var inFiles, inSessions []found
	group, searching := errgroup.WithContext(ctx)
	if files {
		group.Go(func() (err error) {
			inFiles, err = m.searchFiles(searching, p, s, &notes)
			return err
		})
	}
	var said searchNotes
	if ok, _ := s.scope.mayRecall(); sessions && ok {
		group.Go(func() (err error) {
			inSessions, err = m.searchSessions(searching, p, s, &said)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	for _, f := range ranked(inFiles, inSessions, p.MaxResults, p.MinScore) {
		f.out.Score = round3(f.out.Score)
		if memorybridge.Cites(p.Citations, s.group) {
			f.out.Citation = memorybridge.Citation(f.out.Path, f.out.StartLine, f.out.EndLine)
		}
		if f.out.Source == SourceMemory {
			out.Files++
		} else {
			out.Messages++
		}
		out.Results = append(out.Results, f.out)
	}
	out.tell(notes, said)
	return out, nil
}

// complete checks a search, fills in the defaults, and says which sources are meant.
func (p *MemorySearchParams) complete() (files, sessions bool, err error) {
	p.Query = strings.TrimSpace(p.Query)
	if p.Query == "" {
		return false, false, badRequest("the query is empty: say what to search for")
	}
	p.Query = strings.ToValidUTF8(p.Query[:min(len(p.Query), maxMemoryQuery)], "")
	switch {
	case p.MaxResults < 0:
		return false, false, badRequest("maxResults has to be 1 to %d, not %d", maxMemoryResults, p.MaxResults)
	case p.MaxResults == 0:
		p.MaxResults = defaultMemoryResults
	}
	p.MaxResults = min(p.MaxResults, maxMemoryResults)
	switch p.Corpus {
	case "", "all":
		files, sessions = true, true
	case SourceMemory:
		files = true
	case SourceSessions:
		sessions = true
	default:
		return false, false, badRequest("the corpus has to be memory, sessions or all, not %q", p.Corpus)
	}
	if len(p.Sources) > 0 {
		files = files && slices.Contains(p.Sources, SourceMemory)
		sessions = sessions && slices.Contains(p.Sources, SourceSessions)
	}
	switch p.Citations {
	case "", "auto", "on", "off":
	default:
		return false, false, badRequest("citations have to be auto, on or off, not %q", p.Citations)
	}
	return files, sessions, nil
}

// searchNotes are what a search of one source was not able to do.
type searchNotes struct {
	hybrid  bool
	partial []string
	stale   string
}

func (n *searchNotes) heard(t *recall.Trace, wordsOnly bool) {
	n.hybrid = n.hybrid || t.Dense.Ran
	if late, ok := strings.CutPrefix(t.Dense.Reason, "unavailable: "); ok && !wordsOnly {
		n.partial = append(n.partial, "by words only, because the meaning could not be searched: "+late)
	} else if t.Dense.Ran && t.Dense.Reason != "" {
		n.partial = append(n.partial, t.Dense.Reason)
	}
}

// tell puts the notes into the result.
func (r *MemoryResults) tell(notes ...searchNotes) {
	var said []string
	for _, n := range notes {
		if n.hybrid {
			r.Mode = "hybrid"
		}
		for _, text := range n.partial {
			r.Partial = true
			if !slices.Contains(said, text) {
				said = append(said, text)
			}
		}
		if n.stale != "" {
			r.Stale, r.Partial = true, true
			said = append(said, n.stale)
		}
	}
	r.Warning = strings.Join(said, "; ")
}

// depth is how many hits of a source are asked for: some fall out as copies.
func depth(results int) int { return max(30, 3*results) }

// meaningWait leaves room for the words to be ranked within the caller's deadline; 0 is the usual wait.
func meaningWait(ctx context.Context, usual time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline) * 6 / 10
	if left >= usual {
		return 0
	}
	return max(left, time.Millisecond)
}

// usualWait is recall's own wait for the meaning.
func (m *Memory) usualWait() time.Duration {
	if o := m.engine.opts.Recall; o != nil && o.DenseWait > 0 {
		return o.DenseWait
	}
	return 700 * time.Millisecond
}

// searchFiles searches the memory files.
func (m *Memory) searchFiles(ctx context.Context, p MemorySearchParams, s seen, notes *searchNotes) ([]found, error) {
	nb, err := m.notebook(ctx, p.Corpora)
	switch {
	case errors.Is(err, index.ErrLocked):
		notes.partial = append(notes.partial, "memory files were not searched: their index is in use by another hark")
		return nil, nil
	case err != nil:
		return nil, err
	case nb == nil:
		return nil, nil
	}
	patience := m.opts.Patience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/3)
	}
	if notes.stale, err = nb.fresh(ctx, patience); err != nil {
		return nil, err
	}
	if m.opts.Whole {
		if err := nb.store.Loaded(ctx); err != nil {
			return nil, err
		}
	}
	hits, t, err := nb.find(ctx, m, p, s)
	if err != nil {
		return nil, err
	}
	// What was read may have changed since: a look at the files of the hits is cheap.
	if notes.stale == "" && nb.outdated(hits) {
		if notes.stale, err = nb.fresh(ctx, patience); err != nil {
			return nil, err
		}
		if hits, t, err = nb.find(ctx, m, p, s); err != nil {
			return nil, err
		}
	}
	notes.heard(t, p.LexicalOnly)
	return hits, nil
}

// find searches the index of the files.
func (nb *notebook) find(ctx context.Context, m *Memory, p MemorySearchParams, s seen) ([]found, *recall.Trace, error) {
	res, err := nb.search.Search(ctx, recall.Request{
		Question: recall.Question{Text: p.Query}, Filter: index.Filter{Scopes: s.files}, K: depth(p.MaxResults), Asked: m.engine.now(),
		WordsOnly: p.LexicalOnly, Wait: meaningWait(ctx, m.usualWait()),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("search memory files: %w", err)
	}
	var out []found
	for _, h := range res.Hits {
		at, title, ok := nb.at(h.Message)
		if !ok {
			continue
		}
		f := found{hit: h, out: MemoryHit{Path: at.path, Source: SourceMemory, Title: title}}
		f.out.Snippet, f.out.StartLine, f.out.EndLine = memorybridge.Snippet(h.Message.Text, at.start, spans(h.Matched))
		f.out.EndLine = min(f.out.EndLine, at.end)
		f.scores(h)
		if !h.Message.Time.IsZero() {
			f.out.Date = h.Message.Time.UTC().Format(time.DateOnly)
		}
		out = append(out, f)
	}
	return out, res.Trace, nil
}

// outdated reports hits whose file is not as it was read.
func (nb *notebook) outdated(hits []found) bool {
	ws := nb.workspace()
	looked := map[string]bool{}
	for _, f := range hits {
		path := f.out.Path
		if looked[path] || len(looked) >= 20 {
			continue
		}
		looked[path] = true
		abs := filepath.FromSlash(path)
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(ws.Dir, abs)
		}
		nb.mu.Lock()
		was := nb.files[path]
		nb.mu.Unlock()
		info, err := os.Lstat(abs)
		if was == nil || err != nil || info.Size() != was.Size || info.ModTime().UnixMilli() != was.ModMs {
			nb.mu.Lock()
			nb.dirty = true
			nb.mu.Unlock()
			return true
		}
	}
	return false
}

// searchSessions searches the messages that the requester may see.
func (m *Memory) searchSessions(ctx context.Context, p MemorySearchParams, s seen, notes *searchNotes) ([]found, error) {
	if m.opts.Whole {
		if err := m.engine.store.Loaded(ctx); err != nil {
			return nil, err
		}
	}
	// Who looks something up wants tool output too, also where it is not recalled unasked.
	res, err := m.engine.search.Search(ctx, recall.Request{
		Question: recall.Question{Text: p.Query}, Filter: s.scope.filter(nil), K: depth(p.MaxResults), Asked: m.engine.now(),
		WordsOnly: p.LexicalOnly, Wait: meaningWait(ctx, m.usualWait()),
	})
	if err != nil {
		return nil, fmt.Errorf("search messages: %w", err)
	}
	notes.heard(res.Trace, p.LexicalOnly)
	asked := squeeze(p.Query)
	told := map[string]bool{}
	var out []found
	for _, h := range res.Hits {
		text := squeeze(h.Message.Text)
		if text == "" || text == asked || told[text] {
			continue
		}
		told[text] = true
		out = append(out, m.messageHit(h))
	}
	return out, nil
}

func (m *Memory) messageHit(h recall.Hit) found {
	msg := h.Message
	f := found{hit: h, out: MemoryHit{
		ID: msg.ID, Path: m.messagePath(msg), Source: SourceSessions, Role: msg.Role, Speaker: msg.Sender,
		SessionKey: msg.Session, Date: msg.Time.UTC().Format(time.RFC3339),
	}}
	f.out.Snippet, f.out.StartLine, f.out.EndLine = memorybridge.Snippet(msg.Text, 1, spans(h.Matched))
	f.scores(h)
	return f
}

// scores takes over the parts of a hit's score.
func (f *found) scores(h recall.Hit) {
	f.out.Score, f.out.TextScore, f.out.VectorScore = h.Likely, round3(h.Words), round3(max(0, h.Dense))
}

func spans(in []recall.Span) []memorybridge.Span {
	out := make([]memorybridge.Span, len(in))
	for i, s := range in {
		out[i] = memorybridge.Span{Start: s.Start, End: s.End}
	}
	return out
}

func round3(x float64) float64 { return float64(int(x*1000+0.5)) / 1000 }

// ranked makes one ranking of both sources.
//
// Within a source the order is recall's, which knows more than one hit at a time: where scores
// contradict it, the hits concerned get their mean. Between sources the scores decide. So that neither
// source is crowded out, each has a quarter of the places for hits that are at least half as likely as
// the best one.
func ranked(files, sessions []found, n int, least float64) []found {
	straighten(files)
	straighten(sessions)
	all := append(slices.Clone(files), sessions...)
	all = slices.DeleteFunc(all, func(f found) bool { return f.out.Score < least || f.out.Score <= 0 })
	sort.SliceStable(all, func(i, j int) bool { return all[i].out.Score > all[j].out.Score })
	if len(all) <= n {
		return all
	}
	seats := (n + 3) / 4
	bar := all[0].out.Score / 2
	keep := slices.Clone(all[:n])
	for _, source := range []string{SourceMemory, SourceSessions} {
		have := 0
		for _, f := range keep {
			if f.out.Source == source {
				have++
			}
		}
		for _, f := range all[n:] {
			if have >= seats || n < 2 {
				break
			}
			if f.out.Source != source || f.out.Score < bar {
				continue
			}
			if last := lastOf(keep, source); last >= 0 {
				keep = append(slices.Delete(keep, last, last+1), f)
				have++
			}
		}
	}
	sort.SliceStable(keep, func(i, j int) bool { return keep[i].out.Score > keep[j].out.Score })
	return keep
}

// lastOf is the last hit that is not of the source, -1 where all are.
func lastOf(list []found, source string) int {
	for i, f := range slices.Backward(list) {
		if f.out.Source != source {
			return i
		}
	}
	return -1
}

// straighten makes the scores of one source fall with its order: neighbours that rise are given their
// mean, as often as it takes (isotonic regression by pooling adjacent violators).
func straighten(list []found) {
	type block struct {
		sum float64
		n   int
	}
	var blocks []block
	for _, f := range list {
		blocks = append(blocks, block{f.out.Score, 1})
		for k := len(blocks) - 1; k > 0 && blocks[k].sum/float64(blocks[k].n) > blocks[k-1].sum/float64(blocks[k-1].n); k-- {
			blocks[k-1].sum += blocks[k].sum
			blocks[k-1].n += blocks[k].n
			blocks = blocks[:k]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.n {
			list[i].out.Score = b.sum / float64(b.n)
			i++
		}
	}
}
