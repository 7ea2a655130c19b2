package static_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hark/embed/static"
)

func small(tb testing.TB) []byte {
	tb.Helper()
	rows := []float32{
		1, 0, 0, 0, 0, 0, 0, 0,
		0, -2, 0, 0, 0, 0, 0, 0,
		0.5, 0.25, 0, 0, -0.5, 0, 0, 1,
		-1, 0, 0, 0, 0, 0, 0, 0,
	}
	data, err := static.Encode("small", []string{"one", "two", "café", "minus"}, rows)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func decode(tb testing.TB, data []byte) *static.Table {
	tb.Helper()
	table, err := static.Decode(data)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

func TestVectorIsTheDirectionOfTheSum(t *testing.T) {
	table := decode(t, small(t))
	for _, tc := range []struct {
		text string
		want []float64
	}{
		{"one", []float64{1, 0, 0, 0, 0, 0, 0, 0}},
		{"two two TWO", []float64{0, -1, 0, 0, 0, 0, 0, 0}},
		{"one, two", []float64{1 / math.Sqrt(5), -2 / math.Sqrt(5), 0, 0, 0, 0, 0, 0}},
		{"Café", []float64{0.4, 0.2, 0, 0, -0.4, 0, 0, 0.8}},
		{"unknown", nil},
		{"one minus", nil}, // cancel out
	} {
		got := table.Vector(tc.text)
		if (got == nil) != (tc.want == nil) {
			t.Fatalf("%q: %v, want %v", tc.text, got, tc.want)
		}
		for i, want := range tc.want {
			if math.Abs(float64(got[i])-want) > 0.005 {
				t.Errorf("%q: %v, want %v", tc.text, got, tc.want)
				break
			}
		}
	}
}

// Sums overflow no lane however long a text is, and a text repeated points where it pointed.
func TestVectorOfLongTexts(t *testing.T) {
	table := decode(t, small(t))
	want := table.Vector("one two café")
	for _, n := range []int{1, 85, 86, 255, 256, 257, 512, 100_000} {
		if diff := cmp.Diff(want, table.Vector(strings.Repeat("one two café ", n))); diff != "" {
			t.Fatalf("%d times: %s", n, diff)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"Don’t STOP-me_now 42x", []string{"don", "t", "stop", "me", "now", "42x"}},
		{"Żółw, ÉCOLE", []string{"żółw", "école"}},
		{"我们ABC東京 x", []string{"我", "们", "abc", "東", "京", "x"}},
		{"a" + strings.Repeat("b", static.MaxWord) + " c", []string{"c"}},
		{strings.Repeat("b", static.MaxWord), []string{strings.Repeat("b", static.MaxWord)}},
		{"x\xff\xfey 👍", []string{"x", "y"}},
	} {
		if diff := cmp.Diff(tc.want, slices.Collect(static.Words(tc.text))); diff != "" {
			t.Errorf("%q: %s", tc.text, diff)
		}
	}
}

func TestDecodeRefusesDamage(t *testing.T) {
	good := small(t)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x55
		if _, err := static.Decode(bad); !errors.Is(err, static.ErrFormat) {
			t.Errorf("byte %d changed: error %v", i, err)
		}
		if _, err := static.Decode(good[:i]); !errors.Is(err, static.ErrFormat) {
			t.Errorf("cut at %d: error %v", i, err)
		}
	}
}

func TestEncodeRefusesWhatIsNoTable(t *testing.T) {
	row := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	nan := []float32{1, 2, 3, 4, 5, 6, 7, float32(math.NaN())}
	for _, tc := range []struct {
		what  string
		words []string
		rows  []float32
	}{
		{"no words", nil, nil},
		{"dimension 7", []string{"a"}, row[:7]},
		{"twice", []string{"a", "a"}, slices.Concat(row, row)},
		{"NaN", []string{"a", "b"}, slices.Concat(row, nan)},
		{"zero", []string{"a"}, make([]float32, 8)},
		{"line break", []string{"a\nb"}, row},
	} {
		if _, err := static.Encode("x", tc.words, tc.rows); err == nil {
			t.Errorf("%s: no error", tc.what)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(small(f), "one two")
	f.Add([]byte("HARKWORD"), "")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		table, err := static.Decode(data)
		if err != nil {
			if !errors.Is(err, static.ErrFormat) {
				t.Fatalf("error %v", err)
			}
			table = decode(t, small(t))
		}
		if c := table.Coverage(text); !(c >= 0 && c <= 1) {
			t.Fatalf("coverage %g", c)
		}
		if v := table.Vector(text); v != nil {
			var square float64
			for _, x := range v {
				square += float64(x) * float64(x)
			}
			if len(v) != table.Dim() || !(math.Abs(square-1) < 1e-4) {
				t.Fatalf("%d dimensions, squared length %g", len(v), square)
			}
		}
	})
}
