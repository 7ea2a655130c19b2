package when

import (
	"slices"
	"time"
	"unicode"
)

// reader reads times out of the words of a text.
type reader struct {
	now   time.Time
	words []word
	// A few words are a time in one language and something else in another.
	french bool // "hier" is yesterday, not here
}

// at returns a word, an empty one behind the last.
func (r *reader) at(i int) *word {
	if i < 0 || i >= len(r.words) {
		return &word{number: -1}
	}
	return &r.words[i]
}

func (r *reader) is(i int, k kind) bool {
	_, ok := r.at(i).as(k)
	return ok
}

// guess joins words that are one and finds what language ambiguous words are of.
func (r *reader) guess() {
	var out []word
	for i := 0; i < len(r.words); {
		p, n := r.phrase(i)
		if n == 0 {
			out = append(out, r.words[i])
			i++
			continue
		}
		for _, text := range p {
			w := r.words[i]
			w.text, w.raw, w.end, w.stop, w.is = text, text, r.words[i+n-1].end, r.words[i+n-1].stop, lexicon()[text]
			out = append(out, w)
		}
		i += n
	}
	r.words = out
	french, german := 0, 0
	for i := range r.words {
		switch r.words[i].text {
		case "je", "tu", "nous", "vous", "qu", "que", "qui", "quoi", "quel", "quelle", "est", "ai", "avons", "avez", "dit", "le", "la", "les", "c", "j", "soir", "matin", "pour", "du", "sur":
			french++
		case "ich", "wir", "ist", "was", "wer", "das", "die", "der", "und", "nicht", "haben", "hat", "hast", "mir":
			german++
		}
	}
	r.french = french > german
}

func (r *reader) phrase(i int) (to []string, n int) {
	for _, p := range phrases() {
		if r.at(i).text == p[0][0] && i+len(p[0]) <= len(r.words) &&
			slices.EqualFunc(r.words[i:i+len(p[0])], p[0], func(w word, s string) bool { return w.text == s }) {
			return p[1], len(p[0])
		}
	}
	return nil, 0
}

// read reads a time that begins at word i, with what leads to it, and returns how many words it
// takes, 0 where there is none.
func (r *reader) read(i int) (Span, int) {
	if r.is(i-1, isEvery) || r.is(i-2, isEvery) && r.is(i-1, isThe) {
		return Span{}, 0
	}
	for _, lead := range [...]kind{isBefore, isAfter, isSince, isUntil, isBetween, isIn, isOn} {
		if !r.is(i, lead) {
			continue
		}
		j := i + 1
		for range 3 {
			if r.is(j, isThe) || r.is(j, isDayWord) && r.at(j+1).number > 0 || r.is(j, isOf) || r.is(j, isIn) && lead == isIn {
				j++
			}
		}
		if s, n := r.date(j, lead); n > 0 {
			return r.until(r.led(s, lead), lead, i, j+n-i)
		}
	}
	s, n := r.date(i, isNone)
	return s, n
}

// until goes on to a second time, "from Monday to Friday".
func (r *reader) until(s Span, lead kind, i, n int) (Span, int) {
	if (lead == isBetween || lead == isIn) && r.is(i+n, isAnd) {
		j := i + n + 1
		for r.is(j, isThe) {
			j++
		}
		if end, m := r.date(j, lead); m > 0 && end.To.After(s.From) {
			s.To = end.To
			return s, j + m - i
		}
	}
	return s, n
}

// led applies what leads to a time. Before and after mean not long before and after.
func (r *reader) led(s Span, lead kind) Span {
	reach := max(s.To.Sub(s.From), 30*24*time.Hour)
	switch lead {
	case isBefore:
		s.From, s.To = s.From.Add(-reach), s.From
	case isAfter:
		s.From, s.To = s.To, s.To.Add(reach)
	case isSince:
		if s.From.Before(r.now) {
			s.To = r.now
		}
	case isUntil:
		s.From = s.From.Add(-reach)
	}
	return s
}

// date reads a time without what leads to it.
func (r *reader) date(i int, lead kind) (Span, int) {
	if i >= len(r.words) || r.at(i).glued && lead == isNone {
		return Span{}, 0
	}
	for k, f := range [...]func(int, kind) (Span, int){r.calendar, r.inYear, r.day, r.directed, r.turned, r.counted, r.weekday, r.feast} {
		if s, n := f(i, lead); n > 0 {
			s.Named = k < 2
			return s, n
		}
	}
	return Span{}, 0
}

// day reads yesterday and the like, with a part of the day behind it.
func (r *reader) day(i int, _ kind) (Span, int) {
	w, before := r.at(i), r.at(i-1).text
	n, ok := w.as(isDay)
	switch {
	case !ok, w.text == "hier" && !r.french:
		return Span{}, 0
	case w.text == "morgen" && (slices.Contains([]string{"guten", "goede", "am", "der", "den", "jeden", "einen", "dieser", "deze"}, before)):
		return Span{}, 0
	case w.text == "manana" && slices.Contains([]string{"la", "esta", "cada", "una"}, before):
		return Span{}, 0
	case w.text == "ha" || w.text == "oggi" && unicode.IsUpper([]rune(w.raw)[0]) && i > 0:
		return Span{}, 0
	}
	size := 1
	for r.is(i+size, isPart) || r.at(i+size).text == "morgen" || r.is(i+size, isThe) && r.is(i+size+1, isPart) {
		size++
	}
	return days(r.now, n, 1), size
}

// direction is -2, -1, 0 or 1 for before last, last, this and next.
func (r *reader) direction(i int) (d int, ok bool) {
	w := r.at(i)
	for n, k := range [...]kind{isBefLast, isLast, isThis, isNext} {
		if _, ok := w.as(k); ok {
			return n - 2, true
		}
	}
	return 0, false
}

// directed reads "last week", "this morning", "next Tuesday", "the last three days".
func (r *reader) directed(i int, _ kind) (Span, int) {
	d, ok := r.direction(i)
	if !ok {
		return Span{}, 0
	}
	if n := r.count(i + 1); n > 0 && d == -1 {
		at := i + 2
		if r.is(at, isOf) {
			at++
		}
		if u, ok := r.at(at).as(isUnit); ok {
			return past(r.now, unit(u), n), at + 1 - i
		}
	}
	if s, n := r.named(i+1, d); n > 0 {
		if d == -1 && r.is(i+1, isUnit) && r.is(i+2, isWeekday) { // letzte Woche Dienstag
			return r.within(s, i+2), n + 2
		}
		return s, n + 1
	}
	if r.is(i+1, isPart) || r.at(i+1).text == "manana" || r.at(i+1).text == "morgen" {
		switch d {
		case -1, 0:
			return days(r.now, d, 1), 2
		}
	}
	return Span{}, 0
}

// turned reads "la semana pasada", "lundi dernier", "the week before last".
func (r *reader) turned(i int, _ kind) (Span, int) {
	if !r.is(i, isUnit) && !r.is(i, isWeekday) && !r.is(i, isMonth) && !r.is(i, isSeason) && !r.is(i, isFeast) {
		return Span{}, 0
	}
	if r.is(i, isUnit) && r.is(i+1, isBefore) && r.is(i+2, isLast) {
		s, _ := r.named(i, -2)
		return s, 3
	}
	d, ok := r.direction(i + 1)
	if !ok || r.is(i+1, isThis) || r.is(i, isUnit) && r.at(i).text == "mes" && r.at(i + 1).text[0] == 'd' || r.is(i+2, isUnit) {
		return Span{}, 0
	}
	if !latin(r.at(i + 1).text) {
		return Span{}, 0
	}
	s, n := r.named(i, d)
	if n == 0 {
		return s, 0
	}
	return s, n + 1
}

// latin reports the languages in which "last" stands behind.
func latin(w string) bool {
	return slices.Contains([]string{"pasado", "pasada", "passado", "passada", "dernier", "derniere", "passe", "passee", "prochain", "prochaine",
		"proximo", "proxima", "scorso", "scorsa", "passato", "passata", "prossimo", "prossima", "antepasado", "antepasada", "last"}, w)
}

// named is a unit, weekday, month, season or feast in a direction.
func (r *reader) named(i, d int) (Span, int) {
	w := r.at(i)
	if u, ok := w.as(isUnit); ok {
		switch {
		case unit(u) == day1:
			return Span{}, 0 // "the last day of school"
		case unit(u) == hour && d == -1:
			return past(r.now, hour, 1), 1
		case unit(u) == weekend && d < 0 && (r.now.Weekday() == time.Sunday || r.now.Weekday() == time.Saturday):
			return weekend.around(r.now, d), 1
		}
		return unit(u).around(r.now, d), 1
	}
	if n, ok := w.as(isWeekday); ok {
		return r.weekdayIn(n, d), 1
	}
	if n, ok := w.as(isMonth); ok {
		s := monthOf(r.now, r.now.Year(), time.Month(n))
		this := month.around(r.now, 0)
		switch {
		case d < 0 && !s.From.Before(this.From):
			s = monthOf(r.now, r.now.Year()-1, time.Month(n))
		case d > 0 && !s.From.After(this.From):
			s = monthOf(r.now, r.now.Year()+1, time.Month(n))
		}
		return s, 1
	}
	if n, ok := w.as(isSeason); ok {
		s := r.season(n, r.now.Year())
		if d < 0 && !s.To.Before(r.now) {
			s = r.season(n, r.now.Year()-1)
		}
		return s, 1
	}
	if f, ok := w.as(isFeast); ok {
		return r.feastIn(f, d), 1
	}
	return Span{}, 0
}

// weekdayIn is a weekday: the last before today, this week's, the next after today.
func (r *reader) weekdayIn(n, d int) Span {
	today := int(r.now.Weekday())
	switch {
	case d == 0:
		return days(r.now, (n+6)%7-(today+6)%7, 1)
	case d > 0:
		return days(r.now, (n-today+6)%7+1, 1)
	}
	return days(r.now, 7*(d+1)-(today-n+6)%7-1, 1)
}

// within is the weekday at i in a week.
func (r *reader) within(s Span, i int) Span {
	n, _ := r.at(i).as(isWeekday)
	return days(s.From, (n+6)%7, 1)
}

// season begins with spring; the winter of a year is the one that begins in it.
func (r *reader) season(n, y int) Span {
	from := time.Date(y, time.Month(3+3*n), 1, 0, 0, 0, 0, r.now.Location())
	return Span{From: from, To: from.AddDate(0, 3, 0)}
}

// count is the number at i, in digits or words, 0 where there is none.
func (r *reader) count(i int) int {
	w := r.at(i)
	if w.number > 0 && w.number < 1000 && !w.ordinal {
		return w.number
	}
	n, _ := w.as(isNumber)
	return n
}

// counted reads "three days ago", "vor drei Tagen", "les trois derniers jours", "two weeks before
// Christmas", "the week before May 5".
func (r *reader) counted(i int, _ kind) (Span, int) {
	if r.is(i, isAgoPre) {
		j := i + 1
		if slices.Contains([]string{"etwa", "rund", "ungefahr", "circa", "environ", "casi", "como", "genau", "gut", "circa"}, r.at(j).text) {
			j++
		}
		if n := r.count(j); n > 0 {
			if u, ok := r.at(j + 1).as(isUnit); ok {
				return ago(r.now, unit(u), n), j + 2 - i
			}
		}
		return Span{}, 0
	}
	n, j := r.count(i), i+1
	if n == 0 {
		n, j = 1, i
	} else if r.is(j, isNumber) || r.is(j, isOf) { // a few, a couple of
		if m := r.count(j); m > 0 {
			n, j = m, j+1
		}
		if r.is(j, isOf) {
			j++
		}
	}
	if j > i && r.is(j, isLast) {
		if u, ok := r.at(j + 1).as(isUnit); ok {
			return past(r.now, unit(u), n), j + 2 - i
		}
	}
	u, ok := r.at(j).as(isUnit)
	if !ok {
		return Span{}, 0
	}
	switch k := j + 1; {
	case r.is(k, isAgo) && j > i:
		return ago(r.now, unit(u), n), k + 1 - i
	case r.is(k, isAgo) && r.at(j).text[len(r.at(j).text)-1] == 's':
		return ago(r.now, unit(u), 3), k + 1 - i // "weeks ago"
	case (r.is(k, isBefore) || r.is(k, isAfter)) && (j > i || r.is(i-1, isThe)):
		d := k + 1
		for r.is(d, isThe) || r.is(d, isOf) {
			d++
		}
		anchor, size := r.date(d, isBefore)
		if size == 0 {
			return Span{}, 0
		}
		if r.is(k, isAfter) {
			return ago(anchor.From, unit(u), -n), d + size - i
		}
		if j == i { // the week before
			return past(anchor.From, unit(u), 1), d + size - i
		}
		return ago(anchor.From, unit(u), n), d + size - i
	}
	return Span{}, 0
}
