package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// loadLoCoMo reads locomo10.json of LoCoMo (Maharana and others, 2024). Evidence are turns; some
// of its labels join several with semicolons or blanks, which are taken apart here, and some name
// turns that do not exist, which are reported.
func loadLoCoMo(path string) (*Set, error) {
	s := &Set{Format: LoCoMo}
	type pending struct{ query, conv, record, raw string }
	var evidence []pending
	err := jsonArray(path, func(i int, dec *json.Decoder) error {
		var r struct {
			ID           string                     `json:"sample_id"`
			Conversation map[string]json.RawMessage `json:"conversation"`
			QA           []struct {
				Question string            `json:"question"`
				Evidence []json.RawMessage `json:"evidence"`
				Category int               `json:"category"`
			} `json:"qa"`
		}
		if err := dec.Decode(&r); err != nil {
			return err
		}
		if r.ID == "" {
			r.ID = fmt.Sprintf("sample-%d", i)
		}
		docs, err := locomoTurns(r.ID, r.Conversation)
		if err != nil {
			return err
		}
		s.Docs = append(s.Docs, docs...)
		for j, q := range r.QA {
			id := fmt.Sprintf("%s-q%d", r.ID, j)
			s.Queries = append(s.Queries, Query{ID: id, Conv: r.ID, Text: q.Question, Cat: locomoCategory(q.Category)})
			for _, raw := range q.Evidence {
				var label string
				if json.Unmarshal(raw, &label) != nil {
					label = string(raw)
				}
				evidence = append(evidence, pending{id, r.ID, fmt.Sprintf("%s qa[%d]", r.ID, j), label})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l := newLabels(s)
	for _, e := range evidence {
		l.locomo(path, e.record, e.query, e.conv, e.raw)
	}
	l.finish()
	return s, nil
}

// locomoCategory names the categories of LoCoMo's questions, in the numbering of its files.
func locomoCategory(n int) string {
	names := [...]string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
	if n < 1 || n >= len(names) {
		return "category " + strconv.Itoa(n)
	}
	return names[n]
}

var locomoSession = regexp.MustCompile(`^session_([0-9]+)$`)

// locomoTurns lists the turns of a conversation in the order of its sessions.
func locomoTurns(conv string, fields map[string]json.RawMessage) ([]Doc, error) {
	var numbers []int
	for name := range fields {
		if m := locomoSession.FindStringSubmatch(name); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("session %s: %w", m[1], err)
			}
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var docs []Doc
	for _, n := range numbers {
		name := "session_" + strconv.Itoa(n)
		var turns []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
			Caption string `json:"blip_caption"`
		}
		if err := json.Unmarshal(fields[name], &turns); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, conv, err)
		}
		var date string
		_ = json.Unmarshal(fields[name+"_date_time"], &date) // without one the order counts
		for i, t := range turns {
			docs = append(docs, Doc{
				ID: conv + "/" + t.ID, Conv: conv, Sess: strconv.Itoa(n), Idx: i, Spk: t.Speaker, Date: date, Text: t.Text, Extra: t.Caption,
			})
		}
	}
	return docs, nil
}

var locomoTurn = regexp.MustCompile(`^D:?([0-9]+):([0-9]+)$`)

func (l *labels) locomo(file, record, query, conv, raw string) {
	parts := strings.FieldsFunc(raw, func(r rune) bool { return r == ';' || r == ',' || r == ' ' || r == '\n' })
	if len(parts) == 0 {
		l.bad(file, record, query, "an empty label")
	}
	for _, part := range parts {
		m := locomoTurn.FindStringSubmatch(part)
		if m == nil {
			l.bad(file, record, query, "the label %q names no turn", part)
			continue
		}
		sess, turn := strings.TrimLeft(m[1], "0"), strings.TrimLeft(m[2], "0")
		l.add(file, record, query, conv+"/D"+sess+":"+turn, 1)
	}
}

// loadLongMemEval reads longmemeval_oracle.json, _s or _m (Wu and others, 2024). Every question
// has a haystack of its own. A turn's id is its session's with the number of the turn, as the
// set's own programs write it; what is labelled are turns and sessions.
func loadLongMemEval(path string) (*Set, error) {
	s := &Set{Format: LongMemEval, Qrels: map[string]map[string]int{}, Sessions: map[string]map[string]bool{}, Unusable: map[string]bool{}}
	texts := map[string]string{} // haystacks share most of their sessions
	err := jsonArray(path, func(i int, dec *json.Decoder) error {
		var r longMemEvalRecord
		if err := dec.Decode(&r); err != nil {
			return err
		}
		if len(r.SessionIDs) != len(r.Sessions) || len(r.Dates) != len(r.Sessions) {
			return fmt.Errorf("question %s (record %d): %d sessions, %d ids and %d dates", r.ID, i, len(r.Sessions), len(r.SessionIDs), len(r.Dates))
		}
		s.longMemEval(path, &r, texts)
		return nil
	})
	return s, err
}

type longMemEvalRecord struct {
	ID         string   `json:"question_id"`
	Type       string   `json:"question_type"`
	Question   string   `json:"question"`
	Date       string   `json:"question_date"`
	SessionIDs []string `json:"haystack_session_ids"`
	Dates      []string `json:"haystack_dates"`
	Sessions   [][]struct {
		Role      string `json:"role"`
		Content   string `json:"content"`
		HasAnswer bool   `json:"has_answer"`
	} `json:"haystack_sessions"`
	Answers []string `json:"answer_session_ids"`
}

func (s *Set) longMemEval(path string, r *longMemEvalRecord, texts map[string]string) {
	s.Queries = append(s.Queries, Query{
		ID: r.ID, Conv: r.ID, Text: r.Question, Cat: r.Type, Date: r.Date, Abstain: strings.HasSuffix(r.ID, "_abs"),
	})
	known := map[string]bool{}
	for i, id := range r.SessionIDs {
		if known[id] {
			s.Problems = append(s.Problems, Problem{path, r.ID, fmt.Sprintf("session %s is in the haystack twice; the first counts", id)})
			continue
		}
		known[id] = true
		for j, turn := range r.Sessions[i] {
			text, ok := texts[turn.Content]
			if !ok {
				text = turn.Content
				texts[text] = text
			}
			d := Doc{ID: id + "_" + strconv.Itoa(j+1), Conv: r.ID, Sess: id, Idx: j, Spk: turn.Role, Date: r.Dates[i], Text: text}
			s.Docs = append(s.Docs, d)
			if turn.HasAnswer {
				if s.Qrels[r.ID] == nil {
					s.Qrels[r.ID] = map[string]int{}
				}
				s.Qrels[r.ID][d.ID] = 1
			}
		}
	}
	for _, id := range r.Answers {
		if !known[id] {
			s.Problems = append(s.Problems, Problem{path, r.ID, fmt.Sprintf("the answer's session %s is not in the haystack", id)})
			continue
		}
		if s.Sessions[r.ID] == nil {
			s.Sessions[r.ID] = map[string]bool{}
		}
		s.Sessions[r.ID][id] = true
	}
	if len(r.Answers) > 0 && len(s.Sessions[r.ID]) == 0 && len(s.Qrels[r.ID]) == 0 {
		s.Unusable[r.ID] = true
	}
}

// jsonArray calls fn for every element of a file that is one JSON array, without holding it whole.
func jsonArray(path string, fn func(i int, dec *json.Decoder) error) error {
	r, err := open(path)
	if err != nil {
		return fmt.Errorf("load the set: %w", err)
	}
	defer r.close()
	dec := json.NewDecoder(r)
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("%s: not a JSON array", r.path)
	}
	for i := 0; dec.More(); i++ {
		if err := fn(i, dec); err != nil {
			return fmt.Errorf("%s: record %d: %w", r.path, i, err)
		}
	}
	if _, err := dec.Token(); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return nil
}
