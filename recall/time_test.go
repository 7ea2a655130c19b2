package recall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/index"
	"hark/recall"
)

// A time in the question is preferred, and excludes nothing: the message clock decides which days
// are meant, and the asker's zone.
func TestTimeIsPreferred(t *testing.T) {
	w := newWorld(t, nil)
	on := func(d string) { w.clock, _ = time.Parse(time.DateTime, d) }
	on("2026-02-10 09:00:00")
	feb := w.say("a", "user:Ann", "the boiler makes a knocking noise in the morning")
	on("2026-03-03 09:00:00")
	mar := w.say("b", "user:Ann", "the boiler makes a knocking noise in the evening")
	on("2026-03-05 23:30:00")
	late := w.say("c", "user:Ann", "we painted the fence and ordered new gutters")
	for i := range 40 {
		on(fmt.Sprintf("2026-01-%02d 12:00:00", 1+i%28))
		w.say("d", "user:Bob", fmt.Sprintf("the printer on floor %d needs paper", i))
	}
	asked := time.Date(2026, 3, 7, 10, 0, 0, 0, time.UTC)
	east := time.FixedZone("UTC+2", 2*3600)
	for _, c := range []struct {
		question string
		asked    time.Time
		first    int64
	}{
		{"what about the boiler noise in February?", asked, feb},
		{"what about the boiler noise on Tuesday?", asked, mar},
		{"was war letzten Monat mit dem boiler noise?", asked, feb},
		{"boiler noise, hace 4 días", asked, mar},
		{"what did we talk about yesterday?", asked.In(east), late}, // already the 6th there
		{"what did we discuss the day before yesterday?", asked, late},
		{"昨天我们说了什么？", asked.In(east), late},
	} {
		res, err := recall.NewSearcher(w.store, nil, nil, nil).Search(t.Context(), recall.Request{
			Question: recall.Ask(c.question, ""), Filter: index.Filter{Scopes: []string{"owner"}}, Asked: c.asked,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Hits) == 0 || res.Hits[0].Message.Seq != c.first || len(res.Trace.Times) == 0 {
			t.Errorf("%s: rows %v, times %+v", c.question, rows(res), res.Trace.Times)
			continue
		}
		if strings.Contains(c.question, "boiler") && !slices.Contains(rows(res), feb+mar-c.first) {
			t.Errorf("%s: the other time is left out: %v", c.question, rows(res))
		}
	}
	// Where another time is told from the one named, that one is preferred no more.
	alike := func(question string) bool {
		res, err := recall.NewSearcher(w.store, nil, nil, nil).Search(t.Context(), recall.Request{
			Question: recall.Ask(question, ""), Filter: index.Filter{Scopes: []string{"owner"}}, Asked: asked,
		})
		if err != nil {
			t.Fatal(err)
		}
		var scores []float64
		for _, c := range res.Trace.Candidates {
			if c.Seq == feb || c.Seq == mar {
				scores = append(scores, c.Score-c.Look)
			}
		}
		return len(scores) == 2 && max(scores[0], scores[1]) < 1.2*min(scores[0], scores[1])
	}
	for question, want := range map[string]bool{
		"why was there a knocking noise of the boiler in February?":                                   false,
		"why was there a knocking noise of the boiler in February, and who heard it before that?":     true,
		"warum war da im Februar a knocking noise of the boiler, und wer hatte es davor gehört?":      true,
		"why was there a knocking noise of the boiler before March, two weeks after the new gutters?": false,
	} {
		if alike(question) != want {
			t.Errorf("%s: both alike is %v", question, !want)
		}
	}
	// A history that ended long before it is asked about is its own clock: yesterday is the 4th.
	res, err := recall.NewSearcher(w.store, nil, nil, nil).Search(t.Context(), recall.Request{
		Question: recall.Ask("what did we talk about yesterday?", ""), Filter: index.Filter{Scopes: []string{"owner"}}, Asked: asked.AddDate(1, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Trace.Times) != 1 || res.Trace.Times[0].From.Format(time.DateOnly) != "2026-03-04" {
		t.Errorf("times of a history of long ago: %+v", res.Trace.Times)
	}
}
