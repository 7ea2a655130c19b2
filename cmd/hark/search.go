package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hark/engine/history"
	"hark/recall"
)

// searchHit is one hit as --json shows it.
type searchHit struct {
	ID      string    `json:"id"`
	Score   float64   `json:"score"`
	Lexical float64   `json:"lexical"`
	Dense   float64   `json:"dense"`
	Session string    `json:"session"`
	Role    string    `json:"role"`
	Sender  string    `json:"sender"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`
}

func newSearch(a *app) *cobra.Command {
	var k int
	var session string
	var trace bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find stored messages by words and meaning",
		Long: `Finds the stored messages that answer a question best, by their words and by
their meaning. All of the agent's conversations are searched: you are its owner.
What a session of the agent may recall is narrower, see "hark assemble".`,
		Example: "  hark search \"which port did we pick for ssh\"\n  hark search -k 3 --session telegram:direct:42 boiler",
		RunE: func(cmd *cobra.Command, args []string) error {
			query := strings.TrimSpace(strings.Join(args, " "))
			switch {
			case query == "":
				return usage("say what to search for")
			case k < 1 || k > 1000:
				return usage("-k has to be between 1 and 1000, not %d", k)
			}
			if session != "" {
				session = history.KeyFor(a.set.Agent, session)
			}
			res, err := searching().ask(cmd.Context(), a, searchQuery{query, k, session, trace})
			if err != nil {
				return err
			}
			if a.json {
				return a.searchJSON(res)
			}
			a.searchText(res, session)
			if trace {
				return a.printJSON(res.Trace)
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&k, "limit", "k", 10, "hits to show")
	cmd.Flags().StringVar(&session, "session", "", "search this session only: its key, or the rest of it after agent:"+"<agent>:")
	cmd.Flags().BoolVar(&trace, "trace", false, "show how every stage came to its result")
	a.sessionFlag(cmd)
	return cmd
}

func (a *app) searchJSON(res found) error {
	out := struct {
		Hits   []searchHit   `json:"hits"`
		TookMS float64       `json:"took_ms"`
		Trace  *recall.Trace `json:"trace,omitempty"`
	}{Hits: []searchHit{}, TookMS: res.TookMS, Trace: res.Trace}
	for _, h := range res.Hits {
		out.Hits = append(out.Hits, h.searchHit)
	}
	return a.printJSON(out)
}

func (a *app) searchText(res found, session string) {
	if len(res.Hits) == 0 {
		where := ""
		if session != "" {
			where = " in session " + session
		}
		a.printf("nothing found%s\n", where)
		return
	}
	for i, h := range res.Hits {
		a.printHit(i+1, h.hit())
	}
	note := ""
	if res.Words != "" {
		note = "; by words only: " + res.Words
	}
	d := time.Duration(res.TookMS * float64(time.Millisecond))
	a.printf("%s\n", a.term.dim(fmt.Sprintf("%s in %s%s", count(len(res.Hits), "hit"), took(d), note)))
}

// printHit shows one hit: who, when, where, how it scored, and the words around the match.
func (a *app) printHit(rank int, h recall.Hit) {
	m := h.Message
	head := fmt.Sprintf("%2d. ", rank)
	who := m.Sender
	if who == "" {
		who = m.Role
	} else if m.Role != "user" {
		who += " (" + m.Role + ")"
	}
	who = clean(who)
	beside := columns(head+who+a.when(m.Time)) + 4
	a.printf("%s%s  %s  %s\n", head, a.term.bold(who), a.when(m.Time), a.term.cyan(cut(clean(shortKey(a.set.Agent, m.Session)), a.term.room(beside))))
	indent := strings.Repeat(" ", len(head))
	for _, line := range a.excerpt(h, a.term.room(len(indent)), 3) {
		a.printf("%s%s\n", indent, line)
	}
	scores := fmt.Sprintf("score %.3f (words %.3f, meaning %.3f)", h.Score, h.Lexical, h.Dense)
	if len(h.Why) > 0 {
		scores += " · " + strings.Join(h.Why, ", ")
	}
	a.printf("%s%s\n\n", indent, a.term.dim(cut(clean(scores), a.term.room(len(indent)))))
}

// excerpt shows the text around the first match in at most so many lines, with the matched words marked.
func (a *app) excerpt(h recall.Hit, width, lines int) []string {
	text, spans := h.Message.Text, h.Matched
	room := width * lines
	from := 0
	if len(spans) > 0 && columns(clean(text[:spans[0].Start])) > room/2 {
		from = wordStart(text, spans[0].Start, room/4)
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	at := from
	for _, s := range spans {
		if s.Start < at || s.End > len(text) {
			continue
		}
		b.WriteString(clean(text[at:s.Start]) + markOn + clean(text[s.Start:s.End]) + markOff)
		at = s.End
	}
	b.WriteString(clean(text[at:]))
	out := wrap(strings.Join(strings.Fields(b.String()), " "), width)
	if len(out) > lines {
		out = out[:lines]
		out[lines-1] = cut(out[lines-1]+" …", width)
	}
	return a.mark(out)
}

// The marks around matched words while text is cut and wrapped: characters without width that
// clean has taken out of the text itself.
const (
	markOn  = "\u2066"
	markOff = "\u2069"
)

// mark turns the marks into bold type, or into nothing.
func (a *app) mark(lines []string) []string {
	on := false
	for i, l := range lines {
		begins := ""
		if on {
			begins = markOn
		}
		l = begins + l
		on = strings.Count(l, markOn) > strings.Count(l, markOff)
		if on {
			l += markOff
		}
		if a.term.colour {
			l = strings.NewReplacer(markOn, "\x1b[1;33m", markOff, "\x1b[0m").Replace(l)
		} else {
			l = strings.NewReplacer(markOn, "", markOff, "").Replace(l)
		}
		lines[i] = l
	}
	return lines
}

// wordStart goes back from at by up to n bytes to the beginning of a word.
func wordStart(text string, at, n int) int {
	from := max(0, at-n)
	if i := strings.IndexByte(text[from:at], ' '); from > 0 && i >= 0 {
		from += i + 1
	}
	for from > 0 && from < len(text) && text[from]&0xC0 == 0x80 {
		from--
	}
	return from
}
