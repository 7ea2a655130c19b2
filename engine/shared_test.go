package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hark/index"
)

// sharedRuns makes a registry whose slot is served by a shared factory.
func sharedRuns(t *testing.T, dir string) func() ContextEngine {
	t.Helper()
	r := NewRegistry(stub{id: LegacyID, name: "Legacy"}, nil)
	opts := func(FactoryContext) *Options { return &Options{Clock: fixedClock} }
	if err := r.Register(ID, "plugin", NewFactory(Sharing{Options: opts, Store: &index.Options{LockWait: 10 * time.Millisecond}})); err != nil {
		t.Fatal(err)
	}
	return func() ContextEngine {
		res, err := r.Resolve(context.Background(), Run{Slot: ID, Context: FactoryContext{AgentDir: dir}})
		if err != nil || res.ID != ID {
			t.Errorf("%+v %v", res, err)
		}
		return res.Engine
	}
}

// HOST-07, HOST-20: building an engine touches nothing; engines of one agent share its store; the one
// that is disposed of first takes nothing from the others, and the last one closes.
func TestSharedStore(t *testing.T) {
	dir := t.TempDir()
	resolve := sharedRuns(t, dir)
	a, b := resolve(), resolve()
	if got, err := os.ReadDir(dir); err != nil || len(got) > 0 {
		t.Fatalf("built, and there is %v %v", got, err)
	}
	ctx := t.Context()
	if _, err := a.CommitTurn(ctx, turn(otherKey, "k1", user("the violet folder is in the attic", day), assistant("noted", day+1))); err != nil {
		t.Fatal(err)
	}
	ask := func(e ContextEngine) string {
		t.Helper()
		res, err := e.Assemble(ctx, AssembleParams{SessionID: "x", SessionKey: mainKey, Prompt: "where is the violet folder?", TokenBudget: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		return blockOf(t, res)
	}
	if !strings.Contains(ask(b), "attic") {
		t.Error("what one engine was told the other does not know")
	}
	for range 2 {
		if err := a.Dispose(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(ask(b), "attic") {
		t.Error("disposing of one engine took the store from the other")
	}
	if err := b.Dispose(ctx); err != nil {
		t.Fatal(err)
	}
	openStore(t, filepath.Join(dir, StoreDir)).Close() // waits for nobody
	c := resolve()
	if !strings.Contains(ask(c), "attic") {
		t.Error("not opened again")
	}
	if err := c.Dispose(ctx); err != nil {
		t.Fatal(err)
	}
	lone, err := NewFactory(Sharing{})(ctx, FactoryContext{AgentDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := lone.Dispose(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := lone.Assemble(ctx, AssembleParams{}); !errors.Is(err, ErrDisposed) {
		t.Errorf("after its end: %v", err)
	}
	if _, err := NewFactory(Sharing{})(ctx, FactoryContext{}); err == nil {
		t.Error("a store without a directory")
	}
}

// HOST-08: engines come and go at once on one directory, and nothing is left open.
func TestSharedStoreAtOnce(t *testing.T) {
	dir := t.TempDir()
	resolve := sharedRuns(t, dir)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 10 {
				e := resolve()
				if _, err := e.Bootstrap(context.Background(), BootstrapParams{SessionID: "x", SessionKey: mainKey}); err != nil {
					return err
				}
				if err := e.Dispose(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := openStore(t, filepath.Join(dir, StoreDir)).Close(); err != nil {
		t.Fatal(err)
	}
}

// A store that cannot be opened costs the memory: the fallback serves.
func TestSharedStoreInUse(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, filepath.Join(dir, StoreDir))
	defer store.Close()
	e := sharedRuns(t, dir)()
	res, err := e.Assemble(t.Context(), AssembleParams{SessionID: "x", SessionKey: mainKey})
	if err != nil || res.SystemPromptAddition != LegacyID {
		t.Errorf("%+v %v", res, err)
	}
	if err := e.Dispose(t.Context()); err != nil {
		t.Error(err)
	}
}
