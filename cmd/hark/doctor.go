package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/embed"
	"hark/engine"
	"hark/engine/wire"
	"hark/index"
	"hark/recall"
)

// The verdicts of the doctor.
const (
	healthy = "ok"
	notice  = "note"   // worth knowing, nothing is broken
	broken  = "broken" // Hark does not do its work, or not all of it
)

// finding is one line of the doctor's: what was looked at, how it is, and what to do about it.
type finding struct {
	What    string `json:"what"`
	Verdict string `json:"verdict"` // "ok", "note" or "broken"
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy,omitempty"`
}

// doctor collects findings.
type doctor struct {
	*app
	host     hostConfig
	findings []finding
}

func (d *doctor) found(what, verdict, detail, remedy string) {
	d.findings = append(d.findings, finding{what, verdict, detail, remedy})
}

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that OpenClaw uses Hark, and that Hark can work",
		Long: `Looks at everything between a turn of an agent and its memory: the program,
OpenClaw's configuration and its context engine slot, the daemon and its socket,
the stores, a real search in each, the embedder, and when Hark last served and last
stored a turn of each agent. Changes nothing and starts nothing.

What is broken has a remedy in the line below it, and makes the exit code 1.
Without --data the data folder is the one that OpenClaw's plugin uses.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{app: a}
			d.examine(cmd.Context(), cmd.Flags().Changed("data"))
			ill := slices.ContainsFunc(d.findings, func(f finding) bool { return f.Verdict == broken })
			if a.json {
				if err := a.printJSON(map[string]any{"ok": !ill, "data": a.set.Data, "findings": d.findings}); err != nil {
					return err
				}
			} else {
				d.print()
			}
			if ill {
				return errReported
			}
			return nil
		},
	}
}

func (d *doctor) print() {
	for _, f := range d.findings {
		mark := d.term.green(pad(f.Verdict, 6))
		switch f.Verdict {
		case notice:
			mark = d.term.yellow(pad(f.Verdict, 6))
		case broken:
			mark = d.term.red(pad(f.Verdict, 6))
		}
		const beside, below = 24, 8
		d.printf("%s  %s", mark, d.term.bold(f.What))
		indent, first := beside, strings.Repeat(" ", max(2, beside-below-columns(f.What)))
		if d.term.room(0) < 3*beside { // too narrow for two columns
			indent, first = below, "\n"+strings.Repeat(" ", below)
		}
		lines := wrap(clean(f.Detail), d.term.room(indent))
		if f.Remedy != "" {
			lines = append(lines, wrap("→ "+f.Remedy, d.term.room(indent))...)
		}
		for i, line := range lines {
			if i > 0 {
				first = strings.Repeat(" ", indent)
			}
			d.printf("%s%s\n", first, line)
		}
	}
}

// examine looks at everything, in the order in which a turn passes it.
func (d *doctor) examine(ctx context.Context, dataGiven bool) {
	d.program()
	d.hostAndSlot(dataGiven)
	if d.set.Data == "" {
		d.found("data", broken, "there is no home folder, and no data folder is named", "name one with --data or HARK_DATA")
		return
	}
	d.found("data", healthy, shortHome(d.env, d.set.Data), "")
	client := d.daemon(ctx)
	if client != nil {
		defer client.Close()
	}
	agents := d.agents()
	for _, agent := range agents {
		if d.store(ctx, client, agent) {
			d.search(ctx, client, agent)
		}
	}
	d.embedder(ctx)
	for _, agent := range agents {
		d.turns(agent)
	}
}

// program is this one; the plugin may be set to use another.
func (d *doctor) program() {
	v, _ := buildVersion()
	self, err := os.Executable()
	if err != nil {
		self = "hark"
	}
	d.found("program", healthy, fmt.Sprintf("hark %s, %s/%s (%s)", v, runtime.GOOS, runtime.GOARCH, shortHome(d.env, self)), "")
}

// hostAndSlot looks at OpenClaw's configuration, and takes the data folder from it.
func (d *doctor) hostAndSlot(dataGiven bool) {
	var err error
	if d.host, err = readHostConfig(d.env); err != nil {
		d.found("openclaw", broken, err.Error(), "correct the file; \"openclaw config validate\" says what is wrong with it")
		return
	}
	if !dataGiven && d.host.exists {
		d.set.Data = d.host.data(d.env)
	}
	if what, remedy := d.host.problem(); what != "" {
		d.found("openclaw", broken, "OpenClaw does not use Hark: "+what, remedy)
	} else {
		d.found("openclaw", healthy, "the context engine is hark ("+shortHome(d.env, d.host.path)+")", "")
	}
	entry := d.host.Plugins.Entries[engine.ID].Config
	if entry.Binary != "" {
		if _, err := exec.LookPath(entry.Binary); err != nil {
			d.found("plugin", broken, fmt.Sprintf("the option \"binary\" names %s, which cannot be run", entry.Binary),
				"openclaw config set plugins.entries.hark.config.binary PATH, or unset it to use the program of the plugin")
		}
	}
	if dataGiven && d.host.exists {
		if used := d.host.data(d.env); filepath.Clean(used) != filepath.Clean(d.set.Data) {
			d.found("plugin", notice, "OpenClaw's plugin keeps its data in "+shortHome(d.env, used), "leave --data out to look there")
		}
	}
}

// daemon looks for the daemon and its socket. It returns a client where one answers.
func (d *doctor) daemon(ctx context.Context) *wire.Client {
	if info, err := os.Stat(d.set.Data); err == nil && info.IsDir() && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		d.found("data", broken, fmt.Sprintf("others may read the data folder (%v)", info.Mode().Perm()), "chmod 700 "+d.set.Data)
	}
	client, hello, err := wire.Find(ctx, d.set.Data, 2*time.Second)
	var answered *wire.Error
	switch {
	case err == nil:
		up := (time.Duration(hello.UptimeMs) * time.Millisecond).Round(time.Second)
		d.found("daemon", healthy, fmt.Sprintf("process %d answers, version %s, for %s", hello.PID, hello.Version, up), "")
		if v, _ := buildVersion(); hello.Version != v {
			d.found("daemon", notice, fmt.Sprintf("it is version %s, this program %s", hello.Version, v), fmt.Sprintf("kill %d; the next turn starts the plugin's own", hello.PID))
		}
		d.socket()
		return client
	case errors.Is(err, wire.ErrNotRunning):
		d.found("daemon", healthy, "none runs; the next turn starts one", "")
	case errors.As(err, &answered):
		d.found("daemon", broken, answered.Message, answered.Remedy)
	default:
		d.found("daemon", broken, "it does not answer: "+err.Error(), "end the process named in "+filepath.Join(d.set.Data, "daemon.json")+"; the next turn starts another")
	}
	return nil
}

// socket looks at who may connect.
func (d *doctor) socket() {
	var record struct{ Socket, Address string }
	data, err := os.ReadFile(filepath.Join(d.set.Data, "daemon.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		d.found("socket", broken, "daemon.json cannot be read: "+err.Error(), "end the daemon; the next turn starts another")
		return
	}
	if record.Socket == "" {
		d.found("socket", healthy, record.Address+", with a token", "")
		return
	}
	info, err := os.Stat(record.Socket)
	switch {
	case err != nil:
		d.found("socket", broken, err.Error(), "end the daemon; the next turn starts another")
	case info.Mode().Perm()&0o077 != 0:
		d.found("socket", broken, fmt.Sprintf("others may use it: %s (%v)", record.Socket, info.Mode().Perm()), "chmod 600 "+record.Socket)
	default:
		d.found("socket", healthy, shortHome(d.env, record.Socket), "")
	}
}

// agents are those of OpenClaw's configuration, those that have a store and those that had a turn.
func (d *doctor) agents() []string {
	ids := slices.Collect(maps.Keys(d.host.Agents.Entries))
	for _, agent := range d.host.Agents.List {
		ids = append(ids, agent.ID)
	}
	if notes, err := os.ReadDir(filepath.Join(d.set.Data, "host")); err == nil {
		for _, note := range notes {
			if name, ok := strings.CutSuffix(note.Name(), ".json"); ok {
				if id, err := url.PathUnescape(name); err == nil {
					ids = append(ids, id)
				}
			}
		}
	}
	if stores, err := os.ReadDir(filepath.Join(d.set.Data, "agents")); err == nil {
		for _, dir := range stores {
			if !slices.ContainsFunc(ids, func(id string) bool { return safeName(id) == dir.Name() }) {
				ids = append(ids, dir.Name())
			}
		}
	}
	if len(ids) == 0 {
		ids = append(ids, d.set.Agent)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// store looks into an agent's store, through the daemon where one holds it. It returns whether there is
// something to search.
func (d *doctor) store(ctx context.Context, client *wire.Client, agent string) bool {
	what := "store " + agent
	dir := filepath.Join(d.set.Data, "agents", safeName(agent))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		d.found(what, notice, "nothing is stored yet", "")
		return false
	}
	var rows int
	var bad []string
	var err error
	if client != nil {
		var out struct {
			Status struct {
				Messages int               `json:"messages"`
				Errors   []string          `json:"errors"`
				Degraded []engine.Degraded `json:"degraded"`
			} `json:"status"`
		}
		if err = client.Status(ctx, agent, &out); err == nil {
			rows, bad = out.Status.Messages, out.Status.Errors
		}
		for _, ill := range out.Status.Degraded {
			if ill.What != engine.DegradedMeaning { // the search tells of that
				bad = append(bad, fmt.Sprintf("%s since %s: %s", ill.What, d.when(ill.Since), ill.Reason))
			}
		}
	} else {
		rows, bad, err = d.peek(ctx, dir)
	}
	switch {
	case err != nil:
		d.found(what, broken, err.Error(), storeRemedy(err, agent))
	case len(bad) > 0:
		d.found(what, broken, strings.Join(bad, "; "), "hark check --agent "+agent)
	default:
		d.found(what, healthy, fmt.Sprintf("%s (%s)", count(rows, "message"), shortHome(d.env, dir)), "")
	}
	return err == nil && rows > 0
}

// search tries what a turn does: a search by words and meaning, as the daemon does it where one runs.
func (d *doctor) search(ctx context.Context, client *wire.Client, agent string) {
	what := "search " + agent
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const probe = "a question of the doctor"
	start := d.now()
	var wordsOnly string
	var err error
	if client != nil {
		var out found
		err = client.Call(ctx, agent, "search", searchQuery{Query: probe, K: 1}, &out)
		wordsOnly = out.Words
	} else {
		err = d.searchHere(ctx, agent, probe)
	}
	switch {
	case err != nil:
		d.found(what, broken, err.Error(), storeRemedy(err, agent))
	case client == nil:
		d.found(what, healthy, "answers in "+took(d.now().Sub(start))+", by words; the daemon searches the meaning too", "")
	case wordsOnly != "" && d.set.Embedder.Provider == "none":
		d.found(what, healthy, "answers in "+took(d.now().Sub(start))+", by words only: no embedder is set", "")
	case wordsOnly != "":
		d.found(what, broken, "answers by words only: "+wordsOnly, "see the line about the embedder; words are still found")
	default:
		d.found(what, healthy, "answers in "+took(d.now().Sub(start))+", by words and meaning", "")
	}
}

// searchHere searches a store that no daemon answers for, by words and without writing to it: the vectors
// are for whoever holds it.
func (d *doctor) searchHere(ctx context.Context, agent, text string) error {
	dir := filepath.Join(d.set.Data, "agents", safeName(agent))
	store, err := index.Open(ctx, dir, &index.Options{Log: d.logger(), ReadOnly: true})
	if err != nil {
		return err
	}
	_, err = recall.NewSearcher(store, nil, d.set.engine().Recall, d.logger()).Search(ctx, recall.Request{
		Question: recall.Question{Text: text}, Filter: index.Filter{AllScopes: true}, K: 1,
	})
	return errors.Join(err, store.Close())
}

// peek reads a store's status without writing to it.
func (d *doctor) peek(ctx context.Context, dir string) (rows int, bad []string, err error) {
	store, err := index.Open(ctx, dir, &index.Options{Log: d.logger(), ReadOnly: true})
	if err != nil {
		return 0, nil, err
	}
	st, err := store.Status(ctx)
	return st.Rows, st.Errors, errors.Join(err, store.Close())
}

func storeRemedy(err error, agent string) string {
	switch {
	case errors.Is(err, index.ErrNewer):
		return "update this program; the store was written by a newer one"
	case errors.Is(err, index.ErrLocked):
		return "another hark is using it; wait for it to end"
	}
	var answered *wire.Error
	if errors.As(err, &answered) && answered.Remedy != "" {
		return answered.Remedy
	}
	return "hark check --agent " + agent
}

// embedder tries the embedder with a text of no meaning; a remote one has to answer.
func (d *doctor) embedder(ctx context.Context) {
	emb, err := embed.New(d.set.embedder(), d.logger())
	if err != nil {
		d.found("embedder", broken, err.Error(), "hark config shows the settings and where they come from")
		return
	}
	if emb == nil {
		d.found("embedder", notice, "none: messages are found by their words only", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	start := d.now()
	if _, err := emb.Embed(ctx, embed.Query, []string{"probe"}); err != nil {
		d.found("embedder", broken, embedderWords(emb.Model().String())+" does not answer: "+err.Error(), "check the server and embedder.base_url (hark config); words are still found")
		return
	}
	d.found("embedder", healthy, fmt.Sprintf("%s answers in %s", embedderWords(emb.Model().String()), took(d.now().Sub(start))), "")
}

// turnsNote is what the plugin writes down about an agent: see plugin/src/ledger.ts.
type turnsNote struct {
	Served    time.Time `json:"served"`
	Committed time.Time `json:"committed"`
	Failed    struct {
		At   time.Time `json:"at"`
		What string    `json:"what"`
	} `json:"failed"`
}

// turns says when Hark last served and last stored a turn of an agent.
func (d *doctor) turns(agent string) {
	what := "turns of " + agent
	var note turnsNote
	data, err := os.ReadFile(filepath.Join(d.set.Data, "host", url.PathEscape(agent)+".json"))
	if err == nil {
		err = json.Unmarshal(data, &note)
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.found(what, notice, "OpenClaw has not asked Hark yet", "send the agent a message, then look again; a gateway that runs since before the installation has to be restarted")
		return
	}
	if err != nil {
		d.found(what, notice, "the note about them cannot be read: "+err.Error(), "")
		return
	}
	detail := "last served " + d.ago(note.Served) + ", last stored " + d.ago(note.Committed)
	latest := note.Served
	if note.Committed.After(latest) {
		latest = note.Committed
	}
	switch {
	case note.Failed.At.After(latest):
		d.found(what, broken, detail+"; then failed "+d.ago(note.Failed.At)+": "+note.Failed.What, "see the lines above, and serve.log and logs in "+d.set.Data)
	case note.Served.IsZero():
		d.found(what, notice, detail, "turns are stored, but this host asks for no context: recall is off there")
	default:
		d.found(what, healthy, detail, "")
	}
}

func (d *doctor) ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	passed := d.now().Sub(t).Round(time.Second)
	if passed < 48*time.Hour {
		return max(0, passed).String() + " ago"
	}
	return d.when(t)
}

// now is the app's clock.
func (d *doctor) now() time.Time {
	if d.clock != nil {
		return d.clock()
	}
	return time.Now()
}
