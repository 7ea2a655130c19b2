//go:build !linux

package main

import "errors"

// dropCache fails where the system does not offer it.
func dropCache(string) error { return errors.ErrUnsupported }
