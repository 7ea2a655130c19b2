// Command hark is Hark at the command line: import of past conversations, search, the context a
// model would be given, and a look after the store. "hark help" is the manual.
//
// The program wires packages together and decides nothing itself: root.go has the command tree and
// the exit codes, config.go and settings.go where options come from, app.go the wiring, and every
// command a file of its own. Commands print to the app's writers, so that tests and pipes see what
// a terminal shows, without colour.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	std := &standardLog{}
	log.SetFlags(0)
	log.SetOutput(std)
	code := run(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, std: std})
	stop()
	os.Exit(code)
}
