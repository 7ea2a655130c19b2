package main

import (
	"os"
	"runtime"
	"strings"
)

// goMemoryMiB is the memory Go holds, for systems that do not tell what is resident.
func goMemoryMiB() float64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.Sys-s.HeapReleased) / (1 << 20)
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
