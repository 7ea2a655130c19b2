package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden assembles stories a reader would tell and compares what the model would see. The nonce
// of the store's fence is replaced by "nonce".
func TestGolden(t *testing.T) {
	e := open(t, nil, &Options{Location: time.FixedZone("CET", 3600)})
	at := time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC).UnixMilli()
	say := func(key, who, text string) json.RawMessage {
		at += 60_000
		return raw(fmt.Sprintf(`{"role":"user","content":%s,"timestamp":%d,"__openclaw":{"senderIsOwner":%v,"senderName":%q}}`,
			encodeText(text), at, strings.HasSuffix(key, "direct:1"), who))
	}
	n := 0
	tell := func(key string, ms ...json.RawMessage) {
		n++
		commit(t, e, turn(key, fmt.Sprint("t", n), ms...))
	}
	telegram, group := "agent:main:telegram:direct:1", "agent:main:telegram:group:-100"
	tell(mainKey, say(mainKey, "", "The ssh port of the attic server is 22."), assistant("Noted: the attic server, ssh on port 22.", at+1000))
	at += 90 * 24 * 3600_000
	tell(telegram, say(telegram, "Mara", "[Telegram Mara id:1 +2h 2026-04-12 10:02] I moved ssh on the attic server, it listens on port 49222 now"), assistant("Then I will use 49222 from now on.", at+1000))
	tell(group, say(group, "Bob", "the attic server of the club has ssh port 8022"))
	for i := range 30 {
		tell("agent:main:explicit:shop", say("", "", fmt.Sprintf("Shopping on day %d: bread, milk and %d eggs.", i, i)))
	}
	for name, p := range map[string]AssembleParams{
		"moved port": {SessionKey: "agent:main:explicit:new", Prompt: "Which ssh port has the attic server?"},
		"thanks":     {SessionKey: "agent:main:explicit:new", Prompt: "thanks!"},
		"in a group": {SessionKey: group + ":topic:7", Prompt: "Which ssh port has the attic server?"},
		"with memory": {
			SessionKey: "agent:main:explicit:new", Prompt: "ok", MemoryPrompt: []string{"## Memory Recall", "", "Search before you answer."},
			Messages: []json.RawMessage{raw(`{"role":"user","content":"hi","timestamp":1796000000000}`), raw(`{"role":"assistant","content":[{"type":"text","text":"hello"}],"stopReason":"stop"}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.SessionID, p.TokenBudget = "id-"+p.SessionKey, 8000
			res, err := e.Assemble(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, m := range res.Messages {
				var v struct {
					Role    string
					Content any
				}
				if err := json.Unmarshal(m, &v); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "-- %s --\n%v\n", v.Role, v.Content)
			}
			fmt.Fprintf(&b, "-- system prompt addition --\n%s\n", res.SystemPromptAddition)
			fmt.Fprintf(&b, "-- result --\nkept %v, authority %s\nwindow: %s\nrecall: %s\n", res.Kept, res.PromptAuthority, res.Trace.Window.Reason, res.Trace.Recall.Reason)
			for _, it := range res.Trace.Recall.Items {
				fmt.Fprintf(&b, "item: %s %s %s\n", it.Role, it.Sender, it.Session)
			}
			got := strings.ReplaceAll(b.String(), e.fence, "nonce")
			file := filepath.Join("testdata", "golden", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +got; -update rewrites)\n%s", diff)
			}
		})
	}
}
