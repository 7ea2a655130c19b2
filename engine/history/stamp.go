package history

import (
	"encoding/json"
	"strings"
	"time"

	"hark/engine"
)

// stamp is a time as files write it: see engine.Moment. It decodes from any JSON value; what is no
// time is kept as text in bad, and odd says that it is one from which no message can be.
type stamp struct {
	time.Time
	bad string
	odd bool
}

// UnmarshalJSON never fails.
func (s *stamp) UnmarshalJSON(data []byte) error {
	*s = stamp{}
	t, written := engine.Moment(data)
	s.Time = t
	text := string(data)
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	switch text = strings.TrimSpace(text); {
	case written:
		s.bad = clip(text)
	case t.IsZero() && text != "" && text != "null":
		s.odd = true
	}
	return nil
}

// text writes the time for an entry, "" where there is none.
func (s stamp) text() string {
	if s.IsZero() {
		return ""
	}
	return s.UTC().Format(time.RFC3339Nano)
}
