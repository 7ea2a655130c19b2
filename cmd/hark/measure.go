package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"hark/engine"
	"hark/index"
	"hark/recall"
)

// benchPlan says how a size is measured.
type benchPlan struct {
	seed    int64
	queries int
	dir     string
}

// measure builds a store of n messages, measures it, closes and opens it, and measures again.
func (a *app) measure(ctx context.Context, n int, plan benchPlan) (benchResult, string, error) {
	dir, err := os.MkdirTemp(plan.dir, "hark-bench-")
	if err != nil {
		return benchResult{}, "", fmt.Errorf("make a folder for the store: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder: what is left of it does no harm
	res := benchResult{Messages: n, QueriesAsked: plan.queries}
	m, err := a.open(ctx, dir, writing)
	if err != nil {
		return res, "", err
	}
	name := "none"
	if m.emb != nil {
		name = m.emb.Model().String()
	}
	syn := newSynth(plan.seed, n)
	if err := a.benchImport(ctx, m, syn, &res); err != nil {
		return res, name, err
	}
	if err := benchCommits(ctx, m, syn, &res); err != nil {
		return res, name, err
	}
	res.PeakMiB = memoryMiB("VmHWM")
	if err := a.close(); err != nil {
		return res, name, fmt.Errorf("close the store: %w", err)
	}
	debug.FreeOSMemory() // what the import left behind is not the store's

	start := time.Now()
	if m, err = a.open(ctx, dir, writing); err != nil {
		return res, name, err
	}
	res.ColdOpen = millis(time.Since(start))
	if err := benchQueries(ctx, m, syn, plan.queries, &res); err != nil {
		return res, name, err
	}
	res.ResidentMiB = memoryMiB("VmRSS")
	if err := a.close(); err != nil {
		return res, name, fmt.Errorf("close the store: %w", err)
	}
	res.DiskMiB, err = diskMiB(dir)
	return res, name, err
}

func (a *app) benchImport(ctx context.Context, m *memory, syn *synth, res *benchResult) error {
	bar := progressbar.DefaultSilent(int64(syn.total))
	if a.term.errTTY && !a.quiet {
		bar = progressbar.NewOptions(syn.total, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("import"),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(80*time.Millisecond))
	}
	var spent, cpu time.Duration
	for {
		key, page := syn.session()
		if len(page) == 0 {
			break
		}
		res.Sessions++
		start, used := time.Now(), cpuTime() // making the history is not part of importing it
		for from := 0; from < len(page); from += importPage {
			part := page[from:min(from+importPage, len(page))]
			if _, err := m.engine.Bootstrap(ctx, engine.BootstrapParams{SessionID: key, SessionKey: key, History: part}); err != nil {
				return err
			}
		}
		spent += time.Since(start)
		cpu += cpuTime() - used
		_ = bar.Add(len(page)) // draws to standard error only
	}
	_ = bar.Finish()
	res.ImportS, res.ImportCPU = spent.Seconds(), cpu.Seconds()
	res.ImportRate = float64(syn.total) / spent.Seconds()
	return nil
}

// benchCommits commits turns of a user's and an assistant's message, one at a time.
func benchCommits(ctx context.Context, m *memory, syn *synth, res *benchResult) error {
	const turns = 60
	times := make([]float64, 0, turns)
	for i := range turns {
		user, assistant := syn.turn()
		id := "bench-turn-" + strconv.Itoa(i)
		p := engine.CommitTurnParams{
			AdvancementKey: id, SessionID: "bench", SessionKey: "agent:main:explicit:bench-live", Messages: []json.RawMessage{user, assistant},
		}
		p.Admission.EntryID, p.Terminal.EntryID = id+"-u", id+"-a"
		start := time.Now()
		if _, err := m.engine.CommitTurn(ctx, p); err != nil {
			return err
		}
		times = append(times, millis(time.Since(start)))
	}
	res.CommitP50, res.CommitP95 = percentile(times, .5), percentile(times, .95)
	return nil
}

// benchQueries searches and assembles.
func benchQueries(ctx context.Context, m *memory, syn *synth, n int, res *benchResult) error {
	questions := syn.questions(n)
	search := make([]float64, 0, len(questions))
	found := 0
	used := cpuTime()
	for i, q := range questions {
		start := time.Now()
		r, err := m.searcher.Search(ctx, recall.Request{
			Question: recall.Question{Text: q.text}, Filter: index.Filter{AllScopes: true}, K: 10,
		})
		if err != nil {
			return err
		}
		d := millis(time.Since(start))
		if i == 0 {
			res.FirstSearch = d
		}
		search = append(search, d)
		if slices.ContainsFunc(r.Hits, func(h recall.Hit) bool { return h.Message.Text == q.source }) {
			found++
		}
	}
	res.SearchCPU = millis(cpuTime()-used) / float64(len(questions))
	res.SearchP50, res.SearchP95 = percentile(search, .5), percentile(search, .95)
	res.SelfFound = float64(found) / float64(len(questions))

	window := syn.window()
	times := make([]float64, 0, len(questions))
	owner := true
	for i, q := range questions {
		start := time.Now()
		_, err := m.engine.Assemble(ctx, engine.AssembleParams{
			SessionKey: "agent:main:explicit:bench-ask-" + strconv.Itoa(i), Messages: window, TokenBudget: 32_000, Prompt: q.text, SenderIsOwner: &owner,
		})
		if err != nil {
			return err
		}
		times = append(times, millis(time.Since(start)))
	}
	res.AssembleP50, res.AssembleP95 = percentile(times, .5), percentile(times, .95)
	return nil
}

// percentile is the smallest value that a share of the values does not exceed.
func percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}

// memoryMiB reads a line of /proc/self/status: VmRSS what is resident, VmHWM the most there was.
// Elsewhere the memory Go has taken from the system stands for the first, and 0 for the second.
func memoryMiB(line string) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		if line == "VmRSS" {
			return goMemoryMiB()
		}
		return 0
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			if err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

func diskMiB(dir string) (float64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return float64(total) / (1 << 20), err
}
