package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/index"
)

// A child of a torture does what a host does to a store, in several goroutines, and says of every step
// that it tries it and that it is acknowledged. Whoever reads along knows what has to be there when it is
// killed. What is said in a turn follows from its key.

// historyEntries is the length of a history that a child hands over: long enough for the background.
const historyEntries = 1050

// tortureSession is the session of a key: its turns before the last part.
func tortureSession(key string) string {
	return "agent:main:explicit:" + key[:strings.LastIndexByte(key, '.')]
}

// tortureTurn is the turn of a key.
func tortureTurn(key string) engine.CommitTurnParams {
	mark := strings.ReplaceAll(key, ".", "x")
	message := func(role, text string) json.RawMessage {
		data, _ := json.Marshal(map[string]any{"role": role, "content": text}) // strings always encode
		return data
	}
	return engine.CommitTurnParams{
		AdvancementKey: key, SessionID: tortureSession(key), SessionKey: tortureSession(key),
		Messages: []json.RawMessage{
			message("user", fmt.Sprintf("marker%su the parcel for the harbour office is ready", mark)),
			message("assistant", fmt.Sprintf("marker%sa noted, the courier comes in the morning", mark)),
		},
	}
}

// tortureHistory is the history of a key.
func tortureHistory(key string) engine.BootstrapParams {
	mark := strings.ReplaceAll(key, ".", "x")
	p := engine.BootstrapParams{SessionID: tortureSession(key), SessionKey: tortureSession(key)}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range historyEntries {
		data, _ := json.Marshal(map[string]any{ // strings and numbers always encode
			"role": "user", "content": fmt.Sprintf("marker%sh%d from an older talk", mark, i), "timestamp": at.Add(time.Duration(i) * time.Second).UnixMilli(),
		})
		p.History = append(p.History, engine.HistoryEntry{EntryID: fmt.Sprintf("%s-%d", key, i), Seq: int64(i + 1), Message: data})
	}
	return p
}

// renamed is the built-in embedder under another name, so that a store is embedded anew.
type renamed struct {
	embed.Embedder
	name string
}

func (r renamed) Model() embed.Model {
	m := r.Embedder.Model()
	m.Name = r.name
	return m
}

func (r renamed) InProcess() bool { return true }

func newTortureChild(a *app) *cobra.Command {
	var dir, prefix string
	var seed uint64
	var ops int
	var limit int64
	cmd := &cobra.Command{
		Use: "torture-child", Short: "Work on a store until killed", Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit > 0 {
				if err := limitFiles(limit); err != nil {
					return err
				}
			}
			c := &tortured{app: a, prefix: prefix, ops: ops, seed: seed, limited: limit > 0}
			return c.run(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the store")
	cmd.Flags().StringVar(&prefix, "prefix", "", "what the keys begin with")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "what the steps are chosen by")
	cmd.Flags().IntVar(&ops, "ops", 0, "end after so many steps of each worker; 0: never")
	cmd.Flags().Int64Var(&limit, "limit", 0, "bytes that a file may have, 0: any")
	return cmd
}

// tortured is a child at work.
type tortured struct {
	*app
	prefix string
	ops    int
	seed   uint64

	limited bool

	mu     sync.Mutex // held while a line is said
	failed int        // calls in vain while the files are limited
}

// say tells the parent, in one write, so that a line is there as a whole or not at all.
func (c *tortured) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.printf(format+"\n", args...)
}

func (c *tortured) run(ctx context.Context, dir string) error {
	start := time.Now()
	store, err := index.Open(ctx, dir, &index.Options{Log: c.logger(), LockWait: tortureOpen})
	if err != nil {
		return err
	}
	emb, err := embed.New(embed.Config{Provider: "builtin"}, c.logger())
	if err != nil {
		return err
	}
	e, err := engine.New(store, renamed{emb, fmt.Sprint("torture-", c.seed%3)}, nil, c.logger())
	if err != nil {
		return err
	}
	c.say("opened %d", time.Since(start).Milliseconds())
	var workers sync.WaitGroup
	for w := range 3 {
		workers.Go(func() { c.work(ctx, e, w) })
	}
	workers.Wait()
	if err := e.Close(); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	c.say("closed")
	return nil
}

// work is one worker: mostly turns, sometimes a turn again, a context, a history, a session forgotten.
func (c *tortured) work(ctx context.Context, e *engine.Engine, w int) {
	r := rand.New(rand.NewPCG(c.seed, uint64(w)))
	session, histories := 0, 0
	var done []string // keys that are stored
	for n := 0; (c.ops == 0 || n < c.ops) && ctx.Err() == nil; n++ {
		switch dice := r.IntN(100); {
		case dice < 3 && len(done) > 6:
			name := fmt.Sprintf("%s-%d-%d", c.prefix, w, r.IntN(session+1))
			if name == fmt.Sprintf("%s-%d-%d", c.prefix, w, session) {
				session++ // nothing is said in a session that is forgotten
			}
			c.try("forget", name, func() error {
				_, err := e.Forget(ctx, engine.Forgetting{Session: "agent:main:explicit:" + name})
				return err
			})
		case dice < 8 && len(done) > 0:
			key := done[r.IntN(len(done))]
			if res, err := e.CommitTurn(ctx, tortureTurn(key)); err == nil && res.Status != engine.Duplicate {
				c.say("wrong the turn %s was stored twice", key)
			}
		case dice < 14:
			_, _ = e.Assemble(ctx, engine.AssembleParams{ // it returns no error
				SessionID: "asks", SessionKey: "agent:main:explicit:asks", Prompt: "what about the parcel for the harbour office?", TokenBudget: 20_000,
			})
			c.say("asked")
		case dice == 14 && histories == 0 && w == 0:
			histories++
			key := fmt.Sprintf("%s-h%d.0", c.prefix, w)
			c.try("history", key, func() error {
				_, err := e.Bootstrap(ctx, tortureHistory(key))
				return err
			})
		default:
			if n%6 == 5 {
				session++
			}
			key := fmt.Sprintf("%s-%d-%d.%d", c.prefix, w, session, n)
			if c.try("turn", key, func() error {
				_, err := e.CommitTurn(ctx, tortureTurn(key))
				return err
			}) {
				done = append(done, key)
			}
		}
	}
}

// try says that something is tried, does it, and says what came of it.
func (c *tortured) try(what, key string, do func() error) bool {
	c.say("try %s %s", what, key)
	start := time.Now()
	err := do()
	if took := time.Since(start); took > tortureOpen {
		c.say("blocked %s %s %d", what, key, took.Milliseconds())
	}
	if err != nil {
		c.say("failed %s %s %s", what, key, strings.Join(strings.Fields(err.Error()), " "))
		c.makeRoom()
		return false
	}
	c.say("ok %s %s", what, key)
	return true
}

// makeRoom lifts the limit of files once a few calls have failed of it.
func (c *tortured) makeRoom() {
	c.mu.Lock()
	c.failed++
	lift := c.limited && c.failed >= 5
	c.limited = c.limited && !lift
	c.mu.Unlock()
	if !lift {
		return
	}
	if err := limitFiles(0); err != nil {
		c.say("wrong the limit cannot be lifted: %v", err)
		return
	}
	c.say("room again")
}

// preload fills a store with talk that nobody asks about.
func (t *torturer) preload(ctx context.Context) error {
	if err := os.MkdirAll(t.store, 0o700); err != nil || t.flags.messages == 0 {
		return err
	}
	store, err := index.Open(ctx, t.store, &index.Options{Log: t.logger()})
	if err != nil {
		return err
	}
	defer store.Close()
	const batch = 500
	for from := 0; from < t.flags.messages; from += batch {
		var ms []index.Message
		for i := from; i < min(from+batch, t.flags.messages); i++ {
			ms = append(ms, index.Message{
				Keys: []string{fmt.Sprint("preload:", i)}, Session: fmt.Sprint("agent:main:explicit:preload", i/400), SessionID: "preload", Scope: "owner",
				Role: []string{"user", "assistant"}[i%2], Time: time.Unix(1_700_000_000+int64(i)*60, 0),
				Text: fmt.Sprintf("preloaded talk number %d about topic%d, ledger %d and the weather in week %d", i, i%977, i%4241, i/10080),
			})
		}
		if _, err := store.Append(ctx, index.Batch{Messages: ms}); err != nil {
			return fmt.Errorf("preload: %w", err)
		}
	}
	t.record.preloaded = t.flags.messages
	return store.Settle(ctx)
}
