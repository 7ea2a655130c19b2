package memorybridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSectionsDecode(t *testing.T) {
	for in, want := range map[string]string{
		`"## Memory\nlook it up"`: "## Memory\nlook it up", `["## Memory","look it up"]`: "## Memory\nlook it up", `null`: "", `""`: "", `[]`: "",
	} {
		var s Sections
		if err := json.Unmarshal([]byte(in), &s); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if got := Render(s, nil); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	var s Sections
	if err := json.Unmarshal([]byte(`7`), &s); err == nil {
		t.Error("a number was accepted")
	}
}

// Lines, one string and foreign line ends give the same bytes.
func TestRenderIsStable(t *testing.T) {
	want := "## Memory Recall\n\nBefore answering, search.\n\nCitations: on"
	for _, s := range []Sections{
		{"## Memory Recall", "", "Before answering, search.", "", "Citations: on"},
		{"\n\n## Memory Recall  \r\n\r\n\r\n\r\nBefore answering, search.\t\r\n\nCitations: on\n\n"},
		{"## Memory Recall\n", "Before answering, search.\n", "Citations: on"},
	} {
		if got := Render(s, nil); got != want {
			t.Errorf("%q", got)
		}
	}
	for _, s := range []Sections{nil, {}, {""}, {" \n\t", "\r\n"}} {
		if got := Render(s, nil); got != "" {
			t.Errorf("%q from %q", got, s)
		}
	}
}

func TestCitations(t *testing.T) {
	s := Sections{"## Memory", "Search before you answer."}
	for _, tc := range []struct {
		mode  string
		tools []string
		note  bool
	}{
		{"off", nil, true}, {"off", []string{"read", "memory_search"}, true}, {"off", []string{"read"}, false}, {"on", nil, false}, {"", nil, false},
	} {
		got := Render(s, &Options{Citations: tc.mode, Tools: tc.tools})
		if strings.Contains(got, CitationsOff) != tc.note {
			t.Errorf("%s %v: %q", tc.mode, tc.tools, got)
		}
	}
	if got := Render(Sections{"Citations are disabled."}, &Options{Citations: "off"}); strings.Contains(got, CitationsOff) {
		t.Errorf("said twice: %q", got)
	}
}

func TestCap(t *testing.T) {
	var s Sections
	for i := range 500 {
		s = append(s, fmt.Sprintf("line %d of the memory plugin's text", i))
	}
	for _, limit := range []int{1, 20, 100, 1000} {
		got := Render(s, &Options{Tokens: limit})
		if n := (len(got) + 3) / 4; n > limit {
			t.Errorf("cap %d: %d tokens", limit, n)
		}
		if limit >= 100 && (!strings.HasPrefix(got, "line 0 of") || !strings.HasSuffix(got, cutNote)) {
			t.Errorf("cap %d: %q", limit, got)
		}
	}
	if got := Render(s, &Options{Tokens: -1}); !strings.HasSuffix(got, "text") {
		t.Error("a negative cap cuts")
	}
}
