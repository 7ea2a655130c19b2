package engine

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// table reads the rows of the first table of a document whose heading begins so.
func table(t *testing.T, path, heading string) (rows [][]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "\n| "+heading)
	if !ok {
		t.Fatalf("%s has no table %q", path, heading)
	}
	for i, line := range strings.Split("| "+heading+rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 1 {
			continue // the rule below the heading
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

var codeSpan = regexp.MustCompile("`([^`]*)`")

func codes(cell string) (out []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// ISO-07: what docs/privacy.md says about each form of session key is what the program does.
func TestDocumentedKeys(t *testing.T) {
	fill := strings.NewReplacer("ACCOUNT", "Work:", "CHANNEL", "Telegram", "ID", "i:D-1", ":T", ":7", ":U", ":8")
	concrete := func(key string) string {
		key = strings.ReplaceAll(fill.Replace(key), "Work::", "Work:")
		return strings.ReplaceAll(strings.ReplaceAll(key, "agent:A:", "agent:Main:"), "agent:B:", "agent:helper:")
	}
	s := newScopes("main", PolicyOwner, false, nil)
	want := map[string]string{
		"the owner's":                                   "owner",
		"that person's, or the owner's":                 "peer:telegram:i:d-1",
		"that person's on that account, or the owner's": "account:telegram:work:peer:i:d-1",
		"that group's":                                  "group:telegram:i:d-1",
		"that group's on that account":                  "account:telegram:work:group:i:d-1",
		"its own":                                       "subagent:",
		"nobody's":                                      "automatic",
		"its own session's":                             "session:",
		"nothing of `A`":                                "agent:helper/owner",
		"nothing":                                       "session:id:",
	}
	checked := 0
	for _, row := range table(t, "../docs/privacy.md", "session key |")[1:] {
		keys := codes(row[0])
		switch {
		case row[0] == "none":
			keys = []string{""}
		case strings.Contains(row[0], "also `channel`"):
			for _, word := range keys[1 : len(keys)-1] {
				keys = append(keys, strings.Replace(keys[0], ":group:", ":"+word+":", 1))
			}
			keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.Contains(k, ":") })
		}
		for _, pattern := range keys {
			if pattern == "A" {
				continue
			}
			key := concrete(pattern)
			expect := want[row[2]]
			if pattern == "agent:A:direct:ID" {
				expect = strings.Replace(expect, "telegram", "", 1)
			}
			sc := s.of(key, "s1", false)
			if string(sc.Address.Audience) != row[1] || expect == "" || !strings.HasPrefix(sc.Stored, expect) {
				t.Errorf("%s: %s of %q, and the document says %s of %s", key, sc.Address.Audience, sc.Stored, row[1], row[2])
			}
			if !strings.HasSuffix(expect, ":") && sc.Stored != expect {
				t.Errorf("%s: memory %q, want %q", key, sc.Stored, expect)
			}
			if row[1] == "direct" {
				if owner := s.of(key, "s1", true); owner.Stored != ownerScope {
					t.Errorf("%s: the owner's is kept in %q", key, owner.Stored)
				}
			}
			may, _ := sc.mayRecall()
			mute := row[1] == "subagent" || row[1] == "automatic" || row[0] == "none"
			if may == mute || may && row[2] == "its own session's" && sc.only != canonicalKey(key) || may && strings.HasPrefix(row[2], "nothing") && sc.only == "" {
				t.Errorf("%s: recall allowed %v, restricted to %q", key, may, sc.only)
			}
			checked++
		}
	}
	if checked < 30 {
		t.Errorf("%d keys checked", checked)
	}
}

// The table of who is told what holds for every pair of conversations and policy.
func TestDocumentedPolicies(t *testing.T) {
	type who struct {
		key   string
		owner bool
	}
	said := map[string]who{
		"the owner's sessions":   {"agent:main:telegram:direct:1", true},
		"a person's direct chat": {"agent:main:telegram:direct:2", false},
		"a group":                {"agent:main:telegram:group:3", false},
	}
	asked := map[string]func(string) who{
		"owner's sessions": func(string) who { return who{"agent:main:main", false} },
		"that person's direct chat": func(from string) who {
			if from == "a person's direct chat" {
				return said[from]
			}
			return who{"agent:main:telegram:direct:2", false}
		},
		"another person's chat": func(string) who { return who{"agent:main:telegram:direct:4", false} },
		"the same group":        func(string) who { return who{"agent:main:telegram:group:3:topic:9", false} },
		"another group":         func(string) who { return who{"agent:main:telegram:group:5", false} },
		"another agent":         func(string) who { return who{"agent:helper:main", false} },
	}
	rows := table(t, "../docs/privacy.md", "said in")
	for _, policy := range []Policy{PolicyOwner, PolicySession, PolicyAgent} {
		s := newScopes("main", policy, false, nil)
		for _, row := range rows[1:] {
			from, ok := said[row[0]]
			if !ok {
				t.Fatalf("the document speaks of %q", row[0])
			}
			w := s.of(from.key, "w", from.owner)
			for i, cell := range row[1:] {
				to := asked[rows[0][i+1]](row[0])
				r := s.of(to.key, "r", to.owner)
				f := r.filter(nil)
				sees := (f.AllScopes || slices.Contains(f.Scopes, w.Stored)) && (f.Session == "" || f.Session == w.Session)
				want := cell == "all" || slices.Contains(codes(cell), string(policy))
				if policy == PolicySession && to.key != from.key {
					want = false // a topic is a session of its own
				}
				if sees != want {
					t.Errorf("%s: what is said in %s is told in %s: %v, and the document says %q", policy, from.key, to.key, sees, cell)
				}
			}
		}
	}
}
