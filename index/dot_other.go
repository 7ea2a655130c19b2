//go:build !amd64 || purego

package index

func dotInt8(a, b []int8) int32 { return dotGeneric(a, b) }
