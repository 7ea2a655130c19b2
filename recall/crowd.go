package recall

import (
	"slices"

	"hark/index"
	"hark/index/terms"
)

// Copies and what is on screen must not crowd out the candidates: where more than a quarter of what a
// leg returns is that, it is asked for wider times as many, and again, and most of the copies go.
const (
	wider     = 5
	widest    = 25
	spareCopy = 2 // candidates that are left of the same text, and of what is on screen
)

// wide asks a leg for its best k, and for more where they are crowded.
func (s *Searcher) wide(r Request, k int, ask func(k int) ([]index.Scored, error)) ([]index.Scored, error) {
	hits, err := ask(k)
	for n := wider; err == nil && n <= widest && len(hits) >= k; n *= wider {
		thin := s.thin(r, hits)
		if len(thin)*4 >= k*3 {
			if n > wider {
				hits = thin[:min(k, len(thin))]
			}
			return hits, nil
		}
		before := len(hits)
		if hits, err = ask(k * n); len(hits) <= before {
			return hits, err
		}
	}
	if err != nil || len(hits) <= k {
		return hits, err
	}
	thin := s.thin(r, hits)
	return thin[:min(k, len(thin))], nil
}

// thin leaves out copies and what is on screen, in order, but for the first of each.
func (s *Searcher) thin(r Request, hits []index.Scored) []index.Scored {
	v := s.store.View()
	defer v.Close()
	texts := map[uint64]int{}
	shown := 0
	var out []index.Scored
	for _, h := range hits {
		if r.Exclude[h.Seq] {
			if shown++; shown > spareCopy {
				continue
			}
		}
		if d, ok := v.Doc(h.Seq); ok {
			text := textOf(d)
			if texts[text]++; texts[text] > spareCopy {
				continue
			}
		}
		out = append(out, h)
	}
	return out
}

// once marks all but the first candidates of the same words and speaker.
func (s *scorer) once(ranked []*candidate) {
	type said struct {
		text uint64
		who  string
	}
	seen := map[said]bool{}
	for _, c := range ranked {
		d, ok := s.src.Doc(c.seq)
		if !ok {
			continue
		}
		k := said{textOf(d), c.row.Role + "\x00" + c.row.Sender}
		c.copied = seen[k]
		seen[k] = true
	}
}

// textOf is a print of the words of a message, whoever said them and whenever (FNV-1a).
func textOf(d terms.Doc) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for i := range d.Len() {
		hash, p := d.At(i)
		if slices.Contains([]uint8{terms.PartSender, terms.PartDate}, p.Part) {
			continue
		}
		h = (h ^ uint64(hash)) * prime
		h = (h ^ uint64(p.TF)<<8 ^ uint64(p.Part)) * prime
	}
	return h
}
