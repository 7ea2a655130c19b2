package recall

import "testing"

// The room follows the confidence: none when unlikely, at least one record's, all when sure.
func TestBudgetFollowsConfidence(t *testing.T) {
	for _, c := range []struct {
		confidence float64
		limit      int
		want       int
	}{
		{0, 1200, 0}, {0.24, 1200, 0}, {0.25, 1200, least}, {0.375, 1200, least + (1200-least)/2}, {0.5, 1200, 1200}, {1, 1200, 1200},
		{0.3, 150, 150}, {0.1, 150, 0}, {1, 0, 0},
	} {
		if got := (&Result{Confidence: c.confidence}).Budget(c.limit); got != c.want {
			t.Errorf("confidence %v, limit %d: %d, want %d", c.confidence, c.limit, got, c.want)
		}
	}
}

func TestSpecial(t *testing.T) {
	for word, want := range map[string]float64{"the": 0, "day": 0, "12": 0, "4417": 1, "pannekoek": 1, "vermieterin": 1} {
		if got := special(word); got != want {
			t.Errorf("special(%q) = %v, want %v", word, got, want)
		}
	}
}
