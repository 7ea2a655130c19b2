package engine

import (
	"fmt"
	"testing"
	"time"

	"hark/index"
)

// A long history that is handed over again costs little, and what is new or edited in it is stored.
func TestSameHistoryAgain(t *testing.T) {
	e := open(t, nil, nil)
	const n = 4000
	var h []HistoryEntry
	for i := range n + 2 {
		m := user(fmt.Sprintf("message number %d about the garden", i), day+int64(i)*1000)
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("e", i-1)
		}
		h = append(h, HistoryEntry{EntryID: fmt.Sprint("e", i), ParentID: parent, Seq: int64(i + 1), Message: m})
	}
	boot := func(what string, want int, h []HistoryEntry) time.Duration {
		t.Helper()
		start := time.Now()
		res, err := e.Bootstrap(t.Context(), BootstrapParams{SessionID: "s", SessionKey: mainKey, History: h, Complete: true})
		if err != nil || res.ImportedMessages != want {
			t.Errorf("%s: %+v %v", what, res, err)
		}
		if err := e.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	first := boot("first", n, h[:n])
	if again := boot("again", 0, h[:n]); again > first/4 {
		t.Errorf("the same again takes %v of %v", again, first)
	}
	boot("two more", 2, h)
	boot("again", 0, h)
	edited := append([]HistoryEntry(nil), h...)
	edited[7].Message = user("quite another sentence", day+7000)
	boot("edited", 0, edited)
	if ms := rows(t, e, mainKey); len(ms) != n+2 || ms[7].Text != "quite another sentence" {
		t.Errorf("%d rows; the edited one is not updated", len(ms))
	}
	boot("cut back", 0, edited[:n])
	if ms := rows(t, e, mainKey); ms[n].Kind != index.Noise || ms[n+1].Kind != index.Noise {
		t.Error("what was cut off is still recalled")
	}
}
