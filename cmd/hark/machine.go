package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// goMemoryMiB is the memory Go holds, for systems that do not tell what is resident.
func goMemoryMiB() float64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.Sys-s.HeapReleased) / (1 << 20)
}

// tuneMemory has garbage collected sooner where much is held: by default Go lets the heap grow to
// twice of what is in use, and a store of a million messages holds hundreds of megabytes of vectors
// and documents that are kept for good and cost a collection nothing. GOGC, where set, stands.
func (a *app) tuneMemory() {
	if set, _ := a.env("GOGC"); set != "" {
		return
	}
	const often, spare = 20, 128 << 20 // per cent of the heap at least, bytes
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	debug.SetGCPercent(max(often, min(100, int(100*spare/max(1, s.HeapAlloc)))))
}

// cpuName is the processor's name where the system tells it, else its architecture.
func cpuName() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	for l := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}
