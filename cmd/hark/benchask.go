package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/index"
	"hark/recall"
)

// benchResult is what was measured with one size of history. Times are milliseconds; processor times
// are 0 where the system does not tell them. They count everything this process did meanwhile.
type benchResult struct {
	Messages       int     `json:"messages"`
	Sessions       int     `json:"sessions"`
	Embedder       string  `json:"embedder"`
	ImportRate     float64 `json:"import_per_s"`
	ImportS        float64 `json:"import_s"`
	ImportCPU      float64 `json:"import_cpu_s"`
	SettleS        float64 `json:"settle_s"` // from the last message to all words in the index
	SearchP50      float64 `json:"search_p50_ms"`
	SearchP95      float64 `json:"search_p95_ms"`
	SearchCPUP50   float64 `json:"search_cpu_p50_ms"`
	SearchCPUP95   float64 `json:"search_cpu_p95_ms"`
	SearchCPU      float64 `json:"search_cpu_ms"` // mean
	SessionCPUP50  float64 `json:"session_search_cpu_p50_ms"`
	AssembleP50    float64 `json:"assemble_p50_ms"`
	AssembleP95    float64 `json:"assemble_p95_ms"`
	CommitP50      float64 `json:"commit_p50_ms"`
	CommitP95      float64 `json:"commit_p95_ms"`
	CommitCPU      float64 `json:"commit_cpu_p50_ms"`
	ColdOpen       float64 `json:"cold_open_ms"`
	FirstAnswer    float64 `json:"first_answer_ms"`  // from the beginning of the opening
	VectorsLoaded  float64 `json:"vectors_ready_ms"` // likewise
	Cold           bool    `json:"cold"`             // the system's cache did not hold the files
	ForgetMS       float64 `json:"forget_session_ms"`
	EraseS         float64 `json:"erase_s"`             // until forgotten words are out of the files
	EraseSearchP95 float64 `json:"erase_search_p95_ms"` // of searches meanwhile
	ResidentMiB    float64 `json:"resident_mib"`
	PeakMiB        float64 `json:"peak_mib"` // of the import; 0 where the system does not tell
	DiskMiB        float64 `json:"disk_mib"`
	TextMiB        float64 `json:"text_mib"`               // of the messages, as the host has them
	DiskPerMessage float64 `json:"disk_per_message_bytes"` // beside its text
	Lost           int     `json:"lost"`                   // messages that are not there any more after opening again
	SelfFound      float64 `json:"self_found"`             // share of questions whose own message was among the ten hits
	Recall10       float64 `json:"recall_at_10"`           // of the vector search against an exact one
	RecallAsked    int     `json:"recall_questions"`
	QueriesAsked   int     `json:"queries"`
}

// benchAsk opens the store that benchImport left in dir, measures it and prints the result.
func (a *app) benchAsk(ctx context.Context, dir string, plan benchPlan) error {
	var h benchHistory
	notes, err := os.ReadFile(filepath.Join(dir, benchNotes))
	if err != nil {
		return fmt.Errorf("read what was imported: %w", err)
	}
	if err := json.Unmarshal(notes, &h); err != nil {
		return fmt.Errorf("read what was imported: %w", err)
	}
	h.Questions = h.Questions[:min(plan.queries, len(h.Questions))]
	res := &h.Result
	res.QueriesAsked = len(h.Questions)
	store := filepath.Join(dir, benchStore)
	res.Cold = !plan.warm && dropCache(store) == nil
	m, err := a.benchOpen(ctx, store, &h)
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *memory, *benchHistory) error{
		benchSearch, benchSession, benchAssemble, benchRecall, benchForget,
	} {
		if err := part(ctx, m, &h); err != nil {
			return err
		}
	}
	if plan.dump != "" {
		if err := dumpHistory(ctx, m, h.Questions, plan.dump); err != nil {
			return err
		}
	}
	if err := a.close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return a.printJSON(res)
}

// benchOpen opens the store and measures the time to the first answer, and to that by meaning.
func (a *app) benchOpen(ctx context.Context, store string, h *benchHistory) (*memory, error) {
	res := &h.Result
	start := time.Now()
	m, err := a.open(ctx, store, writing)
	if err != nil {
		return nil, err
	}
	res.ColdOpen = millis(time.Since(start))
	if _, err := search(ctx, m, h.Questions[0].Text, index.Filter{AllScopes: true}); err != nil {
		return nil, err
	}
	res.FirstAnswer = millis(time.Since(start))
	if err := m.store.Loaded(ctx); err != nil {
		return nil, err
	}
	res.VectorsLoaded = millis(time.Since(start))
	st, err := m.store.Status(ctx)
	if err != nil {
		return nil, err
	}
	res.Lost = res.Messages + 2*benchTurns - st.Rows - st.Forgotten
	return m, m.store.Settle(ctx)
}

func search(ctx context.Context, m *memory, text string, f index.Filter) (*recall.Result, error) {
	return m.searcher.Search(ctx, recall.Request{Question: recall.Question{Text: text}, Filter: f, K: 10})
}

// benchSearch asks all questions of the whole store.
func benchSearch(ctx context.Context, m *memory, h *benchHistory) error {
	res := &h.Result
	var times, cpu []float64
	found, sum := 0, 0.0
	for _, q := range h.Questions {
		start, used := time.Now(), cpuTime()
		r, err := search(ctx, m, q.Text, index.Filter{AllScopes: true})
		if err != nil {
			return err
		}
		times, cpu = append(times, millis(time.Since(start))), append(cpu, millis(cpuTime()-used))
		sum += cpu[len(cpu)-1]
		if slices.ContainsFunc(r.Hits, func(h recall.Hit) bool { return h.Message.Text == q.Source }) {
			found++
		}
	}
	res.SearchP50, res.SearchP95 = percentile(times, .5), percentile(times, .95)
	res.SearchCPUP50, res.SearchCPUP95 = percentile(cpu, .5), percentile(cpu, .95)
	res.SearchCPU = sum / float64(len(cpu))
	res.SelfFound = float64(found) / float64(len(h.Questions))
	res.ResidentMiB = memoryMiB("VmRSS")
	return nil
}

// benchSession asks questions of one session.
func benchSession(ctx context.Context, m *memory, h *benchHistory) error {
	var cpu []float64
	for _, q := range h.Questions[:min(100, len(h.Questions))] {
		used := cpuTime()
		if _, err := search(ctx, m, q.Text, index.Filter{AllScopes: true, Session: h.Session}); err != nil {
			return err
		}
		cpu = append(cpu, millis(cpuTime()-used))
	}
	h.Result.SessionCPUP50 = percentile(cpu, .5)
	return nil
}

// benchAssemble assembles a turn for every question.
func benchAssemble(ctx context.Context, m *memory, h *benchHistory) error {
	var times []float64
	owner := true
	for i, q := range h.Questions {
		start := time.Now()
		_, err := m.engine.Assemble(ctx, engine.AssembleParams{
			SessionKey: "agent:main:explicit:bench-ask-" + strconv.Itoa(i), Messages: h.Window, TokenBudget: 32_000, Prompt: q.Text, SenderIsOwner: &owner,
		})
		if err != nil {
			return err
		}
		times = append(times, millis(time.Since(start)))
	}
	h.Result.AssembleP50, h.Result.AssembleP95 = percentile(times, .5), percentile(times, .95)
	return nil
}

// benchRecall compares the vector search with an exact one.
func benchRecall(ctx context.Context, m *memory, h *benchHistory) error {
	if m.emb == nil {
		return nil
	}
	const most = 50 // questions; each is compared with every vector
	var texts []string
	for _, q := range h.Questions[:min(most, len(h.Questions))] {
		texts = append(texts, q.Text)
	}
	vs, err := m.emb.Embed(ctx, embed.Query, texts)
	if err != nil {
		return err
	}
	vs = slices.DeleteFunc(vs, func(v []float32) bool { return v == nil })
	if len(vs) == 0 {
		return nil
	}
	model := m.emb.Model()
	model.Dim = len(vs[0])
	space, all := index.Space{ID: model.String(), Dim: model.Dim}, index.Filter{AllScopes: true}
	want, err := m.store.NearestExactly(ctx, space, vs, all, 10)
	if err != nil {
		return err
	}
	same, of := 0, 0
	for i, v := range vs {
		got, err := m.store.Nearest(ctx, space, v, all, 10)
		if err != nil {
			return err
		}
		of += len(want[i])
		for _, h := range want[i] {
			if slices.ContainsFunc(got.Hits, func(g index.Scored) bool { return g.Seq == h.Seq }) {
				same++
			}
		}
	}
	h.Result.Recall10, h.Result.RecallAsked = float64(same)/float64(of), len(vs)
	return nil
}

// benchForget forgets a session, and searches while its words are erased.
func benchForget(ctx context.Context, m *memory, h *benchHistory) error {
	start := time.Now()
	if _, err := m.store.Forget(ctx, index.Selection{Session: h.Session}); err != nil {
		return err
	}
	h.Result.ForgetMS = millis(time.Since(start))
	erased := make(chan error, 1)
	go func() { erased <- m.store.Settle(ctx) }()
	var times []float64
	for _, q := range h.Questions[:min(40, len(h.Questions))] {
		began := time.Now()
		if _, err := search(ctx, m, q.Text, index.Filter{AllScopes: true}); err != nil {
			return err
		}
		times = append(times, millis(time.Since(began)))
	}
	h.Result.EraseSearchP95 = percentile(times, .95)
	err := <-erased
	h.Result.EraseS = time.Since(start).Seconds()
	return err
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
