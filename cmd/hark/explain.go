package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/history"
	"hark/recall"
)

// explainBudget is the budget that is explained where none is given: what a large window leaves.
const explainBudget = 32_000

// explainQuery is what an explanation is asked with.
type explainQuery struct {
	Session  string            `json:"session"` // whole key
	Prompt   string            `json:"prompt"`
	Budget   int               `json:"budget,omitempty"` // default 32,000
	Owner    *bool             `json:"owner,omitempty"`
	Messages []json.RawMessage `json:"messages,omitempty"`
	IDs      []string          `json:"ids,omitempty"`
}

func explaining() question[explainQuery, engine.Explanation] {
	return question[explainQuery, engine.Explanation]{"explain", func(ctx context.Context, _ *app, m *memory, q explainQuery) (engine.Explanation, error) {
		if q.Budget <= 0 {
			q.Budget = explainBudget
		}
		if q.Messages == nil {
			q.Messages = []json.RawMessage{}
		}
		// Who asks by hand wants the whole answer: right after opening, vectors are still being read.
		if err := m.store.Loaded(ctx); err != nil {
			return engine.Explanation{}, fmt.Errorf("explain: %w", err)
		}
		return m.engine.Explain(ctx, engine.AssembleParams{
			SessionKey: q.Session, Messages: q.Messages, TokenBudget: engine.Tokens(q.Budget), Prompt: q.Prompt, SenderIsOwner: q.Owner,
		}, q.IDs...)
	}}
}

func newExplain(a *app) *cobra.Command {
	var q explainQuery
	var session, file string
	var asOwner bool
	cmd := &cobra.Command{
		Use:   "explain --session KEY --prompt TEXT [--id ID]",
		Short: "Say why messages are recalled for a prompt, or not",
		Long: `Recalls what "hark assemble" recalls for a prompt, and says of every message why it
is there, and of the best others why they are not. With --id it says what became of
that message, at which stage, with the scores of every stage:

  not stored       no message has this id
  not for recall   a heartbeat, a host's summary, tool output
  not in scope     the session may not see it: it is told of by its id alone
  nothing asked    the prompt asks nothing, or recall is off
  not retrieved    neither its words nor its meaning made it a candidate
  out-ranked       others match better
  on screen        the history in --messages shows it already
  gated            nothing is likely enough, or it is far below the best match
  superseded       the same person said something newer about it
  near copy        a better match says the same
  over budget      no room was left

It only looks: nothing is stored of it. The ids are those that hark search --json and
hark assemble show.`,
		Example: "  hark explain --session main --prompt \"what was the ssh port again?\"\n" +
			"  hark explain --session main --prompt \"what was the ssh port again?\" --id 6f1c2ab09d3e",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case session == "":
				return usage("name the session with --session, for example --session main")
			case !cmd.Flags().Changed("prompt"):
				return usage("give the words of the turn with --prompt")
			case q.Budget < 1:
				return usage("--budget has to be 1 or more tokens, not %d", q.Budget)
			}
			var err error
			if q.Messages, err = a.readMessages(file); err != nil {
				return err
			}
			if asOwner {
				q.Owner = &asOwner
			}
			q.Session = history.KeyFor(a.set.Agent, session)
			res, err := explaining().ask(cmd.Context(), a, q)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(res)
			}
			a.printExplanation(res)
			return nil
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "session of the turn: its key, or the rest of it after agent:"+"<agent>:")
	cmd.Flags().StringVar(&q.Prompt, "prompt", "", "what is said in this turn")
	cmd.Flags().StringArrayVar(&q.IDs, "id", nil, "message to ask about; may be given again")
	cmd.Flags().IntVar(&q.Budget, "budget", explainBudget, "tokens the messages may take")
	cmd.Flags().BoolVar(&asOwner, "as-owner", false, "take the person of a direct chat for the agent's owner")
	cmd.Flags().StringVar(&file, "messages", "", "file with the history before the prompt")
	a.sessionFlag(cmd)
	return cmd
}

// printExplanation shows what was asked about, what is recalled, and the best of what is not.
func (a *app) printExplanation(x engine.Explanation) {
	if len(x.Asked) > 0 {
		for _, m := range x.Asked {
			a.printExplained(m, "")
		}
		return
	}
	t := x.Trace.Recall
	if t.Question != "" {
		a.printf("asked for: %s\n", clean(t.Question))
		if t.Context != "" {
			a.printf("after: %s\n", clean(t.Context))
		}
	}
	if s := t.Search; s != nil {
		for _, w := range s.Times {
			a.printf("time: %s is %s to %s\n", clean(w.Words), a.when(w.From), a.when(w.To))
		}
		a.printf("confidence %.2f: room for %d of %d tokens\n", t.Confidence, t.Room, t.Cap)
		for _, leg := range []struct {
			name string
			recall.LegTrace
		}{{"words", s.Lexical}, {"meaning", s.Dense}} {
			if leg.Reason != "" {
				a.printf("%s: %s\n", leg.name, clean(leg.Reason))
			}
		}
	}
	if t.Reason != "" {
		a.printf("recall: %s\n", clean(t.Reason))
	}
	a.printf("\n%s\n", a.term.bold(fmt.Sprintf("recalled: %s", count(len(x.Shown), "message"))))
	for i, m := range x.Shown {
		a.printExplained(m, fmt.Sprintf("%d. ", i+1))
	}
	if len(x.Not) > 0 {
		a.printf("\n%s\n", a.term.bold("not recalled, best first"))
	}
	for _, m := range x.Not {
		a.printExplained(m, "")
	}
}

// printExplained shows the fate of a message, and under it the scores of the stages.
func (a *app) printExplained(m engine.Explained, lead string) {
	head := lead + m.ID
	if m.Role != "" {
		who := m.Sender
		if who == "" {
			who = m.Role
		}
		head += fmt.Sprintf("  %s  %s  %s", clean(who), a.when(m.Time), clean(shortKey(a.set.Agent, m.Session)))
	}
	a.printf("%s\n", cut(head, a.term.room(0)))
	a.indented("   ", fmt.Sprintf("%s: %s", m.Fate, m.Why), a.term.bold)
	if s := m.Scores; s != nil {
		a.indented("   ", stages(s), a.term.dim)
	}
}

// indented prints wrapped text behind a margin.
func (a *app) indented(margin, text string, paint func(string) string) {
	for _, line := range wrap(clean(text), a.term.room(len(margin))) {
		a.printf("%s%s\n", margin, paint(line))
	}
}

// stages lists the scores in the order in which they come about.
func stages(s *recall.Explanation) string {
	place := func(rank int) string {
		if rank == 0 {
			return "not among the hits"
		}
		return fmt.Sprintf("hit %d", rank)
	}
	parts := []string{
		fmt.Sprintf("words %s, %.2f (its own %.2f, its neighbours' %.2f, its session's %.2f)", place(s.LexicalRank), s.Lexical, s.Text, s.Context, s.Session),
		fmt.Sprintf("meaning %s, cosine %.2f (smoothed %.2f)", place(s.DenseRank), s.Cosine, s.Dense),
	}
	if s.Near > 0 {
		parts = append(parts, fmt.Sprintf("time %.2f", s.Near))
	}
	if s.Rank > 0 {
		parts = append(parts, fmt.Sprintf("score %.2f, rank %d", s.Score, s.Rank))
	}
	return strings.Join(parts, "; ")
}
