package cache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"hark/engine"
)

// Plan says what a made-up session is like; zero fields mean the defaults of Mixed.
type Plan struct {
	Name      string
	Turns     int
	Seed      uint64
	Budget    int     // tokens
	Tools     float64 // share of turns with a tool loop
	Calls     int     // most calls of a loop
	Output    int     // most words of a call's output
	Questions float64 // share of turns that ask about something an earlier session holds
	Topic     int     // turns until the topic changes
	Compact   int     // turns until the host compacts; 0: never
	NoMemory  bool    // no earlier sessions
}

// Plans are the sessions that are made up: the one an agent's day looks like, and its extremes.
func Plans(turns int, seed uint64) []Plan {
	mixed := Plan{Name: "mixed", Turns: turns, Seed: seed, Budget: 100_000, Tools: 0.4, Calls: 4, Output: 400, Questions: 0.25, Topic: 12, Compact: 70}
	chat, tools, steady, nothing := mixed, mixed, mixed, mixed
	chat.Name, chat.Tools = "chat", 0
	tools.Name, tools.Tools, tools.Calls, tools.Output, tools.Compact = "tools", 0.9, 8, 700, 30
	steady.Name, steady.Compact, steady.Budget = "steady", 0, 60_000
	nothing.Name, nothing.NoMemory, nothing.Questions, nothing.Compact = "nothing recalled", true, 0, 0
	nothing.Budget = 400_000
	work := mixed
	work.Name, work.Tools, work.Calls, work.Output, work.Compact, work.Budget = "work", 0.8, 8, 3000, 15, 200_000
	return []Plan{mixed, chat, tools, work, steady, nothing}
}

// writer makes the words of a session.
type writer struct {
	rng   *rand.Rand
	at    int64 // Unix milliseconds
	ids   int
	words []string // of the topic
}

// topicWords invents the vocabulary of a topic: names and terms that only it uses.
func (w *writer) topicWords() []string {
	syllables := strings.Fields("ba co di fu ga hel in jo ka lu mer no or pi qua ro su tan ul vo wex yl zan")
	out := make([]string, 150)
	for i := range out {
		for range 2 + w.rng.IntN(2) {
			out[i] += syllables[w.rng.IntN(len(syllables))]
		}
	}
	return out
}

var (
	places = strings.Fields("attic cellar greenhouse harbour workshop library clinic bakery orchard stadium embassy quarry lighthouse monastery foundry archive")
	things = strings.Fields("server printer boiler router freezer projector generator turntable scanner sprinkler elevator telescope kiln compressor antenna safe")
	traits = []string{"serial number", "spare key", "maintenance window", "supplier", "warranty date", "static address", "access code", "filter size"}
	common = strings.Fields("first then after that we look at how it behaves when the load goes up and write down what changed because nobody remembers it later the numbers are close to last week but not equal so check again with another sample before anything is decided about money time people or the order of steps")
)

// Synthetic makes a session up. The same plan gives the same session.
func Synthetic(p Plan) *Session {
	w := &writer{rng: rand.New(rand.NewPCG(p.Seed, 1)), at: 1_770_000_000_000}
	vocabulary := make([][]string, len(places))
	for i := range vocabulary {
		vocabulary[i] = w.topicWords()
	}
	s := &Session{Name: p.Name, Key: "agent:main:main", Budget: p.Budget}
	if !p.NoMemory {
		s.Memory = w.memory(vocabulary)
	}
	w.at = 1_790_000_000_000
	for i := range vocabulary { // what is worked on now has words of its own
		vocabulary[i] = w.topicWords()
	}
	topic := 0
	for i := range p.Turns {
		if i%p.Topic == 0 {
			topic = w.rng.IntN(len(places))
			w.words = vocabulary[topic]
		}
		t := w.turn(p, topic)
		t.Compact = p.Compact > 0 && i > 0 && i%p.Compact == 0
		s.Turns = append(s.Turns, t)
	}
	return s
}

// memory is what was said about every thing in every place, a session for each place.
func (w *writer) memory(vocabulary [][]string) (out []engine.IngestBatchParams) {
	for i, place := range places {
		key := "agent:main:explicit:" + place
		w.words = vocabulary[i]
		var ms []json.RawMessage
		for j, thing := range things {
			for k, trait := range traits {
				if (i+j+k)%3 != 0 {
					continue
				}
				ms = append(ms, w.user(fmt.Sprintf("Please note: the %s of the %s in the %s is %s-%d. %s", trait, thing, place, strings.ToUpper(trait[:2]), 1000+w.rng.IntN(9000), w.jargon(10+w.rng.IntN(50)))),
					w.answer("Noted. "+w.jargon(5+w.rng.IntN(20))))
			}
		}
		out = append(out, engine.IngestBatchParams{SessionID: place, SessionKey: key, Messages: ms})
	}
	return out
}

func (w *writer) turn(p Plan, topic int) Turn {
	place := places[topic]
	thing := things[w.rng.IntN(len(things))]
	var prompt string
	switch x := w.rng.Float64(); {
	case x < p.Questions:
		prompt = fmt.Sprintf("What was the %s of the %s in the %s?", traits[w.rng.IntN(len(traits))], thing, place)
	case x < p.Questions+0.15:
		prompt = []string{"ok", "thanks!", "go on", "yes, do that", "looks good"}[w.rng.IntN(5)]
	default:
		prompt = "Draft the next paragraph: " + w.text(15+w.rng.IntN(60))
	}
	t := Turn{Prompt: prompt, Messages: []json.RawMessage{w.user(prompt)}}
	if w.rng.Float64() < p.Tools {
		for range 1 + w.rng.IntN(p.Calls) {
			t.Messages = append(t.Messages, w.call(p.Output)...)
		}
	}
	t.Messages = append(t.Messages, w.answer(w.text(30+w.rng.IntN(200))))
	return t
}

// jargon is n words of the topic.
func (w *writer) jargon(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = w.words[w.rng.IntN(len(w.words))]
	}
	return strings.Join(out, " ")
}

// text is n words, every third of them the topic's.
func (w *writer) text(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w.rng.IntN(3) == 0 {
			b.WriteString(w.words[w.rng.IntN(len(w.words))])
		} else {
			b.WriteString(common[w.rng.IntN(len(common))])
		}
	}
	return b.String()
}

func (w *writer) tick() int64 {
	w.at += 1000 + w.rng.Int64N(60_000)
	return w.at
}

func (w *writer) user(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q,"timestamp":%d,"__openclaw":{"senderIsOwner":true}}`, text, w.tick()))
}

func (w *writer) answer(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}],"stopReason":"stop","timestamp":%d}`, text, w.tick()))
}

func (w *writer) call(output int) []json.RawMessage {
	w.ids++
	return []json.RawMessage{
		json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"call_%d","name":"read","arguments":{"path":"notes/%d.md"}}],"stopReason":"toolUse","timestamp":%d}`, w.ids, w.ids, w.tick())),
		json.RawMessage(fmt.Sprintf(`{"role":"toolResult","toolCallId":"call_%d","toolName":"read","content":[{"type":"text","text":%q}],"isError":false,"timestamp":%d}`, w.ids, w.text(20+w.rng.IntN(output)), w.tick())),
	}
}
