package recall

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hark/index/terms"
)

const (
	// maxQuestion bounds the words that are searched for, in bytes; a longer text is a paste,
	// of which the ask is kept.
	maxQuestion = 1200
	// maxContext bounds what a follow-up borrows from the words before it.
	maxContext = 400
	// followUpWords is the length up to which a question that points back is widened.
	followUpWords = 7
)

// Ask builds the question of a turn from what the person says now and, for a follow-up, from
// what they said before. Both must be the person's own words: envelopes, metadata and quoted
// context are stripped by the caller. It returns an empty Question with the reason where there
// is nothing to ask.
func Ask(prompt, previous string) Question {
	text := strings.TrimSpace(prompt)
	switch {
	case text == "":
		return Question{Reason: "nothing was said"}
	case !hasContent(text):
		return Question{Reason: "no words"}
	case acknowledgement(text):
		return Question{Reason: "an acknowledgement"}
	}
	q := Question{Text: ask(text)}
	if len(q.Text) < len(text) {
		q.Reason = "the ask of a long paste"
	}
	if prev := strings.TrimSpace(previous); prev != "" && followUp(text) && !acknowledgement(prev) {
		q.Context, q.Reason = clip(prev, maxContext), "a follow-up, widened with the words before"
	}
	return q
}

// hasContent reports whether a text holds a letter or a digit of any script.
func hasContent(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// ask keeps the ask of a long paste: its last paragraph when that asks, else its first, with
// every line that ends in a question mark.
func ask(text string) string {
	if len(text) <= maxQuestion {
		return text
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	var kept []string
	size := 0
	take := func(l string) {
		l = strings.TrimSpace(l)
		if l == "" || size+len(l) > maxQuestion {
			return
		}
		kept = append(kept, l)
		size += len(l)
	}
	first, last := clip(lines[0], maxQuestion/3), clip(lines[len(lines)-1], maxQuestion/3)
	take(first)
	for _, l := range lines[1:max(1, len(lines)-1)] {
		if len(l) < 300 && terms.EndsInQuestion(l) {
			take(l)
		}
	}
	if len(lines) > 1 {
		take(last)
	}
	return strings.Join(kept, "\n")
}

// clip cuts a text to at most n bytes at a word or at least a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if i := strings.LastIndexFunc(s[:n], unicode.IsSpace); i > n/2 {
		n = i
	}
	return s[:n]
}

// backPointers start or fill questions that cannot be understood without the words before.
var backPointers = set(`and or but so it its that this these those them they he she him her his hers there then one ones
	same other another else also too again former latter first second third`)

// followUp reports a short question that points back: led by a conjunction, or with a pronoun
// and hardly anything of its own.
func followUp(text string) bool {
	words := wordsOf(text)
	if len(words) == 0 || len(words) > followUpWords {
		return false
	}
	if leads[words[0]] {
		return true
	}
	if n := utf8.RuneCountInString(text); n <= 14 && slices.ContainsFunc(eastLeads, func(l string) bool { return strings.HasPrefix(text, l) }) {
		return true
	}
	pointing, own := 0, 0
	for _, w := range words {
		switch {
		case backPointers[w]:
			pointing++
		case !fillers[w]:
			own++
		}
	}
	return pointing > 0 && own <= 2 || own == 0
}

// leads open a question that goes on from the one before, in the languages most used.
var leads = set(`and or but also und oder aber y o pero et ou mais en of maar e ma или и а но 那 那么 还有 و`)

// eastLeads open such a question in the scripts without spaces.
var eastLeads = strings.Fields("那 还有 然后 它 他呢 她呢 这个 第二 另外 而且 それ その じゃあ では あと 그럼 그건 그리고 두번째")

var fillers = set(`the a an is are was were be do does did has have had can could would will should what who when where which why how
	about for of to in on at with from my our your we i you me us please`)

// acks are whole messages that ask for nothing, lower-case, without punctuation.
var acks = set(`ok okay okey k kk yes yep yeah yup sure no nope nah thanks thx ty great good nice cool perfect fine right
	top noted stimmt lovely brilliant awesome excellent morning evening welcome congrats
	done correct exactly agreed understood gotcha lol haha oh ah wow hm hmm ugh yay please hi hello hey bye goodbye continue proceed go next stop wait
	ja nein danke genau gut super klar passt hallo tschüss weiter perfekt gerne gern schön sehr prima toll jawohl moin servus
	sí si no gracias vale bien perfecto claro hola adiós sigue continúa entendido genial muchas
	oui non merci bien parfait bonjour salut continue entendu beaucoup super
	nee bedankt prima goed mooi hoi dag
	grazie mille bene perfetto ciao sim não obrigado obrigada olá perfeito
	да нет спасибо хорошо ладно привет пока продолжай понятно отлично окей ясно большое
	好 好的 是 是的 对 不 谢谢 谢谢你 多谢 继续 可以 行 嗯 你好 再见 没问题 没关系 知道了 明白 明白了 收到 不客气 太好了 好吧 辛苦了 早上好 晚安
	はい いいえ ありがとう ありがとうございます 了解 了解です おはよう おやすみ お願いします 大丈夫です 네 예 아니요 감사합니다 고마워 고맙습니다 알겠습니다 안녕하세요 좋아요
	نعم لا شكرا شكراً تمام حسنا धन्यवाद शुक्रिया ठीक हाँ नमस्ते ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ ครับ ค่ะ โอเค สวัสดี สวัสดีครับ สวัสดีค่ะ`)

var ackPhrases = set(`thank you|thanks a lot|thank you so much|many thanks|sounds good|looks good|go ahead|do it|go on|keep going|
	never mind|no problem|got it|good morning|good night|good evening|good job|well done|all good|i see|makes sense|of course|
	mach das|ist gut|ist ok|schon gut|kein problem|bis später|bis morgen|ठीक है|como no|está bien|ça marche|pas de problème|
	vielen dank|guten morgen|gute nacht|alles klar|mach weiter|muchas gracias|buenos días|buenas noches|de acuerdo|merci beaucoup|
	d'accord|bonne nuit|dank je|dank je wel|goede morgen|ga door|buongiorno|va bene|bom dia|muito obrigado`)

// acknowledgement reports messages that only keep the conversation going.
func acknowledgement(text string) bool {
	if len(text) > 60 {
		return false
	}
	words := wordsOf(text)
	if len(words) == 0 {
		return true
	}
	if ackPhrases[strings.Join(words, " ")] {
		return true
	}
	for _, w := range words {
		if !acks[w] {
			return false
		}
	}
	return len(words) <= 5
}

// wordsOf splits into lower-case words; runs without spaces (Chinese) stay whole.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && r != '\''
	})
}

// set reads a list of words, or of phrases where "|" separates them.
func set(list string) map[string]bool {
	m := map[string]bool{}
	if strings.Contains(list, "|") {
		for p := range strings.SplitSeq(list, "|") {
			m[strings.Join(strings.Fields(p), " ")] = true
		}
		return m
	}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}
