package engine

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// neutral defuses what could close the fence, open another part of a prompt, pose as somebody's turn,
// or hide from a reader: tags that are no HTML, markers of the host and of the formats in which models
// are spoken to, and headers that name a role. The characters that take the place of the brackets and
// colons look alike and mean nothing. It is applied where text is shown; what is stored stays as it was
// said. Doing it again changes nothing.
func neutral(text string) string {
	lines := strings.Split(defused(text), "\n")
	for i, line := range lines {
		lines[i] = roleHeader(line)
	}
	closeCode(lines)
	return strings.Join(lines, "\n")
}

// defused is neutral but for what counts at the beginning of a line only.
func defused(text string) string {
	text, _ = sanitize(text)
	text = visible(text)
	text = entities(text)
	for {
		next := neutralizer.Replace(text)
		if next == text {
			break
		}
		text = next
	}
	text = tags(text)
	text = hostWords.ReplaceAllStringFunc(text, func(m string) string { return strings.NewReplacer("_", " ", "-", " ").Replace(m) })
	return roleBrackets(text)
}

// neutralizer replaces the markers of the host and of the formats in which models are spoken to.
var neutralizer = strings.NewReplacer(
	"<<", "\u2039\u2039", "\u2039<", "\u2039\u2039", ">>>", "\u203a\u203a\u203a",
	"<!--", "\u2039!--", "<|", "\u2039|", "|>", "|\u203a", "<\uff5c", "\u2039|", "\uff5c>", "|\u203a",
)

// hostWords are the names in the host's markers, whatever stands around them.
var hostWords = regexp.MustCompile(`(?i)(?:begin|end)?[_-]?openclaw[_-](?:internal[_-]context|cache[_-]boundary)|(?:end_)?external_untrusted_content`)

// escaped is a bracket as HTML, addresses and JSON write it.
var escaped = regexp.MustCompile(`(?i)&(?:amp;)*(?:lt|#0*60|#x0*3c);?|%3c|\\u003c|\\x3c`)

// entities defuses written brackets before names that pose as a part of a prompt.
func entities(text string) string {
	if !strings.ContainsAny(text, `&%\`) {
		return text
	}
	var b strings.Builder
	at := 0
	for _, m := range escaped.FindAllStringIndex(text, -1) {
		name, _, _ := tagName(text[m[1]:])
		if strings.HasPrefix(text[m[1]:], "%2") { // an escaped slash
			name, _, _ = tagName(text[min(len(text), m[1]+3):])
		}
		if poses(fold(name)) {
			b.WriteString(text[at:m[0]])
			b.WriteString("\u2039")
			at = m[1]
		}
	}
	b.WriteString(text[at:])
	return b.String()
}

// tags puts a look-alike in the place of the brackets that begin a tag, unless it is one of HTML or a
// parameter of a type, as in List<String>.
func tags(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '<' {
			continue
		}
		name, gap, rest := tagName(text[i+1:])
		folded := fold(name)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		inWord := i > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || before == '_')
		switch {
		case name == "":
			continue
		case poses(folded):
		case gap, name[0] >= '0' && name[0] <= '9', htmlNames[strings.ToLower(name)]:
			continue
		case strings.HasPrefix(rest, "@"), strings.HasPrefix(rest, "://"), strings.HasPrefix(name, "http"), strings.HasPrefix(name, "mailto"):
			continue
		case inWord && name == folded, inWord && isASCII(name):
			continue
		}
		b.WriteString(text[at:i])
		b.WriteString("\u2039")
		at = i + 1
	}
	b.WriteString(text[at:])
	return b.String()
}

// tagName reads the name of a tag behind its bracket. Gap says that white space stands before it.
func tagName(s string) (name string, gap bool, rest string) {
	i := 0
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsSpace(r) && !strings.ContainsRune("/!?|\uff5c\\\uff0f\u2044\u2215", r) {
			break
		}
		gap = gap || unicode.IsSpace(r)
		i += size
	}
	end := i
	for end < len(s) && end < i+80 {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !strings.ContainsRune("_-:.", r) {
			break
		}
		end += size
	}
	return s[i:end], gap, s[end:]
}

// inBrackets are markers like [SYSTEM], [/INST] and 【系统】.
var inBrackets = regexp.MustCompile(`[\[\x{3010}\x{3014}\x{ff3b}]([^\[\]\x{3010}\x{3011}\x{ff3b}\x{ff3d}\n]{1,48})[\]\x{3011}\x{3015}\x{ff3d}]`)

// roleBrackets makes parentheses of the brackets around the name of a role.
func roleBrackets(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range inBrackets.FindAllStringSubmatchIndex(text, -1) {
		inside := strings.Trim(text[m[2]:m[3]], " /#:*_-")
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		index := m[0] > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || before == '_' || before == ']')
		folded := fold(inside)
		if !isRole(folded) && folded != "inst" || index && folded != "inst" {
			continue
		}
		b.WriteString(text[at:m[0]])
		b.WriteString("(" + text[m[2]:m[3]] + ")")
		at = m[1]
	}
	b.WriteString(text[at:])
	return b.String()
}

// headerLine is what can stand before and behind a role at the beginning of a line.
var headerLine = regexp.MustCompile(`^([\s\p{Z}>#*_=\-~` + "`" + `|"'(\x{2022}]*)([\p{L}\p{Mn}][\p{L}\p{Mn}\p{N} _\-]{0,40}?)([\s\p{Z}*_` + "`" + `"')]*)(:|\x{ff1a}|\x{fe55}|\x{2236}|\x{a789}|\x{02d0}|[\s=\-#*_]*$)`)

// roleHeader defuses a line that begins like somebody's turn: "System:", "### Assistant", "**用户**：".
func roleHeader(line string) string {
	m := headerLine.FindStringSubmatchIndex(line)
	if m == nil || !isRole(fold(line[m[4]:m[5]])) {
		return line
	}
	switch mark := line[m[8]:m[9]]; {
	case mark == "\ua789":
		return line
	case strings.ContainsAny(mark, ":\uff1a\ufe55\u2236\u02d0"):
		return line[:m[8]] + "\ua789" + line[m[9]:]
	case strings.HasSuffix(line[:m[4]], "("):
	case strings.ContainsAny(line[:m[4]], "#*=-~") && strings.Trim(line[:m[4]], " >|") != "-" && strings.Trim(line[:m[4]], " >|") != "*":
		return line[:m[4]] + "(" + line[m[4]:m[5]] + ")" + line[m[5]:] // a heading
	}
	return line
}

// closeCode defuses a mark of code that none closes, which would take in what comes after the record.
func closeCode(lines []string) {
	for _, mark := range [...]string{"```", "~~~"} {
		last, n := -1, 0
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimLeft(line, " \t>"), mark) {
				last, n = i, n+1
			}
		}
		if n%2 == 1 {
			lines[last] = strings.ReplaceAll(lines[last], mark, "'''")
		}
	}
}

// visible takes out what a reader does not see, and gives look-alikes of brackets one form that is
// none. Joiners and variants stay between characters that need them, in emoji and in scripts that
// join letters.
func visible(text string) string {
	if plainText(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	runes := []rune(text)
	last := rune(0)
	write := func(r rune) {
		b.WriteRune(r)
		last = r
	}
	for i, r := range runes {
		after := i+1 < len(runes) && runes[i+1] > unicode.MaxLatin1 && !isVariant(runes[i+1]) && !hidden(runes[i+1])
		switch {
		case isVariant(r), (r == '\u200c' || r == '\u200d') && after:
			if last > unicode.MaxLatin1 && !isVariant(last) || isVariant(last) && r == '\u200d' {
				write(r)
			}
		case hidden(r):
		case strings.ContainsRune("\uff1c\ufe64\u02c2\u1438\u276e\u27e8\u3008\u29fc\u2770\u276c\u300a", r):
			write('\u2039')
		case strings.ContainsRune("\uff1e\ufe65\u02c3\u1433\u276f\u27e9\u3009\u29fd\u2771\u276d\u300b", r):
			write('\u203a')
		default:
			write(r)
		}
	}
	return b.String()
}

// isVariant reports the marks that choose between forms of the character before them.
func isVariant(r rune) bool { return r >= '\ufe00' && r <= '\ufe0f' }

// hidden reports characters that are not seen, or only as a blank where none is.
func hidden(r rune) bool {
	return unicode.Is(unicode.Cf, r) || r >= 0xe0000 && r <= 0xe0fff || r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u17b4' || r == '\u17b5'
}
