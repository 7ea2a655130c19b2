package memorybridge

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Extra is a configured place whose Markdown files are memory too: a file, or a folder with all that
// is in it. It decodes from a path or from {"path", "pattern"}.
type Extra struct {
	Path    string `json:"path"`              // absolute, or relative to the workspace; "~/" is the home folder
	Pattern string `json:"pattern,omitempty"` // of files in the folder, relative to it: *, ? and ** as in shells; empty: all
}

// UnmarshalJSON decodes a path or an object.
func (e *Extra) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &e.Path) == nil {
		e.Pattern = ""
		return nil
	}
	type plain Extra
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return errors.New(`an extra path is neither a path nor {"path", "pattern"}`)
	}
	return nil
}

// admits reports whether a file of the folder matches the pattern.
func (e Extra) admits(rel string) bool {
	if e.Pattern == "" {
		return true
	}
	return glob(strings.ReplaceAll(e.Pattern, `\`, "/"), rel)
}

// glob matches a path with slashes against a pattern, in which ** stands for any number of folders.
func glob(pattern, path string) bool {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '{' && strings.IndexByte(rest, '}') > 0:
			end := strings.IndexByte(rest, '}')
			alternatives := strings.Split(rest[1:end], ",")
			for k := range alternatives {
				alternatives[k] = regexp.QuoteMeta(alternatives[k])
			}
			b.WriteString("(?:" + strings.Join(alternatives, "|") + ")")
			i += end + 1
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	re, err := regexp.Compile(b.String() + "$")
	return err == nil && re.MatchString(path)
}
