package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"hark/engine"
)

// synth makes a history that behaves like a real one where it matters for speed and size: words
// are used with Zipf's frequencies, topics come back over months, messages are short with a long
// tail, one in ten is tool output, and identifiers, numbers and names are rare words. The same
// seed and total give the same history.
type synth struct {
	rng   *rand.Rand
	zipf  *rand.Zipf // ranks of words
	words []string   // most frequent first
	total int
	made  int
	nth   int // session
	now   time.Time

	kept []string // some of the messages, to ask about
}

// synthQuestion asks for one message of the history.
type synthQuestion struct{ Text, Source string }

func newSynth(seed int64, total int) *synth {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x6861726b))
	s := &synth{rng: rng, total: total, now: time.Date(2025, 1, 6, 8, 0, 0, 0, time.UTC), words: benchWords(rng)}
	s.zipf = rand.NewZipf(rng, 1.1, 12, uint64(len(s.words)-1))
	return s
}

// session makes the next session, and none when the history has its length.
func (s *synth) session() (key string, page []engine.HistoryEntry) {
	left := s.total - s.made
	if left <= 0 {
		return "", nil
	}
	n := min(left, 8+int(s.rng.ExpFloat64()*52))
	if left-n < 8 {
		n = left
	}
	kinds := []string{"explicit:bench-%d", "telegram:direct:%d", "discord:channel:%d", "whatsapp:group:%d"}
	key = "agent:main:" + fmt.Sprintf(kinds[s.rng.IntN(len(kinds))], s.nth)
	s.now = s.now.Add(time.Duration(1+s.rng.IntN(40)) * time.Hour)
	topic := s.topic()
	people := []string{benchNames[s.rng.IntN(len(benchNames))], benchNames[s.rng.IntN(len(benchNames))]}
	for i := range n {
		s.now = s.now.Add(time.Duration(10+s.rng.IntN(120)) * time.Second)
		raw, role, text := s.message(i, topic, people)
		page = append(page, engine.HistoryEntry{
			EntryID: fmt.Sprintf("b%d-%d", s.nth, i), Seq: int64(i + 1), Role: role, CreatedAt: s.now.Format(time.RFC3339), Message: raw,
		})
		if role != "toolResult" && (len(s.kept) < 2000 || s.rng.IntN(40) == 0) && len(strings.Fields(text)) > 8 {
			if len(s.kept) < 2000 {
				s.kept = append(s.kept, text)
			} else {
				s.kept[s.rng.IntN(len(s.kept))] = text
			}
		}
	}
	s.made += n
	s.nth++
	return key, page
}

// topic is a handful of words that a session keeps coming back to.
func (s *synth) topic() []string {
	out := make([]string, 12)
	for i := range out {
		out[i] = s.words[30+s.rng.IntN(len(s.words)-30)]
	}
	return out
}

// message makes the i-th message of a session, in the host's form.
func (s *synth) message(i int, topic, people []string) (raw json.RawMessage, role, text string) {
	type host struct {
		SenderName string `json:"senderName,omitempty"`
	}
	msg := struct {
		Role      string `json:"role"`
		Content   string `json:"content"`
		Timestamp int64  `json:"timestamp"`
		ToolName  string `json:"toolName,omitempty"`
		Host      *host  `json:"__openclaw,omitempty"`
	}{Timestamp: s.now.UnixMilli()}
	switch {
	case i%10 == 7:
		msg.Role, msg.ToolName, msg.Content = "toolResult", "exec", s.toolOutput()
	case i%2 == 0:
		msg.Role, msg.Content = "user", s.prose(topic, 4+int(s.rng.ExpFloat64()*14))
		msg.Host = &host{people[s.rng.IntN(len(people))]}
	default:
		msg.Role, msg.Content = "assistant", s.prose(topic, 8+int(s.rng.ExpFloat64()*32))
	}
	raw, err := json.Marshal(msg)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return raw, msg.Role, msg.Content
}

// prose makes sentences of n words: a third of them the topic's, now and then an identifier.
func (s *synth) prose(topic []string, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch r := s.rng.Float64(); {
		case r < .32:
			b.WriteString(topic[min(len(topic)-1, int(math.Abs(s.rng.NormFloat64())*4))])
		case r < .35:
			b.WriteString(s.identifier())
		default:
			b.WriteString(s.words[s.zipf.Uint64()])
		}
		if i%11 == 10 && i < n-1 {
			b.WriteByte('.')
		}
	}
	if s.rng.IntN(4) == 0 {
		b.WriteByte('?')
	} else {
		b.WriteByte('.')
	}
	return b.String()
}

func (s *synth) identifier() string {
	switch s.rng.IntN(5) {
	case 0:
		return fmt.Sprintf("OPS-%d", s.rng.IntN(9000)+1000)
	case 1:
		return fmt.Sprintf("10.%d.%d.%d", s.rng.IntN(256), s.rng.IntN(256), s.rng.IntN(256))
	case 2:
		return s.words[s.rng.IntN(len(s.words))] + "_" + s.words[s.rng.IntN(len(s.words))]
	case 3:
		return fmt.Sprintf("%07x", s.rng.Uint32()&0xfffffff)
	}
	return fmt.Sprint(s.rng.IntN(100_000))
}

// toolOutput looks like a listing: paths, sizes and numbers.
func (s *synth) toolOutput() string {
	var b strings.Builder
	for range 3 + s.rng.IntN(14) {
		fmt.Fprintf(&b, "%8d  /srv/%s/%s_%s.log  %s\n", s.rng.IntN(1_000_000), s.words[s.zipf.Uint64()],
			s.words[s.rng.IntN(len(s.words))], s.words[s.rng.IntN(len(s.words))], s.identifier())
	}
	return b.String()
}

// turn makes a user's message and the answer.
func (s *synth) turn() (user, assistant json.RawMessage) {
	topic := s.topic()
	s.now = s.now.Add(time.Minute)
	user, _, _ = s.message(0, topic, benchNames[:2])
	s.now = s.now.Add(10 * time.Second)
	assistant, _, _ = s.message(1, topic, benchNames[:2])
	return user, assistant
}

// questions asks for messages of the history by some of their words, in the manner of people.
func (s *synth) questions(n int) []synthQuestion {
	frames := []string{"what did we say about %s?", "when was it that %s", "%s, how did that end", "who knew about %s?", "remind me: %s"}
	out := make([]synthQuestion, 0, n)
	for range n {
		source := s.kept[s.rng.IntN(len(s.kept))]
		words := strings.Fields(strings.NewReplacer(".", " ", "?", " ").Replace(source))
		var picked []string
		for _, i := range s.rng.Perm(len(words))[:min(len(words), 3+s.rng.IntN(4))] {
			picked = append(picked, words[i])
		}
		out = append(out, synthQuestion{fmt.Sprintf(frames[s.rng.IntN(len(frames))], strings.Join(picked, " ")), source})
	}
	return out
}

// window is the history of a turn: forty messages of a session that is not stored.
func (s *synth) window() []json.RawMessage {
	topic := s.topic()
	out := make([]json.RawMessage, 0, 40)
	for i := range 20 {
		s.now = s.now.Add(time.Minute)
		for k := range 2 {
			raw, _, _ := s.message(2*(i%3)+k, topic, benchNames[:2])
			out = append(out, raw)
		}
	}
	return out
}
