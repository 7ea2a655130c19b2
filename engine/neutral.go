package engine

import (
	"regexp"
	"strings"
	"unicode"
)

// neutral defuses what could close the fence, open another part of a prompt, or hide from a reader.
// The characters that take the place of angle brackets look alike and mean nothing. It is applied
// where text is shown; what is stored stays as it was said.
func neutral(text string) string {
	text, _ = sanitize(text)
	text = visible(text)
	text = tagLike.ReplaceAllString(text, "\u2039$1")
	text = instLike.ReplaceAllString(text, "($1)")
	for {
		next := neutralizer.Replace(text)
		if next == text {
			return text
		}
		text = next
	}
}

// neutralizer replaces the markers of the host and of the formats in which models are spoken to.
var neutralizer = strings.NewReplacer(
	"<<<", "\u2039\u2039\u2039", ">>>", "\u203a\u203a\u203a",
	"<!--", "\u2039!--", "<|", "\u2039|", "|>", "|\u203a",
)

// tagLike is anything a reader could take for the beginning or end of a block: of ours, of a role, of
// a call of a tool.
var tagLike = regexp.MustCompile(`(?i)<(\s*[/|!]?\s*(?:` + fenceName +
	`|system(?:-reminder|[-_ ]?prompt)?|assistant|user|human|developer|model` +
	`|tool(?:[-_]?(?:use|calls?|results?|response))?|function(?:[-_]?(?:calls?|results?|response))?|invoke|parameter|antml:\w+` +
	`|s|bos|eos|sys|im_(?:start|end)|(?:start|end)_of_turn|instructions?|thinking)\b)`)

// instLike is the mark around an instruction in some models' formats.
var instLike = regexp.MustCompile(`(?i)\[(\s*/?\s*inst\s*)\]`)

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
	for i, r := range runes {
		before := i > 0 && runes[i-1] > unicode.MaxLatin1
		switch {
		case r == '\u200c' || r == '\u200d': // joiners
			if before && i+1 < len(runes) && runes[i+1] > unicode.MaxLatin1 {
				b.WriteRune(r)
			}
		case r >= '\ufe00' && r <= '\ufe0f': // variants
			if before {
				b.WriteRune(r)
			}
		case unicode.Is(unicode.Cf, r) || r >= 0xe0000 && r <= 0xe0fff:
		case r == '\uff1c' || r == '\ufe64':
			b.WriteRune('\u2039')
		case r == '\uff1e' || r == '\ufe65':
			b.WriteRune('\u203a')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
