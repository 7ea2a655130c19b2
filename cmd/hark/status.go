package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/index"
)

// statusJSON is the result of hark status --json.
type statusJSON struct {
	Agent     string            `json:"agent"`
	Dir       string            `json:"dir"`
	Messages  int               `json:"messages"` // rows stored
	Recall    int               `json:"recallable"`
	Forgotten int               `json:"forgotten"`
	Sessions  int               `json:"sessions"`
	Words     wordsJSON         `json:"words"`
	Embedder  string            `json:"embedder"` // "none" for words only
	Vectors   []vectorsJSON     `json:"vectors"`
	Pending   int               `json:"pending"` // messages that wait for a vector of the embedder in use
	Bytes     map[string]int64  `json:"bytes"`
	BytesAll  int64             `json:"bytes_total"`
	Errors    []string          `json:"errors"`
	Schema    int               `json:"schema"`
	Policy    string            `json:"policy"`
	Served    time.Time         `json:"served,omitzero"`      // when a host last asked for a context
	Committed time.Time         `json:"committed,omitzero"`   // when a host last stored a turn
	Failed    *engine.Failure   `json:"failed,omitempty"`     // the last call that failed, and why
	Degraded  []engine.Degraded `json:"degraded"`             // what does not work now, since when and why
	Counts    engine.Counts     `json:"counts"`               // over the life of the store
	Accepted  int               `json:"accepted,omitempty"`   // histories that are accepted and being stored
	RecallOff string            `json:"recall_off,omitempty"` // why turns go without recall
	Retention *engine.Due       `json:"retention,omitempty"`  // what it removes next; absent where everything is kept
}

// account takes over how the agent was served.
func (o *statusJSON) account(a engine.Account) {
	o.Served, o.Committed, o.Failed, o.Counts, o.Accepted = a.Assembled, a.Committed, a.Failed, a.Counts, a.Accepted
	o.Degraded = append(o.Degraded, a.Degraded...)
}

// recallOff says why the turns of the host go without recall, "" where they do not.
func (o *statusJSON) recallOff(tokens int) string {
	switch {
	case tokens == 0:
		return "recall.max_tokens is 0"
	case o.Committed.IsZero() || o.Committed.Sub(o.Served) < longestTurn:
		return ""
	case o.Served.IsZero():
		return "the host stores turns here and asked for no context with the last one"
	}
	return "the host stores turns here, but last asked for a context long before the last one"
}

// longestTurn is how long a turn may take from its context to its end before the two are not taken
// for one.
const longestTurn = 24 * time.Hour

type wordsJSON struct {
	Indexed int    `json:"indexed"`
	Pending int    `json:"pending"`
	State   string `json:"state"`
}

type vectorsJSON struct {
	Model   string `json:"model"`
	Stored  int    `json:"stored"`
	Pending int    `json:"pending"`
	Failed  int    `json:"failed"`
	InUse   bool   `json:"in_use"`
	Search  string `json:"search,omitempty"` // "exact" or "flat"
}

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what is stored, indexed and pending",
		Long: `Shows the agent's store: where it is, how many messages it holds and how many of
them may be recalled, the index of words, the vectors of each embedder that was
used, the size on disk, and what went wrong. Pending is what an embedder still has
to do; words are found at once. Of the turns it shows when one was last given a
context, stored, and failed with the reason; of recall how often it gave memory, of
how many tokens, and how often it had nothing to say; and what does not work now,
since when and why.

It also says when recall is off: by the configuration, or because the host stores
turns with Hark and asks it for no context ("hark doctor" looks further).`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := a.status(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printStatus(out)
			return nil
		},
	}
}

// status describes the agent's store; one that does not exist is empty.
func (a *app) status(ctx context.Context) (statusJSON, error) {
	if err := a.folder(); err != nil {
		return statusJSON{}, err
	}
	out := a.noStatus()
	if _, err := os.Stat(out.Dir); errors.Is(err, fs.ErrNotExist) {
		emb, err := embed.New(a.set.embedder(), a.logger())
		if err == nil && emb != nil {
			out.Embedder = emb.Model().String()
		}
		return out, err
	}
	return describing().ask(ctx, a, nothing{})
}

// noStatus is the status of a store that does not exist.
func (a *app) noStatus() statusJSON {
	return statusJSON{
		Agent: a.set.Agent, Dir: a.agentDir(), Policy: a.set.Recall.Policy, Embedder: "none",
		Words: wordsJSON{State: "empty"}, Vectors: []vectorsJSON{}, Bytes: map[string]int64{}, Errors: []string{}, Degraded: []engine.Degraded{},
	}
}

func (o *statusJSON) fill(st index.Status) {
	o.Messages, o.Recall, o.Forgotten, o.Sessions, o.Schema = st.Rows, st.Recallable, st.Forgotten, st.Sessions, st.Schema
	o.Words = wordsJSON{st.Words, st.WordsLag, st.WordsState}
	for _, s := range st.Spaces {
		o.Vectors = append(o.Vectors, vectorsJSON{s.Space.ID, s.Stored, s.Pending, s.Failed, s.InUse, s.Leg})
		if s.InUse {
			o.Pending += s.Pending
		}
	}
	for _, what := range slices.Sorted(maps.Keys(st.Bytes)) {
		o.Bytes[what] = st.Bytes[what]
		o.BytesAll += st.Bytes[what]
	}
	o.Errors = append(o.Errors, st.Errors...)
}

func (a *app) printStatus(o statusJSON) {
	line := func(name, format string, args ...any) {
		for i, l := range wrap(fmt.Sprintf(format, args...), a.term.room(11)) {
			if i > 0 {
				name = ""
			}
			a.printf("%s  %s\n", a.term.dim(pad(name, 9)), l)
		}
	}
	line("agent", "%s (recall policy: %s)", o.Agent, o.Policy)
	line("store", "%s", shortHome(a.env, o.Dir))
	if o.RecallOff != "" {
		line("recall", "%s: %s", a.term.yellow("off"), o.RecallOff)
	}
	if o.Messages == 0 {
		line("messages", "none yet; import a history with: hark import ~/.openclaw/agents/%s", safeName(o.Agent))
		line("embedder", "%s", embedderWords(o.Embedder))
		return
	}
	forgotten := ""
	if o.Forgotten > 0 {
		forgotten = fmt.Sprintf("; %d were forgotten", o.Forgotten)
	}
	line("messages", "%d in %s, %d of them recallable%s", o.Messages, count(o.Sessions, "session"), o.Recall, forgotten)
	if d := o.Retention; d != nil && d.Messages > 0 {
		line("retention", "%s up to %s will be forgotten next; see them with: hark forget --retention --dry-run", count(d.Messages, "message"), a.when(d.Newest))
	} else if d != nil {
		line("retention", "nothing is too old or too much")
	}
	line("words", "%d indexed, %d pending (%s)", o.Words.Indexed, o.Words.Pending, o.Words.State)
	line("embedder", "%s", embedderWords(o.Embedder))
	for _, v := range o.Vectors {
		text := fmt.Sprintf("%d stored, %d pending", v.Stored, v.Pending)
		if v.Failed > 0 {
			text += fmt.Sprintf(", %d failed", v.Failed)
		}
		if !v.InUse {
			text = fmt.Sprintf("%d of %s, kept but not in use", v.Stored, embedderWords(v.Model))
		}
		line("vectors", "%s", text)
	}
	var parts strings.Builder
	for _, what := range slices.Sorted(maps.Keys(o.Bytes)) {
		if o.Bytes[what] == 0 {
			continue
		}
		fmt.Fprintf(&parts, ", %s %s", what, bytesOf(o.Bytes[what]))
	}
	line("on disk", "%s: %s", bytesOf(o.BytesAll), strings.TrimPrefix(parts.String(), ", "))
	a.printTurns(o, line)
	for _, e := range o.Errors {
		line("error", "%s", a.term.yellow(clean(e)))
	}
}

// printTurns says how the agent was served.
func (a *app) printTurns(o statusJSON, line func(name, format string, args ...any)) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return a.when(t)
	}
	if c := o.Counts; c != (engine.Counts{}) {
		line("turns", "last given a context %s, last stored %s; %d stored", at(o.Served), at(o.Committed), c.Committed)
		line("recall", "memory for %s (%d tokens), nothing to say in %d", count(int(c.Recalled), "turn"), c.Tokens, c.Abstained)
	}
	if o.Accepted > 0 {
		line("accepted", "%s being stored in the background", counted(o.Accepted, "history", "histories"))
	}
	if f := o.Failed; f != nil {
		line("failed", "last %s, %s: %s", a.when(f.At), f.Call, clean(f.Reason))
	}
	for _, d := range o.Degraded {
		line("degraded", "%s", a.term.yellow(fmt.Sprintf("%s since %s: %s", d.What, a.when(d.Since), clean(d.Reason))))
	}
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// embedderWords says in words what "builtin/hark-static-40k-256@256" means.
func embedderWords(model string) string {
	provider, rest, ok := strings.Cut(model, "/")
	if !ok {
		return "none: messages are found by their words only"
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, server, _ := strings.Cut(rest, "~")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return model
	}
	name, dim := rest[:at], rest[at+1:]
	dims := ", vectors of " + dim
	if dim == "0" {
		dims = ""
	}
	switch provider {
	case "builtin":
		return "the built-in one, English (" + name + ")"
	case "ollama":
		return name + " of Ollama" + named(server) + dims
	case "openai":
		return name + " of an OpenAI-compatible server" + named(server) + dims
	}
	return model
}

// named is the address of a server that is not the usual one.
func named(server string) string {
	if server == "" {
		return ""
	}
	return " at " + server
}
