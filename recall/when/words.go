package when

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type unit uint8

const (
	noUnit unit = iota
	hour
	day1
	week
	weekend
	month
	quarter
	year
)

// kind is a part that a word can play in a time.
type kind uint8

const (
	isNone    kind = iota
	isDay          // a day by its distance from today: yesterday
	isUnit         // a week
	isWeekday      // Tuesday
	isMonth        // March
	isSeason       // summer
	isFeast        // Christmas
	isNumber       // three
	isPart         // of a day: morning, night
	isLast         // last, previous
	isThis         // this
	isNext         // next
	isBefLast      // before last: vorletzte
	isAgo          // stands behind: ago
	isAgoPre       // stands before: hace, vor, il y a
	isBefore       // before
	isAfter        // after
	isSince        // since
	isUntil        // until, by
	isIn           // in, im, en
	isOn           // on, am
	isOf           // of, de
	isThe          // articles and fillers that may stand between
	isEvery        // every Tuesday is no day
	isBetween      // between, from
	isAnd          // and, to
	isDayWord      // "día", "Jahr", what says that a number is one
)

// meaning is a word's part and its value: days from today, a weekday, a month, a unit, a number.
type meaning struct {
	kind kind
	n    int
}

// word is one word of a text.
type word struct {
	text       string // lower-case, accents taken off
	raw        string // as it stands
	start, end int
	number     int  // -1 where it is none
	ordinal    bool // 5th, or 5. in front of a space or the end
	glued      bool // no space before it: a part of a version, a path, a time
	stop       bool // punctuation of a clause follows
	is         []meaning
}

func (w *word) as(k kind) (int, bool) {
	for _, m := range w.is {
		if m.kind == k {
			return m.n, true
		}
	}
	return 0, false
}

// split cuts a text into words of letters or digits. Scripts without spaces are left out: eastern
// reads those.
func split(text string) []word {
	var out []word
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !inWord(r) {
			i += n
			continue
		}
		start := i
		digits := unicode.IsDigit(r)
		for i < len(text) {
			r, n = utf8.DecodeRuneInString(text[i:])
			if !inWord(r) || digits != unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				break
			}
			i += n
		}
		out = append(out, wordAt(text, start, i))
		if k := len(out) - 1; digits {
			i = ordinalEnd(text, i, &out[k])
			out[k].end = i
		}
		out[len(out)-1].stop = stops(text[i:])
	}
	return out
}

func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)) && !eastern1(r)
}

func wordAt(text string, start, end int) word {
	w := word{raw: text[start:end], start: start, end: end, number: -1}
	w.text = fold(w.raw)
	if start > 0 {
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		w.glued = !unicode.IsSpace(before) && !strings.ContainsRune("(\"'“”„«»‘’¿¡[,;:—", before) && !eastern1(before)
	}
	if unicode.IsDigit(rune(text[start])) && len(w.text) <= 4 {
		w.number = 0
		for _, d := range w.text {
			if d < '0' || d > '9' {
				w.number = -1
				break
			}
			w.number = w.number*10 + int(d-'0')
		}
	}
	w.is = lexicon()[w.text]
	return w
}

// ordinalEnd reads what makes a number an ordinal, "5th", "1er", "5.", and returns where it ends.
func ordinalEnd(text string, i int, w *word) int {
	rest := text[i:]
	for _, s := range [...]string{"st", "nd", "rd", "th", "er", "ème", "e", "º", "ª", "°", "-го"} {
		if strings.HasPrefix(rest, s) {
			if r, _ := utf8.DecodeRuneInString(rest[len(s):]); len(rest) == len(s) || !inWord(r) {
				if w.ordinal = w.number <= 31; !w.ordinal {
					w.number = -1 // the 1980er
				}
				return i + len(s)
			}
		}
	}
	if strings.HasPrefix(rest, ".") && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '?') {
		w.ordinal = true
		return i + 1
	}
	if r, _ := utf8.DecodeRuneInString(rest); rest != "" && inWord(r) {
		w.number = -1 // 5GB, 3d
	}
	return i
}

// stops reports that a clause ends here.
func stops(rest string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	if rest == "" {
		return true
	}
	return strings.ContainsRune(".?!;:)\"”»", r) && (n == len(rest) || !inWord(rune(rest[n])))
}

// fold makes lower case and takes the accents of Latin letters off.
func fold(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || c >= 'A' && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if p, ok := accents[r]; ok {
			b.WriteString(p)
		} else if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var accents = map[rune]string{
	'á': "a", 'à': "a", 'â': "a", 'ä': "a", 'ã': "a", 'é': "e", 'è': "e", 'ê': "e", 'ë': "e", 'í': "i", 'ì': "i", 'î': "i", 'ï': "i",
	'ó': "o", 'ò': "o", 'ô': "o", 'ö': "o", 'õ': "o", 'ú': "u", 'ù': "u", 'û': "u", 'ü': "u", 'ñ': "n", 'ß': "ss", 'ё': "е",
}
