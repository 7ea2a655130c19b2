// Package engine is Hark's context engine: the lifecycle an OpenClaw host drives, from storing what
// was said to deciding what the model sees. It is not a store (package index), not a search (package
// recall) and not a transport (package engine/wire).
//
// What always holds: the host gets an answer, whatever fails inside (Engine passes its messages
// through, Guard replaces an engine that breaks its contract); the bytes of the host's messages
// leave as they came; nothing is recalled across a Scope; and nothing in a returned text depends on
// the clock, on a map's order or on how often it was asked for.
//
// # Life of a message
//
// A message arrives through CommitTurn, and on hosts that have no accepted turns through AfterTurn,
// IngestBatch or Ingest; Bootstrap brings what none of them delivered. All of them end in
// Engine.save (ingest.go). There decode (message.go) reads the few fields that are used and
// extracts the text; CleanText (text.go) takes off what the host put around a person's words;
// ParseKey and Engine.scope (scope.go, session.go) say whose memory it belongs to; classify (noise.go) marks what
// must not become memory; identify (identity.go) gives it the keys by which a second copy is
// recognised. One transaction of the index then holds the rows and the receipt of the turn, and the
// words are searchable. An embedder in this process adds the vectors before the call returns
// (embedding.go), a remote one is followed by one background worker.
//
// # Life of a query
//
// Assemble (assemble.go) decodes the host's messages once, counts them (budget.go, pieces.go) in the
// tokens of the model's family (family.go), and splits them into turns and frames (window.go). What fits is kept from an anchor that moves rarely, so that the
// host's prompt cache holds. The question is what a person said; recall answers it from the scopes
// this session may see, without what the kept messages show already (onscreen.go); the best items
// are packed under a cap and rendered as one fenced message (render.go), which goes before the live
// user turn. It is made once for a turn and found again by the tool loop, by a retry while the store is
// the same, and by the next process (ledger.go). What an assembly leaves behind is written beside it
// (states.go). Every decision is in the Trace.
package engine
