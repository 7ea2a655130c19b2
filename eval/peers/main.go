// Command peers measures what people put together themselves on the same history as Hark, in the same
// run, and prints how they compare: chromem-go with bleve, both persistent and used as their
// documentation does, and SQLite's FTS5 with sqlite-vec. It is a module of its own, so that Hark does
// not depend on what it is compared with.
//
//	go run . [-n 100k] [-hark ../../bin/hark] [-keep DIR] [-out peers.json]
//
// Hark is asked with the text of a question and embeds it; the others are given its vector.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Result is what was measured of one engine. Times are milliseconds of processor or wall time.
type Result struct {
	Name     string  `json:"name"`
	Texts    int     `json:"texts"`
	Lost     int     `json:"lost"` // texts that are not there any more after opening again
	ImportS  float64 `json:"import_s"`
	Cold     float64 `json:"cold_open_ms"` // from opening to the first answer
	CPUP50   float64 `json:"cpu_p50_ms"`
	CPUP95   float64 `json:"cpu_p95_ms"`
	WallP50  float64 `json:"wall_p50_ms"`
	WallP95  float64 `json:"wall_p95_ms"`
	Disk     float64 `json:"disk_mib"`
	Found    float64 `json:"self_found"` // share of questions whose message was among the ten hits
	Resident float64 `json:"resident_mib"`
}

func main() {
	n := flag.String("n", "100k", "messages")
	hark := flag.String("hark", "../../bin/hark", "the program to compare with")
	keep := flag.String("keep", "", "folder for the history; what is there already is used again")
	out := flag.String("out", "", "write the results as JSON to this file")
	queries := flag.Int("queries", 100, "questions")
	stage := flag.String("stage", "", "measure chromem-go and bleve on the history in this folder")
	in := flag.String("in", "", "folder of their databases")
	flag.Parse()
	var err error
	if *stage != "" {
		err = chromemBleve(*stage, *in)
	} else {
		err = run(*n, *hark, *keep, *out, *queries)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(n, hark, keep, out string, queries int) error {
	dir := keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "peers-")
		if err != nil {
			return fmt.Errorf("make a folder for the history: %w", err)
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	}
	dump := filepath.Join(dir, "dump")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for the history: %w", err)
	}
	fmt.Fprintln(os.Stderr, "Hark …")
	own, err := askHark(hark, n, dir, dump, queries)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "chromem-go and bleve …")
	a, err := askSelf(dump, filepath.Join(dir, "chromem"))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "SQLite …")
	b, err := askNode(dump)
	if err != nil {
		return err
	}
	all := []Result{own, a, b}
	show(all)
	if out == "" {
		return nil
	}
	doc, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(doc, '\n'), 0o644)
}

// askHark measures Hark, which writes the history for the others.
func askHark(hark, n, dir, dump string, queries int) (Result, error) {
	var report struct {
		Results []struct {
			Messages int     `json:"messages"`
			ImportS  float64 `json:"import_s"`
			Cold     float64 `json:"first_answer_ms"`
			CPUP50   float64 `json:"search_cpu_p50_ms"`
			CPUP95   float64 `json:"search_cpu_p95_ms"`
			WallP50  float64 `json:"search_p50_ms"`
			WallP95  float64 `json:"search_p95_ms"`
			Disk     float64 `json:"disk_mib"`
			Found    float64 `json:"self_found"`
			Resident float64 `json:"resident_mib"`
			Lost     int     `json:"lost"`
		} `json:"results"`
	}
	out, err := output(hark, "bench", "--json", "--messages", n, "--queries", fmt.Sprint(queries), "--dir", dir, "--keep", "--warm", "--dump", dump)
	if err != nil {
		return Result{}, fmt.Errorf("%w\nbuild it first with: make build", err)
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Results) != 1 {
		return Result{}, errors.Join(errors.New("hark bench printed no result"), err)
	}
	r := report.Results[0]
	return Result{
		Name: "Hark", Texts: r.Messages, Lost: r.Lost, ImportS: r.ImportS, Cold: r.Cold, CPUP50: r.CPUP50, CPUP95: r.CPUP95,
		WallP50: r.WallP50, WallP95: r.WallP95, Disk: r.Disk, Found: r.Found, Resident: r.Resident,
	}, nil
}

// askSelf fills the databases in a process of its own and asks them in another, so that opening is
// measured as it is after a start.
func askSelf(dump, dir string) (r Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	if _, err := os.Stat(filepath.Join(dir, "import.json")); err != nil {
		if _, err := output(self, "-stage", dump, "-in", dir); err != nil {
			return r, err
		}
	}
	out, err := output(self, "-stage", dump, "-in", dir)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func askNode(dump string) (r Result, err error) {
	out, err := output("node", "sqlite.mjs", dump)
	if err != nil {
		return r, fmt.Errorf("%w\ninstall what it needs first with: npm install", err)
	}
	return r, json.Unmarshal(out, &r)
}

func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return out.Bytes(), nil
}

// show prints a column an engine, and how many times Hark's figure theirs is.
func show(all []Result) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, ratio bool, value func(Result) float64) {
		fmt.Fprint(w, name)
		for i, r := range all {
			fmt.Fprintf(w, "\t"+format, value(r))
			if ratio && i > 0 && value(all[0]) > 0 {
				fmt.Fprintf(w, " (%.1f×)", value(r)/value(all[0]))
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d messages\t%s\t%s\t%s\n", all[0].Texts, all[0].Name, all[1].Name, all[2].Name)
	row("hybrid query p50, processor ms", "%.2f", true, func(r Result) float64 { return r.CPUP50 })
	row("hybrid query p95, processor ms", "%.2f", true, func(r Result) float64 { return r.CPUP95 })
	row("hybrid query p50, ms", "%.2f", true, func(r Result) float64 { return r.WallP50 })
	row("hybrid query p95, ms", "%.2f", true, func(r Result) float64 { return r.WallP95 })
	row("cold open to the first answer, ms", "%.0f", true, func(r Result) float64 { return r.Cold })
	row("import, s", "%.1f", true, func(r Result) float64 { return r.ImportS })
	row("messages lost after opening again", "%.0f", false, func(r Result) float64 { return float64(r.Lost) })
	row("own message in ten hits", "%.2f", false, func(r Result) float64 { return r.Found })
	row("resident, MiB", "%.0f", true, func(r Result) float64 { return r.Resident })
	row("on disk, MiB", "%.0f", true, func(r Result) float64 { return r.Disk })
	_ = w.Flush()
}
