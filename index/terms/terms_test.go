package terms

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func keysOf(text string) string {
	_, keys, _ := New().Doc(Input{Text: text})
	return strings.Join(keys, " ")
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"stop words go, words are stemmed", "The cats were running", "wcat wrun"},
		{"identifiers whole and in parts", "see parse_config in src/main/loadFile.go", "iloadfile.go iparse_config isrc/main/loadfile.go wconfig wfile wgo wload wmain wpars wsee wsrc"},
		{"ticket", "OPS-1042 is open", "iops-1042 w1042 wop wopen"},
		{"version and mail", "v1.2.3 ann@example.com", "iann@example.com iexample.com iv1.2.3 w2 w3 wann wcom wexampl wv1"},
		{"contractions vanish, possessives are cut", "I don't like Ann's dog", "wann wdog wlike"},
		{"Han by characters and pairs", "备份脚本", "b份脚 b备份 b脚本 u份 u备 u本 u脚"},
		{"mixed scripts split at the border", "GitHub备份", "b备份 igithub u份 u备 wgit wgithub whub"},
		{"joined spelling", "the e-mail", "we wemail wmail"},
		{"accents fold", "Café Zürich", "wcafe wzurich"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, keysOf(c.text)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]Lang{
		"what is the name of the dog that we saw":                                English,
		"Ich habe gestern mit der Frau vom Amt gesprochen und sie hat das nicht": "de",
		"No sé si el tren de la mañana llega a las ocho o a las nueve":           "es",
		"我们明天去哪里":                                                                Chinese,
		"Где мы были вчера":                                                      "ru",
		"ok":                                                                     "",
		"":                                                                       "",
		"สวัสดีครับ":                                                             Chinese,
	} {
		if got := Detect(text); got != want {
			t.Errorf("Detect(%q) = %q, want %q", text, got, want)
		}
	}
}

// What the bytes say is what was built, and a term is found in the part it stands in.
func TestDocRoundTrip(t *testing.T) {
	a := New()
	long := strings.Repeat("The boat left the harbour early in the morning and came back late. ", 40) + "A zebra appeared."
	d, _, lang := a.Doc(Input{Text: long, Caption: "a photo of a lighthouse", Sender: "Ann Lee", Time: time.Date(2026, 5, 8, 1, 2, 3, 0, time.UTC)})
	if lang != English {
		t.Errorf("language %q", lang)
	}
	p, err := Parse(d.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if p.Words() != d.Words() || p.Passages() != d.Passages() || p.Len() != d.Len() || p.Passages() < 2 {
		t.Errorf("parsed %d words %d passages %d entries, built %d %d %d", p.Words(), p.Passages(), p.Len(), d.Words(), d.Passages(), d.Len())
	}
	find := func(c Class, s string) []Posting { return p.Lookup(Term{c, s}.Hash(), nil) }
	last := uint8(p.Passages() - 1)
	for _, x := range []struct {
		term string
		want []Posting
	}{
		{"zebra", []Posting{{last, 1}}},
		{"lighthous", []Posting{{PartCaption, 1}}},
		{"ann", []Posting{{PartSender, 1}}},
		{"2026", []Posting{{PartDate, 1}}},
		{"may", []Posting{{PartDate, 1}}},
		{"unicorn", nil},
	} {
		if diff := cmp.Diff(x.want, find(Word, x.term)); diff != "" {
			t.Errorf("%s: %s", x.term, diff)
		}
	}
	sum := 0
	for _, q := range find(Word, "harbour") {
		sum += int(q.TF)
	}
	if sum != 40 {
		t.Errorf("harbour %d times, want 40", sum)
	}
}

func TestPassagesJoin(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("one two three. ", 300), strings.Repeat("备份脚本上传失败。", 200), strings.Repeat("x", 9000), strings.Repeat("a b ", 2000)} {
		if got := strings.Join(Passages(s), ""); got != s {
			t.Errorf("passages of %.20q lose text: %d of %d bytes", s, len(got), len(s))
		}
	}
}

func TestQueryReadsBothLanguages(t *testing.T) {
	q := New().Query("Wann habe ich mit der Vermieterin über die Mietverträge gesprochen?", []Lang{English})
	var got []string
	for _, x := range q {
		if x.Class == Word {
			got = append(got, x.Text)
		}
	}
	s := fmt.Sprint(got)
	if !strings.Contains(s, "mietvertrag") {
		t.Errorf("no German stem in %s", s)
	}
}

func TestSetFindsWhatLookupFinds(t *testing.T) {
	a := New()
	d, _, _ := a.Doc(Input{Text: "a red boat and a blue boat\n\n" + strings.Repeat("long words of another passage. ", 60) + "boat", Sender: "Boat Man"})
	var hashes []uint32
	for _, w := range []string{"boat", "blue", "train", "boat", "passag"} {
		hashes = append(hashes, Term{Word, w}.Hash())
	}
	for i := range 40 { // what is not there, to crowd the table
		hashes = append(hashes, Term{Word, fmt.Sprint("none", i)}.Hash())
	}
	set := NewSet(hashes)
	got, counts, want := make([][]Posting, len(hashes)), make([]int, len(hashes)), make([]int, len(hashes))
	set.Visit(d, func(term int, p Posting) { got[term] = append(got[term], p) })
	set.Count(d.Bytes(), counts)
	for i, h := range hashes {
		found := d.Lookup(h, nil)
		if !slices.Equal(got[i], found) {
			t.Errorf("term %d: %v, want %v", i, got[i], found)
		}
		for _, p := range found {
			want[i] += int(p.TF)
		}
	}
	if !slices.Equal(counts, want) || counts[0] < 3 || counts[2] != 0 {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

func TestLengthsOfPassages(t *testing.T) {
	d, _, _ := New().Doc(Input{Text: strings.Repeat("ten words stand here in a row and all count. ", 90)})
	p, err := Parse(d.Bytes())
	if err != nil || p.Passages() < 3 {
		t.Fatalf("%d passages, %v", p.Passages(), err)
	}
	sum := 0
	for i := range p.Passages() {
		sum += p.PassageWords(i)
	}
	if sum != p.Words() || p.PassageWords(0) == 0 {
		t.Errorf("passages have %d words, the text %d", sum, p.Words())
	}
}

func FuzzDoc(f *testing.F) {
	f.Add("hello world", []byte{1, 0, 0, 1, 0})
	f.Add("\xff\xfe\u202e备é's __a//b", []byte{1})
	a := New()
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		d, _, _ := a.Doc(Input{Text: text, Sender: text, Caption: text})
		if _, err := Parse(d.Bytes()); err != nil {
			t.Fatalf("own bytes: %v", err)
		}
		if strings.Join(Passages(text), "") != text {
			t.Fatal("passages lose text")
		}
		a.Query(text, nil)
		if p, err := Parse(raw); err == nil {
			p.Lookup(7, nil)
			p.PassageWords(p.Passages() - 1)
			NewSet([]uint32{7}).Visit(p, func(int, Posting) {})
		}
	})
}

func BenchmarkDoc(b *testing.B) {
	a := New()
	text := "We moved the database to another host last Friday because the disk at db-3.internal kept failing; the new port is 5433 and Ann has the password."
	b.ReportAllocs()
	for b.Loop() {
		a.Doc(Input{Text: text, Sender: "Ann"})
	}
}
