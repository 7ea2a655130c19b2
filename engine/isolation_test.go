package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hark/embed/embedtest"
	"hark/index"
)

// ISO-08: a thousand better matches of others neither crowd out the own one nor show anywhere: not in
// the result, the trace, the log or an error.
func TestForeignWordsStayHidden(t *testing.T) {
	const canary = "quetzalcoatl"
	var logged strings.Builder
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(locked{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store := openStore(t, t.TempDir())
	e, err := New(store, embedtest.Hashed(32), &Options{Clock: fixedClock, RecallTools: true}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	foreign := []string{
		"agent:main:telegram:direct:77", "agent:main:telegram:group:-100", "agent:helper:main", "agent:main:acp:9",
		"agent:main:subagent:5", "agent:main:matrix:direct:@mallory:evil.example",
	}
	for _, key := range foreign {
		var ms []json.RawMessage
		for i := range 1000 / len(foreign) {
			ms = append(ms, raw(fmt.Sprintf(`{"role":"user","content":"diagnosis diagnosis my diagnosis %s %d","timestamp":%d,"__openclaw":{"senderName":"%s mallory","senderIsOwner":false}}`, canary, i, day+int64(i), canary)))
		}
		if _, err := e.IngestBatch(t.Context(), IngestBatchParams{SessionID: "s-" + key, SessionKey: key, Messages: ms}); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, e, turn(mainKey, "k", user("we spoke of the weather, the garden, the neighbours and in passing of my diagnosis: asthma", day)))
	if err := store.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{mainKey, otherKey, "agent:main:webchat", "agent:main:telegram:direct:2", "agent:main:discord:channel:1", "agent:main:acp:1", "agent:main:cron:1", "nonsense", ""} {
		res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "r-" + key, SessionKey: key, Prompt: "what is my diagnosis?"})
		if err != nil {
			t.Fatal(err)
		}
		all, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all), canary) || strings.Contains(string(all), "mallory") {
			t.Errorf("%q is told of others: %s", key, all)
		}
		own := key == mainKey || key == otherKey || key == "agent:main:webchat"
		if got := strings.Contains(blockOf(t, res), "asthma"); got != own {
			t.Errorf("%q: recalled %v, want %v", key, got, own)
		}
	}
	if strings.Contains(logged.String(), canary) {
		t.Error("the log tells of it")
	}
}

// ISO-01, ISO-04, ISO-05: each policy end to end: who is told what who said.
func TestPoliciesEndToEnd(t *testing.T) {
	ownerDM := "agent:main:signal:direct:+1"
	child, fork := "agent:main:subagent:iso", "agent:main:subagent:fork"
	sessions := []string{mainKey, otherKey, ownerDM, "agent:main:telegram:direct:42", "agent:main:whatsapp:direct:ann", "agent:main:telegram:direct:43",
		"agent:main:telegram:group:-100", "agent:main:telegram:group:-100:topic:7", "agent:main:discord:channel:-100", child, fork, "agent:helper:main", "agent:main:cron:1", "agent:main:acp:1"}
	const owner, ann, group = 1, 2, 3
	party := []int{owner, owner, owner, ann, ann, 4, group, group, 5, 6, 7, 8, 9, 10}
	for _, policy := range []Policy{PolicyOwner, PolicySession, PolicyAgent} {
		t.Run(string(policy), func(t *testing.T) {
			e := open(t, nil, &Options{Policy: policy, Links: map[string][]string{"ann": {"telegram:42", "whatsapp:ann"}}})
			for i, key := range sessions {
				m := raw(fmt.Sprintf(`{"role":"user","content":"the parcel of word%dz is here","timestamp":%d,"__openclaw":{"senderIsOwner":%v}}`, i, day+int64(i), key == ownerDM))
				commit(t, e, turn(key, fmt.Sprint("k", i), m))
			}
			for key, mode := range map[string]string{child: Isolated, fork: Fork} {
				if _, err := e.PrepareSubagentSpawn(t.Context(), SpawnParams{ParentSessionKey: strings.ToUpper(mainKey), ChildSessionKey: key, ContextMode: mode}); err != nil {
					t.Fatal(err)
				}
			}
			for r, reader := range sessions {
				for w := range sessions {
					block, _ := question(t, e, reader, fmt.Sprintf("where is the parcel of word%dz?", w))
					mute := reader == child || reader == "agent:main:cron:1"
					as := r
					if reader == fork {
						as = 0 // what its parent may see
					}
					want := false
					switch {
					case mute || sessions[w] == "agent:main:cron:1":
					case policy == PolicySession:
						want = as == w
					case policy == PolicyAgent && reader != "agent:helper:main" && reader != "agent:main:acp:1":
						want = true
					default:
						want = party[as] == party[w]
					}
					if got := strings.Contains(block, fmt.Sprintf("word%dz is", w)); got != want {
						t.Errorf("%s is told what was said in %s: %v, want %v", reader, sessions[w], got, want)
					}
				}
			}
		})
	}
}

// What a subagent is told is its task and nobody's statement; what a person says to it is.
func TestTasksAreTagged(t *testing.T) {
	e := open(t, nil, nil)
	child := "agent:main:subagent:1"
	commit(t, e, turn(child, "k1", user("burn the violet folder", day)))
	commit(t, e, turn(child, "k2", raw(fmt.Sprintf(`{"role":"user","content":"keep the violet folder","timestamp":%d,"__openclaw":{"senderIsOwner":true}}`, day+9))))
	ms := rows(t, e, child)
	if len(ms) != 2 || ms[0].Kind != index.Noise || ms[0].Role != "system" || ms[1].Kind != index.Said || ms[1].Role != "user" {
		t.Errorf("%+v", ms)
	}
}

// DUP-05, DUP-08: a store, or a host's transcript, from a backup: what is missing comes back once, and
// what was said in between is kept.
func TestRestoredBackup(t *testing.T) {
	dir, backup := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "backup")
	e, done := openAt(t, dir, nil, nil)
	texts := []string{"apples", "berries", "cherries", "dates", "eggs"}
	bootstrap(t, e, true, entries("", 0, texts[:2]...))
	done()
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	e, done = openAt(t, dir, nil, nil)
	bootstrap(t, e, true, entries("eb", 2, texts[2:4]...))
	// The host's transcript is an older one, read whole, then goes on.
	bootstrap(t, e, false, entries("", 0, texts[:3]...))
	if got := memory(t, e); got != "abcd" {
		t.Errorf("memory %q", got)
	}
	done()
	// Hark's store is an older one: the host hands over what it lacks, from any place on.
	e, done = openAt(t, backup, nil, nil)
	defer done()
	bootstrap(t, e, true, entries("ec", 3, texts[3:]...))
	bootstrap(t, e, true, entries("", 0, texts...))
	if got := memory(t, e); got != "abcde" || total(t, e) != 5 {
		t.Errorf("memory %q, %d rows", got, total(t, e))
	}
}

// NOISE-03: upkeep leaves the transcript alone.
func TestMaintainChangesNothing(t *testing.T) {
	e := open(t, nil, nil)
	commit(t, e, turn(mainKey, "h", user("Read HEARTBEAT.md if it exists", day), assistant("HEARTBEAT_OK", day+1)))
	res, err := e.Maintain(t.Context(), MaintainParams{SessionKey: mainKey})
	if err != nil || res.Changed || res.RewrittenEntries != 0 || res.BytesFreed != 0 || total(t, e) != 2 {
		t.Errorf("%+v %v", res, err)
	}
}
