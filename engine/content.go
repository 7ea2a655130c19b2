package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hark/index"
)

// content is what identifies a message without its place in a transcript: who says what in which
// session, and when. From it come four kinds of keys, each numbered from 1, because the same can be said
// again:
//
//	text:<session>/<role>/<ms>/<mark>   the moment; with 0 for ms a message that has no time
//	sec:<session>/<role>/<s>/<mark>     the second, by which copies are found whose time is coarser
//	kin:<session>/<role>/<mark>         any moment, by which copies without a time are found
//
// A number is given to a row when it is stored and stays its own when it is forgotten.
type content struct {
	session, role, mark string
	ms                  int64     // the message's own time, 0 where it has none
	seen                time.Time // not said after this, where its own time is not known; zero where that is not known either
}

func (c content) exact(n int) string { return contentKey(c.session, c.role, c.mark, c.ms, n) }

func (c content) untimed(n int) string { return contentKey(c.session, c.role, c.mark, 0, n) }

func (c content) within(second int64) func(n int) string {
	base := "sec:" + oneLine(c.session) + "/" + c.role + "/" + strconv.FormatInt(second, 10) + "/" + c.mark
	return func(n int) string { return numbered(base, n) }
}

func (c content) kin(n int) string {
	return numbered("kin:"+oneLine(c.session)+"/"+c.role+"/"+c.mark, n)
}

func numbered(base string, n int) string {
	if n > 1 {
		return base + "#" + strconv.Itoa(n)
	}
	return base
}

// local reports keys that only mean something in the store that numbered them.
func local(key string) bool { return strings.HasPrefix(key, "sec:") || strings.HasPrefix(key, "kin:") }

// contentOfKey reads a key of a moment; ok is false for other keys.
func contentOfKey(key string) (c content, ok bool) {
	rest, ok := strings.CutPrefix(key, "text:")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return c, false
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	mark, _, _ := strings.Cut(parts[3], "#")
	return content{session: partUnescaper.Replace(parts[0]), role: parts[1], mark: mark, ms: ms}, err == nil
}

// momentsOf lists the times a row is known by, and whether one of its keys is of the mark.
func momentsOf(keys []string, mark string) (moments []int64, marked bool) {
	for _, key := range keys {
		if c, ok := contentOfKey(key); ok && c.mark == mark {
			marked = true
			if c.ms != 0 {
				moments = append(moments, c.ms)
			}
		}
	}
	return moments, marked
}

// finest lists the times a row is known by, without those of its coarser copies where there are others:
// what is said in the minute of such a copy is another message.
func finest(keys []string, mark string) []int64 {
	moments, _ := momentsOf(keys, mark)
	if slices.ContainsFunc(moments, func(ms int64) bool { return ms%1000 != 0 }) {
		moments = slices.DeleteFunc(moments, func(ms int64) bool { return ms%1000 == 0 })
	}
	return moments
}

// clockSlack is how much later than it was stored a message may say that it is.
const clockSlack = time.Second

// buckets lists the seconds in which a copy of the message with a coarser or a finer time can be.
func (c content) buckets() []int64 {
	second, rest := c.ms/1000, c.ms%1000
	out := []int64{second}
	if rest >= 500 {
		out = append(out, second+1) // rounded
	}
	if minute := second - second%60; minute != second && rest != 0 {
		out = append(out, minute)
	}
	if rest != 0 {
		return out
	}
	out = append(out, second-1)
	if second%60 == 0 {
		for s := second + 1; s < second+60; s++ {
			out = append(out, s)
		}
	}
	return out
}

// sameMoment reports that two times of what says the same are one: one of them is a whole second, cut
// off or rounded from the other, or a whole minute, cut off from one that has milliseconds.
func sameMoment(a, b int64) bool {
	return a == b || coarser(a, b) || coarser(b, a)
}

func coarser(coarse, fine int64) bool {
	behind := fine - coarse
	switch {
	case coarse%1000 != 0 || fine%1000 == 0:
		return false
	case coarse%60_000 == 0 && behind >= 0 && behind < 60_000:
		return true
	}
	return behind >= -500 && behind < 1000
}

// isOlder reports that a message is an earlier form of a row that was edited since: it says so itself,
// or, where neither form tells when it was written, the row had that form before.
func isOlder(row *index.Message, v index.Version, text string) bool {
	const slack = 500 * time.Millisecond // between the clocks of what tells of one event
	if row.Version.Mark == v.Mark || row.Version.Mark == "" && row.Text == text {
		return false
	}
	for _, pair := range [][2]time.Time{{v.Edited, row.Version.Edited}, {v.Said, row.Version.Said}} {
		if apart := pair[0].Sub(pair[1]); !pair[0].IsZero() && !pair[1].IsZero() && apart.Abs() > slack {
			return apart < 0
		}
	}
	_, had := momentsOf(row.Keys, v.Mark)
	return had
}
