// Package when finds the times that a question speaks of, "yesterday", "vor drei Tagen",
// "el martes pasado", "上周", "2026-03-07", and says which days they are.
//
// It is for preferring what was said near those days, so a time that is not seen costs
// little and one that is none costs more: a number alone, "may", "second", "the sun", a version
// or a port is never a date. English, German, Spanish, French, Italian, Portuguese, Dutch,
// Russian, Chinese, Japanese and Korean are read, mixed as they come.
//
// It has no clock: everything is relative to the moment it is given, in that moment's zone. A
// question to a memory looks back, so a day without a direction ("on Tuesday", "in March") is the
// last one that began.
package when

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"
)

// Span is a time that a text speaks of, with the place where it does. From is in it, To is not.
type Span struct {
	From, To   time.Time
	Start, End int // bytes of the text
	// Named says that the words name the time as the calendar does, "in March", "5 May 2023", and do
	// not count from today.
	Named bool
}

// maxText bounds what is read, in bytes; a question is shorter.
const maxText = 2000

// Find returns the times that text speaks of, in the order of the text; nil where it speaks of
// none. now is when the text was said, in the zone of who said it.
func Find(text string, now time.Time) []Span {
	if len(text) > maxText {
		n := maxText
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	out := numeric(text, now)
	for i := range out {
		out[i].Named = true
	}
	out = append(out, eastern(text, now)...)
	r := reader{now: now, words: split(text)}
	r.guess()
	for i := 0; i < len(r.words); {
		s, n := r.read(i)
		if n == 0 {
			i++
			continue
		}
		s.Start, s.End = r.words[i].start, r.words[i+n-1].end
		out = append(out, s)
		i += n
	}
	slices.SortStableFunc(out, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	kept := out[:0]
	for _, s := range out {
		last := len(kept) - 1
		if last >= 0 && s.Start < kept[last].End && (s.Start != kept[last].Start || s.End != kept[last].End) {
			continue // inside a longer one
		}
		kept = append(kept, s)
	}
	return kept
}

// Near says how near a moment is to the times, 1 inside one of them, 0 far from all. What
// happened is told afterwards: nearness falls to a half over the length of the time, at least a
// day and a half, after it, and over half of that before it.
func Near(spans []Span, at time.Time) float64 {
	best := 0.0
	for _, s := range spans {
		reach := max(s.To.Sub(s.From), 36*time.Hour)
		var off float64 // in halvings
		switch {
		case at.Before(s.From):
			off = 2 * float64(s.From.Sub(at)) / float64(reach)
		case !at.Before(s.To):
			off = float64(at.Sub(s.To)) / float64(reach)
		default:
			return 1
		}
		if off < 5 {
			best = max(best, 1/float64(int64(1)<<int(off))*(1-(off-float64(int(off)))/2))
		}
	}
	return best
}

// A span without a place, by calendar.

func dayOf(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

func days(t time.Time, n, count int) Span {
	from := dayOf(t).AddDate(0, 0, n)
	return Span{From: from, To: from.AddDate(0, 0, count)}
}

func (u unit) around(t time.Time, n int) Span {
	switch day := dayOf(t); u {
	case hour:
		from := t.Truncate(time.Hour).Add(time.Duration(n) * time.Hour)
		return Span{From: from, To: from.Add(time.Hour)}
	case day1:
		return days(t, n, 1)
	case week:
		return days(t, 7*n-int(day.Weekday()+6)%7, 7)
	case weekend:
		return days(t, 7*n+5-int(day.Weekday()+6)%7, 2)
	case month:
		from := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, t.Location())
		return Span{From: from, To: from.AddDate(0, 1, 0)}
	case quarter:
		from := time.Date(t.Year(), (t.Month()-1)/3*3+1+time.Month(3*n), 1, 0, 0, 0, 0, t.Location())
		return Span{From: from, To: from.AddDate(0, 3, 0)}
	}
	return years(t, t.Year()+n)
}

func years(t time.Time, y int) Span {
	from := time.Date(y, 1, 1, 0, 0, 0, 0, t.Location())
	return Span{From: from, To: from.AddDate(1, 0, 0)}
}

func monthOf(t time.Time, y int, m time.Month) Span {
	from := time.Date(y, m, 1, 0, 0, 0, 0, t.Location())
	return Span{From: from, To: from.AddDate(0, 1, 0)}
}

// date is a day of the calendar, ok where there is such a day.
func date(t time.Time, y int, m time.Month, d int) (Span, bool) {
	from := time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	if from.Month() != m || from.Day() != d || m < 1 || m > 12 {
		return Span{}, false
	}
	return Span{From: from, To: from.AddDate(0, 0, 1)}, true
}

// ago is the time so many units back: as fine as people say it, a day, a week, a month.
func ago(t time.Time, u unit, n int) Span {
	day := dayOf(t)
	switch u {
	case hour:
		at := t.Add(-time.Duration(n) * time.Hour)
		return Span{From: at.Add(-time.Hour), To: at.Add(time.Hour)}
	case day1:
		return days(t, -n, 1)
	case week, weekend:
		return days(t, -7*n-2, 5)
	case month, quarter:
		if u == quarter {
			n *= 3
		}
		at := day.AddDate(0, -n, 0)
		return days(at, -10, 21)
	}
	return days(day.AddDate(-n, 0, 0), -120, 241)
}

// past is the time from so many units back until now.
func past(t time.Time, u unit, n int) Span {
	day := dayOf(t)
	switch u {
	case hour:
		return Span{From: t.Add(-time.Duration(n) * time.Hour), To: t}
	case day1:
		return Span{From: day.AddDate(0, 0, -n), To: t}
	case week, weekend:
		return Span{From: day.AddDate(0, 0, -7*n), To: t}
	case month:
		return Span{From: day.AddDate(0, -n, 0), To: t}
	case quarter:
		return Span{From: day.AddDate(0, -3*n, 0), To: t}
	}
	return Span{From: day.AddDate(-n, 0, 0), To: t}
}
