//go:build !race

package engine

// raceDetector says that the tests run some ten times slower.
const raceDetector = false
