package mask

import (
	"bytes"
	"strings"
)

// pem masks a private key in its armour; certificates and public keys are no secret.
func (f *finder) pem(start int) {
	head, _, _ := strings.Cut(f.text[start+len("-----BEGIN"):], "\n")
	name, _, ok := strings.Cut(head, "-----")
	if !ok || len(name) > 60 || !strings.Contains(name, "PRIVATE KEY") {
		return
	}
	end := start + len("-----BEGIN") + len(name) + len("-----")
	if i := strings.Index(f.text[end:], "-----END"+name+"-----"); i >= 0 {
		if !hasBody(f.text[end : end+i]) {
			return
		}
		f.add(start, end+i+len("-----END")+len(name)+len("-----"), "private key")
		return
	}
	body := end
	for end < len(f.text) && isArmour(f.text[end]) { // cut off before its end
		end++
	}
	if !hasBody(f.text[body:end]) {
		return // a pattern or the mention of one
	}
	f.add(start, start+len(strings.TrimRight(f.text[start:end], " \r\n")), "private key")
}

// hasBody reports encoded data.
func hasBody(text string) bool {
	run := 0
	for i := range len(text) {
		if c := text[i]; alnum(c) || c == '+' || c == '/' || c == '=' {
			if run++; run >= 20 {
				return true
			}
		} else {
			run = 0
		}
	}
	return false
}

func isArmour(c byte) bool {
	return alnum(c) || c == '+' || c == '/' || c == '=' || c == '\n' || c == '\r' || c == '\\' || c == ':' || c == ',' || c == '-' || c == ' '
}

// putty masks the private lines of a key of PuTTY's, up to its code of authentication, and keys in
// the armour of SSH2.
func (f *finder) putty(start, end int) {
	rest := f.text[end:]
	if f.text[start:end] != "Private-Lines" {
		if stop := strings.Index(rest, "---- END SSH2 "); strings.HasPrefix(f.text[start:], "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY") && stop > 0 {
			f.add(start, end+stop, "private key")
		}
		return
	}
	line, _, ok := strings.Cut(rest, "\n")
	if !ok || !strings.HasPrefix(line, ": ") || !digits(strings.TrimSpace(line[2:])) {
		return
	}
	from := end + len(line) + 1
	stop := from
	for stop < len(f.text) {
		line, _, _ := strings.Cut(f.text[stop:], "\n")
		trimmed := strings.TrimSpace(line)
		mac := strings.HasPrefix(trimmed, "Private-MAC: ") || strings.HasPrefix(trimmed, "Private-Hash: ")
		if !mac && (trimmed == "" || strings.Trim(trimmed, wordBytes+"+/=") != "") {
			break
		}
		stop += len(line) + 1
		if mac {
			break
		}
	}
	if stop = min(stop, len(f.text)); stop > from+16 {
		f.add(from, from+len(strings.TrimRight(f.text[from:stop], "\r\n")), "private key")
	}
}

// most lines of a key that breaks of lines split.
const mostLines = 8

// joined looks for a key that goes on over the ends of lines.
func (f *finder) joined(start, end int) bool {
	w := f.text[start:end]
	if !beginsKey(w) {
		return false
	}
	whole := []byte(w)
	at := end
	for range mostLines {
		from, stop, ok := f.nextLine(at)
		if !ok {
			break
		}
		whole = append(whole, f.text[from:stop]...)
		at = stop
		if size, kind := known(string(whole)); size == len(bytes.TrimRight(whole, ".-_~")) {
			size -= len(whole) - (stop - from)
			if size > 0 {
				f.add(start, f.wrapped(start, from+size, stop), kind)
				return true
			}
		}
	}
	return false
}

// beginsKey reports the beginning of a key with a form of its own.
func beginsKey(w string) bool {
	if w == "" {
		return false
	}
	if strings.HasPrefix(w, "eyJ") {
		return len(w) >= 8
	}
	for _, n := range byFirst[w[0]] {
		if begin := rules[n].begin; len(begin) >= 3 && strings.HasPrefix(w, begin) {
			return true
		}
	}
	return false
}

// nextLine returns the word that is all there is on the line after the end of one.
func (f *finder) nextLine(at int) (start, end int, ok bool) {
	i := at
	if i < len(f.text) && f.text[i] == '\\' {
		i++
	}
	if i < len(f.text) && f.text[i] == '\r' {
		i++
	}
	if i >= len(f.text) || f.text[i] != '\n' {
		return 0, 0, false
	}
	start = f.skipSpace(i + 1)
	end = start
	for end < len(f.text) && isWord[f.text[end]] {
		end++
	}
	return start, end, end > start
}

// wrapped returns the end of a key whose last line ends at end: what fills the next line and goes on
// like a key belongs to it.
func (f *finder) wrapped(start, end, wordEnd int) int {
	if end != wordEnd {
		return end
	}
	first := end - start
	for range mostLines {
		from, stop, ok := f.nextLine(end)
		if !ok || first < 24 || stop-from > first+4 || stop < len(f.text) && f.text[stop] != '\n' && f.text[stop] != '\r' && f.text[stop] != '"' && f.text[stop] != '\'' && f.text[stop] != '`' {
			break
		}
		v := f.text[from:stop]
		lower, upper, digit, other := classes(v)
		if len(v) < 6 || beginsKey(v) || other && !strings.ContainsAny(v, "_-") || !digit || !lower && !upper || turns(v) < 2 {
			break
		}
		end = stop
	}
	return end
}
