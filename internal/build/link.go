// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/process"
)

// exports is the linker's version script: the one symbol that is seen.
//
//go:embed exports.map
var exports []byte

// link makes the library of the units' objects.
func (b *builder) link(ctx context.Context, units []unit) error {
	var objects []string
	for _, u := range units {
		objects = append(objects, objectPath(u.source))
	}
	slices.Sort(objects)
	key := stamp.Key(append(b.logical(b.linkArgs(objects, "{library}", "{exports}")), b.identity, string(exports))...)
	if s, ok := stamp.Load(b.path(stampPath(Library))); ok && s.Fresh(b.hasher, b.root, key) {
		return nil
	}
	if err := stamp.Remove(b.path(stampPath(Library))); err != nil {
		return fmt.Errorf("linking %s: %w", Library, err)
	}
	began, err := stamp.Now(b.path(b.temp))
	if err != nil {
		return fmt.Errorf("linking %s: %w", Library, err)
	}
	script, made := filepath.Join(b.temp, "exports.map"), filepath.Join(b.temp, filepath.Base(Library))
	if err := os.WriteFile(b.path(script), exports, 0o666); err != nil {
		return fmt.Errorf("linking %s: %w", Library, err)
	}
	var output bytes.Buffer
	err = process.Command{Args: b.linkArgs(objects, made, script), Dir: b.root, Env: b.env,
		Stdout: &output, Stderr: &output}.Run(ctx)
	if err != nil {
		return fmt.Errorf("%s: does not link: %w\n%s", Library, err, strings.TrimRight(output.String(), "\n"))
	}
	if output.Len() > 0 {
		b.progress.Printf("%s:\n%s", Library, output.String())
	}
	if err := b.publish(made, Library); err != nil {
		return fmt.Errorf("linking %s: %w", Library, err)
	}
	return b.finish(Library, key, began, objects, "")
}

// licenceNames are those of texts at the root that go with the library.
var licenceNames = []string{"LICENSE*", "NOTICE*", "THIRD_PARTY*"}

// copyTexts puts the header and the licences beside the library.
func (b *builder) copyTexts() error {
	if err := copyFile(b.path(headerFile), b.path(Header), 0o666); err != nil {
		return err
	}
	for _, pattern := range licenceNames {
		names, err := filepath.Glob(filepath.Join(b.root, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := copyFile(name, b.path(filepath.Join(licenseDir, filepath.Base(name))), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyFile copies a file, whole or not at all, unless it is there already.
func copyFile(from, to string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := renameio.WriteFile(to, text, mode); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
