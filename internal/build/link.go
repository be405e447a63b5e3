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

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/provenance"
	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/sys/process"
)

// exports is the linker's version script: the one symbol that is seen.
//
//go:embed exports.map
var exports []byte

// noteObject stands for the object that brings the note into the library.
const noteObject = "{provenance}"

// objects are those of the units, in the order in which they are linked.
func objects(units []unit) []string {
	var list []string
	for _, u := range units {
		list = append(list, u.object())
	}
	slices.Sort(list)
	return list
}

// link makes library of the units' objects and, unless it is empty, of a note.
func (b *builder) link(ctx context.Context, units []unit, library string, note []byte) error {
	objects := objects(units)
	sanitized := library == SanitizedLibrary
	key := stamp.Key(append(b.logical(b.linkArgs(objects, "{library}", "{exports}", sanitized)), b.identity, string(exports), string(note))...)
	if s, ok := stamp.Load(b.path(stampPath(library))); ok && s.Fresh(b.hasher, b.root, key) {
		return nil
	}
	if err := stamp.Remove(b.path(stampPath(library))); err != nil {
		return fmt.Errorf("linking %s: %w", library, err)
	}
	began, err := stamp.Now(b.path(b.temp))
	if err != nil {
		return fmt.Errorf("linking %s: %w", library, err)
	}
	script, made := filepath.Join(b.temp, "exports.map"), filepath.Join(b.temp, filepath.Base(library))
	if err := os.WriteFile(b.path(script), exports, 0o666); err != nil {
		return fmt.Errorf("linking %s: %w", library, err)
	}
	linked := objects
	if len(note) > 0 {
		assembly, err := b.writeNote(note)
		if err != nil {
			return fmt.Errorf("linking %s: %w", library, err)
		}
		linked = append(slices.Clone(objects), assembly)
	}
	var output bytes.Buffer
	step := b.progress.Step("link " + library)
	err = process.Command{Args: b.linkArgs(linked, made, script, sanitized), Dir: b.root, Env: b.env,
		Stdout: &output, Stderr: &output}.Run(ctx)
	step.End(err)
	if err != nil {
		return linkError(library, err, output.String())
	}
	if output.Len() > 0 {
		b.progress.Printf("%s:\n%s", library, output.String())
	}
	if err := b.publish(made, library); err != nil {
		return fmt.Errorf("linking %s: %w", library, err)
	}
	return b.finish(stamp.Stamp{Key: key}, library, began, objects)
}

// writeNote writes the assembler source of a note, which the host compiler
// takes among the objects, and returns its name.
func (b *builder) writeNote(note []byte) (string, error) {
	payload, assembly := filepath.Join(b.temp, "provenance.json"), filepath.Join(b.temp, "provenance.s")
	if err := os.WriteFile(b.path(payload), note, 0o666); err != nil {
		return "", err
	}
	return assembly, os.WriteFile(b.path(assembly), provenance.Assembly(payload), 0o666)
}

// licenceNames are those of texts at the root that go with the library.
var licenceNames = []string{"LICENSE*", "NOTICE*", "THIRD_PARTY*"}

// copyTexts puts the header and the licences beside the library.
func (b *builder) copyTexts() error {
	if err := b.copyFile(b.path(headerFile), b.path(Header), 0o666); err != nil {
		return err
	}
	for _, pattern := range licenceNames {
		names, err := filepath.Glob(filepath.Join(b.root, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := b.copyFile(name, b.path(filepath.Join(licenseDir, filepath.Base(name))), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyFile copies a file, whole or not at all, unless it is there already.
func (b *builder) copyFile(from, to string, mode os.FileMode) error {
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
	if err := renameio.WriteFile(to, text, mode, renameio.WithTempDir(b.path(b.temp))); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
