package main

import (
	"errors"
	"os"
)

// What a torture can do on this system.
const (
	canLimitFiles = false
	canStop       = false
)

func limitFiles(int64) error { return errors.New("the size of files cannot be limited here") }

func stopProcess(*os.Process) error { return errCannot }

func continueProcess(*os.Process) error { return errCannot }
