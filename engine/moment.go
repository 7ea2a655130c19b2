package engine

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// The years a message can be from, the second one excluded. They also tell the units of numbers
// apart: no number is a moment between them in two of seconds, milli-, micro- and nanoseconds.
const (
	firstYear = 1985
	lastYear  = 2200
)

// Moment reads the time of a message as hosts and files write it: Unix seconds, milli-, micro- or
// nanoseconds as a number or in a string, told apart by size, RFC 3339 and its usual variants, or a
// date of mail. Text without a zone is UTC. The zero time means that none is told. written says that
// something else than a time stands there; numbers and dates outside of the years 1985 to 2199 (zero,
// negative, "NaN", 9999-12-31) are what programs write for a time they do not know.
func Moment(raw json.RawMessage) (at time.Time, written bool) {
	s := strings.TrimSpace(string(raw))
	if len(s) > 1 && s[0] == '"' {
		if json.Unmarshal([]byte(s), &s) != nil {
			return time.Time{}, true
		}
		s = strings.TrimSpace(s)
	}
	if s == "" || s == "null" {
		return time.Time{}, false
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil || math.IsInf(f, 0) {
		return unixMoment(s, f), false
	}
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return plausible(t), false
		}
	}
	return time.Time{}, true
}

var momentLayouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700",
	"2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, time.RFC1123, time.RFC1123Z,
}

// unixMoment reads a number in the unit in which it is a plausible time.
func unixMoment(s string, f float64) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	whole := err == nil
	for _, unit := range [...]int64{1, 1e3, 1e6, 1e9} { // parts of a second
		if sec := f / float64(unit); !(sec > -1e12 && sec < 1e12) {
			continue
		}
		var t time.Time
		if whole {
			t = time.Unix(n/unit, n%unit*(1e9/unit))
		} else {
			sec, frac := math.Modf(f / float64(unit))
			t = time.Unix(int64(sec), int64(math.Round(frac*1e6))*1000)
		}
		if t = plausible(t); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// plausible is t in UTC, or no time where no message can be from then.
func plausible(t time.Time) time.Time {
	t = t.UTC()
	if t.Year() < firstYear || t.Year() >= lastYear {
		return time.Time{}
	}
	return t
}

// parseTime is Moment where it does not matter why there is none.
func parseTime(raw json.RawMessage) time.Time {
	t, _ := Moment(raw)
	return t
}
