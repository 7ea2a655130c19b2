package history

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is no file is skipped with a note; reading it might never end.
func TestSocketsAreSkipped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	files, err := Find([]string{dir})
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	read := make(chan *File, 1)
	go func() {
		f, err := Read(files[0], Options{})
		if err != nil {
			t.Error(err)
		}
		read <- f
	}()
	select {
	case f := <-read:
		if f == nil || len(f.Sessions) != 0 || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "socket") {
			t.Errorf("%+v", f)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("reading a socket hangs")
	}
	if f, err := Read(os.DevNull, Options{}); err != nil || len(f.Notes) != 1 {
		t.Errorf("a device: %+v %v", f, err)
	}
}

// A file whose only line is cut off says so.
func TestOnlyLineCutOff(t *testing.T) {
	_, err := Decode("x.jsonl", []byte(`{"session":"a","role":"user","content":"the red`), Options{})
	var rejected *RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "x.jsonl:1:") || !strings.Contains(err.Error(), "cut off") {
		t.Error(err)
	}
}
