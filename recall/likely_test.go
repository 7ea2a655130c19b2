package recall_test

import (
	"fmt"
	"testing"
	"time"

	"hark/recall"
)

// The likelihood means the same in a small and a large store, for a question of one word and of many,
// with and without the meaning: what answers is above what does not.
func TestLikelyIsComparable(t *testing.T) {
	for _, size := range []int{3, 400} {
		for _, meaning := range []bool{true, false} {
			w := newWorld(t, builtin(t))
			for i := range size {
				w.say("chatter", "user", fmt.Sprintf("we talked about the garden and the weather on day %d of the trip", i))
			}
			w.say("home", "user", "the wifi password of the cabin is heron-42-lake")
			words := func(r *recall.Request) { r.WordsOnly = !meaning }
			for question, answered := range map[string]bool{
				"what is the wifi password of the cabin?": true, "heron-42-lake": true, "cabin": true,
				"which insurance covers the motorcycle?": false, "what colour is the piano of the neighbours?": false,
			} {
				best := 0.0
				for _, h := range w.search(question, words).Hits {
					if h.Likely < 0 || h.Likely > 1 || h.Words < 0 || h.Words > 1 {
						t.Fatalf("%q: %v, words %v", question, h.Likely, h.Words)
					}
					best = max(best, h.Likely)
				}
				if answered != (best > 0.5) {
					t.Errorf("%d messages, meaning %v: %q is answered with %.2f", size, meaning, question, best)
				}
			}
		}
	}
}

func TestWordsOnlyAsksNoEmbedder(t *testing.T) {
	w := newWorld(t, builtin(t))
	w.say("s", "user", "the boiler is a Vaillant")
	res := w.search("boiler", func(r *recall.Request) { r.WordsOnly = true })
	if res.Trace.Dense.Ran || res.Trace.Dense.Reason != "not asked" || len(res.Hits) != 1 {
		t.Errorf("%+v", res.Trace.Dense)
	}
	if res := w.search("boiler", func(r *recall.Request) { r.Wait = time.Hour }); !res.Trace.Dense.Ran {
		t.Errorf("%+v", res.Trace.Dense)
	}
}
