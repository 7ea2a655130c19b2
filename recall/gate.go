package recall

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"hark/embed"
	"hark/index/terms"
)

// confidence is the probability that the store answers the question at all, by a logistic
// model over the best candidates. The pool is ordered, best first.
//
// No single number tells: the raw top score does not even beat chance. The coefficients were
// fitted on questions put to their own and to a wrong conversation of four public sets (chats,
// assistant logs, meetings, Chinese notes) and on the project's own questions against its
// ordinary turns that need no memory; every group weighs the same. Of questions to the own and to the
// wrong conversation are at silent or above: chats .97 and .30, assistant logs .93 and .70, meetings
// .80 and .52, notes .85 and .42; the room they get is, of the whole: .96 and .21, .91 and .57, .73
// and .42, .78 and .30. Of the project's 266 ordinary turns 13 recall anything.
//
// A calibration on the store's own messages was tried and does not help: put as questions to the
// sessions they are not of, their median z is 1.4 in chats, 2.5 in logs, 1.1 in meetings and 4.3 in
// notes, far above that of questions to a wrong conversation (-1.4, -.2, -.8, -1.5) and in no order
// with it: what people say in one session they say in others.
func (s *scorer) confidence(pool []*candidate, q Question) float64 {
	if len(pool) == 0 {
		return 0
	}
	e := s.evidence(pool, q)
	z := -4.286 + 1.920*e.known - 4.647*e.unknown + 0.567*e.margin + 0.927*e.bound + 0.181*e.special
	if e.asks {
		z += 1.688
	}
	return clamp(e.uncommon/distinct, vague) / (1 + math.Exp(-z))
}

// A match by common words only, "what day is it today?", counts for as little as vague; it
// takes distinct of an uncommon word to count in full. Without any are 2 to 10 of 100 questions
// that the four public sets answer, and more than half of the ordinary turns.
const (
	distinct = 0.3
	vague    = 0.35
)

// evidence describes how well the best candidates answer.
type evidence struct {
	known    float64 // log(1 + words of the question in the first candidate)
	unknown  float64 // share of the question's terms that the store does not know
	margin   float64 // how far the first stands above the next nine, relative to itself
	bound    float64 // the first candidate's own words against the most they could score
	special  float64 // idf mass, in nats, of the uncommon words that the first candidate holds
	uncommon float64 // uncommon words that the first candidate holds, each 0..1
	asks     bool    // the text asks for something to be told
}

func (s *scorer) evidence(pool []*candidate, q Question) evidence {
	e := evidence{asks: asks(q.Text)}
	top := pool[:min(10, len(pool))]
	known, bound := 0.0, 0.0
	for i := range s.terms {
		t := &s.terms[i]
		bound += t.weight * (s.w.K1 + 1)
		word := t.Class == terms.Word || t.Class == terms.HanPair
		switch {
		case !word && t.Class != terms.Ident:
		case t.df == 0 && word:
			e.unknown++
		case t.df > 0 && top[0].tf.all[i] > 0:
			if word {
				known++
			}
			if !t.Instruction {
				rare := special(t.Surface)
				e.uncommon += rare
				e.special += s.idf(t.df) * rare
			}
		}
	}
	e.known = math.Log1p(known)
	e.unknown /= math.Max(1, float64(len(s.terms)))
	rest := 0.0
	for _, c := range top[1:] {
		rest += c.Score
	}
	if len(top) > 1 && top[0].Score > 0 {
		e.margin = 1 - rest/float64(len(top)-1)/top[0].Score
	}
	if bound > 0 {
		e.bound = top[0].Text / bound
	}
	return e
}

// special says how much a word tells about what is meant: nothing for the few hundred most
// common words of English, all for rare ones, names and words of other languages.
func special(word string) float64 {
	if n := len(word); n < 4 && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return 0 // small numbers stand everywhere
	}
	r := embed.Rank(word)
	if r < 0 {
		return 1
	}
	return clamp((math.Log(float64(r+1))-math.Log(300))/(math.Log(6000)-math.Log(300)), 0)
}

// asks reports whether a text asks for something to be told.
func asks(text string) bool {
	if strings.ContainsAny(text, "?？؟") {
		return true
	}
	if words := wordsOf(text); len(words) > 0 && askWords[words[0]] {
		return true
	}
	return slices.ContainsFunc(askChars, func(c string) bool { return strings.Contains(text, c) })
}

// askWords open a question, in the languages most used; askChars are parts of one in scripts
// without spaces.
var askWords = set(`who what when where which why how whose whom did does do is are was were has have had can could will would should
	wer was wann wo welche welcher welches warum wie wem wessen wohin woher hat haben ist war
	quién qué cuándo dónde cuál cuáles cómo cuántos quien que cuando donde cual como
	qui quoi quand où quel quelle pourquoi comment combien est
	wie wat wanneer waar welke waarom hoe
	chi cosa quando dove quale perché come quanto
	quem quando onde qual porquê como
	кто что когда где какой почему как сколько من ماذا متى أين كيف كم`)

var askChars = []string{"什么", "谁", "哪", "几", "多少", "怎么", "为什么", "吗", "呢", "なに", "何", "誰", "どこ", "いつ", "무엇", "누가", "어디", "언제"}

// The confidence below which nothing is worth showing, and from which the whole budget is.
const (
	silent = 0.25
	sure   = 0.50
)

// least is what a block with one record takes; a smaller room could show nothing.
const least = 240

// Budget is how much of limit, in tokens, is worth spending on the hits: the amount follows the
// confidence, for a hard gate would silence too many questions that have an answer.
func (r *Result) Budget(limit int) int {
	switch {
	case r.Confidence < silent:
		return 0
	case limit <= least:
		return limit
	}
	return least + int(float64(limit-least)*clamp((r.Confidence-silent)/(sure-silent), 0))
}
