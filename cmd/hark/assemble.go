package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine"
	"hark/engine/history"
)

// assembleJSON is the result of hark assemble --json.
type assembleJSON struct {
	Messages             []json.RawMessage `json:"messages"`
	EstimatedTokens      int               `json:"estimatedTokens"`
	SystemPromptAddition string            `json:"systemPromptAddition"`
	Trace                *engine.Trace     `json:"trace"`
}

func newAssemble(a *app) *cobra.Command {
	var session, prompt, file string
	var budget int
	var asOwner bool
	cmd := &cobra.Command{
		Use:   "assemble --session KEY --budget N --prompt TEXT [--messages FILE]",
		Short: "Show the context a model would be given",
		Long: `Does what the engine does for a turn of the session: keeps what fits of the
history in --messages, and adds what it recalls for the prompt from the sessions
this one may see. It only looks: nothing is stored of it, so that it shows the same
again, and what was imported since.

What a session may see is what recall.policy says. A direct chat is its person's own,
unless OpenClaw has said that they are the agent's owner, or people.owner lists them;
--as-owner shows what the owner would be given there.

FILE holds the history before the prompt: a JSON array of messages, one message a
line, or a transcript in one of the formats of "hark import". Without it the
session is new. "-" is standard input.`,
		Example: "  hark assemble --session main --budget 4000 --prompt \"what was the ssh port again?\"",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case session == "":
				return usage("name the session with --session, for example --session main")
			case !cmd.Flags().Changed("budget"):
				return usage("give the token budget with --budget, for example --budget 8000")
			case budget < 1:
				return usage("--budget has to be 1 or more tokens, not %d", budget)
			case !cmd.Flags().Changed("prompt"):
				return usage("give the words of the turn with --prompt")
			}
			messages, err := a.readMessages(file)
			if err != nil {
				return err
			}
			eng, err := a.lifecycle(cmd.Context(), reading)
			if err != nil {
				return err
			}
			var owner *bool // as the store knows it
			if asOwner {
				owner = &asOwner
			}
			start := time.Now()
			res, err := eng.Assemble(cmd.Context(), engine.AssembleParams{
				SessionKey: history.KeyFor(a.set.Agent, session), Messages: messages, TokenBudget: engine.Tokens(budget),
				Prompt: prompt, SenderIsOwner: owner, Inspect: true,
			})
			if err != nil {
				return fmt.Errorf("assemble: %w", err)
			}
			if a.json {
				return a.printJSON(assembleJSON{res.Messages, res.EstimatedTokens, res.SystemPromptAddition, res.Trace})
			}
			a.printAssembled(res, budget, time.Since(start))
			return nil
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "session of the turn: its key, or the rest of it after agent:"+"<agent>:")
	cmd.Flags().IntVar(&budget, "budget", 0, "tokens the messages may take")
	cmd.Flags().StringVar(&prompt, "prompt", "", "what is said in this turn")
	cmd.Flags().BoolVar(&asOwner, "as-owner", false, "take the person of a direct chat for the agent's owner")
	cmd.Flags().StringVar(&file, "messages", "", "file with the history before the prompt")
	a.sessionFlag(cmd)
	return cmd
}

// readMessages reads the history of a turn.
func (a *app) readMessages(file string) ([]json.RawMessage, error) {
	if file == "" {
		return []json.RawMessage{}, nil
	}
	var data []byte
	var err error
	if file == "-" {
		file = "stdin"
		var buf bytes.Buffer
		_, err = buf.ReadFrom(a.in)
		data = buf.Bytes()
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(trimmed, &list); err != nil {
			return nil, fmt.Errorf("%s: not a JSON array of messages", file)
		}
		return list, nil
	}
	h, err := history.Decode(file, data, history.Options{Agent: a.set.Agent})
	if err != nil {
		return nil, err
	}
	list := []json.RawMessage{}
	for _, s := range h.Sessions {
		for _, e := range s.Entries {
			list = append(list, e.Message)
		}
	}
	return list, nil
}

// printAssembled shows a context as a model gets it.
func (a *app) printAssembled(res engine.AssembleResult, budget int, d time.Duration) {
	if res.SystemPromptAddition != "" {
		a.printf("%s\n", a.term.bold("system prompt addition"))
		a.block(res.SystemPromptAddition)
	}
	for _, raw := range res.Messages {
		role, text := shown(raw)
		a.printf("%s\n", a.term.bold(role))
		a.block(text)
	}
	t := res.Trace
	if t == nil {
		return
	}
	tell := func(paint func(string) string, format string, args ...any) {
		for _, line := range wrap(clean(fmt.Sprintf(format, args...)), a.term.room(0)) {
			a.printf("%s\n", paint(line))
		}
	}
	tell(a.term.dim, "%s, about %d of %d tokens (recall %d), in %s", count(len(res.Messages), "message"), res.EstimatedTokens, budget, t.Budget.Recall, took(d))
	if res.EstimatedTokens > budget {
		tell(a.term.yellow, "over the budget: the last turn does not fit, even shortened")
	}
	for _, n := range t.Notes {
		tell(a.term.dim, "%s", n)
	}
	if t.Window.Dropped > 0 {
		tell(a.term.dim, "%s left out: %s", count(t.Window.Dropped, "older message"), t.Window.Reason)
	}
	if t.Recall.Reason != "" {
		tell(a.term.dim, "recall: %s", t.Recall.Reason)
	}
	for _, it := range t.Recall.Items {
		who := it.Sender
		if who == "" {
			who = it.Role
		}
		line := fmt.Sprintf("recalled %s: %s, %s, %s — %s", it.ID, who, a.when(it.Time), shortKey(a.set.Agent, it.Session), strings.Join(it.Why, ", "))
		a.printf("%s\n", a.term.dim(cut(clean(line), a.term.room(0))))
	}
}

// block prints text with a margin.
func (a *app) block(text string) {
	for _, line := range wrap(text, a.term.room(4)) {
		a.printf("  %s %s\n", a.term.dim("│"), clean(line))
	}
	a.printf("\n")
}

// shown is the role of a message and its text, as far as it is text.
func shown(raw json.RawMessage) (role, text string) {
	var m struct {
		Role       string          `json:"role"`
		CustomType string          `json:"customType"`
		Content    json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return "message", string(raw)
	}
	role = m.Role
	if m.CustomType != "" {
		role += " (" + m.CustomType + ")"
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return role, text
	}
	var blocks []struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil {
		return role, string(m.Content)
	}
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Text != "":
			parts = append(parts, b.Text)
		case b.Name != "":
			parts = append(parts, fmt.Sprintf("[calls %s %s]", b.Name, b.Arguments))
		default:
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return role, strings.Join(parts, "\n")
}
