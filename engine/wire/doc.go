// Package wire carries the engine's lifecycle between processes: HTTP/1.1 with JSON bodies over a
// Unix socket in the state directory, or over loopback TCP with a token where there are no Unix
// sockets. It translates and decides nothing; what a call means is package engine's.
//
// What always holds: one daemon serves a state directory, and it holds an operating-system lock that
// dies with it; every call has a deadline and is answered by it, whatever the engine does; a closed
// connection cancels its work; the host's messages are never sent back, so a client puts its own
// objects in place; a body is read whole before anything is done, so that half a request does nothing.
//
// The parts, from the outside in: Serve (daemon.go) is the life of a daemon; place.go, lock.go and
// listen.go say where it is and that there is one; Server (server.go) is the HTTP surface;
// lifecycle.go has one entry a method; histories.go and chain.go keep long histories from being sent
// on every call; agents.go opens what is served. Client (client.go) speaks to it, Remote (remote.go)
// is an engine.ContextEngine whose work is done there.
//
// The README shows every route with curl. The transcripts in testdata are what both sides, this
// package and the TypeScript plugin, are tested against; durable-turn.txtar documents their format.
package wire
