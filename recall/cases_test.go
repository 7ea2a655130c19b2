package recall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hark/embed"
	"hark/embed/embedtest"
	"hark/index"
	"hark/recall"
)

// shown packs the hits and returns the rows that are shown.
func shown(res *recall.Result, tokens int) (out []int64) {
	items, _ := recall.Pack(res.Hits, recall.PackOptions{Tokens: tokens})
	for _, it := range items {
		out = append(out, it.Hit.Message.Seq)
	}
	return out
}

// RCL-08: a message said twenty times takes one place, whoever else said it another.
func TestDuplicatesTakeOnePlace(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 20 {
		w.say(fmt.Sprint("s", i), "user:Ann", "Fire the test")
	}
	fact := w.say("f", "user:Ann", "the test of the fire alarm is on the first Monday of the month")
	got := shown(w.search("when is the fire test?"), 2000)
	if len(got) != 2 || !slices.Contains(got, fact) {
		t.Errorf("rows %v, want one copy and %d", got, fact)
	}
}

// NOISE-09: what a host restates every session takes one place, also with the day in it; a changed
// value takes a place of its own.
func TestRestatedTakesOnePlace(t *testing.T) {
	w := newWorld(t, builtin(t))
	persona := "You are Hedwig, an owl who keeps the household's calendar. You speak briefly and kindly, never before seven in the morning. " +
		"The family lives in a narrow house by the canal with two cats, a tortoise and a piano that nobody tunes. " +
		"Mara works nights at the hospital, Tomás repairs bicycles and the children go to the school behind the bridge. "
	for i := range 30 {
		w.say(fmt.Sprint("s", i), "user", fmt.Sprintf("%sToday is day %d of our arrangement. Ask before you order anything.", persona, i+1))
	}
	if got := shown(w.search("what does Tomás repair?"), 5000); len(got) != 1 {
		t.Errorf("%d places for one text: %v", len(got), got)
	}
	old, now := w.say("p", "user:Ann", "the ssh port is 22"), w.say("q", "user:Ann", "the ssh port is 49222")
	if got := shown(w.search("what is the ssh port?"), 5000); !slices.Contains(got, old) || !slices.Contains(got, now) {
		t.Errorf("two values, rows %v", got)
	}
}

// What is on screen, and its copies in other sessions, crowd nothing out.
func TestScreenCrowdsNothingOut(t *testing.T) {
	for name, emb := range map[string]embed.Embedder{"words": nil, "both": builtin(t)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, emb)
			want := w.say("b", "user:Mara", "for the deploy pipeline of the web shop we decided to take the blue runner, since the green one was always full and slow")
			hide := map[int64]bool{}
			for i := range 280 {
				row := w.say("a", "user:Mara", fmt.Sprintf("deploy pipeline web shop runner, attempt %d", i))
				hide[row] = true
			}
			for i := range 120 {
				w.say(fmt.Sprint("c", i), "user:Mara", "deploy pipeline web shop runner")
			}
			res, err := recall.NewSearcher(w.store, w.emb, nil, nil).Search(t.Context(), recall.Request{
				Question: recall.Ask("which runner did we decide to take for the deploy pipeline of the web shop?", ""),
				Filter:   index.Filter{Scopes: []string{"owner"}}, Exclude: hide, Once: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := rows(res); !slices.Contains(got, want) || len(got) > 5 {
				t.Errorf("%d rows, %d among them: %v", len(got), want, slices.Contains(got, want))
			}
		})
	}
}

// RCL-11: what the assistant said ranks below what people said when both answer.
func TestPeopleBeforeAssistant(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 40 {
		w.say("n", "user:Ann", fmt.Sprintf("the greenhouse has %d tomatoes", i))
		w.say("n", "assistant", "That is a good harvest. Keep watering them in the evening, take off the side shoots, and give them some room, so that the air can move between the plants and mildew stays away.")
	}
	w.say("a", "assistant", "I would use recursion for the tree walk.")
	said := w.say("b", "user:Ann", "I will use a stack for the tree walk.")
	w.wantFirst(w.search("what is used for the tree walk?"), said)
}

// RCL-12: a question about Ann is answered with Ann's words.
func TestSpeakers(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 40 {
		w.say("n", []string{"user:Ann", "user:Bob"}[i%2], fmt.Sprintf("see you at the station at %d", i))
	}
	bob := w.say("g", "user:Bob", "I love steak and every kind of meat to eat")
	ann := w.say("g", "user:Ann", "I am vegan, no meat or cheese to eat for me")
	for _, c := range []struct {
		question string
		first    int64
	}{{"what does Ann eat?", ann}, {"what does Bob eat?", bob}} {
		res := w.search(c.question)
		w.wantFirst(res, c.first)
		if len(res.Hits) > 0 && res.Hits[0].Message.Sender == "" {
			t.Errorf("%s: no speaker", c.question)
		}
	}
}

// RCL-14: five thousand lines of chatter do not crowd out the one that was meant to be kept.
func TestChatterDoesNotCrowdOut(t *testing.T) {
	w := newWorld(t, nil)
	words := strings.Fields("coffee break train late weather rain lunch soup meeting moved printer stuck window open keys found cat asleep plants dry")
	for chunk := range 10 {
		var b index.Batch
		for i := range 500 {
			n := chunk*500 + i
			text := fmt.Sprintf("%s %s and %s, %s the wifi again", words[n%20], words[(n/3)%20], words[(n/7)%20], words[(n/11)%20])
			b.Messages = append(b.Messages, index.Message{
				Keys: []string{fmt.Sprint("chat:", n)}, Session: fmt.Sprint("c", n/50), Scope: "owner", Role: "user", Sender: "Bob",
				Time: w.clock.Add(time.Duration(n) * time.Second), Text: text,
			})
		}
		if _, err := w.store.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	want := w.say("memory", "user:Ann", "Remember: the wifi password of the guest network is kept in the blue tin.")
	w.wantFirst(w.search("where is the wifi password of the guests?"), want)
}

// QRY-02, QRY-06: the question is the turn's own; only one that points back borrows from the words
// before it, and never from anything earlier.
func TestWhichQuestionIsAsked(t *testing.T) {
	w := newWorld(t, builtin(t))
	for i := range 30 {
		w.say("t", "user:Ann", fmt.Sprintf("we travel to Lyon by train number %d and look at the old town", 6600+i))
	}
	editor := w.say("e", "user:Ann", "my editor is Helix, since last winter")
	hotels := w.say("h", "user:Ann", "the hotel in Nice has a breakfast on the roof, the hotel in Lyon is by the river")
	ask := func(prompt, previous string) *recall.Result {
		t.Helper()
		res, err := recall.NewSearcher(w.store, w.emb, nil, nil).Search(t.Context(), recall.Request{
			Question: recall.Ask(prompt, previous), Filter: index.Filter{Scopes: []string{"owner"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	w.wantFirst(ask("which editor do I use?", "how do we travel to Lyon by train?"), editor)
	w.wantFirst(ask("and the second one?", "compare the hotel in Lyon with the hotel in Nice"), hotels)
	for _, c := range []struct {
		prompt, previous string
		widened          bool
	}{
		{"and the second one?", "compare Lyon and Nice hotels", true},
		{"und der zweite?", "vergleiche die Hotels in Lyon und Nizza", true},
		{"¿y el segundo?", "compara los hoteles de Lyon y Niza", true},
		{"et le deuxième ?", "compare les hôtels de Lyon et Nice", true},
		{"那第二个呢？", "比较里昂和尼斯的酒店", true},
		{"а второй?", "сравни отели в Лионе и Ницце", true},
		{"why is that?", "the build of the shop fails since noon", true},
		{"which editor do I use?", "compare Lyon and Nice hotels", false},
		{"what is the ssh port of the attic server?", "compare Lyon and Nice hotels", false},
		{"welchen Editor benutze ich?", "vergleiche die Hotels in Lyon und Nizza", false},
	} {
		if q := recall.Ask(c.prompt, c.previous); (q.Context != "") != c.widened {
			t.Errorf("%q after %q: context %q", c.prompt, c.previous, q.Context)
		}
	}
}

// NOISE-05: what only keeps a conversation going asks nothing, in any language, and no embedder is asked.
func TestAcknowledgementsAskNothing(t *testing.T) {
	w := newWorld(t, embedtest.Broken(embedtest.Hashed(8), fmt.Errorf("asked")))
	w.w(t)
	for _, q := range []string{
		"好的", "ok", "👍", "continue", "OK!", "thanks", "danke schön", "vielen Dank", "weiter", "merci", "gracias", "d'accord", "ладно", "спасибо",
		"ok cool", "yes please", "はい", "네", "شكرا", "धन्यवाद", "ขอบคุณ", "👍👍", "...", "好的，谢谢", "sounds good!", "go on", "ok danke", "perfekt", "mach das", "entendido",
		"no problem", "haha", "谢谢你", "没关系", "ありがとうございます", "감사합니다", "хорошо, спасибо", "ja gerne", "si, gracias", "grazie mille", "obrigada",
	} {
		if got := recall.Ask(q, "what is the ssh port?"); got.Text != "" || got.Reason == "" {
			t.Errorf("%q asks %q", q, got.Text)
		}
		if res := w.search(q); len(res.Hits) != 0 || res.Trace.Dense.Reason != "" {
			t.Errorf("%q: %d hits, dense %q", q, len(res.Hits), res.Trace.Dense.Reason)
		}
	}
	for _, q := range []string{"continue with the migration of the database", "is it ok to reboot pannekoek?", "好的酒店在哪里", "thanks to whom did we move?", "perfect pitch", "danke für den Fisch sagen wir wem?"} {
		if got := recall.Ask(q, ""); got.Text == "" {
			t.Errorf("%q asks nothing: %s", q, got.Reason)
		}
	}
}

// w leaves something to be found, without its vector.
func (w *world) w(t *testing.T) {
	t.Helper()
	if _, err := w.store.Append(t.Context(), index.Batch{Messages: []index.Message{{
		Keys: []string{"complaint"}, Session: "a", Scope: "owner", Role: "user", Time: w.clock, Text: "ok, thanks, but I want to continue to complain about the good old 好的 ssh port",
	}}}); err != nil {
		t.Fatal(err)
	}
}

// LEX-05: function words of Chinese do not weigh as content.
func TestChineseContentRanks(t *testing.T) {
	w := newWorld(t, nil)
	for i, s := range []string{"他在哪个房间里等你们", "你在哪个公司上班呢", "会议在哪个大楼举行", "在哪个房间都可以", "这个城市在海边", "哪个大学都很好", "我们大学在北边"} {
		w.say(fmt.Sprint("s", i), "user", s)
	}
	want := w.say("b", "user", "复旦大学位于上海市杨浦区")
	w.wantFirst(w.search("复旦大学在哪个城市"), want)
	w.say("c", "user", "你的那个到底在哪里呢")
	w.say("d", "user", "他们在哪里呢")
	cat := w.say("e", "user", "小猫喜欢睡在厨房的窗台上")
	w.wantFirst(w.search("你的小猫在哪里呢？"), cat)
}

// RCL-02: what the store knows nothing of recalls nothing.
func TestOffTopic(t *testing.T) {
	w := newWorld(t, builtin(t))
	topics := []string{
		"the release of version %d is planned for the end of the sprint", "ticket OPS-%d about the login page is still open",
		"the customer from Utrecht wants %d more licences", "our stand-up moved by %d minutes", "the invoice over %d euros was paid",
		"server rack %d has a broken fan", "the contract with the supplier runs for %d months", "please review pull request %d before lunch",
	}
	for i := range 200 {
		w.say(fmt.Sprint("s", i/10), "user:Ann", fmt.Sprintf(topics[i%len(topics)], 100+i))
	}
	for _, q := range []string{
		"how much water goes into a sourdough with 80 percent hydration?", "which moons does Jupiter have?", "wie lange braucht ein Hühnerei, bis es hart ist?",
		"who painted the ceiling of the Sistine Chapel?", "怎么做红烧肉？",
	} {
		if res := w.search(q); res.Budget(1200) != 0 {
			t.Errorf("%q: confidence %.2f, room %d", q, res.Confidence, res.Budget(1200))
		}
	}
}
