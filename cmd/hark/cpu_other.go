//go:build !unix

package main

import "time"

// cpuTime is 0 where the system has no call for it that Go offers.
func cpuTime() time.Duration { return 0 }
