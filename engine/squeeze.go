package engine

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// squeeze makes texts comparable that look the same to a person: whatever their case, white space,
// width and Unicode form, and without what is not seen.
func squeeze(s string) string {
	if !isASCII(s) {
		s = strings.Map(func(r rune) rune {
			if isUnseen(r) {
				return -1
			}
			return r
		}, s)
		// Folding makes letters that have a compatible form again.
		s = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	}
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// isUnseen reports characters that leave no mark: joiners, marks of direction, variation selectors,
// soft hyphens, fillers.
func isUnseen(r rune) bool {
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
