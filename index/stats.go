package index

import (
	"cmp"
	"math"
	"slices"

	"hark/index/terms"
)

// maxLength caps the lengths that the median histograms tell apart.
const maxLength = 4096

// sums are the totals behind Stats, over recallable rows.
type sums struct {
	words, grams          int64
	passages, passageWord int64
	episodes              int
	user, assistant       []int32 // histograms of words a message
	users, assistants     int
	langs                 []langCount // messages that told their language
	lift                  float64
	liftAt                int // number of messages lift was computed over
}

func newSums() sums {
	return sums{user: make([]int32, maxLength), assistant: make([]int32, maxLength), lift: 1}
}

func (s *sums) count(c *columns, r *rec, d terms.Doc, by int) {
	s.words += int64(by * d.Words())
	s.grams += int64(by * d.Grams())
	s.passages += int64(by * d.Passages())
	for i := range d.Passages() {
		s.passageWord += int64(by * d.PassageWords(i))
	}
	switch c.names.byID[r.role] {
	case "user":
		s.user[min(d.Words(), maxLength-1)] += int32(by)
		s.users += by
	case "assistant":
		s.assistant[min(d.Words(), maxLength-1)] += int32(by)
		s.assistants += by
	}
	if r.flags&flagDetected != 0 {
		s.langs = countLang(s.langs, r.lang, by)
		ses := c.session(r.session)
		ses.langs = countLang(ses.langs, r.lang, by)
	}
}

// median of a histogram of n values.
func median(hist []int32, n int) float64 {
	seen := 0
	for length, k := range hist {
		if seen += int(k); seen > n/2 {
			return float64(length)
		}
	}
	return 0
}

func (c *columns) stats() Stats {
	s := &c.sums
	n := c.talks()
	return Stats{
		Messages: n, Episodes: s.episodes,
		AvgWords: ratio(s.words, n), AvgGrams: ratio(s.grams, n),
		AvgPassageWords: ratio(s.passageWord, int(s.passages)), AvgEpisodeWords: ratio(s.words, s.episodes),
		MedianUserWords: median(s.user, s.users), MedianAssistantWords: median(s.assistant, s.assistants),
		Lift: s.lift, Langs: c.shares(),
	}
}

func ratio(sum int64, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}

func (c *columns) shares() []LangShare {
	total := 0
	for _, l := range c.sums.langs {
		total += l.n
	}
	var out []LangShare
	for _, l := range c.sums.langs {
		if l.n > 0 {
			out = append(out, LangShare{terms.Lang(c.names.byID[l.lang]), float64(l.n) / float64(total)})
		}
	}
	slices.SortFunc(out, func(a, b LangShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Lang, b.Lang))
	})
	return out
}

const (
	liftPairs = 2000 // sampled pairs of each sort
	liftFrom  = 4    // messages below which there is nothing to compare
)

// liftStep is the greatest size not above n at which the lift is computed: sizes grow by a
// tenth. Fixed sizes make it depend on the rows, not on when the store was opened.
func liftStep(n int) int {
	if n < liftFrom {
		return 0
	}
	step := liftFrom
	for next := step + max(1, step/10); next <= n; next = step + max(1, step/10) {
		step = next
	}
	return step
}

// lift computes how much more alike adjacent messages of an episode are than random pairs, by
// idf-weighted overlap of their words, over the first n messages: conversations that develop a
// topic score high, logs of unrelated entries near 1. It reads only.
func (c *columns) lift(n int) float64 {
	if n == 0 {
		return 1
	}
	first := make([]int32, 0, n)
	for i := range c.rows {
		if len(first) == n {
			break
		}
		if c.rows[i].talk() {
			first = append(first, int32(i))
		}
	}
	p := pairs{c: c, bags: map[int32][]uint32{}, df: map[uint32]int{}}
	last := first[n-1]
	for i := 0; i+1 < n; i += max(1, n/liftPairs) {
		if next, ok := c.follower(first[i]); ok && next <= last {
			p.adjacent = append(p.adjacent, p.pair(first[i], next))
		}
		if j := (i*7919 + 104729) % n; j != i {
			p.random = append(p.random, p.pair(first[i], first[j]))
		}
	}
	if len(p.adjacent) == 0 {
		return 1
	}
	return (p.mean(p.adjacent) + .002) / (p.mean(p.random) + .002)
}

// follower is the message after a slot in its episode.
func (c *columns) follower(slot int32) (int32, bool) {
	s, at, _, to, ok := c.bounds(slot)
	if !ok || at+1 >= to {
		return 0, false
	}
	return s.talk[at+1], true
}

// pairs is a sample of pairs of messages, its words counted within the sample.
type pairs struct {
	c                *columns
	bags             map[int32][]uint32 // distinct words of each message, ascending
	df               map[uint32]int
	adjacent, random [][2]int32
}

func (p *pairs) pair(a, b int32) [2]int32 {
	p.take(a)
	p.take(b)
	return [2]int32{a, b}
}

func (p *pairs) take(slot int32) {
	if _, ok := p.bags[slot]; ok {
		return
	}
	d := p.c.doc(&p.c.rows[slot])
	bag := []uint32{}
	for i := range d.Len() {
		h, post := d.At(i)
		cl := terms.HashClass(h)
		if post.Part >= terms.PartCaption || cl != terms.Word && cl != terms.HanPair {
			continue
		}
		if k := len(bag); k == 0 || bag[k-1] != h {
			bag = append(bag, h)
			p.df[h]++
		}
	}
	p.bags[slot] = bag
}

// mean is the average cosine of the pairs under idf weights.
func (p *pairs) mean(list [][2]int32) float64 {
	if len(list) == 0 {
		return 0
	}
	n, sum := float64(len(p.bags)), 0.0
	idf := func(h uint32) float64 {
		df := float64(p.df[h])
		return math.Log(1 + (n-df+.5)/(df+.5))
	}
	norm := func(bag []uint32) (s float64) {
		for _, h := range bag {
			s += idf(h) * idf(h)
		}
		return s
	}
	for _, ab := range list {
		a, b := p.bags[ab[0]], p.bags[ab[1]]
		both := 0.0
		for i, j := 0, 0; i < len(a) && j < len(b); {
			switch {
			case a[i] < b[j]:
				i++
			case a[i] > b[j]:
				j++
			default:
				both += idf(a[i]) * idf(a[i])
				i, j = i+1, j+1
			}
		}
		if both > 0 {
			sum += both / math.Sqrt(norm(a)*norm(b))
		}
	}
	return sum / float64(len(list))
}
