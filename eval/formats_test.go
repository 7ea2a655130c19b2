package eval

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"
)

// folder writes an archive of files into a temporary folder.
func folder(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := f.Data
		if strings.HasSuffix(path, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func problems(s *Set) []string {
	var out []string
	for _, p := range s.Problems {
		out = append(out, filepath.Base(p.File)+" "+p.Record+" "+p.Reason)
	}
	return out
}

func TestFormats(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "formats", "*.txtar"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d formats: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(data)
			dir := folder(t, string(data))
			path := filepath.Join(dir, filepath.FromSlash(strings.TrimSpace(strings.Split(string(a.Comment), "\n")[0])))
			s, err := Load(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if i < 0 {
				t.Fatal("no section want")
			}
			if diff := cmp.Diff(strings.TrimSpace(string(a.Files[i].Data)), strings.TrimSpace(describe(s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// describe writes down what was read of a set.
func describe(s *Set) string {
	var b strings.Builder
	w := func(parts ...string) { b.WriteString(strings.Join(parts, " | ") + "\n") }
	w("format", s.Format)
	for _, d := range s.Docs {
		date := "no date"
		if at, ok := parseDate(d.Date); ok {
			date = at.Format("2006-01-02 15:04")
		}
		w("doc", d.Conv, d.Sess, d.ID, d.Spk, date, strings.ReplaceAll(d.Text, "\n", "/"), d.Extra)
	}
	for _, q := range s.Queries {
		state := strings.Join(sortedKeys(s.Qrels[q.ID]), ",")
		if len(s.Sessions[q.ID]) > 0 {
			state += " in " + strings.Join(sortedKeys(s.Sessions[q.ID]), ",")
		}
		switch {
		case s.Unusable[q.ID]:
			state = "NOT ASKED"
		case s.negative(q):
			state = "NEGATIVE " + state
		}
		if len(q.Stale) > 0 {
			state += " stale " + strings.Join(q.Stale, ",")
		}
		w("query", q.Conv, q.ID, q.Cat, q.Text, strings.TrimSpace(state))
	}
	for _, p := range problems(s) {
		w("problem", p)
	}
	return b.String()
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, archive, want string }{
		{"query", "-- docs.jsonl --\n{\"id\":\"a\"}\n-- queries.jsonl --\n\n{\"id\":\"q\"\n-- qrels.txt --\n", "queries.jsonl:2:"},
		{"twice", "-- docs.jsonl --\n{\"id\":\"a\"}\n{\"id\":\"a\"}\n-- queries.jsonl --\n-- qrels.txt --\n", `the id "a" is used for two documents`},
		{"conversation", "-- docs.jsonl --\n{\"id\":\"a\",\"conv\":\"c\"}\n-- queries.jsonl --\n{\"id\":\"q\",\"conv\":\"d\"}\n-- qrels.txt --\n", `query q asks conversation "d"`},
		{"missing", "-- docs.jsonl --\n{\"id\":\"a\"}\n-- queries.jsonl --\n", "qrels.txt"},
		{"unknown", "-- notes.txt --\nhello\n", "no evaluation set in a known format"},
	} {
		_, err := Load(folder(t, c.archive), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
	dir := folder(t, "-- x.json --\n[{\"a\":1}]\n")
	if _, err := Load(filepath.Join(dir, "x.json"), nil); err == nil || !strings.Contains(err.Error(), "neither LoCoMo's nor LongMemEval's") {
		t.Errorf("error %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := folder(t, "-- b/docs.jsonl.gz --\n-- a/corpus.jsonl --\n-- c/readme --\n-- longmemeval_s.json --\n[]\n-- other.json --\n[]\n")
	got, err := Find(dir)
	want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "longmemeval_s.json")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v", got, err)
	}
	if got, err := Find(filepath.Join(dir, "b")); err != nil || len(got) != 1 {
		t.Errorf("found %v, %v", got, err)
	}
	if _, err := Find(filepath.Join(dir, "c")); err == nil {
		t.Error("a set was found in a folder without one")
	}
}

// Whatever a file holds, it is read or refused with an error.
func FuzzLoad(f *testing.F) {
	names := []string{"docs.jsonl", "queries.jsonl", "qrels.txt", "corpus.jsonl", "candidates.jsonl", "qrels.tsv", "locomo10.json", "x.json", "chat.json", "probing_questions/probing_questions.json"}
	archives, err := filepath.Glob(filepath.Join("testdata", "formats", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			for i, n := range names {
				if strings.HasSuffix(strings.TrimSuffix(file.Name, ".gz"), n) || i == 7 && strings.HasSuffix(file.Name, ".json") {
					f.Add(uint8(i), file.Data)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		dir := folder(t, `
-- docs.jsonl --
{"id":"a","conv":"c","text":"x"}
-- queries.jsonl --
{"id":"q","conv":"c","text":"x"}
-- qrels.txt --
q 0 a 1
-- beir/corpus.jsonl --
{"_id":"a","text":"x"}
-- beir/queries.jsonl --
{"_id":"q","text":"x"}
-- beir/qrels.tsv --
q a 1
-- lmeb/corpus.jsonl --
{"_id":"a","text":"x"}
-- lmeb/candidates.jsonl --
{"query_id":"q","candidate_doc_ids":["a"]}
-- lmeb/queries.jsonl --
{"_id":"q","text":"x"}
-- lmeb/qrels.tsv --
q a 1
-- chat/chat.json --
[{"batch_number":1,"turns":[[{"role":"user","id":0,"content":"x"}]]}]
-- chat/probing_questions/probing_questions.json --
{"a":[{"question":"x","source_chat_ids":[0]}]}
`)
		name := names[int(which)%len(names)]
		for _, sub := range []string{"", "beir", "lmeb", "chat"} {
			path := filepath.Join(dir, sub)
			file := filepath.Join(path, filepath.FromSlash(name))
			if _, err := os.Stat(file); err != nil && !strings.HasSuffix(name, ".json") {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if name == "x.json" {
				path = file
			}
			s, err := Load(path, nil)
			if err != nil {
				continue
			}
			if c := s.Counts(); c.Asked != c.WithEvidence+c.WithoutEvidence || c.Asked > c.Queries {
				t.Errorf("counts %+v", c)
			}
		}
	})
}
