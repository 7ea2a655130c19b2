package index

import (
	"context"
	"database/sql"

	"hark/index/terms"
)

// cleanings remove what is kept of rows that are gone, and give the lexical index a new owner, so that
// the one there is set aside and built again.
var cleanings = []string{
	`DELETE FROM docs`,
	`DELETE FROM identities WHERE seq > 0 AND seq NOT IN (SELECT seq FROM messages)`,
	`DELETE FROM vectors WHERE key & 1099511627775 NOT IN (SELECT seq FROM messages)`,
	`DELETE FROM floats WHERE key & 1099511627775 NOT IN (SELECT seq FROM messages)`,
	`DELETE FROM floats WHERE key NOT IN (SELECT key FROM vectors)`,
	`DELETE FROM vectors WHERE key NOT IN (SELECT key FROM floats)`,
	`DELETE FROM failures WHERE seq NOT IN (SELECT seq FROM messages)`,
	`DELETE FROM state WHERE bucket='store' AND key='derive'`,
	`INSERT OR REPLACE INTO state VALUES('store', 'words', randomblob(8))`,
}

// reanalyse computes all that is derived from the rows anew, in one transaction: after an
// update of the analysis, for rows that have none, and where it does not fit the rows. It runs before
// the columns are loaded.
func (s *Store) reanalyse(ctx context.Context) error {
	tx, err := begin(ctx, s.durable)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, stmt := range cleanings {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	if err := s.reanalyseRows(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO state VALUES('store', 'analysis', ?)`, []byte(analysisVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *Store) reanalyseRows(ctx context.Context, tx *sql.Tx) error {
	rows, err := s.reads.QueryContext(ctx, `SELECT `+messageColumns+` FROM messages ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	a := newAnalyser(s.analyzer, newColumns())
	a.addName = func(ctx context.Context, name string) (uint32, error) {
		if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO names(name) VALUES(?)`, name); err != nil {
			return 0, err
		}
		var id uint32
		err := tx.QueryRowContext(ctx, `SELECT id FROM names WHERE name=?`, name).Scan(&id)
		return id, err
	}
	put, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO docs(seq, body) VALUES(?, ?)`)
	if err != nil {
		return err
	}
	defer put.Close()
	known, err := tx.PrepareContext(ctx, `INSERT OR IGNORE INTO identities(hash, seq) VALUES(?, ?)`)
	if err != nil {
		return err
	}
	defer known.Close()
	for rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return err
		}
		r, doc, _, err := a.analyse(ctx, &m)
		if err != nil {
			return err
		}
		for _, key := range m.Keys {
			if _, err := known.ExecContext(ctx, hashKey(key), m.Seq); err != nil {
				return err
			}
		}
		if _, err := put.ExecContext(ctx, m.Seq, encodeDoc(r, doc)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// analyser turns messages into columns and terms, in the order they are stored.
type analyser struct {
	terms   *terms.Analyzer
	stored  *columns // rows that are there already
	names   map[string]uint32
	langs   map[string]map[terms.Lang]int
	addName func(ctx context.Context, name string) (uint32, error)
}

func newAnalyser(t *terms.Analyzer, stored *columns) *analyser {
	return &analyser{terms: t, stored: stored, names: map[string]uint32{}, langs: map[string]map[terms.Lang]int{}}
}

// analyse returns the columns of a message, its forward document and its lexical terms.
func (a *analyser) analyse(ctx context.Context, m *Message) (r rec, doc terms.Doc, keys []string, err error) {
	main := a.mainLang(m.Session)
	doc, keys, lang := a.terms.Doc(input(m, main))
	r = rec{seq: m.Seq, kind: m.Kind, time: m.Time.UnixMilli()}
	if terms.EndsInQuestion(m.Text) {
		r.flags |= flagQuestion
	}
	if terms.Detect(m.Text) != "" {
		r.flags |= flagDetected
		if recallable(m.Kind) {
			a.tell(m.Session, lang)
		}
	}
	for _, n := range []struct {
		to   *uint32
		name string
	}{{&r.session, m.Session}, {&r.scope, m.Scope}, {&r.sender, m.Sender}, {&r.role, m.Role},
		{&r.lang, string(lang)}, {&r.main, string(main)}} {
		if *n.to, err = a.name(ctx, n.name); err != nil {
			return r, doc, nil, err
		}
	}
	return r, doc, keys, nil
}

// input is what is analysed of a message. Times are taken as the log keeps them.
func input(m *Message, main terms.Lang) terms.Input {
	return terms.Input{Text: m.Text, Caption: m.Caption, Sender: m.Sender, Time: unixMilli(m.Time.UnixMilli()), Main: main}
}

// name returns the number of a string, new where it has none.
func (a *analyser) name(ctx context.Context, name string) (uint32, error) {
	if id, ok := a.names[name]; ok {
		return id, nil
	}
	if id, ok := a.stored.names.ids[name]; ok {
		return id, nil
	}
	id, err := a.addName(ctx, name)
	if err == nil {
		a.names[name] = id
	}
	return id, err
}

// mainLangFrom is how many messages of a session must have told their language before the
// session is trusted more than the store.
const mainLangFrom = 3

// everywhere stands for all sessions in analyser.langs: no session's key can be equal to it.
const everywhere = "\xff"

// mainLang is the language to assume in a session: its own most frequent, else the store's.
// The counts include what this analyser has seen, so that batching changes nothing.
func (a *analyser) mainLang(session string) terms.Lang {
	var own []langCount
	if id, ok := a.stored.names.ids[session]; ok {
		if ses := a.stored.sessions[id]; ses != nil {
			own = ses.langs
		}
	}
	if l, n := leading(a.stored, own, a.langs[session]); n >= mainLangFrom {
		return l
	}
	l, _ := leading(a.stored, a.stored.sums.langs, a.langs[everywhere])
	return l
}

func (a *analyser) tell(session string, lang terms.Lang) {
	for _, k := range []string{session, everywhere} {
		if a.langs[k] == nil {
			a.langs[k] = map[terms.Lang]int{}
		}
		a.langs[k][lang]++
	}
}

// leading is the most frequent language, ties by name, and the messages that told any.
func leading(c *columns, stored []langCount, fresh map[terms.Lang]int) (best terms.Lang, total int) {
	sum := make(map[terms.Lang]int, len(stored)+len(fresh))
	for _, l := range stored {
		sum[terms.Lang(c.names.byID[l.lang])] += l.n
	}
	for l, n := range fresh {
		sum[l] += n
	}
	for l, n := range sum {
		total += n
		if n > 0 && (best == "" || n > sum[best] || n == sum[best] && l < best) {
			best = l
		}
	}
	return best, total
}
