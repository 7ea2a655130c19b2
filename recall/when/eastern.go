package when

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// eastern1 reports characters of the scripts that eastern reads.
func eastern1(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// form is an expression of a language without spaces, and what it means. m are its groups.
type form struct {
	expr *regexp.Regexp
	read func(now time.Time, m []string) (Span, bool)
}

const numeral = `([0-9]{1,3}|[一二两三四五六七八九十几]{1,3})`

var easternForms = []form{
	{regexp.MustCompile(`([0-9]{4})年(?:\s?([0-9]{1,2}|[一二三四五六七八九十]{1,2})月(?:份)?(?:\s?` + numeral + `[日号])?)?`), func(now time.Time, m []string) (Span, bool) {
		y, _ := strconv.Atoi(m[1])
		return ymd(now, y, m[2], m[3])
	}},
	{regexp.MustCompile(`(前年|一昨年|去年|昨年|今年|明年|来年)(?:の|的)?(?:\s?([0-9]{1,2}|[一二三四五六七八九十]{1,2})月(?:份)?(?:\s?` + numeral + `[日号])?)?`), func(now time.Time, m []string) (Span, bool) {
		back := map[string]int{"前年": -2, "一昨年": -2, "去年": -1, "昨年": -1, "明年": 1, "来年": 1}[m[1]]
		return ymd(now, now.Year()+back, m[2], m[3])
	}},
	{regexp.MustCompile(numeral + `\s?(天|日|小时|個月|个月|ヶ月|か月|カ月|週間|周|个星期|个礼拜|星期|年)(?:以|之)?前`), func(now time.Time, m []string) (Span, bool) {
		return ago(now, easternUnit(m[2]), easternNumber(m[1])), true
	}},
	{regexp.MustCompile(`(?:最近|过去|這|近)(?:的)?` + numeral + `\s?(天|小时|个月|周|个星期|年)`), func(now time.Time, m []string) (Span, bool) {
		return past(now, easternUnit(m[2]), easternNumber(m[1])), true
	}},
	{regexp.MustCompile(`(上上|上|这|這|本|下)(?:个|個)?(周末|星期|礼拜|周|週|月|季度)([一二三四五六日天])?`), func(now time.Time, m []string) (Span, bool) {
		n := map[string]int{"上上": -2, "上": -1, "下": 1}[m[1]]
		switch m[2] {
		case "周末":
			return weekend.around(now, n), true
		case "月":
			if m[3] != "" && m[3] != "日" {
				return Span{}, false
			}
			return month.around(now, n), true
		case "季度":
			return quarter.around(now, n), true
		}
		s := week.around(now, n)
		if m[3] != "" {
			s = days(s.From, (easternWeekday(m[3])+6)%7, 1)
		}
		return s, true
	}},
	{regexp.MustCompile(`(先々週|先週|今週|来週|先々月|先月|今月)(?:の([月火水木金土日])曜)?`), func(now time.Time, m []string) (Span, bool) {
		u := week
		if strings.Contains(m[1], "月") {
			u = month
		}
		n := -1
		switch {
		case strings.HasPrefix(m[1], "先々"):
			n = -2
		case strings.HasPrefix(m[1], "今"):
			n = 0
		case strings.HasPrefix(m[1], "来"):
			n = 1
		}
		s := u.around(now, n)
		if m[2] != "" {
			s = days(s.From, (easternWeekday(m[2])+6)%7, 1)
		}
		return s, true
	}},
	{regexp.MustCompile(`大前天|前天|一昨日|昨天|昨日|昨晚|昨夜|今天|今日|今晚|今早|明天|明日|后天`), func(now time.Time, m []string) (Span, bool) {
		n := map[string]int{"大前天": -3, "前天": -2, "一昨日": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1, "明天": 1, "明日": 1, "后天": 2}[m[0]]
		return days(now, n, 1), true
	}},
	{regexp.MustCompile(`([0-9]{1,2}|[一二三四五六七八九十]{1,2})月(?:份)?(?:\s?` + numeral + `[日号])?`), func(now time.Time, m []string) (Span, bool) {
		s, ok := ymd(now, now.Year(), m[1], m[2])
		if ok && s.From.After(now) {
			return ymd(now, now.Year()-1, m[1], m[2])
		}
		return s, ok
	}},
	{regexp.MustCompile(`([0-9]{1,2})号`), func(now time.Time, m []string) (Span, bool) {
		for back := range 2 {
			at := time.Date(now.Year(), now.Month()-time.Month(back), 1, 0, 0, 0, 0, now.Location())
			if s, ok := date(now, at.Year(), at.Month(), easternNumber(m[1])); ok && !s.From.After(now) {
				return s, true
			}
		}
		return Span{}, false
	}},
	{regexp.MustCompile(`(?:周|星期|礼拜)([一二三四五六日天])|([月火水木金土日])曜日?`), func(now time.Time, m []string) (Span, bool) {
		r := reader{now: now}
		return r.weekdayIn(easternWeekday(m[1]+m[2]), -1), true
	}},
	{regexp.MustCompile(`圣诞节?|元旦|国庆节?|春节|クリスマス|正月|크리스마스|설날`), func(now time.Time, m []string) (Span, bool) {
		r := reader{now: now}
		switch m[0] {
		case "元旦", "正月":
			return r.feastIn(newYear, -1), true
		case "国庆", "国庆节":
			return r.feastIn(nationalDay, -1), true
		case "春节", "설날":
			return r.feastIn(springFestival, -1), true
		}
		return r.feastIn(christmas, -1), true
	}},
	{regexp.MustCompile(`그저께|그제|어제|오늘|내일|지난\s?주말?|이번\s?주말?|지난\s?달|이번\s?달|작년|재작년|올해`), func(now time.Time, m []string) (Span, bool) {
		switch w := strings.ReplaceAll(m[0], " ", ""); w {
		case "지난주":
			return week.around(now, -1), true
		case "이번주":
			return week.around(now, 0), true
		case "지난주말", "이번주말":
			return weekend.around(now, map[string]int{"지난주말": -1}[w]), true
		case "지난달", "이번달":
			return month.around(now, map[string]int{"지난달": -1}[w]), true
		case "작년", "재작년", "올해":
			return year.around(now, map[string]int{"작년": -1, "재작년": -2}[w]), true
		default:
			return days(now, map[string]int{"그저께": -2, "그제": -2, "어제": -1, "내일": 1}[w], 1), true
		}
	}},
	{regexp.MustCompile(`([0-9]{1,3})\s?(일|주|달|개월|년|시간)\s?전`), func(now time.Time, m []string) (Span, bool) {
		return ago(now, easternUnit(m[2]), easternNumber(m[1])), true
	}},
	{regexp.MustCompile(`([0-9]{1,2})월(?:\s?([0-9]{1,2})일)?`), func(now time.Time, m []string) (Span, bool) {
		s, ok := ymd(now, now.Year(), m[1], m[2])
		if ok && s.From.After(now) {
			return ymd(now, now.Year()-1, m[1], m[2])
		}
		return s, ok
	}},
}

// eastern reads the times of texts in Chinese, Japanese and Korean.
func eastern(text string, now time.Time) []Span {
	if !strings.ContainsFunc(text, eastern1) {
		return nil
	}
	var out []Span
	taken := make([]bool, len(text))
	for k := range easternForms {
		f := &easternForms[k]
		for _, loc := range f.expr.FindAllStringSubmatchIndex(text, -1) {
			if taken[loc[0]] || misread(text, loc[0], loc[1]) {
				continue
			}
			m := make([]string, len(loc)/2)
			for g := range m {
				if loc[2*g] >= 0 {
					m[g] = text[loc[2*g]:loc[2*g+1]]
				}
			}
			s, ok := f.read(now, m)
			if !ok {
				continue
			}
			s.Start, s.End = loc[0], loc[1]
			s.Named = unicode.IsDigit(rune(text[loc[0]])) && !strings.ContainsAny(m[0], "前전")
			for i := loc[0]; i < loc[1]; i++ {
				taken[i] = true
			}
			out = append(out, easternLed(s, text, now))
		}
	}
	return out
}

// easternLed applies what stands behind a time: before, after, since.
func easternLed(s Span, text string, now time.Time) Span {
	r := reader{now: now}
	for w, lead := range map[string]kind{"之前": isBefore, "以前": isBefore, "之后": isAfter, "以后": isAfter, "以来": isSince, "之后的": isAfter} {
		if strings.HasPrefix(text[s.End:], w) {
			start, end := s.Start, s.End
			s = r.led(s, lead)
			s.Start, s.End = start, end+len(w)
			break
		}
	}
	return s
}

// misread reports what only looks like a time: 每周一, 一周一次, 5号楼, a number that goes on.
func misread(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	first, _ := utf8.DecodeRuneInString(text[from:])
	last, _ := utf8.DecodeLastRuneInString(text[:to])
	switch {
	case from > 0 && strings.ContainsRune("每毎", before):
		return true
	case from > 0 && unicode.IsDigit(first) && (unicode.IsDigit(before) || strings.ContainsRune(".-/:", before) || before < 0x80 && unicode.IsLetter(before)):
		return true
	case from > 0 && first == '周' && strings.ContainsRune("一二三四五六七八九十两几每上下", before):
		return true
	case last == '号' && from > 0 && unicode.Is(unicode.Han, before) && !strings.ContainsRune("在于到至从的是了等和月", before):
		return true // 阿波罗1号
	case last == '号' && strings.ContainsRune("楼线門门店机院房桌位台码库车", after):
		return true
	case last == '月' && strings.ContainsRune("亮球光饼", after):
		return true
	}
	return false
}

func ymd(now time.Time, y int, m, d string) (Span, bool) {
	switch {
	case !plausible(y, now):
		return Span{}, false
	case m == "":
		return years(now, y), true
	case easternNumber(m) < 1 || easternNumber(m) > 12:
		return Span{}, false
	case d == "":
		return monthOf(now, y, time.Month(easternNumber(m))), true
	}
	return date(now, y, time.Month(easternNumber(m)), easternNumber(d))
}

func easternUnit(s string) unit {
	switch s {
	case "小时", "시간":
		return hour
	case "周", "週間", "个星期", "个礼拜", "星期", "주":
		return week
	case "个月", "個月", "ヶ月", "か月", "カ月", "달", "개월":
		return month
	case "年", "년":
		return year
	}
	return day1
}

// easternWeekday counts from Sunday; the Japanese names are the elements.
func easternWeekday(s string) int {
	return strings.Index("日一二三四五六天月火水木金土", s) / len("日") % 7
}

// easternNumber reads digits and numerals below a hundred; 几 is some.
func easternNumber(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	n := 0
	for _, r := range s {
		switch k := strings.IndexRune("〇一二三四五六七八九", r); {
		case r == '十':
			n = max(n, 1) * 10
		case r == '两':
			n += 2
		case r == '几':
			n += 3
		case k >= 0:
			n += k / len("一")
		}
	}
	return n
}
