package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hark/embed"
	"hark/engine"
	"hark/engine/wire"
)

// metrics are what a daemon tells Prometheus: of every open agent, read when it is asked, and of every
// call. Labels are agents, methods, codes and parts; never a session, a person or a text. Safe for
// concurrent use.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	failed   *prometheus.CounterVec

	mu     sync.Mutex
	agents map[string]*memory
}

// scrapeWait bounds how long one agent may take to be described.
const scrapeWait = 3 * time.Second

// The metrics of an agent.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hark_"+name, help, append([]string{"agent"}, labels...), nil)
}

// agentMetrics are the descriptions of what is read of an agent.
type agentMetrics struct {
	served, committed, duplicate, failed, recalled, abstained, tokens *prometheus.Desc
	last, degraded, messages, sessions, pending, unembedded, bytes    *prometheus.Desc
	embedder, accepted                                                *prometheus.Desc
}

func describeAgent() agentMetrics {
	return agentMetrics{
		served:     gauge("contexts_total", "Contexts given to the host, over the life of the store."),
		committed:  gauge("turns_committed_total", "Turns stored, over the life of the store."),
		duplicate:  gauge("turns_duplicate_total", "Turns delivered again that were stored already."),
		failed:     gauge("turns_failed_total", "Calls of the lifecycle that failed."),
		recalled:   gauge("recalls_total", "Turns that were given memory."),
		abstained:  gauge("abstentions_total", "Turns for which nothing stored was good enough."),
		tokens:     gauge("recalled_tokens_total", "Tokens of memory given to the model."),
		last:       gauge("last_turn_timestamp_seconds", "When a turn was last served, committed or failed.", "what"),
		degraded:   gauge("degraded", "1 while a part does not work: meaning, words, histories or turns.", "what"),
		messages:   gauge("messages", "Messages stored."),
		sessions:   gauge("sessions", "Sessions stored."),
		pending:    gauge("pending", "Messages that wait for the index of words or for a vector.", "what"),
		unembedded: gauge("unembedded", "Messages whose vector was tried in vain."),
		bytes:      gauge("store_bytes", "Size of the store's files.", "part"),
		embedder:   gauge("embedder_up", "1 while the embedder answers.", "model"),
		accepted:   gauge("accepted_histories", "Histories that are accepted and being stored."),
	}
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), agents: map[string]*memory{},
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hark_call_seconds", Help: "How long calls took, from their arrival to their answer.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30},
		}, []string{"agent", "method"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hark_calls_failed_total", Help: "Calls that were answered with an error, by its code.",
		}, []string{"agent", "method", "code"}),
	}
	v, _ := buildVersion()
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "hark_build_info", Help: "The version of this daemon.", ConstLabels: prometheus.Labels{"version": v}})
	info.Set(1)
	m.registry.MustRegister(m.calls, m.failed, info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), agentCollector{m, describeAgent()})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

func (m *metrics) opened(agent string, mem *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agents[agent] = mem
}

func (m *metrics) closed(agent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.agents, agent)
}

func (m *metrics) open() map[string]*memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.agents)
}

// observe implements wire.Observer. What clients make up does not become a label.
func (m *metrics) observe(agent, method string, took time.Duration, failed *wire.Error) {
	if _, known := m.open()[agent]; !known {
		agent = "" // not opened: an id that somebody made up may be anything
	}
	if failed != nil {
		if failed.Code == wire.CodeUnknown {
			method = ""
		}
		m.failed.WithLabelValues(agent, method, failed.Code).Inc()
	}
	m.calls.WithLabelValues(agent, method).Observe(took.Seconds())
}

// agentCollector reads the open agents for a scrape.
type agentCollector struct {
	*metrics
	agentMetrics
}

// Describe implements prometheus.Collector.
func (c agentCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.served, c.committed, c.duplicate, c.agentMetrics.failed, c.recalled, c.abstained, c.tokens, c.last, c.degraded,
		c.messages, c.sessions, c.pending, c.unembedded, c.bytes, c.embedder, c.accepted,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c agentCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	for name, m := range c.open() {
		c.collect(ctx, ch, name, m)
	}
}

func (c agentCollector) collect(ctx context.Context, ch chan<- prometheus.Metric, name string, m *memory) {
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{name}, labels...)...)
	}
	acc, err := m.engine.Account(ctx)
	if err == nil {
		for d, n := range map[*prometheus.Desc]uint64{
			c.served: acc.Counts.Assembled, c.committed: acc.Counts.Committed, c.duplicate: acc.Counts.Duplicate,
			c.agentMetrics.failed: acc.Counts.Failed, c.recalled: acc.Counts.Recalled, c.abstained: acc.Counts.Abstained, c.tokens: acc.Counts.Tokens,
		} {
			put(d, prometheus.CounterValue, float64(n))
		}
		at := map[string]time.Time{"served": acc.Assembled, "committed": acc.Committed, "failed": {}}
		if acc.Failed != nil {
			at["failed"] = acc.Failed.At
		}
		for what, t := range at {
			if !t.IsZero() {
				put(c.last, prometheus.GaugeValue, float64(t.UnixMilli())/1000, what)
			}
		}
		ill := map[string]float64{engine.DegradedMeaning: 0, engine.DegradedWords: 0, engine.DegradedHistories: 0, engine.DegradedTurns: 0}
		for _, d := range acc.Degraded {
			ill[d.What] = 1
		}
		for what, v := range ill {
			put(c.degraded, prometheus.GaugeValue, v, what)
		}
		put(c.accepted, prometheus.GaugeValue, float64(acc.Accepted))
	}
	if m.emb != nil {
		up := 1.0
		if r, ok := m.emb.(embed.Reporter); ok && r.Unavailable() != nil {
			up = 0
		}
		put(c.embedder, prometheus.GaugeValue, up, m.emb.Model().Provider+"/"+m.emb.Model().Name)
	}
	st, err := m.store.Status(ctx)
	if err != nil {
		return
	}
	put(c.messages, prometheus.GaugeValue, float64(st.Rows))
	put(c.sessions, prometheus.GaugeValue, float64(st.Sessions))
	put(c.pending, prometheus.GaugeValue, float64(st.WordsLag), "words")
	vectors, vain := 0, 0
	for _, s := range st.Spaces {
		if s.InUse {
			vectors, vain = vectors+s.Pending, vain+s.Failed
		}
	}
	put(c.pending, prometheus.GaugeValue, float64(vectors), "vectors")
	put(c.unembedded, prometheus.GaugeValue, float64(vain))
	for part, n := range st.Bytes {
		put(c.bytes, prometheus.GaugeValue, float64(n), part)
	}
}

// serveLoopback serves the metrics on a port of this machine too, until ctx ends. Whoever can log in
// here can read them; other machines cannot.
func (m *metrics) serveLoopback(ctx context.Context, address string) (wait func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("serve.metrics has to be an address of this machine like 127.0.0.1:9464, not %q", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usage("serve.metrics has to be an address of this machine like 127.0.0.1:9464, not %q: metrics are not served to others", address)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", onlyLocal(m.handler()))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			<-ctx.Done()
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	return func() { stop(); _ = srv.Close(); <-ended }, nil
}

// onlyLocal refuses requests that a web page made under a name of its own that leads here.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "ask for it by a loopback address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
