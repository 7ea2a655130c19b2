package cache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// short is a session like a plan's, of as many turns as a test has time for.
func short(t *testing.T, name string, turns int) *Session {
	t.Helper()
	for _, p := range Plans(turns, 1) {
		if p.Name == name {
			if p.Compact > 0 {
				p.Compact = turns * 2 / 5
			}
			if name == "steady" {
				p.Budget = 45_000
			}
			return Synthetic(p)
		}
	}
	t.Fatalf("no plan %q", name)
	return nil
}

// CACHE-02, CACHE-06 and issue 6: on the host's request shape the engine keeps to its bounds.
func TestBounds(t *testing.T) {
	for name, turns := range map[string]int{"mixed": 50, "steady": 130, "nothing recalled": 40} {
		t.Run(name, func(t *testing.T) {
			if raceDetector && name != "nothing recalled" {
				t.Skip("long sessions are run without the race detector: make unit does both")
			}
			c, err := Lab{Dir: t.TempDir()}.Compare(t.Context(), short(t, name, turns), Prices{1, 0.1})
			if err != nil {
				t.Fatal(err)
			}
			for _, check := range c.Checks(1) {
				t.Logf("%s: %s", check.What, check.Got)
				if !check.OK {
					t.Errorf("not so: %s: %s", check.What, check.Got)
				}
			}
			goes, stays := c.Totals[1], c.Totals[2]
			switch {
			case name == "nothing recalled":
				if goes.Blocks > 0 || goes.Added >= MaxAddedIdle {
					t.Errorf("%d blocks, %+.4f of legacy's cost", goes.Blocks, goes.Added)
				}
			case goes.Blocks < turns/8:
				t.Errorf("only %d turns recalled anything", goes.Blocks)
			case stays.Early > 0:
				t.Errorf("kept blocks: %d requests differ too early", stays.Early)
			case name == "steady" && goes.Cuts < 2:
				t.Errorf("the budget was reached %d times", goes.Cuts)
			}
			for _, cached := range []float64{0.1, 1} { // the default is the cheaper one
				c.Price(Prices{1, cached})
				if goes, stays := c.Totals[1].Cost, c.Totals[2].Cost; goes > stays {
					t.Errorf("at %v kept blocks are cheaper: %.0f, and %.0f for blocks that go", cached, stays, goes)
				}
			}
		})
	}
}

// A break is found where it is, and its cause is named.
func TestBreaks(t *testing.T) {
	p := &player{run: &Run{}}
	at := func(kind, text string) piece { return piece{kind, text, 10} }
	requests := [][]piece{
		{at(system, "s"), at(message, "a"), at(transient, "t")},
		{at(system, "s"), at(message, "a"), at(message, "b"), at(block, "r"), at(message, "c"), at(transient, "t")},
		{at(system, "s"), at(message, "a"), at(message, "b"), at(message, "c"), at(transient, "t")},
		{at(system, "s"), at(message, "A"), at(message, "b"), at(message, "c"), at(transient, "t")},
		{at(system, "s"), at(addition, "x"), at(message, "A"), at(transient, "t")},
	}
	want := []struct {
		same  int
		early bool
		why   string
	}{
		{0, false, "first request"}, {20, false, "the host's transient message went"}, {30, false, "the recall block went with its turn"},
		{10, true, "another message"}, {10, true, "another message"},
	}
	for i, r := range requests {
		p.ask(r, Request{Turn: i + 1, Call: 1})
		if got := p.run.Requests[i]; got.Same != want[i].same || got.Early != want[i].early || got.Break != want[i].why {
			t.Errorf("request %d: %+v, want %+v", i+1, got, want[i])
		}
	}
}

// The host's own recordings can be replayed, and its requests have the shape that is modelled.
func TestRecordings(t *testing.T) {
	shared := os.Getenv("HARK_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(shared, "host", "recordings", "01-gateway-durable.lifecycle.jsonl"))
	if err != nil {
		t.Skip("no recordings here: ", err)
	}
	defer f.Close()
	sessions, err := FromRecording(f)
	if err != nil || len(sessions) < 4 {
		t.Fatal(len(sessions), err)
	}
	for _, s := range sessions {
		c, err := Lab{Dir: t.TempDir()}.Compare(t.Context(), s, Prices{1, 0.1})
		if err != nil {
			t.Fatal(err)
		}
		for i, t2 := range c.Totals[1:] {
			if t2.Early > 0 {
				t.Errorf("%s, %s: %d of %d requests differ too early: %+v", s.Name, t2.Engine, t2.Early, t2.Requests, c.Runs[i+1].Requests)
			}
		}
	}
}

func TestNoTurns(t *testing.T) {
	if _, err := FromMessages("x", nil, 1); err == nil {
		t.Error("a session without turns")
	}
	if _, err := FromRecording(strings.NewReader("{\"ev\":\"register\"}\n")); err == nil {
		t.Error("a recording without turns")
	}
	if _, err := FromRecording(strings.NewReader("no JSON")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
}
