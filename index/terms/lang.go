package terms

import (
	"math/bits"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/cs"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/el"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/fa"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/hi"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/id"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"golang.org/x/text/unicode/norm"
)

// Lang is an ISO 639-1 code, or "" where the language is not known.
type Lang string

// The languages that code refers to by name.
const (
	English Lang = "en"
	Chinese Lang = "zh" // stands for all scripts written without spaces
)

type language struct {
	name Lang
	stop map[string]bool // lower-case, raw and folded
	stem func(*snowballstem.Env) bool
}

func (l *language) stemmed(w string) string {
	env := snowballstem.NewEnv(w)
	l.stem(env)
	return env.Current()
}

// languages holds the tables; built once on first use, read-only afterwards.
type languages struct {
	byName map[Lang]*language
	latin  []*language
	// hint maps a stop word to the set of Latin languages that have it, one bit each.
	hint map[string]uint32
}

var tables = sync.OnceValue(func() *languages {
	t := &languages{byName: map[Lang]*language{}, hint: map[string]uint32{}}
	latin := func(name Lang, words []byte, stem func(*snowballstem.Env) bool) {
		l := newLanguage(name, words, stem)
		bit := uint32(1) << len(t.latin)
		for w := range l.stop {
			t.hint[w] |= bit
		}
		t.latin = append(t.latin, l)
		t.byName[name] = l
	}
	other := func(name Lang, words []byte, stem func(*snowballstem.Env) bool) {
		t.byName[name] = newLanguage(name, words, stem)
	}
	latin(English, en.EnglishStopWords, english.Stem)
	latin("de", de.GermanStopWords, german.Stem)
	latin("es", es.SpanishStopWords, spanish.Stem)
	latin("fr", fr.FrenchStopWords, french.Stem)
	latin("it", it.ItalianStopWords, italian.Stem)
	latin("pt", pt.PortugueseStopWords, portuguese.Stem)
	latin("nl", nl.DutchStopWords, dutch.Stem)
	latin("sv", sv.SwedishStopWords, swedish.Stem)
	latin("da", da.DanishStopWords, danish.Stem)
	latin("no", no.NorwegianStopWords, norwegian.Stem)
	latin("tr", tr.TurkishStopWords, turkish.Stem)
	latin("fi", fi.FinnishStopWords, finnish.Stem)
	latin("hu", hu.HungarianStopWords, hungarian.Stem)
	latin("ro", ro.RomanianStopWords, romanian.Stem)
	latin("cs", cs.CzechStopWords, nil)
	latin("id", id.IndonesianStopWords, nil)
	other("ru", ru.RussianStopWords, russian.Stem)
	other("ar", ar.ArabicStopWords, arabic.Stem)
	other("fa", fa.PersianStopWords, nil)
	other("el", el.GreekStopWords, nil)
	other("hi", hi.HindiStopWords, nil)
	other("he", nil, nil)
	other(Chinese, nil, nil)
	return t
})

// contractions are English forms that bleve's list lacks because its tokenizer splits them.
const contractions = "i'm i've i'd i'll don't didn't doesn't isn't wasn't aren't weren't can't couldn't won't wouldn't " +
	"shouldn't haven't hasn't hadn't that's what's you're you've you'll you'd he's she's it's we're we've we'll we'd " +
	"they're they've they'll they'd there's who's where's how's when's here's let's"

func newLanguage(name Lang, words []byte, stem func(*snowballstem.Env) bool) *language {
	l := &language{name: name, stop: map[string]bool{}, stem: stem}
	m := analysis.NewTokenMap()
	if err := m.LoadBytes(words); err != nil {
		panic("terms: stop words of " + string(name) + ": " + err.Error())
	}
	if name == English {
		for w := range strings.FieldsSeq(contractions) {
			m.AddToken(w)
		}
	}
	for w := range m {
		w = strings.ToLower(w)
		l.stop[w] = true
		l.stop[fold(w)] = true
	}
	return l
}

// languageOf returns the tables of a language; unknown ones are treated as English.
func languageOf(l Lang) *language {
	t := tables()
	if d, ok := t.byName[l]; ok {
		return d
	}
	return t.byName[English]
}

// forScript returns the language for a word that starts with r: the running language where
// its script fits, the script's own otherwise.
func (l *language) forScript(r rune) *language {
	s := scriptOf(r)
	if s == latinScript {
		if l.name.script() != latinScript {
			return languageOf(English)
		}
		return l
	}
	if s == l.name.script() || s == noScript {
		return l
	}
	return languageOf(s.lang())
}

type script uint8

const (
	noScript script = iota
	latinScript
	cyrillic
	arabicScript
	greek
	hebrew
	devanagari
	noSpaces
)

func scriptOf(r rune) script {
	switch {
	case r < 0x80:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return latinScript
		}
		return noScript
	case r < 0x250, r >= 0x1E00 && r < 0x1F00:
		if unicode.IsLetter(r) {
			return latinScript
		}
		return noScript
	case r >= 0x370 && r < 0x400:
		return greek
	case r >= 0x400 && r < 0x530:
		return cyrillic
	case r >= 0x590 && r < 0x600:
		return hebrew
	case r >= 0x600 && r < 0x780, r >= 0xFB50 && r < 0xFF00:
		return arabicScript
	case r >= 0x900 && r < 0x980:
		return devanagari
	case unspaced(r):
		return noSpaces
	}
	return noScript
}

func (s script) lang() Lang {
	return [...]Lang{"", "", "ru", "ar", "el", "he", "hi", Chinese}[s]
}

func (l Lang) script() script {
	switch l {
	case "ru":
		return cyrillic
	case "ar", "fa":
		return arabicScript
	case "el":
		return greek
	case "he":
		return hebrew
	case "hi":
		return devanagari
	case Chinese:
		return noSpaces
	}
	return latinScript
}

// detectWords bounds how many words Detect looks at.
const detectWords = 400

// Detect names the language of a text: by script, and for Latin by stop words, where one
// language must have at least three and half as many again as the runner-up. "" where the
// text does not tell.
func Detect(text string) Lang {
	var count [noSpaces + 1]int
	seen := 0
	for _, r := range text {
		if s := scriptOf(r); s != noScript {
			count[s]++
			if seen++; seen > 8*detectWords {
				break
			}
		}
	}
	best := latinScript
	for s := cyrillic; s <= noSpaces; s++ {
		n := count[s]
		if s == noSpaces {
			n *= 2 // a character is worth more than a letter
		}
		if n > count[best] || best == noSpaces && n > 2*count[best] {
			best = s
		}
	}
	if best != latinScript {
		return best.lang()
	}
	return detectLatin(text)
}

func detectLatin(text string) Lang {
	t := tables()
	var n [32]int
	words := 0
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isWord(r) }) {
		if words++; words > detectWords {
			break
		}
		for set := t.hint[strings.ToLower(w)]; set != 0; set &= set - 1 {
			n[bits.TrailingZeros32(set)]++
		}
	}
	best, second := -1, 0
	for i := range t.latin {
		switch {
		case best < 0 || n[i] > n[best]:
			if best >= 0 {
				second = max(second, n[best])
			}
			best = i
		default:
			second = max(second, n[i])
		}
	}
	if n[best] >= 3 && 2*n[best] >= 3*second {
		return t.latin[best].name
	}
	return ""
}

// fold removes accents and unifies letters that people write in more than one way.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range norm.NFKD.String(s) {
		switch r {
		case 'ß':
			b.WriteString("ss")
			continue
		case 'æ':
			b.WriteString("ae")
			continue
		case 'œ':
			b.WriteString("oe")
			continue
		case 'ø':
			r = 'o'
		case 'đ':
			r = 'd'
		case 'ł':
			r = 'l'
		case 'ı':
			r = 'i'
		case 'ё':
			r = 'е'
		case 'ى':
			r = 'ي'
		case 'ة':
			r = 'ه'
		case 'ـ':
			continue
		}
		if accent(r) {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// accent reports combining marks that readers leave out: accents, and the points of Arabic
// and Hebrew. Vowel signs of Indic scripts are letters to their readers and stay.
func accent(r rune) bool {
	return r >= 0x300 && r < 0x370 || r >= 0x591 && r <= 0x5C7 || r >= 0x64B && r <= 0x65F || r == 0x670
}
