package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ISO-07: every form of key has a documented address.
func TestParseKey(t *testing.T) {
	for key, want := range map[string]Address{
		"agent:main:main":                                  {Agent: "main", Audience: Main},
		"AGENT:Main:MAIN":                                  {Agent: "main", Audience: Main},
		"main":                                             {Audience: Main},
		"agent:main:main:thread:171":                       {Agent: "main", Audience: Main, Thread: "171"},
		"agent:main:explicit:s1":                           {Agent: "main", Audience: Explicit, Channel: "explicit", Peer: "s1"},
		"agent:main:explicit:group:not-a-group":            {Agent: "main", Audience: Group, Channel: "explicit", Peer: "not-a-group"},
		"agent:main:webchat":                               {Agent: "main", Audience: Explicit, Channel: "webchat"},
		"agent:main:direct:42":                             {Agent: "main", Audience: Direct, Peer: "42"},
		"agent:main:telegram:direct:42":                    {Agent: "main", Audience: Direct, Channel: "telegram", Peer: "42"},
		"agent:main:telegram:bot2:dm:42":                   {Agent: "main", Audience: Direct, Channel: "telegram", Account: "bot2", Peer: "42"},
		"agent:main:matrix:direct:@ann:example.org":        {Agent: "main", Audience: Direct, Channel: "matrix", Peer: "@ann:example.org"},
		"agent:main:telegram:group:-100":                   {Agent: "main", Audience: Group, Channel: "telegram", Peer: "-100"},
		"agent:main:telegram:group:-100:topic:7":           {Agent: "main", Audience: Group, Channel: "telegram", Peer: "-100", Thread: "7"},
		"agent:main:discord:channel:99":                    {Agent: "main", Audience: Group, Channel: "discord", Peer: "99"},
		"agent:main:slack:channel:C1:thread:17.5":          {Agent: "main", Audience: Group, Channel: "slack", Peer: "c1", Thread: "17.5"},
		"agent:main:matrix:room:!a:example.org":            {Agent: "main", Audience: Group, Channel: "matrix", Peer: "!a:example.org"},
		"agent:main:subagent:9a3d":                         {Agent: "main", Audience: Subagent, Peer: "9a3d"},
		"agent:main:subagent:9a3d:subagent:77":             {Agent: "main", Audience: Subagent, Peer: "9a3d:subagent:77"},
		"agent:main:cron:job:run:1":                        {Agent: "main", Audience: Automatic, Channel: "cron"},
		"cron:job":                                         {Audience: Automatic, Channel: "cron"},
		"hook:1":                                           {Audience: Automatic, Channel: "hook"},
		"agent:main:main:heartbeat":                        {Agent: "main", Audience: Automatic, Channel: "heartbeat"},
		"agent:main:telegram:direct:42:heartbeat":          {Agent: "main", Audience: Automatic, Channel: "heartbeat"},
		"agent:main:internal-session-effects:19fd-93":      {Agent: "main", Audience: Automatic, Channel: "internal-session-effects"},
		"agent:main:acp:77":                                {Agent: "main", Audience: Unknown},
		"agent:main:telegram:direct:":                      {Agent: "main", Audience: Unknown, Channel: ""},
		"agent:main":                                       {Audience: Unknown},
		"something else":                                   {Audience: Unknown},
		"":                                                 {Audience: Unknown},
		"agent:main:telegram:a1:group:g9:topic:7:thread:8": {Agent: "main", Audience: Group, Channel: "telegram", Account: "a1", Peer: "g9", Thread: "7:thread:8"},
		"agent:main:telegram:group:g9:thread:8:topic:7":    {Agent: "main", Audience: Group, Channel: "telegram", Peer: "g9", Thread: "8:topic:7"},
		"agent:main:Googlechat:Group:Spaces%2FA":           {Agent: "main", Audience: Group, Channel: "googlechat", Peer: "spaces%2fa"},
		"agent:main:googlechat:group:spaces/a":             {Agent: "main", Audience: Group, Channel: "googlechat", Peer: "spaces/a"},
		"agent:main:line:direct:ÜÑÏ":                       {Agent: "main", Audience: Direct, Channel: "line", Peer: "üñï"},
		"agent:main:line:group:İ":                          {Agent: "main", Audience: Group, Channel: "line", Peer: "i\u0307"},
		"agent:main:explicit:a:b:c":                        {Agent: "main", Audience: Explicit, Channel: "explicit", Peer: "a:b:c"},
		"agent:main:explicit:thread:thread:9":              {Agent: "main", Audience: Explicit, Channel: "explicit", Peer: "thread", Thread: "9"},
		"agent:main:webchat:direct:1":                      {Agent: "main", Audience: Explicit, Channel: "webchat", Peer: "1"},
		"agent:main:webchat:a1:group:1":                    {Agent: "main", Audience: Group, Channel: "webchat", Account: "a1", Peer: "1"},
		"agent:main:main:main":                             {Agent: "main", Audience: Unknown},
		// Nothing where something has to be is nobody's.
		"agent::main":                         {Audience: Unknown},
		"agent:main:":                         {Agent: "main", Audience: Unknown},
		"agent:main:main:":                    {Agent: "main", Audience: Unknown},
		"agent:main:main:thread:":             {Agent: "main", Audience: Unknown},
		"agent:main:explicit:":                {Agent: "main", Audience: Unknown},
		"agent:main::group:g9":                {Agent: "main", Audience: Unknown},
		"agent:main:telegram::group:g9":       {Agent: "main", Audience: Unknown},
		"agent:main:telegram:group::topic:7":  {Agent: "main", Audience: Unknown},
		"agent:main:telegram:group:g9:":       {Agent: "main", Audience: Unknown},
		"agent:main:telegram:group:g9:topic:": {Agent: "main", Audience: Unknown},
		"agent:main:subagent:":                {Agent: "main", Audience: Unknown},
		"agent:main:telegram:direct:group:5":  {Agent: "main", Audience: Direct, Channel: "telegram", Peer: "group:5"},
		"agent:main:telegram:group:direct:5":  {Agent: "main", Audience: Group, Channel: "telegram", Peer: "direct:5"},
	} {
		if diff := cmp.Diff(want, ParseKey(key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// ISO-01, ISO-02, ISO-05, ISO-06: who sees whose words. A row is visible to a session when the
// session's filter admits its scope.
func TestPolicies(t *testing.T) {
	type who struct {
		key   string
		owner bool
	}
	main := who{"agent:main:main", false}
	web := who{"agent:main:webchat:direct:1", false}
	explicit := who{"agent:main:explicit:s1", false}
	ownerDM := who{"agent:main:telegram:direct:1", true}
	annTG := who{"agent:main:telegram:direct:42", false}
	annWA := who{"agent:main:whatsapp:direct:+1555", false}
	bob := who{"agent:main:telegram:direct:43", false}
	group := who{"agent:main:telegram:group:-100", false}
	topic := who{"agent:main:telegram:group:-100:topic:7", false}
	nested := who{"agent:main:telegram:group:-100:topic:7:thread:8", false}
	account1 := who{"agent:main:telegram:a1:group:-100", false}
	account2 := who{"agent:main:Telegram:A2:group:-100:topic:7", false}
	bobA1 := who{"agent:main:telegram:a1:direct:43", false}
	annA1 := who{"agent:main:telegram:a1:direct:42", false}
	other := who{"agent:main:discord:group:-100", false}
	cron := who{"agent:main:cron:x", false}
	child := who{"agent:main:subagent:1", false}
	odd := who{"agent:main:acp:1", false}
	none := who{"", false}
	foreign := who{"agent:helper:main", false}
	all := []who{main, web, explicit, ownerDM, annTG, annWA, bob, group, topic, nested, account1, account2, bobA1, annA1, other, cron, child, odd, none, foreign}

	links := map[string][]string{"ann": {"telegram:42", "whatsapp:+1555"}}
	sees := func(p Policy, reader, writer who) bool {
		s := newScopes("main", p, false, links)
		r := s.of(reader.key, "rid", reader.owner)
		w := s.of(writer.key, "wid", writer.owner)
		if may, _ := r.mayRecall(); !may {
			return false
		}
		f := r.filter(nil)
		if f.Session != "" && f.Session != w.Session {
			return false
		}
		if f.AllScopes {
			return true
		}
		return slices.Contains(f.Scopes, w.Stored)
	}
	same := func(sets ...[]who) func(a, b who) bool {
		return func(a, b who) bool {
			if a == b {
				return a != cron && a != child && a != none
			}
			for _, set := range sets {
				ina, inb := false, false
				for _, w := range set {
					ina, inb = ina || w == a, inb || w == b
				}
				if ina && inb {
					return true
				}
			}
			return false
		}
	}
	owner := same([]who{main, web, explicit, ownerDM}, []who{annTG, annWA, annA1}, []who{group, topic, nested})
	session := same()
	for _, r := range all {
		for _, w := range all {
			if got, want := sees(PolicyOwner, r, w), owner(r, w); got != want {
				t.Errorf("owner: %q sees %q: %v, want %v", r.key, w.key, got, want)
			}
			if got, want := sees(PolicySession, r, w), session(r, w); got != want {
				t.Errorf("session: %q sees %q: %v, want %v", r.key, w.key, got, want)
			}
			mute := r == cron || r == child || r == none
			want := !mute && (r == w || r != odd && r != foreign)
			if got := sees(PolicyAgent, r, w); got != want {
				t.Errorf("agent: %q sees %q: %v, want %v", r.key, w.key, got, want)
			}
		}
	}
}
