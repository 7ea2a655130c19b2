package memorybridge

import (
	"slices"
	"strings"
)

// DefaultTokens caps the text where Options give no cap. The sections of the host's own memory
// plugin take about 200 tokens; a plugin that wants ten times that is restating memory, not saying
// how to look it up.
const DefaultTokens = 2000

// Options are the circumstances of a run; nil and zero fields mean the defaults.
type Options struct {
	Tokens    int              // cap; default DefaultTokens, negative means none
	Count     func(string) int // tokens of a text; nil counts one for four bytes
	Citations string           // the host's citation mode: "auto", "on", "off" or ""
	Tools     []string         // tools available to the model; nil means unknown
}

// CitationsOff is what Render adds when citations are off and the sections do not speak of them.
const CitationsOff = "Do not mention file paths or line numbers of memory files in replies unless the user asks."

// Render makes the text for the system prompt: line ends and trailing blanks are normalised, runs of
// blank lines become one, and what exceeds the cap is left out from the end, whole lines at a time,
// with a note. No sections give "". The same input gives the same bytes.
func Render(s Sections, o *Options) string {
	if o == nil {
		o = &Options{}
	}
	lines := normalise(s)
	if len(lines) == 0 {
		return ""
	}
	text := strings.Join(lines, "\n")
	if o.Citations == "off" && mentionsMemoryTools(o.Tools) && !strings.Contains(strings.ToLower(text), "citation") {
		lines = append(lines, CitationsOff)
	}
	return capped(lines, o)
}

// mentionsMemoryTools reports whether the model can look memory up, and so could cite it.
func mentionsMemoryTools(tools []string) bool {
	return tools == nil || slices.Contains(tools, "memory_search") || slices.Contains(tools, "memory_get")
}

// normalise splits sections into lines that cannot change from host to host.
func normalise(s Sections) []string {
	var lines []string
	for _, section := range s {
		section = strings.ToValidUTF8(section, "\uFFFD")
		section = strings.ReplaceAll(section, "\r\n", "\n")
		section = strings.ReplaceAll(section, "\r", "\n")
		for line := range strings.SplitSeq(section, "\n") {
			line = strings.TrimRight(line, " \t\u00a0")
			line = strings.ReplaceAll(line, "\x00", "")
			if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
				continue
			}
			lines = append(lines, line)
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

const cutNote = "[Hark: the memory section was shortened to its token cap]"

func capped(lines []string, o *Options) string {
	count := o.Count
	if count == nil {
		count = func(s string) int { return (len(s) + 3) / 4 }
	}
	limit := o.Tokens
	if limit == 0 {
		limit = DefaultTokens
	}
	text := strings.Join(lines, "\n")
	if limit < 0 || count(text) <= limit {
		return text
	}
	left := limit - count(cutNote) - 1
	var kept []string
	for _, line := range lines {
		left -= count(line) + 1
		if left < 0 {
			break
		}
		kept = append(kept, line)
	}
	for len(kept) > 0 && kept[len(kept)-1] == "" {
		kept = kept[:len(kept)-1]
	}
	if len(kept) == 0 {
		return ""
	}
	return strings.Join(append(kept, cutNote), "\n")
}
