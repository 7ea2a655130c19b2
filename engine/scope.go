package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"hark/engine/mask"
	"hark/index"
)

// Audience says who can hear a conversation.
type Audience string

// The audiences of the host's session keys.
const (
	Main      Audience = "main"      // the owner's main session
	Explicit  Audience = "explicit"  // a session the owner named
	Direct    Audience = "direct"    // one other person, or the owner, on a channel
	Group     Audience = "group"     // a group, channel or room, with its topics and threads
	Subagent  Audience = "subagent"  // a child the agent started
	Automatic Audience = "automatic" // cron, hooks, heartbeats, the host's internal runs: nobody's conversation
	Unknown   Audience = "unknown"
)

// Address is what a session key says. Keys are compared without regard to case, as the host does.
type Address struct {
	Agent    string
	Audience Audience
	Channel  string // "telegram"; of an Automatic session what runs it, "cron"; "" where the key names none
	Account  string // which of the agent's accounts on the channel; "" where the key names none
	Peer     string // the person of a direct session, the group of a group session
	Thread   string // topic or thread inside it, and those inside that; part of the same audience
}

// ParseKey reads a session key of the host:
//
//	agent:<agent>:main                                    Main
//	agent:<agent>:explicit:<id>, :webchat:…, :tui:…       Explicit
//	agent:<agent>[:<channel>[:<account>]]:direct:<peer>   Direct (also dm)
//	agent:<agent>:<channel>[:<account>]:group:<id>        Group (also channel, room, chat, guild)
//	agent:<agent>:subagent:<id>[:subagent:<id>]           Subagent
//	agent:<agent>:cron:…, hook:…, internal-session-effects:…, node:…, and …:heartbeat   Automatic
//
// each with any number of :topic:<id> and :thread:<id> at the end, and with the agent prefix left out.
// Ids may contain colons, and end before the first topic or thread. Keys are compared without regard
// to case, and in no other way: percent escapes and Unicode forms are different ids. Everything else is
// Unknown, also a key in which the agent, the channel, the account or the end of an id is empty.
func ParseKey(key string) Address {
	parts := strings.Split(canonicalKey(key), ":")
	a := Address{Audience: Unknown}
	if len(parts) >= 3 && parts[0] == "agent" {
		if parts[1] == "" {
			return a
		}
		a.Agent, parts = parts[1], parts[2:]
	}
	last := parts[len(parts)-1]
	if last == "" {
		return a
	}
	if last == "heartbeat" {
		a.Audience, a.Channel = Automatic, "heartbeat"
		return a
	}
	switch parts[0] {
	case "cron", "hook", "heartbeat", "internal-session-effects", "node", "system":
		a.Audience, a.Channel = Automatic, parts[0]
	case "subagent":
		if len(parts) > 1 && parts[1] != "" {
			a.Audience, a.Peer = Subagent, strings.Join(parts[1:], ":")
		}
	case "main":
		if parts, a.Thread = cutThread(parts, 1); len(parts) == 1 {
			a.Audience = Main
		}
	case "explicit", "webchat", "tui", "dashboard", "control-ui":
		a.parseNamed(parts)
	default:
		a.parsePeer(parts)
	}
	return a
}

// canonicalKey is the one spelling of a session key: hosts compare keys without regard to case. The
// dotted capital I is not the plain one, which Go makes of it.
func canonicalKey(key string) string {
	return hideInID(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(key), "\u0130", "i\u0307")))
}

// hideInID puts a digest in the place of what looks like a secret in an id or a key. Two ids that
// differ stay different, and doing it again changes nothing.
func hideInID(id string) string {
	found := mask.Find(id)
	for _, f := range slices.Backward(found) {
		sum := sha256.Sum256([]byte(id[f.Start:f.End]))
		id = id[:f.Start] + "masked-" + hex.EncodeToString(sum[:8]) + id[f.End:]
	}
	return id
}

// parseNamed reads <surface>[:<id…>], the sessions of the owner's own screens. One that names a group is
// a group.
func (a *Address) parseNamed(parts []string) {
	switch {
	case len(parts) == 1 && parts[0] == "explicit":
	case len(parts) > 2 && isGroupWord(parts[1]), len(parts) > 3 && isGroupWord(parts[2]) && parts[0] != "explicit":
		a.parsePeer(parts)
	case len(parts) > 2 && parts[0] == "webchat" && (parts[1] == "direct" || parts[1] == "dm"):
		a.parsePeer(parts)
		if a.Audience == Direct {
			a.Audience = Explicit
		}
	default:
		rest, thread := cutThread(parts, min(2, len(parts)))
		a.Audience, a.Channel, a.Peer, a.Thread = Explicit, parts[0], strings.Join(rest[1:], ":"), thread
	}
}

// parsePeer reads [channel[:account]]:<kind>:<id…>. The kind word is looked for in the first three
// places only, so that an id containing "group" cannot turn a direct session into another.
func (a *Address) parsePeer(parts []string) {
	for i := 0; i < len(parts) && i < 3 && parts[i] != ""; i++ {
		word := parts[i]
		direct := word == "direct" || word == "dm"
		if !direct && !isGroupWord(word) || i == 0 && word == "channel" {
			continue
		}
		if len(parts) == i+1 || parts[i+1] == "" {
			return
		}
		id, thread := cutThread(parts[i+1:], 1)
		a.Peer, a.Thread, a.Audience = strings.Join(id, ":"), thread, Group
		if direct {
			a.Audience = Direct
		}
		if i > 0 {
			a.Channel = parts[0]
		}
		if i > 1 {
			a.Account = parts[1]
		}
		return
	}
}

func isGroupWord(word string) bool {
	return word == "group" || word == "channel" || word == "room" || word == "chat" || word == "guild"
}

// cutThread takes the topics and threads off that follow the first from parts: an id before them.
func cutThread(parts []string, from int) (rest []string, thread string) {
	for i := from; i < len(parts)-1; i++ {
		if parts[i] == "topic" || parts[i] == "thread" {
			return parts[:i], strings.Join(parts[i+1:], ":")
		}
	}
	return parts, ""
}

// Policy says which conversations of an agent share a memory.
type Policy string

// The policies. What a session sees under each:
//
//	session of                 owner                          session      agent
//	main, explicit, webchat    the owner's conversations      itself       everything
//	direct, sender is owner    the owner's conversations      itself       everything
//	direct, anybody else       that person's conversations    itself       everything
//	group, topic, thread       the same group and account     itself       everything
//	subagent, isolated         nothing                        nothing      nothing
//	subagent, fork             what its parent sees           its parent   everything
//	cron, heartbeat, internal  nothing                        nothing      nothing
//	unknown key                itself                         itself       itself
//	no key at all              nothing                        nothing      nothing
//
// A policy decides what is seen, not what is stored: changing it takes effect at once.
const (
	PolicyOwner   Policy = "owner" // the default
	PolicySession Policy = "session"
	PolicyAgent   Policy = "agent"
)

// The scopes that are not made from a key: the memory of the agent's owner, and what is nobody's.
const (
	ownerScope     = "owner"
	automaticScope = "automatic"
)

// Scope is whose memory a session belongs to. It is computed once from a call and decides both
// where its messages are stored and what may be recalled for it.
type Scope struct {
	Address Address
	Session string // lineage: the session key, or one made from the session id
	Stored  string // index.Message.Scope of what is said here

	visible   []string // scopes recalled from
	all       bool     // every scope
	only      string   // restrict recall to this lineage
	forbidden string   // why nothing is recalled; "" when something may be
}

// scopes computes scopes for one agent.
type scopes struct {
	agent  string
	policy Policy
	cron   bool              // cron and hook sessions are learned like the owner's own
	person map[string]string // "telegram:42" → canonical name, from the identity links
}

func newScopes(agent string, policy Policy, cron bool, links map[string][]string) scopes {
	s := scopes{agent: strings.ToLower(agent), policy: policy, cron: cron, person: map[string]string{}}
	for name, ids := range links {
		for _, id := range ids {
			s.person[strings.ToLower(strings.TrimSpace(id))] = strings.ToLower(strings.TrimSpace(name))
		}
	}
	return s
}

// of computes the scope of a session. The owner flag is what the host says about the person of a
// direct session.
func (s scopes) of(key, sessionID string, owner bool) Scope {
	key = canonicalKey(key)
	sc := Scope{Address: ParseKey(key), Session: key}
	if key == "" {
		sc.Session = "id:" + hideInID(sessionID)
		sc.Stored = "session:" + sc.Session
		sc.forbidden = "no session key: identity unknown"
		return sc
	}
	sc.Stored = s.stored(sc.Address, key, owner)
	foreign := sc.Address.Agent != "" && sc.Address.Agent != s.agent
	if foreign {
		sc.Stored = "agent:" + sc.Address.Agent + "/" + sc.Stored
	}
	switch {
	case sc.Address.Audience == Automatic:
		sc.forbidden = "not a conversation but a run of the host's own"
	case sc.Address.Audience == Subagent:
		sc.forbidden = "subagent without a shared context"
	case sc.Address.Audience == Unknown || foreign:
		sc.visible, sc.only = []string{sc.Stored}, key
	case s.policy == PolicySession:
		sc.visible, sc.only = []string{sc.Stored, s.stored(sc.Address, key, !owner)}, key
	case s.policy == PolicyAgent:
		sc.all = true
	default:
		sc.visible = []string{sc.Stored}
		if peer := s.peerScope(sc.Address); peer != sc.Stored && sc.Address.Audience == Direct {
			sc.visible = append(sc.visible, peer) // what was stored before the host said whose it is
		}
	}
	return sc
}

// mayRecall reports whether anything may be recalled for the session, and why not.
func (sc Scope) mayRecall() (ok bool, reason string) { return sc.forbidden == "", sc.forbidden }

// filter restricts a search to what the session may see.
func (sc Scope) filter(kinds []index.Kind) index.Filter {
	return index.Filter{Scopes: sc.visible, Session: sc.only, AllScopes: sc.all, Kinds: kinds}
}

func (s scopes) stored(a Address, key string, owner bool) string {
	switch a.Audience {
	case Main, Explicit:
		return ownerScope
	case Direct:
		if owner {
			return ownerScope
		}
		return s.peerScope(a)
	case Group:
		return a.account() + "group:" + a.at() + a.Peer
	case Subagent:
		return "subagent:" + a.Peer
	case Automatic:
		if s.cron && (a.Channel == "cron" || a.Channel == "hook") {
			return ownerScope
		}
		return automaticScope
	}
	return "session:" + key
}

// account begins the scope of what the key says was on one of several accounts of a channel. An id
// means somebody else there: the accounts can be in different workspaces.
func (a Address) account() string {
	if a.Account == "" {
		return ""
	}
	return "account:" + a.Channel + ":" + a.Account + ":"
}

// at is the channel in a scope that does not name it already.
func (a Address) at() string {
	if a.Account == "" {
		return a.Channel + ":"
	}
	return ""
}

// peerScope is the memory of one person, joined over channels and accounts by the identity links.
func (s scopes) peerScope(a Address) string {
	name, linked := s.person[a.Channel+":"+a.Account+":"+a.Peer]
	if !linked {
		name, linked = s.person[a.Channel+":"+a.Peer]
	}
	if !linked && !strings.Contains(a.Peer, ":") { // a peer "telegram:1" of another channel is not telegram's 1
		name, linked = s.person[a.Peer]
	}
	switch {
	case linked && name == ownerScope:
		return ownerScope
	case linked:
		return "person:" + name
	}
	return a.account() + "peer:" + a.at() + a.Peer
}
