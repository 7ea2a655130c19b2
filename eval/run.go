package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options are the tunables of Run; nil and zero fields mean the defaults.
type Options struct {
	// Pooled puts all conversations into one store, as sessions of one agent.
	Pooled bool
	// Foreign is how many questions are also put to another conversation, where they have no
	// answer, in sets with several conversations: 0 means 100, negative none.
	Foreign int
	// Dir is where the temporary stores go; "" means the system's folder for such.
	Dir string
	// Budgets are the token budgets to assemble at; nil means Budgets(). Without ReferenceBudget among
	// them every fate is told as if nothing had been recalled.
	Budgets []int
	// Parallel is how many queries are asked at a time; 0 means one a processor.
	Parallel int
	// Progress is told how many of all queries are answered; nil where nobody looks.
	Progress func(done, of int)
}

// Foreign is the category of questions put to a conversation that does not answer them.
const Foreign = "wrong conversation"

// Result is what a run found out.
type Result struct {
	Set      *Set
	Spec     Spec
	Pooled   bool
	Outcomes []Outcome // in the order of the set's queries, those to wrong conversations last
	Rankings []Ranking // of the same
	Timing   Timing
}

// Ranking is the ranking of one query, best first.
type Ranking struct {
	Query  string
	Docs   []string
	Scores []float64
}

// Timing is how long things took. It differs from run to run and is kept out of the report.
type Timing struct {
	Documents int           `json:"documents"`
	Ingest    time.Duration `json:"ingestNs"` // of all documents, vectors and index included; summed over stores
	Rank      []float64     `json:"rankMs"`   // of every query, ascending
	Assemble  []float64     `json:"assembleMs"`
	Bytes     int64         `json:"bytes"` // of the stores on disk
	Stores    int           `json:"stores"`
	Parallel  int           `json:"parallel"`
	Wall      time.Duration `json:"wallNs"`
}

// job is one store and the queries put to it.
type job struct {
	docs    []Doc
	queries []int // of run.queries
}

// run is one evaluation under way.
type run struct {
	set     *Set
	spec    Spec
	opts    Options
	dir     string
	queries []Query
	res     *Result

	mu   sync.Mutex // what follows, and res.Timing
	done int
}

// Run evaluates a system on a set. The stores are temporary and gone when it returns. A document
// that does not belong to the query's conversation ends it with an error.
func Run(ctx context.Context, set *Set, spec Spec, o Options) (*Result, error) {
	started := time.Now()
	o.complete()
	dir, err := os.MkdirTemp(o.Dir, "hark-eval-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the stores: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary: the system would remove it too
	r := &run{set: set, spec: spec, opts: o, dir: dir, res: &Result{Set: set, Spec: spec, Pooled: o.Pooled}}
	jobs := r.plan()
	r.res.Outcomes = make([]Outcome, len(r.queries))
	r.res.Rankings = make([]Ranking, len(r.queries))
	g, gctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, o.Parallel) // of goroutines that ask
	stores := make(chan struct{}, o.Parallel)
	for i, j := range jobs {
		stores <- struct{}{}
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			defer func() { <-stores }()
			if err := r.store(gctx, i, j, slots); err != nil {
				return fmt.Errorf("conversation %s: %w", j.docs[0].Conv, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &r.res.Timing
	sort.Float64s(t.Rank)
	sort.Float64s(t.Assemble)
	t.Stores, t.Parallel, t.Wall = len(jobs), o.Parallel, time.Since(started)
	return r.res, nil
}

func (o *Options) complete() {
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	if o.Budgets == nil {
		o.Budgets = Budgets()
	}
}

// plan lists the queries and deals documents and queries out to stores, large ones first.
func (r *run) plan() []job {
	for _, q := range r.set.Queries {
		if !r.set.Unusable[q.ID] {
			r.queries = append(r.queries, q)
		}
	}
	if !r.opts.Pooled {
		r.queries = append(r.queries, r.foreign()...)
	}
	if r.opts.Pooled {
		j := job{docs: r.set.Docs}
		for i := range r.queries {
			j.queries = append(j.queries, i)
		}
		return []job{j}
	}
	at := map[string]int{}
	var jobs []job
	for _, d := range r.set.Docs {
		i, ok := at[d.Conv]
		if !ok {
			i = len(jobs)
			at[d.Conv] = i
			jobs = append(jobs, job{})
		}
		jobs[i].docs = append(jobs[i].docs, d)
	}
	for i, q := range r.queries {
		j := at[q.Conv]
		jobs[j].queries = append(jobs[j].queries, i)
	}
	sort.SliceStable(jobs, func(a, b int) bool { return len(jobs[a].docs) > len(jobs[b].docs) })
	return jobs
}

// foreign picks questions with evidence, evenly over the set, and puts each to the next
// conversation. Sets in which conversations are copies of each other's documents have none.
func (r *run) foreign() []Query {
	n := r.opts.Foreign
	if n == 0 {
		n = 100
	}
	convs := r.set.conversations()
	if n < 0 || len(convs) < 2 || r.set.Format == LongMemEval {
		return nil
	}
	next := map[string]string{}
	for i, c := range convs {
		next[c] = convs[(i+1)%len(convs)]
	}
	var asked []Query
	for _, q := range r.queries {
		if !r.set.negative(q) {
			asked = append(asked, q)
		}
	}
	n = min(n, len(asked))
	out := make([]Query, 0, n)
	for i := range n {
		q := asked[i*len(asked)/n]
		out = append(out, Query{ID: "foreign-" + q.ID, Conv: next[q.Conv], Text: q.Text, Cat: Foreign, Date: q.Date, Abstain: true})
	}
	return out
}

// store fills a store, puts its queries and removes it.
func (r *run) store(ctx context.Context, n int, j job, slots chan struct{}) (err error) {
	dir := filepath.Join(r.dir, strconv.Itoa(n))
	started := time.Now()
	opts := r.spec.Engine
	lib, err := build(ctx, dir, j.docs, r.set.history, r.spec.Embedder, &opts)
	if err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	lib.workspace = r.set.notes
	took := time.Since(started)
	defer func() {
		cerr := lib.Store.Close()
		if rerr := os.RemoveAll(dir); cerr == nil {
			cerr = rerr
		}
		if err == nil {
			err = cerr
		}
	}()
	status, err := lib.Store.Status(ctx)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	r.mu.Lock()
	r.res.Timing.Documents += len(lib.rows)
	r.res.Timing.Ingest += took
	for _, name := range sortedKeys(status.Bytes) {
		r.res.Timing.Bytes += status.Bytes[name]
	}
	r.mu.Unlock()
	return r.put(ctx, lib, j.queries, slots)
}

// put asks queries of one library, some at a time.
func (r *run) put(ctx context.Context, lib *Library, queries []int, slots chan struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	lanes := min(r.opts.Parallel, 1+len(queries)/32)
	for lane := range lanes {
		g.Go(func() error { return r.lane(ctx, lib, queries, lane, lanes, slots) })
	}
	return g.Wait()
}

// lane puts every lanes-th query of a store, with a system of its own.
func (r *run) lane(ctx context.Context, lib *Library, queries []int, lane, lanes int, slots chan struct{}) (err error) {
	sys, end, err := r.spec.build(lib)
	if err != nil {
		return err
	}
	defer func() {
		if eerr := end(); err == nil {
			err = eerr
		}
	}()
	a := &asking{set: r.set, lib: lib, sys: sys, depth: rankDepth, budget: r.opts.Budgets}
	if r.set.Format == LongMemEval {
		a.depth = 4 * rankDepth // half of the turns and more are the assistant's
	}
	for i := lane; i < len(queries); i += lanes {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		n := queries[i]
		o, docs, scores, t, err := a.ask(ctx, r.queries[n])
		<-slots
		if err != nil {
			return fmt.Errorf("query %s: %w", r.queries[n].ID, err)
		}
		r.res.Outcomes[n] = o
		r.res.Rankings[n] = Ranking{r.queries[n].ID, docs[:min(len(docs), rankDepth)], scores[:min(len(docs), rankDepth)]}
		r.mu.Lock()
		r.res.Timing.Rank = append(r.res.Timing.Rank, float64(t.Rank.Microseconds())/1000)
		r.res.Timing.Assemble = append(r.res.Timing.Assemble, float64(t.Assemble.Microseconds())/1000)
		r.done++
		done := r.done
		r.mu.Unlock()
		if r.opts.Progress != nil {
			r.opts.Progress(done, len(r.queries))
		}
	}
	return nil
}
