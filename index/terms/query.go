package terms

import (
	"slices"
	"strings"
	"sync"
)

// QueryTerm is one distinct term of a question.
type QueryTerm struct {
	Term
	// Instruction marks words that tell the assistant what to do ("summarize", "tell") more
	// than what is asked about.
	Instruction bool
	Surface     string // the word as asked, lower-case
}

// instructions are English verbs and nouns that address the assistant.
var instructions = []string{
	"summarize", "summarise", "summary", "describe", "explain", "discussion", "discuss", "discussed", "tell", "list",
	"please", "mention", "mentioned", "conversation", "conversations", "remember", "think", "talk", "talked", "said",
	"say", "meeting", "provide", "recommend", "know",
}

var instructionStems = sync.OnceValue(func() map[string]bool {
	l, m := languageOf(English), map[string]bool{}
	for _, w := range instructions {
		m[fold(l.stemmed(w))] = true
	}
	return m
})

// functionHan are characters that join words of Chinese more than they make them: a pair of two tells
// of a sentence's form, "在哪". (Pairs that hold one cost .5 of R@5 on XQuAD-R when they count less.)
const functionHan = "的了吗呢吧在是和与及或也都就还又再很太哪谁么什怎这那个里些们我你您他她它把被让给从到对于之而且但因所以如果"

// Query analyses a question against a store whose main languages are mains (largest share
// first; may be empty). A question is read in the store's main language, because short
// questions rarely show their own, and in its own where that can be told and differs: both
// readings are returned, a term common to both once.
func (a *Analyzer) Query(text string, mains []Lang) []QueryTerm {
	var langs []Lang
	add := func(l Lang) {
		if l != "" && !slices.Contains(langs, l) {
			langs = append(langs, l)
		}
	}
	own := Detect(text)
	add(own)
	for _, m := range mains {
		if own == "" || m.script() == own.script() {
			add(m)
			break
		}
	}
	if len(langs) == 0 {
		add(English)
	}
	instr := instructionStems()
	var out []QueryTerm
	seen := map[Term]bool{}
	for i, l := range langs {
		a.scan(text, l, func(t token) {
			surface := strings.ToLower(text[t.start:t.end])
			if seen[t.Term] || i > 0 && own != "" && languageOf(own).stop[surface] {
				return // said already, or no content in the question's own language
			}
			seen[t.Term] = true
			aside := t.Class == Word && instr[t.Text] || t.Class == HanPair && strings.Trim(t.Text, functionHan) == ""
			out = append(out, QueryTerm{Term: t.Term, Instruction: aside, Surface: surface})
		})
	}
	return out
}

// Match is a byte range of a text that holds one of the asked-for terms.
type Match struct {
	Start, End int
	Hash       uint32
}

// Matches finds the terms of a question in a text, in order, for excerpts and explanations.
// want holds hashes of Word, Ident, HanPair and Han terms.
func (a *Analyzer) Matches(text string, main Lang, want map[uint32]bool) []Match {
	lang := Detect(text)
	if lang == "" {
		lang = main
	}
	var out []Match
	a.scan(text, lang, func(t token) {
		if t.Class == Phrase || t.Class == Gram {
			return
		}
		if h := t.Hash(); want[h] {
			out = append(out, Match{t.start, t.end, h})
		}
	})
	return out
}
