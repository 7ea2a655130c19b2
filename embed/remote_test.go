package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a backend whose requests take latency and end as script says; nil script gives every text [1, 0].
type scripted struct {
	latency time.Duration
	script  func(request int, texts []string) error

	requests atomic.Int64
	flying   atomic.Int64
	most     atomic.Int64
}

func (s *scripted) maxBatch() int { return 10 }

func (s *scripted) send(ctx context.Context, texts []string) ([][]float32, error) {
	n := int(s.requests.Add(1))
	defer s.flying.Add(-1)
	if now := s.flying.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.latency):
	}
	if s.script != nil {
		if err := s.script(n, texts); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

func scriptedRemote(b *scripted, log *strings.Builder) *Remote {
	handler := slog.DiscardHandler
	if log != nil {
		handler = slog.NewTextHandler(log, nil)
	}
	cfg := Config{Model: "m", Rand: func() float64 { return 0.5 }}
	return newRemote("scripted", b, cfg.withDefaults(), slog.New(handler))
}

// A 429 pauses everybody for as long as the server said: passages wait and succeed, questions fail at once. (EMB-07)
func TestThrottleIsSharedAndQuestionsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{latency: time.Millisecond, script: func(n int, _ []string) error {
			if n == 1 {
				return &fault{kind: throttled, reason: "HTTP 429", after: 20 * time.Second}
			}
			return nil
		}}
		r := scriptedRemote(b, nil)
		start := time.Now()
		var wg sync.WaitGroup
		call := func(least, most time.Duration) {
			wg.Go(func() {
				if _, err := r.Embed(t.Context(), Passage, []string{"one", "two"}); err != nil {
					t.Errorf("passages: %v", err)
				}
				if took := time.Since(start); took < least || took > most {
					t.Errorf("passages took %v, want %v to %v", took, least, most)
				}
			})
		}
		call(20*time.Second, 25*time.Second) // is told to pause
		<-time.After(500 * time.Microsecond)
		call(0, 2*time.Millisecond) // was under way, succeeds, and does not end the pause
		<-time.After(2 * time.Millisecond)
		call(20*time.Second, 25*time.Second)
		call(20*time.Second, 25*time.Second)
		<-time.After(time.Second)
		asked := time.Now()
		_, err := r.Embed(t.Context(), Query, []string{"where"})
		unavailable, ok := errors.AsType[*UnavailableError](err)
		if !ok || unavailable.Reason != "HTTP 429" || unavailable.After < 18*time.Second {
			t.Errorf("question: %v", err)
		}
		if took := time.Since(asked); took != 0 {
			t.Errorf("the question waited %v", took)
		}
		wg.Wait()
		if _, err := r.Embed(t.Context(), Query, []string{"where"}); err != nil {
			t.Errorf("question after the pause: %v", err)
		}
	})
}

// A provider that fails for an hour, with five callers who come back when told: few requests, two at most at a time,
// one line in the log, and recovery by itself. (EMB-14)
func TestOutageIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := &scripted{latency: 10 * time.Millisecond, script: func(int, []string) error {
			if time.Since(start) < time.Hour {
				return errors.New("connection refused")
			}
			return nil
		}}
		var log strings.Builder
		r := scriptedRemote(b, &log)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				for {
					_, err := r.Embed(t.Context(), Passage, []string{"one", "two", "three"})
					if err == nil {
						return
					}
					unavailable, ok := errors.AsType[*UnavailableError](err)
					if !ok {
						t.Errorf("error %v", err)
						return
					}
					<-time.After(max(unavailable.After, time.Second))
				}
			})
		}
		<-time.After(59 * time.Minute)
		synctest.Wait()
		if n := b.requests.Load(); n > 30 {
			t.Errorf("%d requests in an hour", n)
		}
		wg.Wait()
		if took := time.Since(start); took > time.Hour+6*time.Minute {
			t.Errorf("recovered after %v", took)
		}
		if b.most.Load() > 2 {
			t.Errorf("%d requests at a time", b.most.Load())
		}
		if lines := strings.Count(log.String(), "\n"); lines != 2 {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

func TestExhaustedQuotaIsProbedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{script: func(int, []string) error { return &fault{kind: exhausted, reason: "quota"} }}
		r := scriptedRemote(b, nil)
		for range 60 {
			if _, err := r.Embed(t.Context(), Query, []string{"where"}); !errors.Is(err, ErrUnavailable) {
				t.Errorf("error %v", err)
			}
			<-time.After(10 * time.Second)
		}
		if n := b.requests.Load(); n > 3 {
			t.Errorf("%d requests in ten minutes", n)
		}
	})
}

// A server that refuses everything is not asked about every text.
func TestRefusingEverythingIsTheProvidersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{script: func(int, []string) error { return &fault{kind: refused, reason: "HTTP 400"} }}
		r := scriptedRemote(b, nil)
		texts := make([]string, 500)
		for i := range texts {
			texts[i] = fmt.Sprint("text ", i)
		}
		_, err := r.Embed(t.Context(), Passage, texts)
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		if n := b.requests.Load(); n > 100 {
			t.Errorf("%d requests", n)
		}
	})
}

// However many texts a server refuses, a caller that drops the rejected ones gets through.
func TestManyBadTextsEndAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{script: func(_ int, texts []string) error {
			for _, text := range texts {
				if strings.Contains(text, "bad") {
					return &fault{kind: refused, reason: "HTTP 400"}
				}
			}
			return nil
		}}
		r := scriptedRemote(b, nil)
		pending := []string{"good"}
		for range 40 {
			pending = append(pending, "bad")
		}
		calls := 0
		for ; len(pending) > 0 && calls < 100; calls++ {
			vectors, err := r.Embed(t.Context(), Passage, pending)
			var left []string
			partial, ok := errors.AsType[*PartialError](err)
			switch {
			case ok:
				for _, f := range partial.Failed {
					if !errors.Is(f.Err, ErrRejected) {
						left = append(left, pending[f.Index])
					}
				}
			case err != nil:
				left = pending
			case len(vectors) != len(pending):
				t.Fatalf("%d vectors for %d texts", len(vectors), len(pending))
			}
			pending = left
			<-time.After(longPause)
		}
		if calls > 10 {
			t.Errorf("%d calls, %d texts left", calls, len(pending))
		}
	})
}

// Passage work in the queue does not hold up a question, and no more requests fly than allowed.
func TestQuestionsPassTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{latency: 10 * time.Second}
		r := scriptedRemote(b, nil)
		var wg sync.WaitGroup
		wg.Go(func() {
			texts := make([]string, 100)
			for i := range texts {
				texts[i] = "text"
			}
			if _, err := r.Embed(t.Context(), Passage, texts); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if _, err := r.Embed(t.Context(), Query, []string{"where"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != b.latency {
			t.Errorf("the question took %v", took)
		}
		wg.Wait()
		if most := b.most.Load(); most != 3 { // two of passages, one of the question
			t.Errorf("%d requests at a time", most)
		}
	})
}

func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{latency: time.Hour}
		r := scriptedRemote(b, nil)
		start := time.Now()
		_, err := r.Embed(t.Context(), Query, []string{"where"})
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer within 30s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// What was embedded before the call was cancelled is kept, the rest is listed.
func TestCancelKeepsWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{latency: time.Second}
		r := scriptedRemote(b, nil)
		texts := make([]string, 100)
		for i := range texts {
			texts[i] = "text"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		vectors, err := r.Embed(ctx, Passage, texts)
		partial, ok := errors.AsType[*PartialError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || len(partial.Failed) != 80 {
			t.Fatalf("error %v", err)
		}
		for _, f := range partial.Failed {
			if vectors[f.Index] != nil {
				t.Errorf("text %d failed and has a vector", f.Index)
			}
		}
		if _, err := r.Embed(t.Context(), Query, []string{"where"}); err != nil {
			t.Errorf("a caller who left shut the gate: %v", err)
		}
	})
}

// Ten callers with one question cost one request; one who leaves does not spoil it for the others.
func TestEqualQuestionsShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{latency: time.Second}
		r := scriptedRemote(b, nil)
		hurried, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.Embed(hurried, Query, []string{"where"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("hurried: %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() {
				if v, err := r.Embed(t.Context(), Query, []string{"where"}); err != nil || v[0] == nil {
					t.Errorf("patient: %v, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := b.requests.Load(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(100_000)
	for i := range 1000 {
		v, err := c.get(t.Context(), fmt.Sprint("question ", i), func() ([]float32, error) { return make([]float32, 256), nil })
		if err != nil || len(v) != 256 {
			t.Fatal(v, err)
		}
		if c.look("question 0") == nil { // used all the time, so never the oldest
			t.Fatalf("the question in use went after %d", i)
		}
	}
	if n := c.recent.Len(); n > 100 || n < 50 || n != len(c.entries) || c.room < 0 {
		t.Errorf("%d and %d entries, %d bytes of room", n, len(c.entries), c.room)
	}
	if v, _ := c.get(t.Context(), "huge", func() ([]float32, error) { return make([]float32, 1<<20), nil }); len(v) != 1<<20 {
		t.Error("a vector larger than the cache is not returned")
	}
}

// EMB-05.
func TestTextIsMadeSafe(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"plain", "plain"},
		{"", ""},
		{"\n\n", ""},
		{" \u00a0\u2003", ""},
		{"\u200b\u200c\u200d\u2060\ufeff", ""},
		{"\x00\x01\x1b", ""},
		{"\u3164\u2800\u00ad", ""},
		{"\xed\xa0\x80", ""},
		{"a\xed\xa0\x80b", "a\ufffdb"},
		{"a\x00b", "ab"},
		{"👩‍🚀", "👩‍🚀"},
	} {
		if got := clean(tc.text); got != tc.want {
			t.Errorf("clean(%q) = %q, want %q", tc.text, got, tc.want)
		}
	}
}

func FuzzParts(f *testing.F) {
	f.Add("the river and the market", 3)
	f.Add("：：：：：：", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		text = clean(text)
		pieces := parts(text, max(1, limit))
		if strings.Join(pieces, "") != text {
			t.Fatalf("%q cut into %q", text, pieces)
		}
		for _, p := range pieces {
			if len(pieces) > 1 && p == "" || strings.ToValidUTF8(p, "") != p {
				t.Fatalf("%q cut into %q", text, pieces)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"20":                            20 * time.Second,
		"1.5":                           1500 * time.Millisecond,
		"-3":                            0,
		"1e300":                         maxPause,
		"soon":                          0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := retryAfter(map[string][]string{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
