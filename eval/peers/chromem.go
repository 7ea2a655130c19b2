package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/philippgille/chromem-go"
)

// history is what hark bench --dump wrote.
type history struct {
	ids                []string
	texts              []string
	vectors            [][]float32 // nil where the model knew no word
	questions, sources []string
	asked              [][]float32
}

func readHistory(dir string) (h history, err error) {
	var meta struct{ Dim int }
	data, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return h, err
	}
	err = eachLine(filepath.Join(dir, "texts.jsonl"), func(line []byte) error {
		var t struct {
			ID   int64
			Text string
		}
		err := json.Unmarshal(line, &t)
		h.ids, h.texts = append(h.ids, strconv.FormatInt(t.ID, 10)), append(h.texts, t.Text)
		return err
	})
	if err != nil {
		return h, err
	}
	err = eachLine(filepath.Join(dir, "questions.jsonl"), func(line []byte) error {
		var q struct{ Text, Source string }
		err := json.Unmarshal(line, &q)
		h.questions, h.sources = append(h.questions, q.Text), append(h.sources, q.Source)
		return err
	})
	if err != nil {
		return h, err
	}
	if h.vectors, err = readVectors(filepath.Join(dir, "texts.f32"), meta.Dim); err != nil {
		return h, err
	}
	h.asked, err = readVectors(filepath.Join(dir, "questions.f32"), meta.Dim)
	return h, err
}

func eachLine(path string, take func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if err := take(s.Bytes()); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	return s.Err()
}

func readVectors(path string, dim int) ([][]float32, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(b)/(4*dim))
	for i := range out {
		v, some := make([]float32, dim), false
		for k := range v {
			v[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*(i*dim+k):]))
			some = some || v[k] != 0
		}
		if some {
			out[i] = v
		}
	}
	return out, nil
}

// chromemBleve fills the databases in dir where there are none, else opens, asks and prints.
func chromemBleve(dump, dir string) error {
	h, err := readHistory(dump)
	if err != nil {
		return err
	}
	notes := filepath.Join(dir, "import.json")
	data, err := os.ReadFile(notes)
	if errors.Is(err, fs.ErrNotExist) {
		return fill(h, dir, notes)
	}
	if err != nil {
		return err
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if err := ask(h, dir, &r); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// vectorsOnly is the embedding function of a collection whose documents bring their vectors.
func vectorsOnly(context.Context, string) ([]float32, error) {
	return nil, errors.New("vectors are given")
}

func fill(h history, dir, notes string) error {
	ctx := context.Background()
	start := time.Now()
	db, err := chromem.NewPersistentDB(filepath.Join(dir, "chromem"), false)
	if err != nil {
		return err
	}
	coll, err := db.GetOrCreateCollection("messages", nil, vectorsOnly)
	if err != nil {
		return err
	}
	var docs []chromem.Document
	for i, v := range h.vectors {
		if v != nil {
			docs = append(docs, chromem.Document{ID: h.ids[i], Content: h.texts[i], Embedding: v})
		}
	}
	if err := coll.AddDocuments(ctx, docs, runtime.NumCPU()); err != nil {
		return err
	}
	index, err := bleve.New(filepath.Join(dir, "bleve"), bleve.NewIndexMapping())
	if err != nil {
		return err
	}
	batch := index.NewBatch()
	for i, text := range h.texts {
		if err := batch.Index(h.ids[i], map[string]string{"text": text}); err != nil {
			return err
		}
		if batch.Size() == 1000 || i == len(h.texts)-1 {
			if err := index.Batch(batch); err != nil {
				return err
			}
			batch.Reset()
		}
	}
	if err := index.Close(); err != nil {
		return err
	}
	data, err := json.Marshal(Result{Name: "chromem-go + bleve", Texts: len(docs), ImportS: time.Since(start).Seconds()})
	if err != nil {
		return err
	}
	return os.WriteFile(notes, data, 0o644)
}

func ask(h history, dir string, r *Result) error {
	ctx := context.Background()
	text := make(map[string]string, len(h.ids))
	for i, id := range h.ids {
		text[id] = h.texts[i]
	}
	start := time.Now()
	db, err := chromem.NewPersistentDB(filepath.Join(dir, "chromem"), false)
	if err != nil {
		return err
	}
	coll := db.GetCollection("messages", vectorsOnly)
	if coll == nil {
		return errors.New("chromem-go does not find its collection again")
	}
	index, err := bleve.Open(filepath.Join(dir, "bleve"))
	if err != nil {
		return err
	}
	defer index.Close()
	if _, err := hybrid(ctx, coll, index, h.questions[0], h.asked[0]); err != nil {
		return err
	}
	r.Cold = ms(time.Since(start))
	r.Lost = r.Texts - coll.Count()
	var wall, used []float64
	found := 0
	for i, q := range h.questions {
		began, cpu := time.Now(), cpuTime()
		hits, err := hybrid(ctx, coll, index, q, h.asked[i])
		if err != nil {
			return err
		}
		wall, used = append(wall, ms(time.Since(began))), append(used, ms(cpuTime()-cpu))
		if slices.ContainsFunc(hits, func(id string) bool { return text[id] == h.sources[i] }) {
			found++
		}
	}
	r.CPUP50, r.CPUP95, r.WallP50, r.WallP95 = share(used, .5), share(used, .95), share(wall, .5), share(wall, .95)
	r.Found = float64(found) / float64(len(h.questions))
	r.Resident = resident()
	r.Disk, err = size(dir)
	return err
}

// hybrid takes fifty of each and fuses them by reciprocal rank.
func hybrid(ctx context.Context, coll *chromem.Collection, index bleve.Index, text string, v []float32) ([]string, error) {
	const of, k = 50, 60
	score := map[string]float64{}
	if v != nil {
		near, err := coll.QueryEmbedding(ctx, v, min(of, coll.Count()), nil, nil)
		if err != nil {
			return nil, err
		}
		for i, d := range near {
			score[d.ID] += 1 / float64(k+i+1)
		}
	}
	q := bleve.NewMatchQuery(text)
	q.SetField("text")
	found, err := index.Search(bleve.NewSearchRequestOptions(q, of, 0, false))
	if err != nil {
		return nil, err
	}
	for i, d := range found.Hits {
		score[d.ID] += 1 / float64(k+i+1)
	}
	ids := make([]string, 0, len(score))
	for id := range score {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	return ids[:min(10, len(ids))], nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func share(values []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(float64(len(s))*p))]
}

// resident reads the memory of this process on Linux, 0 elsewhere. The history it compares with is
// part of it: some bytes a text.
func resident() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			if err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

func size(dir string) (float64, error) {
	total := int64(0)
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
