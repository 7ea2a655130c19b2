package when

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// asked is a Saturday.
var asked = time.Date(2026, 3, 7, 18, 0, 0, 0, time.UTC)

// TestTimes: what people write, and the days they mean, first and last.
func TestTimes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// English
		{"what did we say yesterday about the port?", "2026-03-06"},
		{"and the day before yesterday?", "2026-03-05"},
		{"what was decided last Tuesday's meeting", "2026-03-03"},
		{"Who called on Tuesday?", "2026-03-03"},
		{"what did Ann say this Tuesday", "2026-03-03"},
		{"where did we eat last Saturday", "2026-02-28"},
		{"what did we do last week?", "2026-02-23 2026-03-01"},
		{"the week before last", "2026-02-16 2026-02-22"},
		{"anything this week?", "2026-03-02 2026-03-08"},
		{"plans for last weekend", "2026-02-28 2026-03-01"},
		{"what happened last month", "2026-02-01 2026-02-28"},
		{"what did I buy last year?", "2025-01-01 2025-12-31"},
		{"what did we discuss in March?", "2026-03-01 2026-03-31"},
		{"what happened in May", "2025-05-01 2025-05-31"},
		{"who came last May?", "2025-05-01 2025-05-31"},
		{"the trip in October 2023", "2023-10-01 2023-10-31"},
		{"What did Melanie show on October 13, 2023?", "2023-10-13"},
		{"what was it on 25 February, 2022?", "2022-02-25"},
		{"on 8th December, 2023 he said", "2023-12-08"},
		{"the talk of May 5th", "2025-05-05"},
		{"what did we do on the 5th?", "2026-03-05"},
		{"on the 20th we spoke", "2026-02-20"},
		{"what is in the log of 2026-03-01", "2026-03-01"},
		{"logs from 2026-02 please", "2026-02-01 2026-02-28"},
		{"three days ago you said", "2026-03-04"},
		{"a week ago", "2026-02-26 2026-03-02"},
		{"two weeks before August 11, 2023", "2023-07-26 2023-07-30"},
		{"the week before 16 November 2023", "2023-11-09 2023-11-15"},
		{"a couple of months ago", "2025-12-28 2026-01-17"},
		{"in the last three days", "2026-03-04 2026-03-07"},
		{"over the past few weeks", "2026-02-14 2026-03-07"},
		{"what did we agree before Christmas?", "2025-11-24 2025-12-23"},
		{"since January", "2026-01-01 2026-03-07"},
		{"what came up last night", "2026-03-06"},
		{"what did I ask this morning?", "2026-03-07"},
		{"where were we last summer", "2025-06-01 2025-08-31"},
		{"summer of 2023", "2023-06-01 2023-08-31"},
		{"in 2024 we moved", "2024-01-01 2024-12-31"},
		{"between Monday and Wednesday", "2026-03-02 2026-03-04"},
		{"numbers of Q3 2025", "2025-07-01 2025-09-30"},
		{"at Thanksgiving", "2025-11-27"},
		{"on New Year's Eve", "2025-12-31"},
		{"Easter 2025", "2025-04-18 2025-04-21"},
		{"late January", "2026-01-01 2026-01-31"},
		{"Tuesday of last week", "2026-02-24"},
		{"on 3/4/2026", "2026-04-03 | 2026-03-04"},
		// German
		{"was haben wir letzte Woche besprochen?", "2026-02-23 2026-03-01"},
		{"vor drei Tagen", "2026-03-04"},
		{"Was war gestern Abend?", "2026-03-06"},
		{"vorgestern im Büro", "2026-03-05"},
		{"letzten Dienstag", "2026-03-03"},
		{"am Dienstag", "2026-03-03"},
		{"im März", "2026-03-01 2026-03-31"},
		{"am 5. Mai 2024", "2024-05-05"},
		{"am 05.03.2026", "2026-03-05"},
		{"Was habe ich am 5. gesagt?", "2026-03-05"},
		{"vor Weihnachten", "2025-11-24 2025-12-23"},
		{"im letzten Sommer", "2025-06-01 2025-08-31"},
		{"vor etwa zwei Monaten", "2025-12-28 2026-01-17"},
		{"Dienstag letzter Woche", "2026-02-24"},
		{"seit Januar", "2026-01-01 2026-03-07"},
		{"im Jahr 2024", "2024-01-01 2024-12-31"},
		{"in den letzten drei Wochen", "2026-02-14 2026-03-07"},
		{"vorletzte Woche", "2026-02-16 2026-02-22"},
		// Spanish
		{"¿qué dijimos ayer?", "2026-03-06"},
		{"hace dos meses", "2025-12-28 2026-01-17"},
		{"la semana pasada", "2026-02-23 2026-03-01"},
		{"el martes pasado", "2026-03-03"},
		{"el mes pasado", "2026-02-01 2026-02-28"},
		{"en marzo", "2026-03-01 2026-03-31"},
		{"el 5 de mayo de 2024", "2024-05-05"},
		{"antes de Navidad", "2025-11-24 2025-12-23"},
		{"anoche", "2026-03-06"},
		{"en los últimos tres días", "2026-03-04 2026-03-07"},
		{"el año pasado", "2025-01-01 2025-12-31"},
		{"el verano pasado", "2025-06-01 2025-08-31"},
		// French
		{"qu'est-ce qu'on a dit avant-hier ?", "2026-03-05"},
		{"qu'as-tu dit hier soir ?", "2026-03-06"},
		{"la semaine dernière", "2026-02-23 2026-03-01"},
		{"il y a trois jours", "2026-03-04"},
		{"mardi dernier", "2026-03-03"},
		{"en mars", "2026-03-01 2026-03-31"},
		{"l'été dernier", "2025-06-01 2025-08-31"},
		{"le 5 mai 2024", "2024-05-05"},
		{"avant Noël", "2025-11-24 2025-12-23"},
		{"le mois dernier", "2026-02-01 2026-02-28"},
		{"les trois derniers jours", "2026-03-04 2026-03-07"},
		{"depuis janvier", "2026-01-01 2026-03-07"},
		// Chinese
		{"昨天我们说了什么？", "2026-03-06"},
		{"上周的会议", "2026-02-23 2026-03-01"},
		{"上周二谁来了", "2026-02-24"},
		{"三天前", "2026-03-04"},
		{"两个月前说的", "2025-12-28 2026-01-17"},
		{"上个月", "2026-02-01 2026-02-28"},
		{"去年五月", "2025-05-01 2025-05-31"},
		{"2024年5月3日的活动", "2024-05-03"},
		{"3月5号", "2026-03-05"},
		{"周三的会", "2026-03-04"},
		{"春节", "2026-02-16 2026-02-23"},
		{"最近三天", "2026-03-04 2026-03-07"},
		{"圣诞节之前", "2025-11-24 2025-12-23"},
		// others
		{"la settimana scorsa", "2026-02-23 2026-03-01"},
		{"tre giorni fa", "2026-03-04"},
		{"na semana passada", "2026-02-23 2026-03-01"},
		{"twee weken geleden", "2026-02-19 2026-02-23"},
		{"что мы решили вчера?", "2026-03-06"},
		{"на прошлой неделе", "2026-02-23 2026-03-01"},
		{"три дня назад", "2026-03-04"},
		{"先週の会議", "2026-02-23 2026-03-01"},
		{"3日前", "2026-03-04"},
		{"지난주 회의", "2026-02-23 2026-03-01"},
		{"어제 뭐라고 했지?", "2026-03-06"},
	} {
		if got := told(Find(c.text, asked)); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

// told is a list of spans by their first and last days.
func told(spans []Span) string {
	var out []string
	for _, s := range spans {
		from, to := s.From.Format(time.DateOnly), s.To.Add(-time.Nanosecond).Format(time.DateOnly)
		if from == to {
			to = ""
		}
		out = append(out, strings.TrimSpace(from+" "+to))
	}
	return strings.Join(out, " | ")
}

// TestNoTimes: numbers, names and words that only look like a time.
func TestNoTimes(t *testing.T) {
	for _, text := range []string{
		"may I ask a second question?", "issue 1042", "#1042", "port 22 or 49222", "the sun is shining", "two sat nav devices", "add 3 and 4",
		"version 1.2.3", "room 12.5", "192.168.40.40", "10.0.20.26", "v2026.3.7", "release 2026.03.07.1", "march on, soldier", "the last line of the file",
		"the last 3 commits", "last but not least", "this is the last day of school", "in 3 minutes", "within two weeks", "it takes 5 days",
		"on the 5th floor", "on the 2nd attempt", "every Tuesday", "chapter 5", "May the force be with you", "what is the next step", "the previous owner",
		"before lunch", "after 1042 requests", "in 2000 lines of code", "set it to 2048", "call me at 555-2023-01", "June Carter sang it", "April told me",
		"who is August Wilson", "the second one", "first of all", "the fall of Rome", "in Spring Boot", "one moment please", "a quarter of the users",
		"how old am I?", "my week is full", "the month view of the calendar", "file_2026-03-07_a.log", "backup-2026-03-07",
		"ich bin hier", "Guten Morgen", "was ist hier los?", "jeden Montag", "die letzte Zeile", "Version 5.3.2026.1", "vor der Tür", "nach Hause",
		"la mañana es larga", "cada lunes", "Julio me lo dijo", "mar y tierra", "hace calor", "la última línea",
		"elle a été malade", "mes derniers messages", "la dernière ligne", "il y a un problème", "Mars est une planète",
		"5号楼在哪", "每周一开会", "三个月亮", "一周一次", "第3章", "三天的假期", "周围有什么", "阿波罗1号", "in den 1980er Jahren", "in the 1980s", "年龄", "12号线",
		"TypeError in main.go:2024", "HTTP 404 since when", "sha 20260307", "1/2 cup", "24/7 support", "9/11 lines", "",
	} {
		if got := Find(text, asked); len(got) > 0 {
			t.Errorf("%q: %s in %q", text, told(got), text[got[0].Start:got[0].End])
		}
	}
}

// TestZone: a day is the asker's, not that of UTC.
func TestZone(t *testing.T) {
	east := time.FixedZone("UTC+8", 8*3600)
	got := Find("yesterday", time.Date(2026, 3, 8, 0, 30, 0, 0, east))
	if len(got) != 1 || !got[0].From.Equal(time.Date(2026, 3, 6, 16, 0, 0, 0, time.UTC)) || got[0].To.Sub(got[0].From) != 24*time.Hour {
		t.Errorf("yesterday at half past midnight: %v", got)
	}
}

// TestNear: full inside, falling off outside, sooner before than after.
func TestNear(t *testing.T) {
	spans := Find("last week", asked)
	at := func(d string) float64 {
		day, err := time.Parse(time.DateOnly, d)
		if err != nil {
			t.Fatal(err)
		}
		return Near(spans, day)
	}
	if in, after, before, far := at("2026-02-25"), at("2026-03-04"), at("2026-02-20"), at("2025-02-25"); in != 1 || after <= before || before <= 0 || after >= 1 || far != 0 {
		t.Errorf("inside %v, after %v, before %v, far %v", in, after, before, far)
	}
	if n := Near(nil, asked); n != 0 {
		t.Errorf("near nothing: %v", n)
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"the 5th of", "vor drei", "letzten", "2026-02-30", "上周九", "from Monday to", "Q", "31 February 2024", "il y a", "d'", "十月十"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Find(text, asked) {
			if s.Start < 0 || s.End > len(text) || s.Start >= s.End || !s.From.Before(s.To) {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for _, text := range []string{"what did we decide last Tuesday about the port of the server in the attic?", "上周二我们在会议上决定了什么？", strings.Repeat("a long paste of words, with 12 numbers; ", 40)} {
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			for b.Loop() {
				Find(text, asked)
			}
		})
	}
}
