package embedtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hark/embed"
	"hark/embed/embedtest"
)

func TestHashed(t *testing.T) {
	embedtest.Run(t, func(*testing.T) embed.Embedder { return embedtest.Hashed(32) })
}

func TestSlowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := embedtest.Slow(embedtest.Hashed(8), time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := e.Embed(ctx, embed.Query, []string{"river"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		if v, err := e.Embed(t.Context(), embed.Query, []string{"river"}); err != nil || v[0] == nil {
			t.Errorf("vectors %v, error %v", v, err)
		}
	})
}

func TestBrokenAndHalf(t *testing.T) {
	if _, err := embedtest.Broken(embedtest.Hashed(8), nil).Embed(t.Context(), embed.Query, []string{"a"}); !errors.Is(err, embed.ErrUnavailable) {
		t.Errorf("broken: %v", err)
	}
	v, err := embedtest.Half(embedtest.Hashed(8)).Embed(t.Context(), embed.Passage, []string{"a", "b", "c"})
	if !errors.Is(err, embed.ErrRejected) || v[0] != nil || v[1] == nil || v[2] != nil {
		t.Errorf("half: %v, error %v", v, err)
	}
}
