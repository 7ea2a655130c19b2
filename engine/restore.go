package engine

import (
	"context"
	"slices"
	"strings"

	"hark/index"
)

// renumber gives rows that come from elsewhere, with the keys they had there, the keys they have here.
func (r *resolver) renumber(ctx context.Context, rows []index.Message) error {
	for i := range rows {
		row := &rows[i]
		c, rest, ok := candidateOf(row)
		if !ok {
			continue
		}
		keys, v, err := r.resolve(ctx, c)
		if err != nil {
			return err
		}
		row.Version = v
		row.Keys = keys
		for _, key := range rest { // of earlier forms
			if !slices.Contains(keys, key) {
				row.Keys = append(row.Keys, key)
			}
		}
	}
	return nil
}

// candidateOf reads the identity of a row out of its keys; ok is false where they do not tell it.
func candidateOf(row *index.Message) (c candidate, rest []string, ok bool) {
	c = candidate{version: row.Version, text: row.Text, timed: row.TimeSource == index.FromMessage}
	for _, key := range row.Keys {
		form, isText := contentOfKey(key)
		switch {
		case isText && (row.Version.Mark == "" || form.mark == row.Version.Mark) && (!ok || c.ms == 0 && form.ms != 0):
			c.content, ok = form, true
		case isText:
			if form.ms != 0 {
				rest = append(rest, key)
			}
		case !local(key):
			c.own = append(c.own, key)
		}
	}
	c.seen = row.Time
	c.version.Mark = c.mark
	return c, rest, ok && c.role != "summary"
}

// restore gives exported rows their keys here: those they had, and the numbers that have no meaning
// elsewhere. An export says itself which of its messages are equal and which are forgotten.
func (r *resolver) restore(ctx context.Context, rows []index.Message) error {
	r.restoring = true
	for i := range rows {
		row := &rows[i]
		row.Keys = slices.DeleteFunc(row.Keys, local)
		if err := r.restoreOne(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) restoreOne(ctx context.Context, row *index.Message) error {
	if err := r.look(ctx, row.Keys); err != nil {
		return err
	}
	c, _, ok := candidateOf(row)
	if !ok {
		return nil
	}
	row.Version.Mark = c.mark
	for _, key := range row.Keys {
		switch id := r.known[key]; {
		case id.Seq == index.Unknown || id.Seq == pending:
			continue
		case id.Seq == 0:
			return nil
		case strings.HasPrefix(key, "text:"):
			stored, err := r.row(ctx, id.Seq)
			if err != nil {
				return err
			}
			if contradicts(stored.Keys, c.own, c.ms == 0) {
				// The number of an untimed message is another one's here.
				row.Keys = slices.DeleteFunc(row.Keys, func(k string) bool { return k == key })
				more, err := r.freshKeys(ctx, c, true)
				row.Keys = append(row.Keys, more...)
				return err
			}
			row.Version.Old = isOlder(stored, row.Version, row.Text)
			return nil
		default:
			stored, err := r.row(ctx, id.Seq)
			if err != nil {
				return err
			}
			row.Version.Old = isOlder(stored, row.Version, row.Text)
			return nil
		}
	}
	if c.ms == 0 {
		return nil
	}
	// A copy of another precision of what was forgotten here, by this store's own word.
	for _, second := range c.buckets() {
		h, ok, err := r.chain(ctx, c.within(second), func(key string, id index.Identity) (bool, error) {
			if id.Seq != 0 || id.Foreign {
				return false, nil
			}
			return r.accepts(ctx, c, nil)(key, id)
		})
		if err != nil {
			return err
		}
		if ok {
			row.Keys = append(row.Keys, h.key)
			return nil
		}
	}
	for _, kind := range []func(int) string{c.within(c.ms / 1000), c.kin} {
		n, err := r.free(ctx, kind)
		if err != nil {
			return err
		}
		r.known[kind(n)] = index.Identity{Seq: pending}
		row.Keys = append(row.Keys, kind(n))
	}
	return nil
}
