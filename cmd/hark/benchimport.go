package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"

	"hark/engine"
)

// benchTurns are committed after the import, of two messages each.
const benchTurns = 200

// A folder of the bench holds the store and what its import left for the questions to come.
const (
	benchStore = "store"
	benchNotes = "import.json"
)

// benchHistory is what the stage that imports leaves for the stage that asks.
type benchHistory struct {
	Result    benchResult
	Questions []synthQuestion
	Window    []json.RawMessage // the history of a turn that is not stored
	Session   string            // some session of the history
}

// benchImport builds the store in dir from a history of n messages and measures how it grows.
func (a *app) benchImport(ctx context.Context, dir string, n int, plan benchPlan) error {
	h := benchHistory{Result: benchResult{Messages: n}}
	store := filepath.Join(dir, benchStore)
	if err := os.RemoveAll(store); err != nil { // of an import that did not come to its end
		return fmt.Errorf("make a folder for the store: %w", err)
	}
	m, err := a.open(ctx, store, writing)
	if err != nil {
		return err
	}
	h.Result.Embedder = "none"
	if m.emb != nil {
		h.Result.Embedder = m.emb.Model().String()
	}
	syn := newSynth(plan.seed, n)
	if err := a.importHistory(ctx, m, syn, &h); err != nil {
		return err
	}
	if err := commitTurns(ctx, m, syn, &h.Result); err != nil {
		return err
	}
	h.Result.PeakMiB = memoryMiB("VmHWM")
	start := time.Now()
	if err := m.store.Settle(ctx); err != nil {
		return err
	}
	h.Result.SettleS = time.Since(start).Seconds()
	h.Questions, h.Window = syn.questions(plan.queries), syn.window()
	if err := a.close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	if h.Result.DiskMiB, err = diskMiB(store); err != nil {
		return fmt.Errorf("measure the store: %w", err)
	}
	text := h.Result.TextMiB * (1 << 20)
	h.Result.DiskPerMessage = (h.Result.DiskMiB*(1<<20) - text) / float64(n)
	notes, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("note what was imported: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, benchNotes), notes, 0o600); err != nil {
		return fmt.Errorf("note what was imported: %w", err)
	}
	return nil
}

func (a *app) importHistory(ctx context.Context, m *memory, syn *synth, h *benchHistory) error {
	bar := progressbar.DefaultSilent(int64(syn.total))
	if a.term.errTTY && !a.quiet {
		bar = progressbar.NewOptions(syn.total, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("import"),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(80*time.Millisecond))
	}
	res := &h.Result
	var spent, cpu time.Duration
	text := 0
	for {
		key, page := syn.session()
		if len(page) == 0 {
			break
		}
		if res.Sessions++; syn.made <= syn.total/2 {
			h.Session = key
		}
		for _, e := range page {
			text += len(e.Message)
		}
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
	res.TextMiB = float64(text) / (1 << 20)
	return nil
}

// commitTurns commits turns of a user's and an assistant's message, one at a time, right after the
// import: while the lexical index still merges what it took in.
func commitTurns(ctx context.Context, m *memory, syn *synth, res *benchResult) error {
	times, used := make([]float64, 0, benchTurns), make([]float64, 0, benchTurns)
	for i := range benchTurns {
		user, assistant := syn.turn()
		id := "bench-turn-" + strconv.Itoa(i)
		p := engine.CommitTurnParams{
			AdvancementKey: id, SessionID: "bench", SessionKey: "agent:main:explicit:bench-live", Messages: []json.RawMessage{user, assistant},
		}
		p.Admission.EntryID, p.Terminal.EntryID = id+"-u", id+"-a"
		start, cpu := time.Now(), cpuTime()
		if _, err := m.engine.CommitTurn(ctx, p); err != nil {
			return err
		}
		times, used = append(times, millis(time.Since(start))), append(used, millis(cpuTime()-cpu))
	}
	res.CommitP50, res.CommitP95 = percentile(times, .5), percentile(times, .95)
	res.CommitCPU = percentile(used, .5)
	return nil
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
