package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"hark/embed/embedtest"
)

// recordings are the host's recorded calls, where the machine has them.
func recordings(t *testing.T, name string) []recorded {
	t.Helper()
	shared := os.Getenv("HARK_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(shared, "host", "recordings", name))
	if err != nil {
		t.Skip("no recordings here: ", err)
	}
	defer f.Close()
	var out []recorded
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var r recorded
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

type recorded struct {
	Ev      string
	Seq     int
	Method  string
	Params  json.RawMessage
	Error   json.RawMessage
	Request struct{ SessionKey, SessionID string }
	All     struct{ Entries []HistoryEntry }
}

// params decodes recorded parameters.
func params[T any](t *testing.T, r recorded) T {
	t.Helper()
	var p T
	if err := json.Unmarshal(r.Params, &p); err != nil {
		t.Fatalf("%s %d: %v", r.Method, r.Seq, err)
	}
	return p
}

// Every recorded call of the host is served, and ends with the rows its sessions have.
func TestReplayRecordings(t *testing.T) {
	want := map[string]map[string]int{
		"01-gateway-durable.lifecycle.jsonl": {
			"agent:main:explicit:s1": 10, "agent:main:explicit:s2": 2, "agent:main:explicit:s3": 10, "agent:main:explicit:s4": 7,
			"agent:main:explicit:p1": 2, "agent:main:explicit:p2": 2, "agent:main:subagent:9a3d54ca-8f8f-4eea-b22d-27c962662d03": 4,
		},
		"05b-commitTurn-replayed.lifecycle.jsonl":              {"agent:main:explicit:v2": 4},
		"11-small-window-preflight-compaction.lifecycle.jsonl": nil,
		"02-agent-local.lifecycle.jsonl":                       nil,
		"08d-ownsCompaction-toolloop-bgmaint.lifecycle.jsonl":  nil,
		"04-throw-assemble.lifecycle.jsonl":                    nil,
		"08a-injected-head-message.lifecycle.jsonl":            nil,
		"07-throw-compact-quarantine.lifecycle.jsonl":          nil,
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			e := open(t, embedtest.Hashed(32), &Options{Runtime: compacting{}})
			calls := recordings(t, name)
			for range 2 { // the second time changes nothing
				for _, r := range calls {
					replay(t, e, r)
				}
			}
			for session, n := range want[name] {
				if got := rows(t, e, session); len(got) != n {
					t.Errorf("%s: %d rows, want %d", session, len(got), n)
					for _, m := range got {
						t.Logf("  %s %s %.60q %v", m.Role, m.Time.Format(time.RFC3339), m.Text, m.Keys)
					}
				}
			}
		})
	}
}

func replay(t *testing.T, e *Engine, r recorded) {
	t.Helper()
	ctx := t.Context()
	var err error
	switch {
	case r.Ev == "transcript-delta" && len(r.All.Entries) > 0:
		_, err = e.Bootstrap(ctx, BootstrapParams{SessionID: r.Request.SessionID, SessionKey: r.Request.SessionKey, History: r.All.Entries})
	case r.Method == "bootstrap":
		_, err = e.Bootstrap(ctx, params[BootstrapParams](t, r))
	case r.Method == "maintain":
		_, err = e.Maintain(ctx, params[MaintainParams](t, r))
	case r.Method == "commitTurn":
		_, err = e.CommitTurn(ctx, params[CommitTurnParams](t, r))
	case r.Method == "assemble":
		p := params[AssembleParams](t, r)
		var res AssembleResult
		if res, err = e.Assemble(ctx, p); err == nil {
			checkReplay(t, r, p, res)
		}
	case r.Method == "compact":
		_, err = e.Compact(ctx, params[CompactParams](t, r))
	case r.Method == "prepareSubagentSpawn":
		_, err = e.PrepareSubagentSpawn(ctx, params[SpawnParams](t, r))
	case r.Method == "onSubagentEnded":
		err = e.OnSubagentEnded(ctx, params[SubagentEndedParams](t, r))
	}
	if err != nil {
		t.Errorf("%s %d: %v", r.Method, r.Seq, err)
	}
}

func checkReplay(t *testing.T, r recorded, p AssembleParams, res AssembleResult) {
	t.Helper()
	if len(res.Kept) != len(p.Messages) {
		t.Errorf("assemble %d: %d of %d messages kept (%s)", r.Seq, len(res.Kept), len(p.Messages), res.Trace.Window.Reason)
	}
	for i, at := range res.Kept {
		if string(res.Messages[i]) != string(p.Messages[at]) {
			t.Errorf("assemble %d: message %d was changed", r.Seq, at)
		}
	}
	if len(res.Insert) > 1 {
		t.Errorf("assemble %d: %d messages inserted", r.Seq, len(res.Insert))
	}
	if strings.Contains(p.SessionKey, "internal-session-effects") && len(res.Insert) > 0 {
		t.Errorf("assemble %d: recall for a run of the host's own", r.Seq)
	}
}
