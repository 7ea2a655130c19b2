package recall

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"hark/index"
	"hark/index/terms"
	"hark/recall/when"
)

const (
	// nearTime is what the time a question speaks of adds to the score of what was said then, as a
	// share of it. Of the 135 questions of LoCoMo that speak of one, R@5 and nDCG@10: 86.9 and 75.6
	// without, 87.9 and 77.5 at .2, 88.6 and 78.0 at .4, 89.4 and 78.3 at .8 (with their words at full weight, see asked); of the 50 of MemDaily,
	// nearly all of which mention "today" in small talk, 77.2 and 88.4, 76.2 and 88.2, 76.2 and 88.1,
	// 76.2 and 87.0. Other questions are not touched.
	nearTime = 0.4
	// sureOfTime is the confidence where a question asks for nothing but a time at which something
	// was said, "what did we talk about yesterday?".
	sureOfTime = 0.5
	// timePool bounds the candidates that are taken from the time, and timeScan the messages of a time
	// that are looked at for them: a longer time is left to what the legs find.
	timePool, timeScan = 60, 5000
	// replayed is the age of the newest message from which a history was brought here, not lived here:
	// its own end is then what "yesterday" is relative to.
	replayed = 30 * 24 * time.Hour
	// toldAfter is how long after a day it is still spoken of.
	toldAfter = 36 * time.Hour
)

// times is what a question says about time.
type times struct {
	text  string // in which they stand
	spans []when.Span
	terms map[terms.Term]bool // terms of the question that only say when
	count map[terms.Term]bool // of them, those that count from today: they say nothing of what is sought
	only  bool                // nothing else is asked
	other bool                // another time is asked about too, told from this one: "and what was said before that?"
}

// timesOf reads the times of a question; a follow-up without one goes on about those of the words
// before it.
func (s *Searcher) timesOf(r Request, q []terms.QueryTerm) times {
	if r.Asked.IsZero() {
		return times{}
	}
	text := r.Question.Text
	t := times{spans: when.Find(text, r.Asked), terms: map[terms.Term]bool{}, count: map[terms.Term]bool{}}
	if len(t.spans) == 0 && r.Question.Context != "" {
		text = r.Question.Context
		t.spans = when.Find(text, r.Asked)
	}
	if len(t.spans) == 0 {
		return times{}
	}
	asked := r.Asked
	v := s.store.View()
	newest := v.Newest(r.Filter)
	v.Close()
	if !newest.IsZero() && newest.Before(asked.Add(-replayed)) {
		asked = newest.In(asked.Location())
		t.spans = when.Find(text, asked)
	}
	if t.spans = past(t.spans, asked); len(t.spans) == 0 {
		return times{}
	}
	t.text = text
	for _, span := range t.spans {
		for _, x := range s.question(Question{Text: text[span.Start:span.End]}) {
			t.terms[x.Term] = true
			t.count[x.Term] = t.count[x.Term] || !span.Named
		}
	}
	t.only = t.nothingElse(r.Question.Text, q)
	t.other = t.another(text)
	return t
}

// another reports that a question goes on to what was before or after the time that it names. That
// time is then no better a place to look than others.
func (t times) another(text string) bool {
	text = " " + strings.Join(wordsOf(t.without(text)), " ") + " "
	return slices.ContainsFunc(others, func(o string) bool { return strings.Contains(text, o) })
}

// without takes the times out of a text.
func (t times) without(text string) string {
	for _, s := range t.spans {
		text = strings.ReplaceAll(text, t.text[s.Start:s.End], " ")
	}
	return text
}

// others point to a time before or after the one named; those of scripts without spaces last.
var others = strings.Split(` before that , before this , before then , earlier than that , after that , after this , afterwards , since then , ever since , until then , by then , previously `+
	`, davor , vorher , zuvor , danach , nachher , seitdem , seither , bis dahin , antes de eso , después de eso , desde entonces , hasta entonces `+
	`, avant ça , avant cela , après ça , après cela , depuis lors , auparavant , ensuite , prima di allora , da allora , dopo di che , antes disso , depois disso , desde então `+
	`, daarvoor , daarna , sindsdien , до этого , после этого , с тех пор ,在那之前,在此之前,那之前,此前,在那之后,在此之后,那之后,从那以后,その前,その後,それ以来,그 전에,그 후에,그 이후`, ",")

// nothingElse reports that a question names nothing but a time.
func (t times) nothingElse(text string, q []terms.QueryTerm) bool {
	for _, x := range q {
		if (x.Class == terms.Word || x.Class == terms.Ident) && !x.Instruction && !t.terms[x.Term] && !fillers[x.Surface] && !doings[x.Surface] {
			return false
		}
	}
	text = t.without(text)
	for _, w := range doingChars {
		text = strings.ReplaceAll(text, w, "")
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	})
}

// doings are words for whatever may have been done or said.
var doings = set(`happen happened happening did done do doing say said talk talked discuss discussed decide decided speak spoke spoken chat chatted
	agree agreed ask asked tell told went things thing anything something everything news new
	passiert passierte geschehen war gesagt besprochen geredet gesprochen beschlossen gemacht erzählt gefragt los neues alles etwas
	pasó pasado dijimos dije hablamos hablado hicimos hice decidimos cosas algo
	passé dit discuté parlé fait décidé demandé choses fatto detto parlato successo aconteceu falamos dissemos gebeurd besproken gezegd gedaan
	говорили решили было делали обсуждали сказал`)

// doingChars are the same of the scripts without spaces, with what else stands in such a question;
// longer ones first.
var doingChars = strings.Fields(`什么 讨论 决定 发生 事情 我们 他们 你们 一起 关于 告诉 哪些 話しました 話した 言った しました した でした 何を なに 何 무슨 뭐라고 뭐 했지 했어 이야기 얘기
	说 聊 谈 做 了 过 我 你 他 她 吗 呢 的 都 事 有 和 在 是 に は を の が と か`)

// asked is the terms to search for. Those that count from today, "last week", say nothing of what is
// sought: what holds them was said in any week. Where nothing but a time is asked they are left out;
// elsewhere they count like words that address the assistant, for some ask with the words that were
// said. LoCoMo's 135 questions, made from the messages' own words, lose .7 of R@5 by that and 2.9
// without these terms; MemDaily's 50 gain 1.3. The words of a time from which another is told are left out too.
func (t times) asked(q []terms.QueryTerm) []terms.QueryTerm {
	if len(t.terms) == 0 {
		return q
	}
	out := make([]terms.QueryTerm, 0, len(q))
	for _, x := range q {
		if t.count[x.Term] {
			x.Instruction = true
		}
		if (!t.only || !t.count[x.Term]) && (!t.other || !t.terms[x.Term]) {
			out = append(out, x)
		}
	}
	return out
}

// meant is what to embed of a question: without a time from which another is told.
func (t times) meant(r Request) Request {
	if t.other && t.text == r.Question.Text {
		r.Question.Text = t.without(r.Question.Text)
	}
	return r
}

// past leaves out times to come: nothing was said then.
func past(spans []when.Span, asked time.Time) []when.Span {
	return slices.DeleteFunc(spans, func(s when.Span) bool { return s.From.After(asked) })
}

// during adds what was said at the times and holds most of the question's words to the candidates:
// in a large store neither leg may have it among its best.
func (s *Searcher) during(v *index.View, r Request, t times, q []terms.QueryTerm, add func(int64) *candidate) {
	type said struct {
		seq   int64
		held  float64
		words int
	}
	var all []said
	for _, span := range t.spans {
		for _, seq := range v.During(span.From, span.To.Add(toldAfter), timeScan) {
			row, ok := v.Row(seq)
			if !ok || !admits(r.Filter, row) {
				continue
			}
			d, _ := v.Doc(seq)
			m := said{seq: seq, words: d.Words()}
			for _, x := range q {
				if x.Keyed() && !t.terms[x.Term] && len(d.Lookup(x.Hash(), nil)) > 0 {
					m.held += s.w.class(uint8(x.Class))
				}
			}
			if m.held > 0 || t.only && row.Role == "user" && m.words > 2 {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b said) int {
		return cmp.Or(cmp.Compare(b.held, a.held), cmp.Compare(b.words, a.words), cmp.Compare(a.seq, b.seq))
	})
	for _, m := range all[:min(timePool, len(all))] {
		add(m.seq)
	}
}

// prefer raises what was said near the times that the question speaks of, above all else where
// nothing else is asked. Nothing is left out.
func (t times) prefer(pool []*candidate) {
	if len(t.spans) == 0 {
		return
	}
	most := 1.0
	for _, c := range pool {
		most = max(most, c.Score)
	}
	for _, c := range pool {
		c.Near = when.Near(t.spans, c.row.Time)
		if c.Score > 0 && !t.other {
			c.Score *= 1 + nearTime*c.Near
		}
		if t.only {
			c.Score += 2 * most * c.Near
		}
	}
	order(pool)
}

// told reports that the question asks for nothing but a time, and that something was said then.
func (t times) told(pool []*candidate) bool { return t.only && len(pool) > 0 && pool[0].Near == 1 }
