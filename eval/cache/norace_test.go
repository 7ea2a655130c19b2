//go:build !race

package cache

// raceDetector says that the tests run some ten times slower.
const raceDetector = false
