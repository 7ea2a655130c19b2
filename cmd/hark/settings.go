package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hark/embed"
	"hark/engine"
	"hark/recall"
	"hark/recall/rerank"
)

// peopleKey is the table of the configuration file whose keys are names the user chooses.
const peopleKey = "people"

// settings is everything that can be configured, with its effective values.
type settings struct {
	Data     string
	Agent    string
	Timezone string

	Embedder embedderSettings
	Recall   recallSettings
	Rerank   rerankSettings
	Ingest   ingestSettings
	Retain   retainSettings
	Log      logSettings
	Serve    serveSettings
	People   map[string][]string // a person's name → "channel:id"
}

type logSettings struct{ Format string }

type serveSettings struct{ Metrics string }

type embedderSettings struct {
	Provider, Model, BaseURL, APIKey string
	Dimensions                       int
	QueryPrefix, PassagePrefix       string
	Batch, Concurrency               int
	Timeout                          time.Duration
	MaxTokens                        int
}

type recallSettings struct {
	Policy    string
	MaxTokens int
	Deadline  time.Duration
	Wait      time.Duration
	Tools     bool

	KeepBlocks bool
}

type rerankSettings struct {
	Provider, Model, BaseURL, APIKey string
	Top                              int
	Wait                             time.Duration
}

type ingestSettings struct {
	Cron        bool
	KeepSecrets string // agents, by commas; "*" is all
}

type retainSettings struct {
	Days int
	Size int // MB
}

// option is one key of the configuration: how it is called in the file, on the environment and on
// the command line, and how its value is read and shown.
type option struct {
	key    string // in the file: "data" or "embedder.model"
	flag   string // "" where there is none
	help   string
	secret bool // its value is not shown
	set    func(*settings, string) error
	get    func(*settings) string
}

// env is the environment variable of the option: HARK_ and the key in capitals.
func (o option) env() string {
	return "HARK_" + strings.ToUpper(strings.ReplaceAll(o.key, ".", "_"))
}

// options lists every key, in the order in which they are documented.
func options() []option {
	return []option{
		text("data", "data", "folder that holds Hark's stores", func(s *settings) *string { return &s.Data }),
		text("agent", "agent", "agent whose store is used", func(s *settings) *string { return &s.Agent }),
		zone(),
		choice("embedder.provider", "where vectors come from: builtin, openai (any compatible server), ollama, or none for words only",
			[]string{"builtin", "openai", "ollama", "none"}, func(s *settings) *string { return &s.Embedder.Provider }),
		text("embedder.model", "", "model of an openai or ollama embedder", func(s *settings) *string { return &s.Embedder.Model }),
		text("embedder.base_url", "", "address of an openai-compatible or ollama server", func(s *settings) *string { return &s.Embedder.BaseURL }),
		secret(text("embedder.api_key", "", "key for the server; better kept in the environment than in a file", func(s *settings) *string { return &s.Embedder.APIKey })),
		number("embedder.dimensions", "length of vectors to ask the model for; 0 takes what it gives", func(s *settings) *int { return &s.Embedder.Dimensions }),
		text("embedder.query_prefix", "", "text put before questions; empty: what the model is known to want", func(s *settings) *string { return &s.Embedder.QueryPrefix }),
		text("embedder.passage_prefix", "", "text put before stored messages; empty: what the model is known to want", func(s *settings) *string { return &s.Embedder.PassagePrefix }),
		number("embedder.batch", "texts in one request to a server", func(s *settings) *int { return &s.Embedder.Batch }),
		number("embedder.concurrency", "requests to a server at a time", func(s *settings) *int { return &s.Embedder.Concurrency }),
		duration("embedder.timeout", "limit for one request to a server", func(s *settings) *time.Duration { return &s.Embedder.Timeout }),
		number("embedder.max_tokens", "longest text a server takes at once; 0: what is known of the model", func(s *settings) *int { return &s.Embedder.MaxTokens }),
		choice("recall.policy", "what a session may recall: owner (the owner's sessions share; every group and every other person stays apart), session (only itself), agent (everything the agent heard)",
			[]string{"owner", "session", "agent"}, func(s *settings) *string { return &s.Recall.Policy }),
		number("recall.max_tokens", "most tokens a recalled block may take; 0 turns recall off", func(s *settings) *int { return &s.Recall.MaxTokens }),
		duration("recall.deadline", "longest time recall may take within one turn", func(s *settings) *time.Duration { return &s.Recall.Deadline }),
		duration("recall.wait", "how long a search waits for the vector of its question; words answer alone after it", func(s *settings) *time.Duration { return &s.Recall.Wait }),
		boolean("recall.keep_blocks", "leave all that was recalled for earlier turns in place until the window is cut, not only where much was read after it; dearer in most sessions", func(s *settings) *bool { return &s.Recall.KeepBlocks }),
		boolean("recall.tools", "recall tool calls and tool output too, labelled as such", func(s *settings) *bool { return &s.Recall.Tools }),
		choice("rerank.provider", "optional second stage that reorders the best matches: none, server (with a /rerank endpoint), or ollama (a larger embedding model)",
			[]string{"none", "server", "ollama"}, func(s *settings) *string { return &s.Rerank.Provider }),
		text("rerank.model", "", "model of the second stage", func(s *settings) *string { return &s.Rerank.Model }),
		text("rerank.base_url", "", "address of the server of the second stage", func(s *settings) *string { return &s.Rerank.BaseURL }),
		secret(text("rerank.api_key", "", "key for that server; better kept in the environment than in a file", func(s *settings) *string { return &s.Rerank.APIKey })),
		number("rerank.top", "how many of the best matches it reorders", func(s *settings) *int { return &s.Rerank.Top }),
		duration("rerank.wait", "how long a search waits for it; the first stage's order stands after that", func(s *settings) *time.Duration { return &s.Rerank.Wait }),
		boolean("ingest.cron", "make scheduled runs, hooks and heartbeat sessions memory of their own", func(s *settings) *bool { return &s.Ingest.Cron }),
		text("ingest.keep_secrets", "", `agents in whose stores keys, tokens and passwords stay as they came, by commas; "*" is all; empty: they are masked`, func(s *settings) *string { return &s.Ingest.KeepSecrets }),
		number("retention.days", "messages older than this are forgotten, daily; 0 keeps them", func(s *settings) *int { return &s.Retain.Days }),
		number("retention.megabytes", "size beyond which a store's oldest messages are forgotten, daily; 0 is no bound, below 8 is taken as 8", func(s *settings) *int { return &s.Retain.Size }),
		choice("log.format", "how the daemon writes its log: text or json", []string{"text", "json"}, func(s *settings) *string { return &s.Log.Format }),
		text("serve.metrics", "metrics", "address of this machine at which the daemon serves metrics too, like 127.0.0.1:9464; empty: on its socket only", func(s *settings) *string { return &s.Serve.Metrics }),
		people(),
	}
}

// defaults are the settings before any file, variable or flag.
func defaults(env func(string) (string, bool)) settings {
	return settings{
		Data: defaultData(env), Agent: "main", Timezone: "local", Log: logSettings{Format: "text"},
		Embedder: embedderSettings{Provider: "builtin", Batch: 64, Concurrency: 2, Timeout: 30 * time.Second},
		Recall:   recallSettings{Policy: "owner", MaxTokens: 1200, Deadline: 800 * time.Millisecond, Wait: 700 * time.Millisecond},
		Rerank:   rerankSettings{Provider: "none", Top: 20, Wait: 400 * time.Millisecond},
	}
}

// chosen is what an empty option of the embedder means with its provider, "" where it means nothing.
func (e embedderSettings) chosen(key string) string {
	switch {
	case e.Provider == "ollama" && key == "embedder.model":
		return "nomic-embed-text"
	case e.Provider == "ollama" && key == "embedder.base_url":
		return "http://localhost:11434"
	case e.Provider == "openai" && e.BaseURL == "" && key == "embedder.model":
		return "text-embedding-3-small"
	case e.Provider == "openai" && key == "embedder.base_url":
		return "https://api.openai.com/v1"
	}
	return ""
}

// location is the time zone in which dates are shown and understood.
func (s settings) location() *time.Location {
	if loc, err := loadZone(s.Timezone); err == nil {
		return loc
	}
	return time.UTC
}

// embedder is the configuration of package embed.
func (s settings) embedder() embed.Config {
	e := s.Embedder
	return embed.Config{
		Provider: e.Provider, Model: e.Model, BaseURL: e.BaseURL, APIKey: e.APIKey, Dim: e.Dimensions,
		QueryPrefix: e.QueryPrefix, PassagePrefix: e.PassagePrefix,
		Batch: e.Batch, Concurrency: e.Concurrency, Timeout: e.Timeout, MaxTokens: e.MaxTokens,
	}
}

// engine is the configuration of package engine.
func (s settings) engine() *engine.Options {
	tokens := s.Recall.MaxTokens
	if tokens == 0 {
		tokens = -1 // the engine's way to say off
	}
	return &engine.Options{
		AgentID: s.Agent, Policy: engine.Policy(s.Recall.Policy), Links: s.People, RecallTokens: tokens,
		Deadline: s.Recall.Deadline, Location: s.location(), KeepBlocks: s.Recall.KeepBlocks, RecallTools: s.Recall.Tools, LearnCron: s.Ingest.Cron,
		KeepSecrets: s.keepsSecrets(), Retention: s.retention(),
		Recall: &recall.Options{DenseWait: s.Recall.Wait, RerankTop: s.Rerank.Top, RerankWait: s.Rerank.Wait},
	}
}

// engineAndSecond is the configuration of package engine with the second stage, where one is asked for.
func (s settings) engineAndSecond() (*engine.Options, error) {
	opts := s.engine()
	c, err := rerank.New(rerank.Config{Provider: s.Rerank.Provider, Model: s.Rerank.Model, BaseURL: s.Rerank.BaseURL, APIKey: s.Rerank.APIKey})
	if err != nil {
		return nil, err
	}
	if c != nil {
		opts.Recall.Reranker = c
	}
	return opts, nil
}

// keepsSecrets says whether the agent's store is one that is not masked.
func (s settings) keepsSecrets() bool {
	for name := range strings.SplitSeq(s.Ingest.KeepSecrets, ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "*" || name != "" && name == s.Agent {
			return true
		}
	}
	return false
}

// retention is what is kept of an agent's store.
func (s settings) retention() engine.Retention {
	const least = 8 // an empty store is not much smaller than a megabyte
	r := engine.Retention{Age: time.Duration(s.Retain.Days) * 24 * time.Hour}
	if s.Retain.Size > 0 {
		r.Bytes = int64(max(s.Retain.Size, least)) << 20
	}
	return r
}

func loadZone(name string) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return time.Local, nil
	}
	return time.LoadLocation(name)
}

func text(key, flag, help string, at func(*settings) *string) option {
	return option{
		key: key, flag: flag, help: help,
		set: func(s *settings, v string) error { *at(s) = v; return nil },
		get: func(s *settings) string { return *at(s) },
	}
}

func secret(o option) option {
	o.secret = true
	return o
}

func zone() option {
	return option{
		key: "timezone", help: `time zone of dates shown and understood, like "Europe/Berlin"; "local" is this machine's`,
		set: func(s *settings, v string) error {
			if _, err := loadZone(v); err != nil {
				return errors.New(`use a name like "Europe/Berlin", "UTC" or "local"`)
			}
			s.Timezone = v
			return nil
		},
		get: func(s *settings) string { return s.Timezone },
	}
}

func choice(key, help string, values []string, at func(*settings) *string) option {
	return option{
		key: key, help: help,
		set: func(s *settings, v string) error {
			if !slices.Contains(values, v) {
				return fmt.Errorf("use one of %s", strings.Join(values, ", "))
			}
			*at(s) = v
			return nil
		},
		get: func(s *settings) string { return *at(s) },
	}
}

func number(key, help string, at func(*settings) *int) option {
	return option{
		key: key, help: help,
		set: func(s *settings, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return errors.New("use a whole number, 0 or more")
			}
			*at(s) = n
			return nil
		},
		get: func(s *settings) string { return strconv.Itoa(*at(s)) },
	}
}

func duration(key, help string, at func(*settings) *time.Duration) option {
	return option{
		key: key, help: help,
		set: func(s *settings, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return errors.New(`use a time like "700ms" or "30s"`)
			}
			*at(s) = d
			return nil
		},
		get: func(s *settings) string { return at(s).String() },
	}
}

func boolean(key, help string, at func(*settings) *bool) option {
	return option{
		key: key, help: help,
		set: func(s *settings, v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return errors.New("use true or false")
			}
			*at(s) = b
			return nil
		},
		get: func(s *settings) string { return strconv.FormatBool(*at(s)) },
	}
}

// people is the one option that is a table in the file; on the environment it is written in a line.
func people() option {
	return option{
		key: peopleKey, help: `whose the ids of your channels are, so that direct chats join one memory; "owner" is you. On the environment: owner=telegram:42,signal:+31612;ann=telegram:7`,
		set: func(s *settings, v string) error {
			s.People = map[string][]string{}
			for part := range strings.SplitSeq(v, ";") {
				if strings.TrimSpace(part) == "" {
					continue
				}
				name, ids, ok := strings.Cut(part, "=")
				if name = strings.TrimSpace(name); !ok || name == "" {
					return errors.New("write name=channel:id,channel:id;name=…")
				}
				for id := range strings.SplitSeq(ids, ",") {
					if id = strings.TrimSpace(id); id != "" {
						s.People[name] = append(s.People[name], id)
					}
				}
			}
			return nil
		},
		get: func(s *settings) string {
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(s.People)) {
				parts = append(parts, name+"="+strings.Join(s.People[name], ","))
			}
			return strings.Join(parts, ";")
		},
	}
}
