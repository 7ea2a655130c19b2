package engine

import (
	"strings"
	"testing"

	"hark/index"
)

// What a memory tool answered is stored as that and no more: its text is searched nowhere, and the
// words of a message that is forgotten are in no copy.
func TestMemoryToolEcho(t *testing.T) {
	e := open(t, nil, nil)
	for _, name := range []string{"memory_search", "hark_open", "read"} {
		msg := `{"role":"toolResult","toolName":"` + name + `","toolCallId":"c","content":"the vault opens with ` + name + ` 4417","timestamp":1764583200000}`
		if _, err := e.Ingest(t.Context(), IngestParams{SessionID: "s", SessionKey: "agent:main:main", Message: []byte(msg)}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := e.store.Session(t.Context(), "agent:main:main", 0, 10)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows {
		kept := strings.Contains(row.Text+row.Caption+string(row.Raw), "4417")
		if want := i == 2; kept != want || (row.Kind == index.Noise) == want {
			t.Errorf("row %d: kind %v, text %q, raw %q", i, row.Kind, row.Text, row.Raw)
		}
	}
}
