// Package cache measures what an engine costs a provider's prompt cache. It plays a conversation,
// recorded or made up, the way the host does: the same calls of the engine, and requests built from
// what it returned as the host builds them. Every request is then compared with the one before it:
// what begins alike is billed at the cached price, the rest in full.
//
// It is not a model of a provider: the cache is always warm, of any length and free to write to.
//
// What of the host's requests is modelled, as seen in its recordings: the system prompt with a stable
// and a changing part and the engine's addition between them; the time written before a user's words;
// the runtime line on the first user message; the transient message after the user's words, which is
// gone in the next turn's request; and that what an engine inserts stands for the whole tool loop.
package cache
