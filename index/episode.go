package index

import (
	"cmp"
	"slices"
	"sort"
)

const (
	episodeGap = 6 * 60 * 60 * 1000 // milliseconds of silence that end an episode
	episodeMax = 200                // messages
)

// session lists the rows of one session in order of time, then row.
type session struct {
	all    []int32 // slots of every row
	talk   []int32 // slots of the recallable ones
	starts []int32 // where in talk each episode begins
	gen    int     // counts the changes that were no append at the end
	langs  []langCount
}

// langCount counts the messages that told their language.
type langCount struct {
	lang uint32
	n    int
}

func countLang(l []langCount, lang uint32, by int) []langCount {
	for i := range l {
		if l[i].lang == lang {
			l[i].n += by
			return l
		}
	}
	return append(l, langCount{lang, by})
}

// order compares two rows of a session.
func (c *columns) order(a, b int32) int {
	return cmp.Or(cmp.Compare(c.rows[a].time, c.rows[b].time), cmp.Compare(a, b))
}

// settle sorts all sessions after rows were added unsorted, and cuts them into episodes.
func (c *columns) settle() {
	for _, s := range c.sessions {
		if !slices.IsSortedFunc(s.all, c.order) {
			slices.SortFunc(s.all, c.order)
		}
		s.talk = s.talk[:0]
		for _, slot := range s.all {
			if r := &c.rows[slot]; r.talk() {
				s.talk = append(s.talk, slot)
			}
		}
		c.cut(s)
	}
}

// cut divides the whole session into episodes.
func (c *columns) cut(s *session) {
	c.sums.episodes -= len(s.starts)
	s.starts = s.starts[:0]
	for i := range s.talk {
		if c.begins(s, i) {
			s.starts = append(s.starts, int32(i))
		}
	}
	c.sums.episodes += len(s.starts)
	s.gen++
}

// begins says whether an episode begins at talk[i], given the starts before it.
func (c *columns) begins(s *session, i int) bool {
	return i == 0 || len(s.starts) == 0 ||
		c.rows[s.talk[i]].time-c.rows[s.talk[i-1]].time > episodeGap ||
		i-int(s.starts[len(s.starts)-1]) >= episodeMax
}

func (c *columns) enlist(s *session, slot int32) {
	s.all, _ = c.insert(s.all, slot)
	if !c.rows[slot].talk() {
		return
	}
	var at int
	s.talk, at = c.insert(s.talk, slot)
	if at < len(s.talk)-1 {
		c.cut(s)
		return
	}
	if c.begins(s, at) {
		s.starts = append(s.starts, int32(at))
		c.sums.episodes++
	}
}

func (c *columns) insert(list []int32, slot int32) ([]int32, int) {
	if n := len(list); n == 0 || c.order(list[n-1], slot) < 0 {
		return append(list, slot), n
	}
	at, _ := slices.BinarySearchFunc(list, slot, c.order)
	return slices.Insert(list, at, slot), at
}

func (c *columns) delist(s *session, slot int32) {
	if at, ok := slices.BinarySearchFunc(s.all, slot, c.order); ok {
		s.all = slices.Delete(s.all, at, at+1)
	}
	if at, ok := slices.BinarySearchFunc(s.talk, slot, c.order); ok {
		s.talk = slices.Delete(s.talk, at, at+1)
		c.cut(s)
	}
}

// bounds finds a recallable row in its session: its place in talk and the range of its episode.
func (c *columns) bounds(slot int32) (s *session, at, from, to int, ok bool) {
	s = c.sessions[c.rows[slot].session]
	at, ok = slices.BinarySearchFunc(s.talk, slot, c.order)
	if !ok {
		return s, 0, 0, 0, false
	}
	e := sort.Search(len(s.starts), func(i int) bool { return int(s.starts[i]) > at }) - 1
	from, to = int(s.starts[e]), len(s.talk)
	if e+1 < len(s.starts) {
		to = int(s.starts[e+1])
	}
	return s, at, from, to, true
}

// episode builds the episode talk[from:to] of a session.
func (c *columns) episode(sid uint32, slots []int32) *Episode {
	e := &Episode{
		Key:  EpisodeKey{c.names.byID[sid], c.rows[slots[0]].seq},
		Seqs: make([]int64, len(slots)),
	}
	for i, slot := range slots {
		r := &c.rows[slot]
		e.Seqs[i] = r.seq
		e.Words += int(r.words)
	}
	return e
}
