package history

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever a file holds: no panic, every message is accounted for, and what is handed on is valid.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(header + "\n" + msg("a", "", "user", "one") + "\n" + msg("b", "a", "assistant", "two")))
	f.Add([]byte(`{"seq":1,"created_at":1796060365671,"event":{"type":"message","id":"a","parentId":"a","message":{"role":"user"}}}`))
	f.Add([]byte(`{"session":"k","role":"user","content":"x","timestamp":1e300,"toolCalls":[{"arguments":null}]}`))
	f.Add([]byte("\xef\xbb\xbf{\"role\":\"user\",\"content\":\"\\ud800\xff\"}\r\n\x00\n[]\n{"))
	f.Add([]byte(`{"type":"leaf","targetId":"x"}` + "\n" + `{"event_json":"{\"type\":\"reset\"}"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []Format{Auto, OpenClaw, Chat} {
			file, err := Decode("f", append([]byte(nil), data...), Options{Format: format, KeepGoing: true, Now: time.Unix(1.8e9, 0)})
			if err != nil {
				continue
			}
			entries := 0
			for _, s := range file.Sessions {
				if s.Key == "" || s.Agent == "" || len(s.Entries) == 0 {
					t.Fatalf("session %+v", s)
				}
				for _, e := range s.Entries {
					entries++
					if !json.Valid(e.Message) || !utf8.Valid(e.Message) {
						t.Fatalf("message is not valid: %q", e.Message)
					}
					if _, err := time.Parse(time.RFC3339Nano, e.CreatedAt); e.CreatedAt != "" && err != nil {
						t.Fatalf("time %q: %v", e.CreatedAt, err)
					}
					if e.EntryID == "" {
						t.Fatal("entry without an id")
					}
				}
			}
			if entries+file.Skipped != file.Messages {
				t.Fatalf("%d entries and %d skipped of %d messages", entries, file.Skipped, file.Messages)
			}
		}
	})
}
