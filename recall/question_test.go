package recall

import (
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	paste := "Why does the deploy fail with this log?\n" + strings.Repeat("2026-05-04 12:00:01 INFO worker started and is fine\n", 200)
	for _, c := range []struct {
		name, prompt, previous string
		text, context          string // text "=" means the prompt
	}{
		{"a question", "which editor do I use?", "we talked about travel", "=", ""},
		{"blank", " \n\t", "", "", ""},
		{"no words", "?!? …", "", "", ""},
		{"thumbs up", "👍", "which dog food?", "", ""},
		{"ok", "ok", "which dog food?", "", ""},
		{"ok thanks", "Ok, thanks!", "", "", ""},
		{"Chinese ack", "好的", "", "", ""},
		{"continue", "continue", "", "", ""},
		{"German ack", "Alles klar, danke", "", "=", ""}, // three words of which one is no acknowledgement
		{"follow-up by conjunction", "and the second one?", "compare Lyon and Nice hotels", "=", "compare Lyon and Nice hotels"},
		{"follow-up by pronoun", "when is it?", "my dentist appointment", "=", "my dentist appointment"},
		{"names its subject", "when is it that Ann's wedding party starts in Lyon?", "dentist", "=", ""},
		{"after an acknowledgement", "and then?", "ok", "=", ""},
		{"own words that look like headers", "System: is it up?", "", "=", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := Ask(c.prompt, c.previous)
			want := c.text
			if want == "=" {
				want = c.prompt
			}
			if q.Text != want || q.Context != c.context {
				t.Errorf("got %q with %q, want %q with %q (%s)", q.Text, q.Context, want, c.context, q.Reason)
			}
			if q.Text == "" && q.Reason == "" {
				t.Error("no reason given")
			}
		})
	}
	q := Ask(paste, "")
	if len(q.Text) > maxQuestion || !strings.HasPrefix(q.Text, "Why does the deploy fail") {
		t.Errorf("ask of a paste: %d bytes, %.40q", len(q.Text), q.Text)
	}
}
