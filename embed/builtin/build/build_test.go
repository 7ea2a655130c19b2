package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func random(rows, cols int) matrix {
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	m := newMatrix(rows, cols)
	for i := range m.data {
		m.data[i] = float32(r.NormFloat64()) * float32(1+i%cols)
	}
	return m
}

func TestAffineIsTheProduct(t *testing.T) {
	for _, rows := range []int{1, 2, 7} {
		a, w := random(rows, 12), random(12, 70)
		bias := random(1, 70).data
		got := affine(a, w, bias)
		for i := range rows {
			for j := range w.cols {
				want := float64(bias[j])
				for k := range a.cols {
					want += float64(a.row(i)[k]) * float64(w.row(k)[j])
				}
				if diff := math.Abs(float64(got.row(i)[j]) - want); diff > 1e-3*max(1, math.Abs(want)) {
					t.Fatalf("%d rows, [%d][%d] = %g, want %g", rows, i, j, got.row(i)[j], want)
				}
			}
		}
	}
}

func TestPrincipalAxes(t *testing.T) {
	m := random(400, 20)
	axes := principalAxes(m)
	c := moments(m)
	last := math.Inf(1)
	for i := range axes.rows {
		v := axes.row(i)
		// c v = lambda v
		lambda := 0.0
		for a := range c {
			cv := 0.0
			for b, x := range v {
				cv += c[a][b] * float64(x)
			}
			lambda += cv * float64(v[a])
		}
		for a := range c {
			cv := 0.0
			for b, x := range v {
				cv += c[a][b] * float64(x)
			}
			if math.Abs(cv-lambda*float64(v[a])) > 1e-3*lambda+1e-4 {
				t.Fatalf("axis %d is no eigenvector", i)
			}
		}
		if lambda > last {
			t.Fatalf("axis %d has more variance than the one before", i)
		}
		last = lambda
		for j := range i {
			if d := dot(v, axes.row(j)); math.Abs(float64(d)) > 1e-5 {
				t.Fatalf("axes %d and %d: product %g", i, j, d)
			}
		}
	}
}

// The number of cores does not show in the result.
func TestDistilIsDeterministic(t *testing.T) {
	distilled := func() []float32 {
		v := vocabulary{vectors: random(300, 20)}
		for i := range 300 {
			v.words = append(v.words, fmt.Sprint("w", i))
			v.ranks = append(v.ranks, i)
		}
		return distil(v, random(300, 60), 16).data
	}
	cores := runtime.GOMAXPROCS(1)
	one := distilled()
	runtime.GOMAXPROCS(cores + 2)
	many := distilled()
	runtime.GOMAXPROCS(cores)
	if diff := cmp.Diff(one, many); diff != "" {
		t.Error(diff)
	}
}

func TestTokenizer(t *testing.T) {
	tok, err := readTokenizer(strings.NewReader(`[["unk",0],["<s>",0],["</s>",0],["x1",0],["x2",0],["x3",0],
		["▁",-3],["▁bread",-5],["▁br",-4],["ead",-4],["b",-6],["r",-6],["e",-6],["a",-6],["d",-6],["s",-2],[":",null],["▁:",-9]]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text string
		want []int32
	}{
		{"bread", []int32{7}},
		{"breads bread", []int32{7, 15, 7}},
		{"bre", []int32{8, 12}},
		{":", []int32{6, 16}}, // the null score is 0
		{"日本 s", []int32{6, 0, 6, 15}},
		{"ｂread", []int32{7}}, // compatibility form
	} {
		if diff := cmp.Diff(tc.want, tok.encode(tc.text)); diff != "" {
			t.Errorf("%q: %s", tc.text, diff)
		}
	}
}

func TestGloveKeepsWhatTextsContain(t *testing.T) {
	vector := func(x float64) string {
		values := make([]float64, gloveDim+2)
		values[0] = x
		out, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	source := fmt.Sprintf(`{"size":5,"words":["the",",","new-york","bread","River","42"],
		"vectors":{",":%s,"42":%s,"bread":%s,"the":%s,"new-york":%s},"unkVector":[]}`,
		vector(1), vector(2), vector(3), vector(4), vector(5))
	var v vocabulary
	if err := v.decode(json.NewDecoder(strings.NewReader(source)), 10); err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for i, w := range v.words {
		got[w] = []float64{float64(v.ranks[i]), float64(v.vectors.row(i)[0])}
	}
	want := map[string][]float64{"the": {0, 4}, "bread": {3, 3}, "42": {5, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := v.decode(json.NewDecoder(strings.NewReader(`{"words":["a"],"vectors":{}}`)), 10); err == nil {
		t.Error("a word without a vector is no error")
	}
}

// A package that is not the pinned one is refused, with the way out.
func TestArchiveIsVerified(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, gloveArchive.file)
	if err := os.WriteFile(path, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := gloveArchive.fetch(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "delete it and run again") {
		t.Errorf("error %v", err)
	}
}

func TestEachFile(t *testing.T) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, name := range []string{"package/a", "package/b"} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Size: 1, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte{name[len(name)-1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.tgz")
	read := func(content []byte) (string, error) {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		err := eachFile(path, func(name string, r io.Reader) error {
			data, err := io.ReadAll(r)
			fmt.Fprintf(&got, "%s=%s ", name, data)
			return err
		})
		return got.String(), err
	}
	if got, err := read(buf.Bytes()); got != "package/a=a package/b=b " || err != nil {
		t.Errorf("%q, error %v", got, err)
	}
	if _, err := read(buf.Bytes()[:buf.Len()/2]); err == nil {
		t.Error("half an archive is no error")
	}
}
