package recall

import (
	"slices"
	"strings"
	"unicode"

	"hark/index"
	"hark/index/terms"
)

const (
	// statements is how many of the best hits may be replaced, claimants how many may replace.
	statements, claimants = 4, 50
	// sameMatter is the share of what the older statement matches of the question, in idf mass,
	// that one sentence of the newer must match.
	sameMatter = 0.25
)

// statement is a hit with what its text matched of the question.
type statement struct {
	row     index.Row
	text    string
	matches []terms.Match
}

// supersede finds newer statements of the same thing: a later message of the same person in
// which one sentence speaks of what the older one says (it holds a good part of the question's
// words that the older one holds), says that something changed, and names a value that the
// older one does not. It returns for each statement the one that replaces it, -1 where none
// does; mass is the weight of a term of the question.
//
// It says what to show together, not how to rank: as a ranking, the newer above the older, it
// put right 5 of 12 questions of a knowledge-update set and cost the whole set 6 to 10 points
// of nDCG@10 at every setting tried.
func supersede(st []statement, mass map[uint32]float64) []int {
	by := make([]int, len(st))
	for i := range by {
		by[i] = -1
	}
	changes := map[int][]sentence{}
	for older := range st[:min(statements, len(st))] {
		a := &st[older]
		need := sameMatter * massOf(a.matches, mass)
		if a.row.Role != "user" || need == 0 {
			continue
		}
		for newer := range st[:min(claimants, len(st))] {
			b := &st[newer]
			if b.row.Role != "user" || b.row.Sender != a.row.Sender || !later(b.row, a.row) {
				continue
			}
			ss, ok := changes[newer]
			if !ok {
				ss = sentencesOfChange(b, mass)
				changes[newer] = ss
			}
			told := slices.ContainsFunc(ss, func(s sentence) bool {
				return s.mass >= need && s.pointed() && slices.ContainsFunc(s.values, func(v string) bool { return !strings.Contains(a.text, v) })
			})
			if told && (by[older] < 0 || later(b.row, st[by[older]].row)) {
				by[older] = newer
			}
		}
	}
	return by
}

func massOf(ms []terms.Match, mass map[uint32]float64) float64 {
	sum, seen := 0.0, map[uint32]bool{}
	for _, m := range ms {
		if !seen[m.Hash] {
			seen[m.Hash] = true
			sum += mass[m.Hash]
		}
	}
	return sum
}

func distinctTerms(ms []terms.Match) int {
	seen := map[uint32]bool{}
	for _, m := range ms {
		seen[m.Hash] = true
	}
	return len(seen)
}

func later(a, b index.Row) bool {
	if !a.Time.Equal(b.Time) {
		return a.Time.After(b.Time)
	}
	return a.Seq > b.Seq
}

// sentence is a sentence that tells of a change.
type sentence struct {
	mass   float64  // of the question's words in it
	terms  int      // how many they are
	words  int      // of the sentence
	values []string // numbers, dates, versions and addresses in it
}

// pointed reports a sentence that is about what its matching words say: several of them, or
// one in a short sentence.
func (s sentence) pointed() bool { return s.terms*12 >= s.words }

func sentencesOfChange(st *statement, mass map[uint32]float64) []sentence {
	var out []sentence
	k := 0
	for start := 0; start < len(st.text); {
		end := start + sentenceLen(st.text[start:])
		var in []terms.Match
		for ; k < len(st.matches) && st.matches[k].Start < end; k++ {
			in = append(in, st.matches[k])
		}
		if m := massOf(in, mass); m > 0 {
			if values, cue := readChange(st.text[start:end]); cue && len(values) > 0 {
				out = append(out, sentence{m, distinctTerms(in), len(strings.Fields(st.text[start:end])), values})
			}
		}
		start = end
	}
	return out
}

// sentenceLen is the length of the first sentence: up to a line break, or to a mark followed
// by a space.
func sentenceLen(s string) int {
	for i, r := range s {
		switch r {
		case '\n', '。', '！', '？':
			return i + len(string(r))
		case '.', '!', '?', ';':
			if i+1 == len(s) || s[i+1] == ' ' {
				return i + 1
			}
		}
	}
	return len(s)
}

// readChange returns the values that a sentence names and whether it tells of a change.
func readChange(s string) (values []string, cue bool) {
	for _, c := range changeChars {
		cue = cue || strings.Contains(s, c)
	}
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".,:-_/@%", r)
	}) {
		w = strings.Trim(w, ".,:-_/")
		if strings.ContainsFunc(w, unicode.IsDigit) {
			values = append(values, w)
		}
		cue = cue || changeCues[strings.ToLower(w)]
	}
	return values, cue
}

// changeCues are words that tell of a change, lower-case.
var changeCues = set(`now new newly changed change changes moved moving move moves instead rescheduled reschedule updated update
	increased decreased raised lowered extended shortened reached recently adjusted improved grown switched switch replaced
	postponed delayed actually anymore longer latest corrected correction revised pushed renamed swapped
	jetzt neu neue neuer neuen neues geändert verschoben statt stattdessen inzwischen nunmehr umgestellt korrigiert umgezogen sondern
	ahora nuevo nueva cambiado cambió cambia movido aplazado actualizado ya
	maintenant nouveau nouvelle changé déplacé reporté désormais plutôt
	nu nieuw nieuwe gewijzigd verplaatst veranderd voortaan
	ora nuovo nuova cambiato spostato agora novo nova mudou
	теперь новый новая изменилось перенесли الآن جديد`)

var changeChars = []string{"现在", "改成", "改为", "换成", "新的", "不再", "今は", "新しい", "변경", "이제"}
