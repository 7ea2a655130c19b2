package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hark/embed"
	"hark/index"
	"hark/recall"
)

// Version is the version of Hark that hosts are told.
const Version = "0.1.0"

// Defaults of Options.
const (
	defaultRecallTokens = 1200
	defaultDeadline     = 800 * time.Millisecond
	defaultSpawnTTL     = 24 * time.Hour
)

// Options are the tunables of an Engine; nil and zero fields mean the defaults.
type Options struct {
	AgentID      string              // whose store it is; sessions of other agents see nothing of it; default "main"
	Policy       Policy              // default PolicyOwner
	Links        map[string][]string // identity links: a person's name → "channel:id"; the name "owner" is the agent's owner
	RecallTokens int                 // cap of the recall block; default 1,200, negative turns recall off
	Deadline     time.Duration       // of recall within one Assemble; default 800 ms
	Location     *time.Location      // the user's zone, for dates; default UTC
	Clock        func() time.Time    // default time.Now
	Runtime      Runtime             // the host's compaction; nil where there is none
	KeepBlocks   bool                // recall blocks of earlier turns stay in place, byte for byte
	RecallTools  bool                // recall tool calls and output too, labelled as such
	LearnCron    bool                // learn from cron and hook sessions as from the owner; they still recall nothing
	KeepSecrets  bool                // store API keys, tokens and passwords as they come, instead of masking them
	Retention    Retention           // how long and how much is kept; default: everything
	Recall       *recall.Options     // of the search; nil means its defaults
}

// Engine is Hark's context engine over one agent's store. It may serve any number of sessions at
// once and is safe for concurrent use. Use one Engine for each open store.
type Engine struct {
	store    *index.Store
	emb      embed.Embedder // nil: words only
	search   *recall.Searcher
	opts     Options
	log      *slog.Logger
	scopes   scopes
	tokens   *counter
	fence    string // nonce of this store's recall fences
	worker   *worker
	accounts accounts
	journal  *journal
	states   states
	keeping  sync.WaitGroup // of lists of measures that are being written
	writing  sync.Mutex     // held while one is written or dropped

	ingest   sync.Mutex      // held from where identities are looked up until they are written
	children sync.Mutex      // guards the spawn records in the store's state
	branches sync.Mutex      // guards the records of cut branches in the store's state
	paging   map[string]*run // guarded by ingest; transcripts that arrive in pages, by session

	alikes    sync.Mutex // guards the two below
	alike     map[string]*alike
	alikeRows int

	mu        sync.Mutex
	lineages  map[string]string   // session id → session key
	owners    map[string]bool     // session key → its person is the owner
	ledgers   map[string]ledger   // what was recalled, by session
	factors   map[string]float64  // tokens of a model family for one of ours
	seen      map[uint64]*measure // decoded messages by the hash of their bytes
	stored    map[string]int64    // rows by content key
	unwritten map[string]int      // bytes of messages measured since the session's list was written
	forgets   int                 // calls of forgetMeasures
	retained  time.Time           // when the retention was last applied
}

var _ ContextEngine = (*Engine)(nil)

// New returns an engine over store, which stays the caller's to close after Engine.Close. emb may be
// nil, then messages are found by their words only.
func New(store *index.Store, emb embed.Embedder, opts *Options, log *slog.Logger) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	tokens, err := newCounter()
	if err != nil {
		return nil, fmt.Errorf("load the tokenizer: %w", err)
	}
	e := &Engine{
		store: store, emb: emb, opts: o, log: log, tokens: tokens, states: states{store: store, log: log},
		scopes:   newScopes(o.AgentID, o.Policy, o.LearnCron, o.Links),
		search:   recall.NewSearcher(store, emb, o.Recall, log),
		lineages: map[string]string{}, owners: map[string]bool{},
		ledgers: map[string]ledger{}, factors: map[string]float64{}, seen: map[uint64]*measure{}, stored: map[string]int64{}, unwritten: map[string]int{}, alike: map[string]*alike{},
	}
	if e.fence, err = fenceNonce(context.Background(), store); err != nil {
		return nil, fmt.Errorf("read the store's fence: %w", err)
	}
	e.accounts.clock = o.Clock
	if err := e.accounts.load(context.Background(), store); err != nil {
		log.Warn("account of earlier turns unreadable", "error", err)
	}
	if emb != nil {
		e.worker = startWorker(store, emb, log, func(reason string) { e.accounts.ail(DegradedMeaning, reason) })
	}
	if e.journal, err = startJournal(context.Background(), e); err != nil {
		if e.worker != nil {
			err = errors.Join(err, e.worker.stop())
		}
		return nil, fmt.Errorf("read what was accepted: %w", err)
	}
	return e, nil
}

func (o *Options) complete() error {
	if o.AgentID == "" {
		o.AgentID = "main"
	}
	switch o.Policy {
	case "":
		o.Policy = PolicyOwner
	case PolicyOwner, PolicySession, PolicyAgent:
	default:
		return fmt.Errorf("unknown recall policy %q: use owner, session or agent", o.Policy)
	}
	if o.RecallTokens == 0 {
		o.RecallTokens = defaultRecallTokens
	}
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return nil
}

// fenceNonce reads the nonce of the store's recall fences, and makes one for a new store. It is
// random, so that stored text cannot contain it, and constant, so that blocks are the same bytes.
func fenceNonce(ctx context.Context, store *index.Store) (string, error) {
	value, err := store.State(ctx, "engine", "fence")
	if err != nil {
		return "", err
	}
	if len(value) > 0 {
		return string(value), nil
	}
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	nonce := hex.EncodeToString(random[:])
	if err := store.SetState(ctx, "engine", "fence", []byte(nonce)); err != nil && !errors.Is(err, index.ErrReadOnly) {
		return "", err
	}
	return nonce, nil
}

// Close ends the background work of the engine, within ten seconds for each kind. The store stays open.
func (e *Engine) Close() error {
	err := e.journal.close()
	e.mu.Lock()
	e.forgets++ // lists that nobody writes yet are left
	e.mu.Unlock()
	e.keeping.Wait()
	if !e.states.wait(statesWait) {
		err = errors.Join(err, errors.New("what assemblies left to write was not written within ten seconds: the store is busy"))
	}
	if e.worker != nil {
		err = errors.Join(err, e.worker.stop())
	}
	return errors.Join(err, e.accounts.close(e.store))
}

// Info implements ContextEngine.
func (e *Engine) Info() Info { return info() }

func info() Info {
	return Info{
		ID: ID, Name: "Hark", Version: Version,
		TurnMaintenanceMode: "background",
		TranscriptSemantics: &TranscriptSemantics{
			CurrentTurnFence:           FenceBeforeCurrentTurn,
			TurnAdvancementIdempotency: AtomicIdempotent,
		},
		HostRequirements: map[string]HostRequirement{
			ManualCompact: {
				RequiredCapabilities: []string{CanCompact},
				UnsupportedMessage:   "Hark leaves compaction to the host, and this host offers none: run /compact from a host that does.",
			},
		},
		AcceptedHostParams: []string{"sessionKey", "prompt", "sessionTarget", "runtimeSettings", "runtimeContext", "abortSignal"},
	}
}

// Bootstrap implements ContextEngine. It stores the history it is given and reads no files. A history
// of a thousand new messages or more is accepted durably and stored in the background: see Settle.
func (e *Engine) Bootstrap(ctx context.Context, p BootstrapParams) (res BootstrapResult, err error) {
	defer func() { e.counted(ctx, "bootstrap", false, err) }()
	key := sessionKey(p.SessionKey, p.SessionTarget)
	key = e.lineage(ctx, key, p.SessionID)
	sc := e.scopes.of(key, p.SessionID, false)
	if sc.Stored == automaticScope {
		return BootstrapResult{Bootstrapped: true, Reason: "a run of the host's own: nothing is learned from it"}, nil
	}
	if len(p.History) == 0 {
		return BootstrapResult{Bootstrapped: true, Reason: "no history supplied; what was committed is stored"}, nil
	}
	known := e.storedEntries(ctx, sc.Session, p.SessionID, p.History)
	page := accepted{Key: key, SessionID: p.SessionID, Session: sc.Session, From: known, Complete: p.Complete, History: p.History}
	if known < len(p.History) && e.journal.long(sc.Session, p.History[known:]) {
		return e.bootstrapLater(ctx, page)
	}
	done, err := e.saveHistory(ctx, page, func() bool { return p.Complete }, maxBatch)
	if err != nil {
		return BootstrapResult{}, fmt.Errorf("bootstrap %d messages: %w", len(p.History), err)
	}
	if known < len(p.History) {
		if err := e.noteEntries(ctx, sc.Session, p.SessionID, p.History); err != nil {
			e.log.Warn("stored pages not noted", "error", err)
		}
	}
	return BootstrapResult{
		Bootstrapped: true, ImportedMessages: done.New,
		Reason: fmt.Sprintf("%d messages supplied, %d new, %d stored already, %d unreadable",
			len(p.History), done.New, done.Duplicate+max(0, known-1), done.skipped),
	}, nil
}

// bootstrapLater accepts a long history: it is durable, and its messages are stored in the background.
func (e *Engine) bootstrapLater(ctx context.Context, a accepted) (BootstrapResult, error) {
	fresh, err := e.unknown(ctx, a.Session, a.History[a.From:])
	if err == nil {
		err = e.journal.accept(ctx, a)
	}
	if err != nil {
		return BootstrapResult{}, fmt.Errorf("bootstrap %d messages: %w", len(a.History), err)
	}
	return BootstrapResult{
		Bootstrapped: true, ImportedMessages: fresh,
		Reason: fmt.Sprintf("%d messages accepted, %d of them new; they are being stored in the background", len(a.History), fresh),
	}, nil
}

func quoted(s string) json.RawMessage {
	data, _ := json.Marshal(s)
	return data
}

func sessionKey(key string, target *SessionTarget) string {
	if key == "" && target != nil {
		return target.SessionKey
	}
	return key
}

// Maintain implements ContextEngine. It never changes the transcript.
func (e *Engine) Maintain(ctx context.Context, p MaintainParams) (MaintainResult, error) {
	if err := e.sweepSpawns(ctx); err != nil {
		e.log.Warn("sweep of subagent records failed", "error", err)
	}
	e.retainDue(ctx)
	if e.worker != nil {
		e.worker.wake()
	}
	return MaintainResult{Reason: "Hark does not rewrite transcripts"}, nil
}

// Compact implements ContextEngine: it passes the call to the host's compaction and its result back
// as it is.
func (e *Engine) Compact(ctx context.Context, p CompactParams) (CompactResult, error) {
	if e.opts.Runtime == nil {
		return CompactResult{Reason: "not compacted: compaction is the host's, and no host runtime is attached"}, nil
	}
	res, err := e.opts.Runtime.Compact(ctx, p)
	if err != nil {
		return CompactResult{}, fmt.Errorf("compact through the host: %w", err)
	}
	if res.Compacted {
		key := e.lineage(ctx, sessionKey(p.SessionKey, p.SessionTarget), p.SessionID)
		e.forgetWindow(key)
		e.keepSummary(ctx, key, p.SessionID, res.Result)
	}
	return res, nil
}

// Dispose implements ContextEngine. Sessions share the engine, so there is nothing to release: see Close.
func (e *Engine) Dispose(context.Context) error { return nil }
