package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/index"
)

// lifePoint is what a long life takes after so many turns.
type lifePoint struct {
	Turns       int     `json:"turns"`
	Goroutines  int     `json:"goroutines"`
	Descriptors int     `json:"descriptors"` // -1 where the system does not tell
	Resident    int64   `json:"resident"`    // bytes; what the runtime has from the system where that does not tell
	Heap        uint64  `json:"heap"`        // bytes in use after a collection
	Log         int64   `json:"log"`         // bytes of the log
	Journal     int64   `json:"journal"`     // of its write-ahead log
	Words       int64   `json:"words"`
	Assemble    float64 `json:"assemble_ms"` // median since the point before
	Commit      float64 `json:"commit_ms"`
	CommitP99   float64 `json:"commit_p99_ms"`
}

// lifeReport is the curve, and the size of the store after forgetting and writing again beside that of a
// fresh one with the same messages.
type lifeReport struct {
	Seed     uint64      `json:"seed"`
	Turns    int         `json:"turns"`
	Sessions int         `json:"sessions"`
	Seconds  float64     `json:"seconds"`
	Curve    []lifePoint `json:"curve"`
	Churned  int64       `json:"churned_bytes"`
	Fresh    int64       `json:"fresh_bytes"`
	Ratio    float64     `json:"ratio"`
}

// living is a long life under way.
type living struct {
	*app
	flags   tortureFlags
	agent   string
	make    engine.Factory
	rand    *rand.Rand
	report  lifeReport
	history map[int][]json.RawMessage // the last messages of a session

	assembles, commits []float64
}

// life plays turns with an engine of its own for each, as hosts do, beside one that stays.
func (a *app) life(ctx context.Context, dir string, f tortureFlags) error {
	emb, err := embed.New(a.set.embedder(), a.logger())
	if err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	l := &living{
		app: a, flags: f, agent: dir, rand: rand.New(rand.NewPCG(f.seed, 23)), history: map[int][]json.RawMessage{},
		make:   engine.NewFactory(engine.Sharing{Embedder: emb, Log: a.logger()}),
		report: lifeReport{Seed: f.seed, Turns: f.turns, Sessions: f.sessions, Curve: []lifePoint{}},
	}
	start := time.Now()
	if err := l.play(ctx); err != nil {
		return err
	}
	if err := l.churn(ctx); err != nil {
		return err
	}
	l.report.Seconds = time.Since(start).Seconds()
	if a.json {
		return a.printJSON(l.report)
	}
	if l.report.Churned > 0 {
		a.printf("after forgetting a third and a vacuum: %s, a fresh store of the same messages: %s, ratio %.2f\n",
			bytesOf(l.report.Churned), bytesOf(l.report.Fresh), l.report.Ratio)
	}
	return nil
}

func (l *living) play(ctx context.Context) error {
	const points, reopenings = 20, 5
	var stays engine.ContextEngine
	var err error
	if !l.json {
		l.printf("%8s %6s %5s %10s %10s %10s %10s %10s %9s %9s %9s\n", "turns", "gorout", "fds", "resident", "heap", "log", "wal", "words", "assemble", "commit", "p99")
	}
	for n := range l.flags.turns {
		if n%max(1, l.flags.turns/reopenings) == 0 { // the last one out closes
			if stays != nil {
				if err := stays.Dispose(ctx); err != nil {
					return err
				}
			}
			if stays, err = l.engine(ctx); err != nil {
				return err
			}
			if _, err := stays.Maintain(ctx, engine.MaintainParams{SessionID: "stays"}); err != nil {
				return err
			}
		}
		if err := l.turn(ctx, n); err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		if (n+1)%max(1, l.flags.turns/points) == 0 {
			l.point(n + 1)
		}
	}
	return stays.Dispose(ctx)
}

func (l *living) engine(ctx context.Context) (engine.ContextEngine, error) {
	return l.make(ctx, engine.FactoryContext{AgentDir: l.agent})
}

// turn is one turn of a random session.
func (l *living) turn(ctx context.Context, n int) error {
	s := l.rand.IntN(l.flags.sessions)
	key := "agent:main:explicit:life" + strconv.Itoa(s)
	message := func(role, text string) json.RawMessage {
		data, _ := json.Marshal(map[string]any{"role": role, "content": text, "timestamp": 1_700_000_000_000 + int64(n)*60_000}) // always encodes
		return data
	}
	said := []json.RawMessage{
		message("user", fmt.Sprintf("turn %d: the parcel %d for topic%d goes to harbour %d", n, n, n%977, l.rand.IntN(5000))),
		message("assistant", fmt.Sprintf("noted, parcel %d leaves in week %d", n, n%53)),
	}
	e, err := l.engine(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := e.Assemble(ctx, engine.AssembleParams{
		SessionID: key, SessionKey: key, Messages: l.history[s], Prompt: fmt.Sprintf("where did the parcel of topic%d go?", l.rand.IntN(977)), TokenBudget: 30_000,
	}); err != nil {
		return err
	}
	l.assembles = append(l.assembles, millis(time.Since(start)))
	start = time.Now()
	if _, err := e.CommitTurn(ctx, engine.CommitTurnParams{AdvancementKey: "life" + strconv.Itoa(n), SessionID: key, SessionKey: key, Messages: said}); err != nil {
		return err
	}
	l.commits = append(l.commits, millis(time.Since(start)))
	h := append(l.history[s], said...)
	l.history[s] = h[max(0, len(h)-10):]
	return e.Dispose(ctx)
}

func (l *living) point(turns int) {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	at := func(times []float64, share float64) float64 {
		if len(times) == 0 {
			return 0
		}
		slices.Sort(times)
		return times[min(len(times)-1, int(share*float64(len(times))))]
	}
	dir := filepath.Join(l.agent, engine.StoreDir)
	p := lifePoint{
		Turns: turns, Goroutines: runtime.NumGoroutine(), Descriptors: descriptors(), Resident: resident(&mem), Heap: mem.HeapAlloc,
		Log: sizeOf(filepath.Join(dir, "log.sqlite")), Journal: sizeOf(filepath.Join(dir, "log.sqlite-wal")), Words: sizeOf(filepath.Join(dir, "words")),
		Assemble: at(l.assembles, .5), Commit: at(l.commits, .5), CommitP99: at(l.commits, .99),
	}
	l.assembles, l.commits = l.assembles[:0], l.commits[:0]
	l.report.Curve = append(l.report.Curve, p)
	if !l.json {
		l.printf("%8d %6d %5d %10s %10s %10s %10s %10s %6.1f ms %6.1f ms %6.1f ms\n", p.Turns, p.Goroutines, p.Descriptors, bytesOf(p.Resident),
			bytesOf(int64(p.Heap)), bytesOf(p.Log), bytesOf(p.Journal), bytesOf(p.Words), p.Assemble, p.Commit, p.CommitP99)
	}
}

// churn forgets a third of the sessions, stores as much again, and compares the size with a fresh store.
func (l *living) churn(ctx context.Context) error {
	dir := filepath.Join(l.agent, engine.StoreDir)
	store, err := index.Open(ctx, dir, &index.Options{Log: l.logger()})
	if err != nil {
		return err
	}
	defer store.Close()
	fresh, err := index.Open(ctx, filepath.Join(l.agent, "fresh"), &index.Options{Log: l.logger()})
	if err != nil {
		return err
	}
	defer fresh.Close()
	sessions, err := store.Sessions(ctx)
	if err != nil {
		return err
	}
	for round := range 3 { // each forgets a ninth, and stores its words again under other names
		for i, s := range sessions {
			if i%9 != round {
				continue
			}
			rows, err := store.Session(ctx, s.Session, 0, 0)
			if err != nil {
				return err
			}
			if _, err := store.Forget(ctx, index.Selection{Session: s.Session}); err != nil {
				return err
			}
			for j := range rows {
				rows[j].Keys = []string{fmt.Sprintf("again:%d:%d:%d", round, i, j)}
			}
			if _, err := store.Append(ctx, index.Batch{Messages: rows}); err != nil {
				return err
			}
		}
	}
	if err := store.Settle(ctx); err != nil {
		return err
	}
	if sessions, err = store.Sessions(ctx); err != nil {
		return err
	}
	for _, s := range sessions {
		rows, err := store.Session(ctx, s.Session, 0, 0)
		if err != nil {
			return err
		}
		if _, err := fresh.Append(ctx, index.Batch{Messages: rows}); err != nil {
			return err
		}
	}
	if err := fresh.Settle(ctx); err != nil {
		return err
	}
	for _, of := range []struct {
		s  *index.Store
		to *int64
	}{{store, &l.report.Churned}, {fresh, &l.report.Fresh}} {
		if err := of.s.Shrink(ctx); err != nil {
			return err
		}
		st, err := of.s.Status(ctx)
		if err != nil {
			return err
		}
		for _, n := range st.Bytes {
			*of.to += n
		}
	}
	// The vectors are in the one only.
	l.report.Churned -= vectorBytes(ctx, store)
	l.report.Ratio = float64(l.report.Churned) / float64(max(1, l.report.Fresh))
	return nil
}

// vectorBytes is what the vectors of a store take, by their number and dimension.
func vectorBytes(ctx context.Context, s *index.Store) int64 {
	st, err := s.Status(ctx)
	if err != nil {
		return 0
	}
	var n int64
	for _, sp := range st.Spaces {
		n += int64(sp.Stored) * int64(sp.Space.Dim) * 5 // one byte and four
	}
	return n
}

// descriptors counts the open files of this process, -1 where the system does not tell.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// resident is the memory of this process.
func resident(mem *runtime.MemStats) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		if f := strings.Fields(string(data)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	return int64(mem.Sys - mem.HeapReleased)
}

// sizeOf adds up a file or the files below a folder.
func sizeOf(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it vanished meanwhile
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
