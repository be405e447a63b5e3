// SPDX-License-Identifier: Apache-2.0

// Package codegen writes the C++ sources that a build makes itself.
package codegen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Header is how a file begins that was made from source.
func Header(source string) string {
	return "// SPDX-License-Identifier: Apache-2.0\n// Generated from " + source + "; changes here are lost.\n"
}

// Write makes dir hold the files, by name, and nothing else. A file that is
// right already stays untouched.
func Write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("generating sources: %w", err)
	}
	for name, text := range files {
		if err := writeIfChanged(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("generating sources: %w", err)
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; wanted {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("removing a stale generated file: %w", err)
		}
	}
	return nil
}

func writeIfChanged(path string, text []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("generating sources: %w", err)
	}
	if err := renameio.WriteFile(path, text, 0o666); err != nil {
		return fmt.Errorf("generating sources: %w", err)
	}
	return nil
}

// Quote writes s as a C++ string literal.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			// Three octal digits end the escape whatever follows.
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
