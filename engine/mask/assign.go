package mask

import "strings"

// place says where a value stands, and with it how sure its name makes that it is a secret.
type place uint8

const (
	inText   place = iota // in quotes or alone on its line
	inProse               // in a sentence
	inHeader              // behind a header's name
	atOption              // NAME=value of an environment, and --password value
)

// named is a name before a separator.
type named struct {
	name   string
	weight weight
	from   int  // where it begins
	quoted bool // in quotes, brackets or marks of emphasis
	open   byte // the quote that encloses the name and its value, as in 'NAME=value'
	prose  bool // words of a language rather than an identifier
}

// assigned looks at a value behind = or :, and at the name before it.
func (f *finder) assigned(at int) {
	n := f.nameBefore(at)
	i := at + 1
	declared := false
	if f.text[at] == ':' && i < len(f.text) && f.text[i] == '=' {
		declared = true
		i++
	}
	if i < len(f.text) && (f.text[i] == '=' || f.text[i] == '~') || f.text[at] == ':' && i < len(f.text) && f.text[i] == ':' {
		return // a comparison, a scope
	}
	if i < len(f.text) && f.text[i] == '>' { // a hash of Ruby or PHP
		i++
	}
	spaced := i
	if n.quoted || n.prose {
		i = f.skip(i, "*_")
	}
	i = f.skipSpace(i)
	switch {
	case f.text[at] == ':' && isCookie(n.name):
		f.cookies(i)
		return
	case n.name == "auth" && n.quoted:
		f.dockerAuth(i)
		return
	case n.weight == nothing, n.weight == token && !n.quoted && f.byteBefore(n.from) == ' ':
		n = f.otherName(n, at, i)
	}
	if n.weight == nothing {
		return
	}
	if i < len(f.text) && f.text[i] == '\n' && n.prose { // the value is on the next line
		i = f.skipSpace(i + 1)
	}
	if i >= len(f.text) || f.text[i] == '\n' {
		return
	}
	if strings.EqualFold(n.name, "authorization") || strings.EqualFold(n.name, "proxy-authorization") {
		f.authorization(i)
		return
	}
	f.behind(n, i, at, i-spaced, declared)
}

// skip passes over a few of the characters.
func (f *finder) skip(i int, chars string) int {
	for n := i; i < len(f.text) && i < n+3 && strings.IndexByte(chars, f.text[i]) >= 0; {
		i++
	}
	return i
}

// skipSpace passes over a few blanks.
func (f *finder) skipSpace(i int) int {
	for n := i; i < len(f.text) && i < n+8 && (f.text[i] == ' ' || f.text[i] == '\t'); {
		i++
	}
	return i
}

// behind looks at the value from i on, which stands behind the separator at.
func (f *finder) behind(n named, i, at, spacedBy int, declared bool) {
	escaped := 0 // in a JSON text within a JSON text
	for i+escaped < len(f.text) && f.text[i+escaped] == '\\' {
		escaped++
	}
	env := f.text[at] == '=' && spacedBy == 0
	if c := f.text[min(i+escaped, len(f.text)-1)]; c == '"' || c == '\'' || c == '`' {
		where := inText
		if (env || n.quoted) && isUpper(n.name) || strings.HasPrefix(n.name, "--") {
			where = atOption
		}
		f.quotedValue(n, i+escaped+1, c, where)
		return
	}
	for _, q := range [...]string{"“", "„", "«", "「", "『", "‘"} {
		if strings.HasPrefix(f.text[i:], q) {
			i += len(q)
			break
		}
	}
	end := i
	for end < len(f.text) && !endsValue(f.text[end]) && (n.open == 0 || f.text[end] != n.open) {
		end++
	}
	if n.open != 0 && isUpper(n.name) { // 'NAME=several words', as set -x prints it
		if stop := strings.IndexAny(f.text[i:], string(n.open)+"\n"); stop > 0 && f.text[i+stop] == n.open {
			f.value(n.name, n.weight, i, i+stop, atOption)
			return
		}
	}
	v := strings.TrimRight(f.text[i:end], ".]}*")
	if v == "" {
		return
	}
	end = i + len(v)
	// NAME=value, as a shell, a file of settings or an address has it; name: value and name = value
	// on a line of their own. In code a text would be in quotes.
	alone := !declared && !isExpression(v) && lineStart(f.text, n.from) && restEmpty(f.text[end:])
	switch {
	case env && (isUpper(n.name) || strings.HasPrefix(n.name, "--")):
		f.value(n.name, n.weight, i, end, atOption)
	case n.quoted && !n.prose && env, env && n.weight == token:
		if looksRandom(v) || env && strings.ContainsRune("?&", rune(f.byteBefore(n.from))) {
			f.value(n.name, n.weight, i, end, inText)
		}
	case f.text[at] == ':' && strings.Contains(n.name, "-") && !n.quoted && spacedBy > 0:
		f.value(n.name, n.weight, i, end, inHeader)
	case alone && spacedBy > 0 && strings.Contains(n.name, ".") && strings.Contains(v, "_") && strings.Trim(v, wordBytes) == "" && turns(v) < 2:
		// one variable is assigned to another
	case env || alone:
		f.value(n.name, n.weight, i, end, inText)
	case n.quoted && looksRandom(v):
		f.value(n.name, n.weight, i, end, inText)
	case n.prose && !isExpression(v) && f.inSentence(n, end):
		f.value(n.name, n.weight, i, end, inProse)
	}
}

func (f *finder) byteBefore(i int) byte {
	if i == 0 {
		return '\n'
	}
	return f.text[i-1]
}

// inSentence reports that the line of a name is no line of code.
func (f *finder) inSentence(n named, end int) bool {
	before := f.text[strings.LastIndexByte(f.text[:n.from], '\n')+1 : n.from]
	after, _, _ := strings.Cut(f.text[end:min(len(f.text), end+80)], "\n")
	return !strings.ContainsAny(before, "{(;=<") && !strings.HasPrefix(after, "(") && !strings.HasPrefix(after, "[") &&
		(strings.TrimSpace(before) != "" || strings.TrimSpace(after) != ",")
}

// endsValue reports what ends a value without quotes. Characters of China and Japan end it too, since
// no key is written in them.
func endsValue(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ',', ';', '|', '&', ')':
		return true
	}
	return c >= 0xe2 && c <= 0xef
}

// quotedValue looks at a value in quotes.
func (f *finder) quotedValue(n named, start int, quote byte, where place) {
	end := start
	for end < len(f.text) && f.text[end] != quote && f.text[end] != '\n' && f.text[end] != '\\' {
		end++
	}
	if end-start > 0 && end < len(f.text) && f.text[end] != '\n' {
		f.value(n.name, n.weight, start, end, where)
	}
}

// value masks text[start:end] if it looks like what the name promises.
func (f *finder) value(name string, w weight, start, end int, where place) {
	v := f.text[start:end]
	if size, _ := known(v); size > 0 || hasScheme(v) || strings.HasPrefix(v, "1//0") {
		return // found by its own form
	}
	if len(v) < 4 || v[0] == ',' || v[0] == ';' || placeholder(v) || isCode(v) || strings.HasPrefix(strings.ToLower(v), strings.ToLower(name)) || isWordList(v) || worded(v) || exampleOf(name, v) {
		return
	}
	_, _, digit, _ := classes(v)
	words := strings.Contains(v, " ")
	switch {
	case words && where != atOption && (!digit || !strings.Contains(strings.ToLower(name), "pass")):
		return
	case where == atOption && w == secret && len(v) >= 5:
	case where == atOption && w == token && len(v) >= 8 && digit && likePassword(v):
	case where == inHeader && len(v) >= 8 && likePassword(v):
	case w == token && (looksRandom(v) || f.queried(start, name) && len(v) >= 8 && likePassword(v)):
	case w == secret && digit && digits(v) && len(v) >= 6 && len(v) <= 16 && distinct(v) > 3:
	case w == secret && len(v) >= 6 && likePassword(v):
	default:
		return
	}
	f.add(start, end, "secret value")
}

// exampleOf reports what is said of the name: OLLAMA_API_KEY=ollama-local, and the name of a constant.
func exampleOf(name, v string) bool {
	if isUpper(v) && strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && strings.Count(v, "_") >= 2 {
		return true
	}
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(name, "-")), "_")
	rest, ok := strings.CutPrefix(strings.ToLower(v), first)
	return ok && len(first) >= 3 && worded(rest)
}

// queried reports that a name stands in the query of an address.
func (f *finder) queried(start int, name string) bool {
	i := start - 1 - len(name)
	return i > 0 && f.text[start-1] == '=' && (f.text[i-1] == '?' || f.text[i-1] == '&' || f.text[i-1] == ';' && i > 4 && f.text[i-5:i] == "&amp;")
}

// hasScheme reports the value of an Authorization header.
func hasScheme(v string) bool {
	scheme, _, ok := strings.Cut(v, " ")
	return ok && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "basic"))
}

// nameBefore returns the name that ends before at.
func (f *finder) nameBefore(at int) named {
	end := at
	for end > 0 && end > at-3 && f.text[end-1] == ' ' {
		end--
	}
	n := named{}
	for end > 0 && strings.IndexByte("\"'\\]*`", f.text[end-1]) >= 0 {
		end--
		n.quoted = true
	}
	start := end
	for start > 0 && start > end-64 && (alnum(f.text[start-1]) || f.text[start-1] == '_' || f.text[start-1] == '-' || f.text[start-1] == '.') {
		start--
	}
	n.name, n.from = f.text[start:end], start
	if strings.HasSuffix(n.name, "__") {
		n.name, n.quoted = strings.TrimRight(n.name, "_"), true
	}
	if c := f.byteBefore(start); !n.quoted && (c == '\'' || c == '"') {
		n.open = c
	}
	if n.name != "PASS" || f.text[at] != ':' { // the report of a test
		n.weight = weigh(n.name)
	}
	n.prose = n.weight == secret && strings.Trim(n.name[1:], "abcdefghijklmnopqrstuvwxyz") == "" || n.quoted && f.byteBefore(start) == '*'
	return n
}

// otherName looks for a name of two words, and in other languages. The value is looked at first,
// since it is cheaper to see that it is no secret.
func (f *finder) otherName(n named, at, value int) named {
	end := n.from + len(n.name)
	if n.name == "" {
		for end = at; end > 0 && strings.IndexByte("\"'*`» ", f.text[end-1]) >= 0; {
			end--
		}
		n.from = end
	}
	if !f.hasDigit(value) {
		return n
	}
	if c := f.byteBefore(n.from); (c == ' ' || c == '-') && len(n.name) >= 3 && n.from >= 4 {
		from := n.from - 1
		start := from
		for start > 0 && start > from-16 && (alnum(f.text[start-1]) || f.text[start-1] == '-') {
			start--
		}
		first := strings.ToLower(f.text[start:from])
		if dash := strings.LastIndexByte(first, '-'); dash >= 0 && first != "pre-shared" {
			first = first[dash+1:]
		}
		for _, word := range firstWords {
			if first == word {
				if w := weigh(word + n.name); w != nothing {
					n.name, n.from, n.weight, n.prose = word+n.name, start, w, true
					return n
				}
			}
		}
	}
	if start, ok := foreignBefore(f.text[:end]); ok {
		n.name, n.from, n.weight, n.prose = f.text[start:end], start, secret, true
	}
	return n
}

// hasDigit reports a digit in the word from i on, or at the beginning of the next line.
func (f *finder) hasDigit(i int) bool {
	for stop := min(len(f.text), i+80); i < stop; i++ {
		c := f.text[i]
		if c >= '0' && c <= '9' {
			return true
		}
		if c == ' ' {
			return false
		}
	}
	return false
}

// lineStart reports that only what opens a setting stands before i on its line.
func lineStart(text string, i int) bool {
	before := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
	before = strings.TrimLeft(before, " \t-+>#{,*_`")
	switch before {
	case "", "export ", "set ", "ENV ", "Environment=", "$env:", "declare -x ", "setenv ":
		return true
	}
	return false
}

// restEmpty reports that nothing but an ending stands behind a value on its line.
func restEmpty(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimLeft(line, " \t;}\r*`")
	return line == "" || line[0] == '#' || strings.HasPrefix(line, "//")
}

// spaced masks what follows a name and blanks: NAME value, and "api key is value".
func (f *finder) spaced(start, end int) {
	name := f.text[start:end]
	if len(name) < 3 {
		return
	}
	w := nothing
	switch c := name[len(name)-1] | 0x20; {
	case c != 'd' && c != 'e' && c != 't' && c != 'y' && c != 'n' && c != 's':
		return
	case strings.IndexByte(name, '_') >= 0 || isUpper(name):
		w = weigh(name)
	case !strings.HasPrefix(f.text[end:], " is ") && !strings.HasPrefix(f.text[end:], " = '"):
		return
	case strings.EqualFold(name, "key") || strings.EqualFold(name, "token") || strings.EqualFold(name, "secret") || strings.EqualFold(name, "password"):
		w = f.otherName(named{name: name, from: start}, end, end+4).weight
		if w == nothing && strings.EqualFold(name, "password") {
			w = secret
		}
		end += 3
	}
	if w == nothing {
		return
	}
	i := f.skipSpace(end)
	stop := i
	for stop < len(f.text) && !endsValue(f.text[stop]) {
		stop++
	}
	v := strings.TrimRight(f.text[i:stop], ".!?")
	if looksRandom(v) && !strings.ContainsAny(v, "(:") && !hexWord(v) {
		f.value(name, w, i, i+len(v), inText)
	}
}

// hexWord reports a commit or a digest.
func hexWord(v string) bool { return (len(v) == 40 || len(v) == 64) && hex(v) }

// cell masks the value in a table's cell whose neighbour is a secret's name: | API_KEY | value |.
func (f *finder) cell(at int) {
	n := f.nameBefore(at)
	if n.weight == nothing {
		n = f.otherName(n, at, f.skipSpace(at+1))
	}
	before := strings.TrimRight(f.text[max(0, n.from-6):n.from], " *`")
	if n.weight == nothing || !strings.HasSuffix(before, "|") {
		return
	}
	i := f.skip(f.skipSpace(at+1), "`*")
	end := i
	for end < len(f.text) && f.text[end] != ' ' && f.text[end] != '`' && f.text[end] != '|' && f.text[end] != '\n' {
		end++
	}
	v := strings.TrimRight(f.text[i:end], "*")
	if rest := strings.TrimLeft(f.text[i+len(v):min(len(f.text), end+8)], " `*"); strings.HasPrefix(rest, "|") && len(v) >= 8 {
		f.value(n.name, n.weight, i, i+len(v), inText)
	}
}
