package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/history"
	"hark/testdata/demo"
)

// demoBudget is the token budget of the demo's contexts: small enough that choosing matters.
const demoBudget = 4000

// demoAnswer is what the demo shows for one question.
type demoAnswer struct {
	Kind            string            `json:"kind"`
	Question        string            `json:"question"`
	Session         string            `json:"session"`
	AskedAt         time.Time         `json:"asked_at"`
	Recalled        []demoItem        `json:"recalled"`
	Messages        []json.RawMessage `json:"messages"`
	EstimatedTokens int               `json:"estimatedTokens"`
	Budget          int               `json:"budget"`
	Expect          []demoExpect      `json:"expect"`
	TookMS          float64           `json:"took_ms"`

	why string
}

type demoItem struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Role    string    `json:"role"`
	Sender  string    `json:"sender"`
	Time    time.Time `json:"time"`
	Score   float64   `json:"score"`
	Lexical float64   `json:"lexical"`
	Dense   float64   `json:"dense"`
	Why     []string  `json:"why"`
	Text    string    `json:"text"`
}

type demoExpect struct {
	Text  string `json:"text"`
	Found bool   `json:"found"`
}

func newDemo(a *app) *cobra.Command {
	var keep string
	var brief bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See Hark recall, on a bundled history",
		Long: `Imports a bundled history (nine months of a household and a team, 34 sessions in
five languages) into a temporary store and asks six questions from a new session.
For each it shows what was recalled and why, and the context the model would get.

The demo reads every conversation of its household (recall.policy "agent"). By
default Hark keeps groups and other people's chats apart.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context(), keep, brief)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "keep the store in this folder, to try other commands with --data")
	cmd.Flags().BoolVar(&brief, "brief", false, "leave out the assembled contexts")
	return cmd
}

// demo runs the demo with settings of its own, so that it shows the same on every machine.
func (a *app) demo(ctx context.Context, keep string, brief bool) error {
	questions, err := demo.Questions()
	if err != nil {
		return err
	}
	if err := a.demoSettings(keep); err != nil {
		return err
	}
	var now time.Time
	a.clock = func() time.Time { return now }
	now = questions[0].AskedAt
	im, m, err := a.demoImport(ctx)
	if err != nil {
		return err
	}
	answers := make([]demoAnswer, 0, len(questions))
	good := 0
	for i, q := range questions {
		now = q.AskedAt
		ans, err := a.demoAsk(ctx, m, q)
		if err != nil {
			return fmt.Errorf("question %d: %w", i+1, err)
		}
		if ans.complete() {
			good++
		}
		answers = append(answers, ans)
		if !a.json {
			a.printAnswer(i+1, len(questions), ans, brief)
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"import": im, "store": keep, "questions": answers}); err != nil {
			return err
		}
	} else {
		a.demoEnd(good, len(answers), keep)
	}
	if good < len(answers) {
		return errReported
	}
	return nil
}

// demoSettings replaces the user's settings and decides where the store goes.
func (a *app) demoSettings(keep string) error {
	a.set = defaults(a.env)
	a.set.Recall.Policy = string(engine.PolicyAgent)
	a.set.Timezone = "Europe/Amsterdam"
	if _, err := loadZone(a.set.Timezone); err != nil {
		a.set.Timezone = "UTC" // a machine without time zones
	}
	if keep != "" {
		if found, err := filepath.Glob(filepath.Join(keep, "agents", "main", "*")); err == nil && len(found) > 0 {
			return fmt.Errorf("%s holds a store already: name a new folder with --keep, or remove it", keep)
		}
		a.set.Data = keep
		return nil
	}
	dir, err := os.MkdirTemp("", "hark-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	a.closers = append(a.closers, func() error { return os.RemoveAll(dir) })
	a.set.Data = dir
	return nil
}

func (a *app) demoImport(ctx context.Context) (imported, *memory, error) {
	start := time.Now()
	m, err := a.openAgent(ctx, writing)
	if err != nil {
		return imported{}, nil, err
	}
	h, err := history.Decode("the bundled history", demo.History, history.Options{Format: history.Chat})
	if err != nil {
		return imported{}, nil, err
	}
	quiet := *a
	quiet.quiet = true
	im := &importer{app: &quiet, into: m.engine, flags: importFlags{progress: "none"}, out: imported{Files: []importedFile{}}}
	if err := im.decoded(ctx, h, ""); err != nil {
		return im.out, nil, err
	}
	d := time.Since(start)
	im.out.TookMS = millis(d)
	if !a.json {
		a.printf("%s\n", a.term.bold("Hark demo: what was said months ago, in other sessions, when it is needed now"))
		for _, line := range wrap(fmt.Sprintf("Imported a history of %d messages in %d sessions, nine months of a household and a team, in %s (with its vectors; %d of them a scheduled job's, left out).",
			im.out.New, len(h.Sessions)-1, took(d), im.out.Skipped), a.term.room(0)) {
			a.printf("%s\n", line)
		}
	}
	return im.out, m, nil
}

// demoAsk asks one question from its session, which has no history.
func (a *app) demoAsk(ctx context.Context, m *memory, q demo.Question) (demoAnswer, error) {
	owner := true
	start := time.Now()
	res, err := m.engine.Assemble(ctx, engine.AssembleParams{
		SessionKey: q.Session, Messages: []json.RawMessage{}, TokenBudget: demoBudget, Prompt: q.Question, SenderIsOwner: &owner,
	})
	if err != nil {
		return demoAnswer{}, err
	}
	ans := demoAnswer{
		Kind: q.Kind, Question: q.Question, Session: q.Session, AskedAt: q.AskedAt, TookMS: millis(time.Since(start)),
		Messages: res.Messages, EstimatedTokens: res.EstimatedTokens, Budget: demoBudget, Recalled: []demoItem{}, why: q.Why,
	}
	if res.Trace != nil {
		if ans.Recalled, err = recalledItems(ctx, m, res.Trace.Recall.Items); err != nil {
			return demoAnswer{}, err
		}
	}
	context := ""
	for _, raw := range res.Messages {
		_, text := shown(raw)
		context += text + "\n"
	}
	context = strings.Join(strings.Fields(context), " ")
	for _, e := range q.Expect {
		ans.Expect = append(ans.Expect, demoExpect{e, strings.Contains(strings.ToLower(context), strings.ToLower(e))})
	}
	return ans, nil
}

// recalledItems adds the words to what a trace says was recalled.
func recalledItems(ctx context.Context, m *memory, items []engine.TraceItem) ([]demoItem, error) {
	out := make([]demoItem, 0, len(items))
	for _, it := range items {
		rows, err := m.store.Find(ctx, it.ID)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", it.ID, err)
		}
		text := ""
		if len(rows) > 0 {
			text = rows[0].Text
		}
		why := it.Why
		if why == nil {
			why = []string{}
		}
		out = append(out, demoItem{it.ID, it.Session, it.Role, it.Sender, it.Time, it.Score, it.Lexical, it.Dense, why, text})
	}
	return out, nil
}

func (d demoAnswer) complete() bool {
	for _, e := range d.Expect {
		if !e.Found {
			return false
		}
	}
	return true
}

func (a *app) printAnswer(n, of int, d demoAnswer, brief bool) {
	t := a.term
	rule := fmt.Sprintf("── %d of %d · %s ", n, of, d.Kind)
	a.printf("\n%s\n", t.dim(rule+strings.Repeat("─", max(0, t.width-columns(rule)))))
	a.printf("%s\n", t.dim(fmt.Sprintf("%s, in the new session %s", a.when(d.AskedAt), shortKey("main", d.Session))))
	for _, line := range wrap(d.Question, t.room(2)) {
		a.printf("%s %s\n", t.cyan("?"), t.bold(line))
	}
	sessions := map[string]bool{}
	for _, it := range d.Recalled {
		sessions[it.Session] = true
	}
	a.printf("\n%s\n", t.bold(fmt.Sprintf("Recalled: %s from %s, in %s", count(len(d.Recalled), "message"), count(len(sessions), "session"), took(time.Duration(d.TookMS*float64(time.Millisecond))))))
	for i, it := range d.Recalled {
		a.printRecalled(i+1, it, d.Expect)
	}
	if !brief {
		a.printf("\n%s\n", t.bold(fmt.Sprintf("Context for the model: %d of %d tokens", d.EstimatedTokens, d.Budget)))
		for _, raw := range d.Messages {
			_, text := shown(raw)
			for _, line := range wrap(text, t.room(4)) {
				a.printf("  %s %s\n", t.dim("│"), clean(line))
			}
		}
		for _, line := range wrap("user: "+d.Question, t.room(4)) {
			a.printf("  %s %s\n", t.dim("│"), t.dim(line))
		}
	}
	a.printf("\n")
	for _, e := range d.Expect {
		mark := t.green("✓ in the context:")
		if !e.Found {
			mark = t.red("✗ missing:")
		}
		a.printf("%s %s\n", mark, e.Text)
	}
	for _, line := range wrap("Why it is hard: "+d.why, t.room(0)) {
		a.printf("%s\n", t.dim(line))
	}
}

// printRecalled shows one recalled message: who, when and where on one line, its words, and why.
func (a *app) printRecalled(n int, it demoItem, expect []demoExpect) {
	t := a.term
	who := it.Sender
	if who == "" {
		who = it.Role
	}
	head := fmt.Sprintf("%2d  %s  %s  ", n, pad(cut(clean(who), 10), 10), a.when(it.Time))
	a.printf("%s%s\n", t.green(head), t.cyan(cut(clean(shortKey("main", it.Session)), t.room(columns(head)))))
	text := clean(it.Text)
	from := 0
	for _, e := range expect {
		if i := strings.Index(strings.ToLower(text), strings.ToLower(e.Text)); i >= 0 && len(strings.ToLower(text)) == len(text) {
			from = i
			break
		}
	}
	width := t.room(4)
	if columns(text[:from]) > width-columns("…") {
		text = "…" + text[wordStart(text, from, width/4):]
	}
	lines := wrap(text, width)
	if len(lines) > 2 {
		lines = []string{lines[0], cut(lines[1]+" …", width)}
	}
	for _, l := range lines {
		a.printf("    %s\n", l)
	}
	if len(it.Why) > 0 {
		a.printf("    %s\n", t.dim(cut("why: "+clean(strings.Join(it.Why, ", ")), width)))
	}
}

func (a *app) demoEnd(good, of int, keep string) {
	t := a.term
	a.printf("\n%s\n", t.dim(strings.Repeat("─", t.width)))
	mark := t.green("✓")
	if good < of {
		mark = t.red("✗")
	}
	a.printf("%s %d of %d questions have everything they need in the context\n", mark, good, of)
	if keep != "" {
		a.printf("The store is kept. Try: hark search --data %s \"boiler\"\n", keep)
	} else {
		a.printf("Now your own history: hark import ~/.openclaw/agents/main\n")
	}
}
