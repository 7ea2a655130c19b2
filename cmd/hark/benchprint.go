package main

import (
	"fmt"
	"math"
	"strconv"
)

// printBench shows the report with a column for every size.
func (a *app) printBench(r benchReport) {
	a.printf("%s, %d CPUs, %s\nembedder %s, seed %d\n\n", r.CPU, r.CPUs, r.Go, r.Embedder, r.Seed)
	t := table{header: []string{"messages"}, right: map[int]bool{}}
	for i, res := range r.Results {
		t.header = append(t.header, strconv.Itoa(res.Messages))
		t.right[i+1] = true
	}
	row := func(name, format string, value func(benchResult) float64) {
		cells := []string{name}
		for _, res := range r.Results {
			cells = append(cells, fmt.Sprintf(format, value(res)))
		}
		t.add(cells...)
	}
	row("import, messages/s", "%.0f", func(b benchResult) float64 { return b.ImportRate })
	row("import, processor s", "%.2f", func(b benchResult) float64 { return b.ImportCPU })
	row("search p50, ms", "%.2f", func(b benchResult) float64 { return b.SearchP50 })
	row("search p95, ms", "%.2f", func(b benchResult) float64 { return b.SearchP95 })
	row("search p50, processor ms", "%.2f", func(b benchResult) float64 { return b.SearchCPUP50 })
	row("search p95, processor ms", "%.2f", func(b benchResult) float64 { return b.SearchCPUP95 })
	row("in one session p50, processor ms", "%.2f", func(b benchResult) float64 { return b.SessionCPUP50 })
	row("assemble p50, ms", "%.2f", func(b benchResult) float64 { return b.AssembleP50 })
	row("assemble p95, ms", "%.2f", func(b benchResult) float64 { return b.AssembleP95 })
	row("commit a turn p50, ms", "%.2f", func(b benchResult) float64 { return b.CommitP50 })
	row("commit a turn p95, ms", "%.2f", func(b benchResult) float64 { return b.CommitP95 })
	row("open the store, ms", "%.0f", func(b benchResult) float64 { return b.ColdOpen })
	row("to the first answer, ms", "%.0f", func(b benchResult) float64 { return b.FirstAnswer })
	row("to all vectors, ms", "%.0f", func(b benchResult) float64 { return b.VectorsLoaded })
	row("forget a session, ms", "%.0f", func(b benchResult) float64 { return b.ForgetMS })
	row("until its words are erased, s", "%.1f", func(b benchResult) float64 { return b.EraseS })
	row("search p95 meanwhile, ms", "%.2f", func(b benchResult) float64 { return b.EraseSearchP95 })
	row("resident, MiB", "%.0f", func(b benchResult) float64 { return b.ResidentMiB })
	row("peak while importing, MiB", "%.0f", func(b benchResult) float64 { return b.PeakMiB })
	row("on disk, MiB", "%.1f", func(b benchResult) float64 { return b.DiskMiB })
	row("  a message beside its text, bytes", "%.0f", func(b benchResult) float64 { return b.DiskPerMessage })
	row("messages lost", "%.0f", func(b benchResult) float64 { return float64(b.Lost) })
	row("own message in ten hits", "%.2f", func(b benchResult) float64 { return b.SelfFound })
	row("vectors: recall@10 against exact", "%.3f", func(b benchResult) float64 { return b.Recall10 })
	t.print(a.out, a.term)
	for i := 1; i < len(r.Results); i++ {
		x, y := r.Results[i-1], r.Results[i]
		if x.SearchCPUP50 > 0 && y.SearchCPUP50 > 0 && y.Messages > x.Messages {
			a.printf("%sfrom %d to %d messages a search costs %.1f times as much: it grows as n^%.2f\n", map[bool]string{true: "\n"}[i == 1],
				x.Messages, y.Messages, y.SearchCPUP50/x.SearchCPUP50, growth(x, y))
		}
	}
}

// growth is the exponent of the size with which the processor time of a search grows.
func growth(x, y benchResult) float64 {
	return math.Log(y.SearchCPUP50/x.SearchCPUP50) / math.Log(float64(y.Messages)/float64(x.Messages))
}
