package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes tells what was done to a file, in a fixed order.
func (c counts) notes() []string {
	var out []string
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %s", n, many))
		}
	}
	say(c.repaired, "line has bytes that are not UTF-8; they were replaced by U+FFFD",
		"lines have bytes that are not UTF-8; they were replaced by U+FFFD")
	say(c.undated, "message has no time; the time of the import is used", "messages have no time; the time of the import is used")
	say(c.odd, "message has a time that cannot be (before 1985 or after 2199); the time of the import is used",
		"messages have a time that cannot be (before 1985 or after 2199); the time of the import is used")
	say(c.future, "message is dated in the future; check the clock it was written with",
		"messages are dated in the future; check the clock they were written with")
	say(c.branches, "message is on an abandoned branch; skipped", "messages are on abandoned branches; skipped")
	say(c.orphans, "event continues one that is not in the file; it was read as following the line before it",
		"events continue ones that are not in the file; they were read as following the line before them")
	say(c.summaries, "summary left out: what it sums up is imported itself", "summaries left out: what they sum up is imported itself")
	say(c.injected, "message put in by a plugin left out", "messages put in by plugins left out")
	say(c.empty, "message without content skipped", "messages without content skipped")
	if len(c.unknown) > 0 {
		out = append(out, "messages with a role Hark does not know skipped: "+tally(c.unknown))
	}
	if len(c.unknownEvt) > 0 {
		out = append(out, "events of a kind Hark does not know passed over: "+tally(c.unknownEvt))
	}
	return out
}

// tally renders counted names, alphabetically: the names come from files, so they are quoted and cut.
func tally(m map[string]int) string {
	const shown = 5
	names := slices.Sorted(maps.Keys(m))
	parts := make([]string, 0, min(len(names), shown))
	for i, name := range names {
		if i == shown {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%q (%d)", clip(name), m[name]))
	}
	return strings.Join(parts, ", ")
}

// clip shortens a name from a file for a message to a person.
func clip(s string) string {
	const limit = 40
	r := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	if len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return string(r)
}

func count(m *map[string]int, name string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[name]++
}
