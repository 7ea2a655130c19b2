package when

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// yearAt is the year in digits at i, 0 where there is none that people speak of.
func (r *reader) yearAt(i int) int {
	if y := r.at(i).number; len(r.at(i).raw) == 4 && y >= r.now.Year()-80 && y <= r.now.Year()+10 {
		return y
	}
	return 0
}

// yearBehind is the year behind a month, a season or a feast, with the words up to it.
func (r *reader) yearBehind(i int) (y, n int) {
	if r.at(i-1).stop && !r.at(i-1).ordinal {
		return 0, 0
	}
	if r.is(i, isOf) {
		if y := r.yearAt(i + 1); y > 0 {
			return y, 2
		}
	}
	if y := r.yearAt(i); y > 0 {
		return y, 1
	}
	return 0, 0
}

// calendar reads days and months by name: "5 May 2023", "March 5th", "5 de mayo", "in March",
// "summer 2023", "Q3 2025", "on the 5th".
func (r *reader) calendar(i int, lead kind) (Span, int) {
	w := r.at(i)
	if w.number >= 1 && w.number <= 31 && !w.glued {
		j := i + 1
		for r.is(j, isOf) || r.is(j, isThe) {
			j++
		}
		if m, ok := r.at(j).as(isMonth); ok && (r.at(j).text != "may" || w.ordinal || unicode.IsUpper(rune(r.at(j).raw[0]))) {
			return r.dayOfMonth(m, w.number, j+1, i)
		}
		return r.ordinalDay(i, lead)
	}
	if m, ok := w.as(isMonth); ok {
		return r.month(i, m, lead)
	}
	if n, ok := w.as(isSeason); ok {
		if y, size := r.yearBehind(i + 1); y > 0 {
			return r.season(n, y), 1 + size
		}
		if lead == isIn && n%2 == 1 && !r.is(i+1, isSeason) { // spring and fall are other things too
			return r.recentSeason(n), 1
		}
	}
	if w.text == "q" && r.at(i+1).glued && r.at(i+1).number >= 1 && r.at(i+1).number <= 4 {
		y, size := r.yearBehind(i + 2)
		if y == 0 && lead == isNone {
			return Span{}, 0
		}
		if y == 0 {
			y = r.now.Year()
		}
		from := time.Date(y, time.Month(3*r.at(i+1).number-2), 1, 0, 0, 0, 0, r.now.Location())
		return Span{From: from, To: from.AddDate(0, 3, 0)}, 2 + size
	}
	return Span{}, 0
}

func (r *reader) recentSeason(n int) Span {
	s := r.season(n, r.now.Year())
	if s.From.After(r.now) {
		s = r.season(n, r.now.Year()-1)
	}
	return s
}

// dayOfMonth is a day with what stands behind it: a year, or the last one there was.
func (r *reader) dayOfMonth(m, d, behind, start int) (Span, int) {
	if y, size := r.yearBehind(behind); y > 0 {
		if s, ok := date(r.now, y, time.Month(m), d); ok {
			return s, behind + size - start
		}
		return Span{}, 0
	}
	s, ok := r.recentDate(m, d)
	if !ok {
		return Span{}, 0
	}
	return s, behind - start
}

// recentDate is the last such day that began.
func (r *reader) recentDate(m, d int) (Span, bool) {
	for y := r.now.Year(); y > r.now.Year()-9; y-- {
		if s, ok := date(r.now, y, time.Month(m), d); ok && !s.From.After(r.now) {
			return s, true
		}
	}
	return Span{}, false
}

// month reads what begins with the name of a month.
func (r *reader) month(i, m int, lead kind) (Span, int) {
	w := r.at(i)
	if i > 0 && r.romance(w) {
		return Span{}, 0
	}
	name := unicode.IsUpper([]rune(w.raw)[0])
	j := i + 1
	if r.is(j, isThe) {
		j++
	}
	if d := r.at(j); d.number >= 1 && d.number <= 31 && len(d.raw) <= 4 && (!d.glued || r.at(j).start == w.end+1) && !w.stop {
		_, size := r.yearBehind(j + 1)
		if name || lead != isNone || d.ordinal || size > 0 {
			return r.dayOfMonth(m, d.number, j+1, i)
		}
	}
	if y, size := r.yearBehind(i + 1); y > 0 && (name || lead != isNone || len(w.raw) > 3) {
		return monthOf(r.now, y, time.Month(m)), 1 + size
	}
	if lead == isNone || lead == isOn || len(w.raw) == 3 && w.text != "may" && w.text != "mai" && w.text != "mei" {
		return Span{}, 0
	}
	s := monthOf(r.now, r.now.Year(), time.Month(m))
	if s.From.After(r.now) {
		s = monthOf(r.now, r.now.Year()-1, time.Month(m))
	}
	return s, 1
}

// romance reports a capital where the languages that have this word write none: a name, "Julio".
func (r *reader) romance(w *word) bool {
	return unicode.IsUpper([]rune(w.raw)[0]) && slices.Contains([]string{"julio", "abril", "marzo", "mars", "domingo", "juin", "enero", "junio"}, w.text)
}

// ordinalDay reads a day of the month without a month: "on the 5th", "am 5.", "el día 5".
func (r *reader) ordinalDay(i int, lead kind) (Span, int) {
	w, before := r.at(i), r.at(i-1)
	named := slices.Contains([]string{"dia", "dag", "giorno", "jour"}, before.text)
	switch {
	case lead == isNone || lead == isIn || lead == isBetween:
		return Span{}, 0
	case named:
	case w.ordinal && (r.is(i-1, isThe) || before.text == "am" || before.text == "vom" || before.text == "zum") && (w.stop || r.goesOn(i+1)):
	case before.text == "le" && w.stop:
	default:
		return Span{}, 0
	}
	for back := range 3 {
		at := time.Date(r.now.Year(), r.now.Month()-time.Month(back), 1, 0, 0, 0, 0, r.now.Location())
		if s, ok := date(at, at.Year(), at.Month(), w.number); ok && !s.From.After(r.now) {
			return s, 1
		}
	}
	return Span{}, 0
}

// goesOn reports that what a number counted is not the next word: "on the 5th floor" is no day.
func (r *reader) goesOn(i int) bool {
	if i >= len(r.words) {
		return true
	}
	return slices.Contains([]string{
		"about", "with", "at", "in", "did", "do", "does", "was", "were", "is", "are", "we", "i", "you", "he", "she", "they", "and", "or", "of", "for",
		"to", "from", "when", "what", "that", "had", "have", "has", "besprochen", "gesagt", "passiert", "mit", "und", "war", "hat", "haben", "wir", "ich", "uber",
	}, r.at(i).text)
}

// weekday reads a bare weekday, and one in a week: "Tuesday of last week".
func (r *reader) weekday(i int, _ kind) (Span, int) {
	w := r.at(i)
	n, ok := w.as(isWeekday)
	if !ok || i > 0 && r.romance(w) {
		return Span{}, 0
	}
	j := i + 1
	for r.is(j, isOf) || r.is(j, isThe) || r.is(j, isIn) {
		j++
	}
	for _, read := range [...]func(int, kind) (Span, int){r.directed, r.turned} {
		if s, size := read(j, isNone); size > 0 && s.To.Sub(s.From) > 6*24*time.Hour && s.To.Sub(s.From) < 8*24*time.Hour {
			return r.within(s, i), j + size - i
		}
	}
	size := 1
	for r.is(i+size, isPart) {
		size++
	}
	return r.weekdayIn(n, -1), size
}

// feast reads a feast, with a year or the last one there was.
func (r *reader) feast(i int, _ kind) (Span, int) {
	f, ok := r.at(i).as(isFeast)
	if !ok {
		return Span{}, 0
	}
	if y, size := r.yearBehind(i + 1); y > 0 {
		return r.feastOf(f, y), 1 + size
	}
	return r.feastIn(f, -1), 1
}

// feastIn is the last feast that began, or the next where one asks for that.
func (r *reader) feastIn(f, d int) Span {
	s := r.feastOf(f, r.now.Year())
	switch {
	case d < 0 && s.From.After(r.now):
		s = r.feastOf(f, r.now.Year()-1)
	case d > 0 && !s.From.After(r.now):
		s = r.feastOf(f, r.now.Year()+1)
	}
	return s
}

// springs are the days of the Chinese new year from 2015, as month times 100 plus day.
var springs = [...]int{219, 208, 128, 216, 205, 125, 212, 201, 122, 210, 129, 217, 206, 126, 213, 203}

// feastOf is a feast of a year with the days that people count to it.
func (r *reader) feastOf(f, y int) Span {
	on := func(m time.Month, d, n int) Span {
		from := time.Date(y, m, d, 0, 0, 0, 0, r.now.Location())
		return Span{From: from, To: from.AddDate(0, 0, n)}
	}
	switch f {
	case christmas:
		return on(12, 24, 3)
	case christmasEve:
		return on(12, 24, 1)
	case newYear:
		return on(1, 1, 1)
	case newYearsEve:
		return on(12, 31, 1)
	case easter:
		m, d := easterSunday(y)
		return on(m, d-2, 4)
	case pentecost:
		m, d := easterSunday(y)
		return on(m, d+49, 2)
	case halloween:
		return on(10, 31, 1)
	case thanksgiving: // the fourth Thursday of November
		first := int(time.Date(y, 11, 1, 0, 0, 0, 0, time.UTC).Weekday())
		return on(11, 22+(4-first+7)%7, 1)
	case nationalDay:
		return on(10, 1, 7)
	case springFestival:
		day := 205 // about, where the table ends
		if k := y - 2015; k >= 0 && k < len(springs) {
			day = springs[k]
		}
		return on(time.Month(day/100), day%100-1, 8)
	}
	return on(2, 14, 1)
}

// easterSunday is the date of Easter in the Gregorian calendar, by Butcher's rule.
func easterSunday(y int) (time.Month, int) {
	a, b, c := y%19, y/100, y%100
	d, e, f := b/4, b%4, (b+8)/25
	g := (b - f + 1) / 3
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return time.Month(n / 31), n%31 + 1
}

// inYear reads a year behind a word that makes it one, "in 2023", "seit 2019".
func (r *reader) inYear(i int, lead kind) (Span, int) {
	y := r.yearAt(i)
	if y == 0 || lead == isNone || lead == isOn && !r.is(i-1, isDayWord) || r.at(i).glued || r.at(i+1).glued && r.at(i+1).number >= 0 {
		return Span{}, 0
	}
	if (y%1000 == 0 || y&(y-1) == 0) && !r.at(i).stop && !r.goesOn(i+1) {
		return Span{}, 0 // 2000 lines
	}
	return years(r.now, y), 1
}

var (
	isoDate  = regexp.MustCompile(`\d{4}([-/.])\d{1,2}([-/.])\d{1,2}`)
	dayFirst = regexp.MustCompile(`\d{1,2}([./-])\d{1,2}([./-])\d{4}`)
	isoMonth = regexp.MustCompile(`\d{4}-\d{2}`)
)

// numeric reads dates in digits. A day and a month that could be either way round are both.
func numeric(text string, now time.Time) []Span {
	if !strings.ContainsFunc(text, unicode.IsDigit) {
		return nil
	}
	var out []Span
	add := func(loc []int, y, m, d int) {
		if s, ok := date(now, y, time.Month(m), d); ok {
			s.Start, s.End = loc[0], loc[1]
			out = append(out, s)
		}
	}
	for _, loc := range isoDate.FindAllStringSubmatchIndex(text, -1) {
		p := parts(text, loc)
		if apart(text, loc) && p != nil && plausible(p[0], now) {
			add(loc, p[0], p[1], p[2])
		}
	}
	for _, loc := range dayFirst.FindAllStringSubmatchIndex(text, -1) {
		p := parts(text, loc)
		if !apart(text, loc) || p == nil || !plausible(p[2], now) {
			continue
		}
		add(loc, p[2], p[1], p[0])
		if text[loc[2]] == '/' && p[0] != p[1] {
			add(loc, p[2], p[0], p[1])
		}
	}
	for _, loc := range isoMonth.FindAllStringIndex(text, -1) {
		y, _ := strconv.Atoi(text[loc[0] : loc[0]+4])
		m, _ := strconv.Atoi(text[loc[0]+5 : loc[1]])
		if apart(text, loc) && plausible(y, now) && m >= 1 && m <= 12 {
			s := monthOf(now, y, time.Month(m))
			s.Start, s.End = loc[0], loc[1]
			out = append(out, s)
		}
	}
	return out
}

func plausible(y int, now time.Time) bool { return y >= 1900 && y <= now.Year()+20 }

// parts are the three numbers of a date, nil where its separators differ.
func parts(text string, loc []int) []int {
	if text[loc[2]] != text[loc[4]] {
		return nil
	}
	var out []int
	for p := range strings.SplitSeq(text[loc[0]:loc[1]], text[loc[2]:loc[3]]) {
		n, _ := strconv.Atoi(p)
		out = append(out, n)
	}
	return out
}

// apart reports a date that is no part of something longer: a version, a path, an address.
func apart(text string, loc []int) bool {
	before, after := text[:loc[0]], text[loc[1]:]
	if before != "" && strings.ContainsRune("0123456789-./_:=@#abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", rune(before[len(before)-1])) {
		return false
	}
	if after == "" {
		return true
	}
	if strings.ContainsRune("-/_@#", rune(after[0])) || after[0] != 'T' && after[0] < 0x80 && (unicode.IsLetter(rune(after[0])) || unicode.IsDigit(rune(after[0]))) {
		return false
	}
	return after[0] != '.' || len(after) == 1 || after[1] == ' ' || after[1] == '\n'
}
