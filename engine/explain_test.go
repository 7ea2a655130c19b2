package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hark/embed"
)

// OBS-03: for every message there is an answer to why it was recalled or not, it is the true one, it
// tells nothing of what the session may not see, and asking changes nothing.
func TestExplain(t *testing.T) {
	emb, err := embed.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, emb, nil)
	var printers []json.RawMessage
	for i := range 300 {
		printers = append(printers, user(fmt.Sprintf("the printer on floor %d is out of paper, somebody must fill it", i), day+int64(i)))
	}
	commit(t, e, turn(otherKey, "printers", printers...))
	const always = "as it has been since the day on which we set it up with Tomás in the kitchen of the old flat by the river"
	commit(t, e, turn(otherKey, "old", user("the ssh port of the attic server is 22, "+always, day+1000)))
	commit(t, e, turn(otherKey, "copy", user("The ssh port of the attic server is 22, "+always+"!", day+1500)))
	commit(t, e, turn(otherKey, "new", user("ssh on the attic server moved to port 49222 now", day+2000)))
	commit(t, e, turn(otherKey, "long", user("the ssh port of the attic server "+strings.Repeat("and of the cellar server and of the garden server ", 9)+"is open", day+2500)))
	commit(t, e, turn("agent:main:telegram:group:-7", "foreign", user("my secret ssh port of the attic server is 31337", day+3000)))
	commit(t, e, turn(otherKey, "weak", user("somebody left a lamp on in the attic again, and the window of the bathroom was open all night too", day+3500)))
	hb := turn(otherKey, "beat", user("heartbeat: the ssh port of the attic server", day+4000), assistant("HEARTBEAT_OK", day+4001))
	hb.IsHeartbeat = true
	commit(t, e, hb)
	id := func(text string) string {
		t.Helper()
		for _, key := range []string{otherKey, "agent:main:telegram:group:-7"} {
			for _, m := range rows(t, e, key) {
				if strings.Contains(m.Text, text) {
					return m.ID
				}
			}
		}
		t.Fatalf("no row with %q", text)
		return ""
	}
	window := []json.RawMessage{user("ssh on the attic server moved to port 49222 now", day+2000), assistant("Done.", day+2001)}
	owner := true
	for _, c := range []struct {
		prompt, id string
		budget     Tokens
		history    []json.RawMessage
		fate       Fate
		why        string
	}{
		{"what is the ssh port of the attic server?", id("49222"), 20_000, nil, FateRecalled, "ssh"},
		{"what is the ssh port of the attic server?", id("river!"), 20_000, nil, FateNearCopy, "better match"},
		{"what is the ssh port of the attic server?", "feedfacefeed", 20_000, nil, FateNotStored, "id"},
		{"what is the ssh port of the attic server?", id("31337"), 20_000, nil, FateNotInScope, "may not see"},
		{"what is the ssh port of the attic server?", id("heartbeat"), 20_000, nil, FateNotForRecall, "heartbeat"},
		{"thanks!", id("49222"), 20_000, nil, FateNotAsked, "acknowledgement"},
		{"what is the ssh port of the attic server?", id("49222"), 20_000, window, FateOnScreen, "shows it already"},
		{"what is the ssh port of the attic server?", id("lamp"), 20_000, nil, FateGated, "far below"},
		{"what is the ssh port of the attic server?", id("cellar"), 800, nil, FateOverBudget, "no room"},
		{"what is the ssh port of the attic server?", id("server is 22"), 760, nil, FateSuperseded, id("49222")},
		{"who fills the printer?", id("49222"), 20_000, nil, FateNotRetrieved, "holds no word"},
		{"who fills the printer?", id("floor 88 "), 20_000, nil, FateOutRanked, "rank"},
		{"can a printer be a thing?", id("floor 0 "), 20_000, nil, FateGated, "likely"},
	} {
		p := AssembleParams{SessionKey: mainKey, Messages: c.history, Prompt: c.prompt, TokenBudget: c.budget, SenderIsOwner: &owner}
		before, err := e.Assemble(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.Explain(t.Context(), p, c.id)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := e.Assemble(t.Context(), p)
		if blockOf(t, before) != blockOf(t, after) {
			t.Errorf("%s: asking changed the block", c.prompt)
		}
		var shown []string
		for _, it := range before.Trace.Recall.Items {
			shown = append(shown, it.ID)
		}
		if got := ids(x.Shown); strings.Join(got, " ") != strings.Join(shown, " ") {
			t.Errorf("%s: explained %v, recalled %v", c.prompt, got, shown)
		}
		if len(x.Asked) != 1 || x.Asked[0].Fate != c.fate || !strings.Contains(x.Asked[0].Why, c.why) {
			t.Errorf("%s, %s: %+v, want %s for %q", c.prompt, c.id, x.Asked, c.fate, c.why)
		}
		if all, _ := json.Marshal(x); strings.Contains(string(all), "31337") || strings.Contains(string(all), "group:-7") || strings.Contains(string(all), "22") && strings.Contains(string(all), "attic server is 22") {
			t.Errorf("%s: text or a foreign session in %s", c.prompt, all)
		}
	}
}

func ids(list []Explained) (out []string) {
	for _, x := range list {
		out = append(out, x.ID)
	}
	return out
}
