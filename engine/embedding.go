package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"hark/embed"
	"hark/index"
	"hark/index/terms"
)

// pendingBatch is how many messages the background embeds at once, closeWait how long stop waits.
const (
	pendingBatch = 64
	closeWait    = 10 * time.Second
	minBackoff   = 5 * time.Second
	maxBackoff   = 10 * time.Minute
)

// worker brings the vectors of stored messages: at once where the embedder is in this process,
// in the background where it is not, and always what an outage, a crash or a new model left pending.
type worker struct {
	store   *index.Store
	emb     embed.Embedder
	log     *slog.Logger
	local   bool
	ail     func(reason string) // hears why the embedder does not answer, and "" when it does
	kick    chan struct{}
	turn    chan struct{} // holds one token while somebody embeds what is pending: two would embed it twice
	cancel  context.CancelFunc
	group   *errgroup.Group
	stopped chan struct{}
}

func startWorker(store *index.Store, emb embed.Embedder, log *slog.Logger, ail func(reason string)) *worker {
	ctx, cancel := context.WithCancel(context.Background())
	in, ok := emb.(embed.InProcess)
	w := &worker{
		store: store, emb: emb, log: log, ail: ail, local: ok && in.InProcess(),
		kick: make(chan struct{}, 1), turn: make(chan struct{}, 1), cancel: cancel, group: new(errgroup.Group), stopped: make(chan struct{}),
	}
	if dim := w.knownDim(ctx); dim > 0 {
		if err := store.UseSpace(ctx, w.space(dim)); err != nil {
			log.Warn("vector space not in use", "error", err)
		}
	}
	w.group.Go(func() error { w.run(ctx); return nil })
	go func() { _ = w.group.Wait(); close(w.stopped) }()
	w.wake()
	return w
}

// stop ends the background and waits for it.
func (w *worker) stop() error {
	w.cancel()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-w.stopped:
		return nil
	case <-timer.C:
		return errors.New("the embedder did not stop within ten seconds")
	}
}

// wake makes the background look for pending messages.
func (w *worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// follow is called for every stored batch. Failures are left to the background.
func (w *worker) follow(ctx context.Context, batch []index.Message, seqs []int64) {
	if !w.local || len(seqs) != len(batch) {
		w.wake()
		return
	}
	rows := make([]index.Message, 0, len(batch))
	for i, m := range batch {
		if m.Kind == index.Said || m.Kind == index.Tool {
			m.Seq = seqs[i]
			rows = append(rows, m)
		}
	}
	if err := w.embed(ctx, rows); err != nil {
		w.log.Warn("messages stored, vectors follow", "error", err, "messages", len(rows))
		w.wake()
	}
}

// run drains what is pending whenever it is woken, and after a failure as soon as the provider may
// answer again.
func (w *worker) run(ctx context.Context) {
	backoff := minBackoff
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		for {
			err := w.drain(ctx, nil)
			if err == nil {
				w.ail("")
				backoff = minBackoff
				break
			}
			if ctx.Err() != nil {
				return
			}
			wait := backoff
			var down *embed.UnavailableError
			if errors.As(err, &down) && down.After > wait {
				wait = down.After
			}
			w.ail(reasonOf(err))
			w.log.Warn("embedding postponed", "error", err, "retry", wait)
			backoff = min(backoff*2, maxBackoff)
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}

// knownDim returns the dimension of the model's vectors as far as it is known without asking
// the model: a remote one tells with its first answer, which is remembered in the store.
func (w *worker) knownDim(ctx context.Context) int {
	model := w.emb.Model()
	if model.Dim > 0 {
		return model.Dim
	}
	v, err := w.store.State(ctx, "embedder", model.String())
	if err != nil {
		return 0
	}
	dim, _ := strconv.Atoi(string(v))
	return dim
}

// dim returns the dimension of the model's vectors; a model that has not told it yet is asked
// with one short text.
func (w *worker) dim(ctx context.Context) (int, error) {
	if dim := w.knownDim(ctx); dim > 0 {
		return dim, nil
	}
	name := w.emb.Model().String()
	vs, err := w.emb.Embed(ctx, embed.Passage, []string{"the first text tells the dimension"})
	if err != nil {
		return 0, fmt.Errorf("ask the embedder for its dimension: %w", err)
	}
	if len(vs) != 1 || len(vs[0]) == 0 {
		return 0, errors.New("the embedder returned no vector for a plain English text")
	}
	if err := w.store.SetState(ctx, "embedder", name, strconv.AppendInt(nil, int64(len(vs[0])), 10)); err != nil {
		return 0, fmt.Errorf("remember the embedder's dimension: %w", err)
	}
	return len(vs[0]), nil
}

// drain embeds pending messages until there are none, or only ones that fail. progress, which
// may be nil, hears how many messages are done and left.
func (w *worker) drain(ctx context.Context, progress func(done, left int)) error {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	dim, err := w.dim(ctx)
	if err != nil {
		return err
	}
	for last, done := int64(-1), 0; ; {
		rows, err := w.store.Pending(ctx, w.space(dim), pendingBatch)
		if err != nil {
			return fmt.Errorf("list pending messages: %w", err)
		}
		if len(rows) == 0 || rows[0].Seq == last {
			return nil
		}
		last = rows[0].Seq
		if err := w.embed(ctx, rows); err != nil {
			return err
		}
		if done += len(rows); progress != nil {
			left, err := w.store.PendingCount(ctx, w.space(dim))
			if err != nil {
				return fmt.Errorf("count pending messages: %w", err)
			}
			progress(done, left)
		}
	}
}

// Embed computes the vectors that are pending, in the foreground: for tools that end when they
// have stored something. progress may be nil. It returns the first failure of the embedder; the
// rest stays pending.
func (e *Engine) Embed(ctx context.Context, progress func(done, left int)) error {
	if err := e.Settle(ctx); err != nil {
		return err
	}
	if e.worker == nil {
		return nil
	}
	return e.worker.drain(ctx, progress)
}

func (w *worker) space(dim int) index.Space {
	model := w.emb.Model()
	model.Dim = dim
	return index.Space{ID: model.String(), Dim: dim}
}

// embed computes and stores the vectors of rows: the whole text, and its passages where there is
// more than one.
func (w *worker) embed(ctx context.Context, rows []index.Message) error {
	if len(rows) == 0 {
		return nil
	}
	var texts []string
	var owner []index.Vector
	for _, m := range rows {
		texts, owner = append(texts, m.Text), append(owner, index.Vector{Seq: m.Seq})
		passages := terms.Passages(m.Text)
		if len(passages) < 2 {
			continue
		}
		for i, p := range passages {
			texts, owner = append(texts, p), append(owner, index.Vector{Seq: m.Seq, Part: i + 1})
		}
	}
	vectors, err := w.emb.Embed(ctx, embed.Passage, texts)
	var partial *embed.PartialError
	if err != nil && !errors.As(err, &partial) {
		return fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	if len(vectors) != len(texts) {
		return fmt.Errorf("embed: %d vectors for %d texts", len(vectors), len(texts))
	}
	dim := w.emb.Model().Dim
	for i, v := range vectors {
		owner[i].V = v
		if len(v) > 0 {
			dim = len(v)
		}
	}
	if partial != nil {
		for _, f := range partial.Failed {
			owner[f.Index].Failed = f.Err.Error()
		}
	}
	if dim == 0 {
		return nil // nothing to embed, and the model has not told its dimension yet
	}
	space := w.space(dim)
	if err := w.store.UseSpace(ctx, space); err != nil {
		return fmt.Errorf("use vector space: %w", err)
	}
	if err := w.store.SetVectors(ctx, space, owner); err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	return nil
}
