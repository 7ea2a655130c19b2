package history

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// stamp is a time as files write it: RFC 3339 text, or Unix seconds, milliseconds, microseconds
// or nanoseconds as a number or in a string. It decodes from any JSON value; what is no time is
// kept as text in bad.
type stamp struct {
	time.Time
	bad string
}

// UnmarshalJSON never fails.
func (s *stamp) UnmarshalJSON(data []byte) error {
	*s = stamp{}
	text := string(data)
	if text == "null" || text == `""` {
		return nil
	}
	if text[0] == '"' {
		if json.Unmarshal(data, &text) != nil {
			text = ""
		}
		text = strings.TrimSpace(text)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil && plausible(t) {
				s.Time = t.UTC()
				return nil
			}
		}
	}
	if t, ok := unix(text); ok {
		s.Time = t
		return nil
	}
	s.bad = clip(text)
	return nil
}

// unix reads a number of seconds since 1970, or of a thousandth, millionth or billionth of one,
// told apart by size: from the year 1973 on the four do not overlap before the year 5138.
func unix(text string) (time.Time, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f <= 0 {
		return time.Time{}, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case n < 1e11:
			return time.Unix(n, 0).UTC(), true
		case n < 1e14:
			return time.UnixMilli(n).UTC(), true
		case n < 1e17:
			return time.UnixMicro(n).UTC(), true
		}
		return time.Unix(0, n).UTC(), true
	}
	if f >= 1e11 {
		f /= 1000
	}
	if f >= 1e11 {
		return time.Time{}, false
	}
	sec, frac := math.Modf(f)
	return time.Unix(int64(sec), int64(math.Round(frac*1e6))*1000).UTC(), true
}

// plausible says whether a time can be stored and written as RFC 3339.
func plausible(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 && t.Unix() != 0 }

// text writes the time for an entry, "" where there is none.
func (s stamp) text() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(time.RFC3339Nano)
}
