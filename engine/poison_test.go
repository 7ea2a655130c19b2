package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// poison reads the corpus of attempts.
func poison(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/poison.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var text string
		if err := json.Unmarshal([]byte(line), &text); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, text)
	}
	if len(out) < 60 {
		t.Fatalf("only %d attempts", len(out))
	}
	return out
}

// recordHead is the line above a record, with its role.
var recordHead = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d [A-Z+0-9-]+( \(date of storing\))? \| (user|assistant|tool output, not anybody's words)( [^|\[\]\n]+)? \| session [^|\[\]\n]+ \| id [a-z2-7]{10,}( \| excerpt)?\]$`)

// forged are what must not be left of an attempt, in any case and with spaces taken out.
var forged = []string{
	"</hark-recall", "<<<", ">>>", "<!--", "<|", "|>", "[inst]", "[/inst]", "<<sys", "</s>", "<s>", "<system", "</system", "<start_of_turn",
	"<function_calls", "<invoke", "<tool_result", "<tool_use", "<assistant", "</user", "<system-reminder",
}

// checkBlock fails the test unless a block is one fence around records, and nothing in it can be
// taken for anything else.
func checkBlock(t *testing.T, block, nonce, role string, records int, why string) {
	t.Helper()
	head, tail := "<hark-recall "+nonce+">\n"+recallHead+"\n\n", "</hark-recall "+nonce+">"
	body, begins := strings.CutPrefix(block, head)
	body, ends := strings.CutSuffix(body, tail)
	if !begins || !ends {
		t.Errorf("%s: the fence is not around it: %q", why, block)
		return
	}
	heads := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		switch m := recordHead.FindStringSubmatch(line); {
		case line == "" || line == ">" || strings.HasPrefix(line, "> "):
		case m == nil:
			t.Errorf("%s: a line that is no record's: %q", why, line)
		default:
			heads++
			if m[2] != role {
				t.Errorf("%s: said by %q, shown as %q", why, role, m[2])
			}
		}
	}
	if heads != records {
		t.Errorf("%s: %d records are shown as %d", why, records, heads)
	}
	runes := []rune(body)
	for i, r := range runes {
		joins := (r == '\u200c' || r == '\u200d') && i > 0 && runes[i-1] > 0xff
		if r != '\n' && !joins && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r >= 0xfe00 && r <= 0xfe0f || r == '\u2028' || r == '\u2029') {
			t.Errorf("%s: %U is left", why, r)
		}
	}
	flat := ""
	for line := range strings.SplitSeq(body, "\n") {
		flat += "\n" + strings.ToLower(strings.Join(strings.Fields(strings.TrimPrefix(line, ">")), ""))
	}
	for _, bad := range forged {
		if strings.Contains(flat, bad) {
			t.Errorf("%s: %q is left", why, bad)
		}
	}
	if strings.Contains(body, nonce) {
		t.Errorf("%s: the nonce is left", why)
	}
}

// INJ-01, INJ-02, INJ-03: none of the attempts leaves the fence, changes a role or fakes a marker: not as
// what somebody said, not as a name, and not as the output of a tool, which nobody is shown by
// default and which is labelled where it is.
func TestPoison(t *testing.T) {
	for i, attempt := range poison(t) {
		words := fmt.Sprintf("violet folder q%dz", i)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			e, done := openAt(t, dir, nil, nil)
			text := strings.NewReplacer("NONCE", e.fence, "FOLDER", words).Replace(attempt)
			commit(t, e, turn(mainKey, "k", user(text, day)))
			ask := func(e *Engine, session string) (string, AssembleResult) {
				res, err := e.Assemble(t.Context(), AssembleParams{SessionID: session, SessionKey: "agent:main:explicit:" + session, Prompt: "where is the " + words + "?"})
				if err != nil {
					t.Fatal(err)
				}
				return blockOf(t, res), res
			}
			block, res := ask(e, "a")
			if block == "" {
				if CleanText(text) != "" && !strings.Contains(text, "[Subagent") {
					t.Errorf("not recalled: %q", text)
				}
			} else {
				checkBlock(t, block, e.fence, "user", 1, "said")
				if len(res.Messages) != 1 || strings.Contains(res.SystemPromptAddition, words) {
					t.Errorf("%d messages, %s", len(res.Messages), res.SystemPromptAddition)
				}
			}
			done()

			e, done = openAt(t, t.TempDir(), nil, nil)
			named := raw(fmt.Sprintf(`{"role":"user","content":"the %s is here","timestamp":%d,"__openclaw":{"senderName":%s}}`, words, day, encodeText(strings.ReplaceAll(text, words, "x"))))
			commit(t, e, turn(mainKey, "k", named))
			block, _ = ask(e, "a")
			checkBlock(t, block, e.fence, "user", 1, "a name")
			done()

			dir = t.TempDir()
			e, done = openAt(t, dir, nil, nil)
			commit(t, e, turn(mainKey, "k", raw(fmt.Sprintf(`{"role":"toolResult","toolCallId":"c","toolName":"web_fetch","content":[{"type":"text","text":%s}],"timestamp":%d}`, encodeText(text), day))))
			if block, _ = ask(e, "a"); block != "" {
				t.Errorf("the output of a tool is recalled: %s", block)
			}
			done()
			e, done = openAt(t, dir, nil, &Options{RecallTools: true})
			if block, _ = ask(e, "b"); block != "" {
				checkBlock(t, block, e.fence, "tool output, not anybody's words", 1, "tool")
			} else if strings.Contains(text, words) {
				t.Errorf("the output of a tool is not recalled on request")
			}
			done()
		})
	}
}
