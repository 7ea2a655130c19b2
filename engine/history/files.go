package history

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is the largest file that is read, uncompressed: files are decoded in memory.
const maxFile = 2 << 30

// Find lists the history files that paths mean, sorted and each once. A file named by the caller
// is listed whatever it is called; a directory is walked for *.jsonl and *.jsonl.gz and for the
// transcripts the host archives when a session is reset (*.jsonl.reset.*). What the user deleted
// (*.jsonl.deleted.*), backups, and the host's *.trajectory.jsonl, which repeat other files, are
// left out. Links to directories are not followed. Pipes, sockets and devices are listed; Read skips
// them and says so.
//
// The error is of the file system and names the path.
func Find(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, filepath.Clean(p))
			continue
		}
		err = filepath.WalkDir(p, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() || !isHistory(e.Name()) {
				return nil
			}
			if e.Type()&fs.ModeSymlink == 0 || !leadsToDir(path) {
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// leadsToDir says whether a link leads to a directory, or nowhere.
func leadsToDir(link string) bool {
	info, err := os.Stat(link)
	return err != nil || info.IsDir()
}

// notAFile says what a path is that is neither a file nor a directory: reading a pipe or a device
// may never end. What the shell itself hands over, as in import <(zcat x), is read.
func notAFile(path string) (kind string) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode().IsRegular() {
		return ""
	}
	if strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") || path == "/dev/stdin" {
		return ""
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// isHistory says whether a file found in a directory is read.
func isHistory(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	if strings.HasSuffix(name, ".trajectory.jsonl") || strings.HasPrefix(name, ".") {
		return false
	}
	return strings.HasSuffix(name, ".jsonl") || strings.Contains(name, ".jsonl.reset.")
}

// Read reads and decodes one file, compressed or not. An OpenClaw transcript's session key comes
// from the sessions.json beside it where that lists the session, and its agent from the folder
// agents/<agent>/sessions it lies in.
//
// The error is a *RejectedError, a *FormatError, or of the file system.
func Read(path string, opts Options) (*File, error) {
	if kind := notAFile(path); kind != "" {
		return &File{Path: path, Format: Chat, Notes: []string{"this is " + kind + " and no file; skipped"}}, nil
	}
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	if agent := agentOfPath(path); agent != "" {
		opts.Agent = agent
	}
	f, err := Decode(path, data, opts)
	if err != nil || f.Format != OpenClaw || opts.Session != "" {
		return f, err
	}
	keys, note := sessionIndex(filepath.Dir(path))
	if note != "" {
		f.Notes = append(f.Notes, note)
	}
	for i := range f.Sessions {
		s := &f.Sessions[i]
		if key := keys[s.ID]; key != "" && strings.HasSuffix(s.Key, ":explicit:"+s.ID) {
			s.Key = key
			s.Agent = agentOf(key, s.Agent)
		}
	}
	return f, nil
}

func load(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing is lost
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, &FormatError{path, "this is a directory"}
	}
	data, err := readAll(file)
	if err != nil {
		return nil, wrapRead(path, err)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = readAll(zip)
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, &FormatError{path, "the compressed file is damaged or cut off"}
	}
	if err != nil {
		return nil, wrapRead(path, err)
	}
	return data, nil
}

func wrapRead(path string, err error) error {
	if f, ok := errors.AsType[*FormatError](err); ok {
		return &FormatError{path, f.Reason}
	}
	return fmt.Errorf("read %s: %w", path, err)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, &FormatError{Reason: fmt.Sprintf("the file is larger than %d GB: split it and import the parts", maxFile>>30)}
	}
	return data, err
}

// agentOfPath reads the agent from a path of the form …/agents/<agent>/sessions/<file>.
func agentOfPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(abs), "/")
	if n := len(parts); n >= 4 && parts[n-2] == "sessions" && parts[n-4] == "agents" {
		return parts[n-3]
	}
	return ""
}

// sessionIndex reads the host's sessions.json in dir: the session key by session id. A missing
// index is none; one that cannot be read is told in the note.
func sessionIndex(dir string) (keys map[string]string, note string) {
	data, err := os.ReadFile(filepath.Join(dir, "sessions.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	var entries map[string]struct {
		SessionID string `json:"sessionId"`
	}
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		return nil, "the sessions.json beside the file cannot be read; sessions are named by their ids"
	}
	keys = make(map[string]string, len(entries))
	for key, e := range entries {
		if old, ok := keys[e.SessionID]; e.SessionID != "" && (!ok || key < old) {
			keys[e.SessionID] = key
		}
	}
	return keys, ""
}
