// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The causes for which an archive is refused, for errors.Is.
var (
	ErrName     = errors.New("unsafe name")
	ErrType     = errors.New("neither a file nor a folder")
	ErrRepeated = errors.New("repeated name")
	ErrTooBig   = errors.New("archive too big")
	ErrCorrupt  = errors.New("damaged archive")
)

const (
	maxName      = 1024 // bytes of a whole name
	maxComponent = 255  // bytes between two slashes, the limit of file systems
)

// cleanName checks the name of an entry and returns it without the slash that
// folders end in. The name "" comes back for the archive's own root ("./").
func cleanName(name string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%w %q: %s", ErrName, clip(name), why)
	}
	switch {
	case !utf8.ValidString(name):
		return refuse("not UTF-8")
	case len(name) > maxName:
		return refuse("too long")
	case strings.HasPrefix(name, "/"):
		return refuse("absolute")
	case strings.ContainsFunc(name, unicode.IsControl):
		return refuse("has control characters")
	case strings.ContainsAny(name, `\:`):
		return refuse(`has "\" or ":", which some systems take for separators`)
	}
	if name == "./" {
		return "", nil
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if name == "." || !fs.ValidPath(name) {
		return refuse(`has an empty, "." or ".." part`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxComponent {
			return refuse("has a part that is too long")
		}
	}
	return name, nil
}

// clip keeps a hostile name from flooding an error message.
func clip(name string) string {
	if len(name) > 200 {
		return name[:200] + "..."
	}
	return name
}

// tree holds the names unpacked so far, so that no two of them meet in a file
// system that ignores letter case.
type tree struct {
	spelling map[string]string // folded path -> path as first written
	files    map[string]bool   // paths that are files
}

func newTree() *tree {
	return &tree{spelling: map[string]string{}, files: map[string]bool{}}
}

// add notes a clean name and the folders above it.
func (t *tree) add(name string, isDir bool) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := t.note(dir); err != nil {
			return err
		}
		if t.files[dir] {
			return fmt.Errorf("%w: %q is a file and a folder", ErrRepeated, dir)
		}
	}
	_, known := t.spelling[fold(name)]
	if err := t.note(name); err != nil {
		return err
	}
	if isDir {
		if t.files[name] {
			return fmt.Errorf("%w: %q is a file and a folder", ErrRepeated, name)
		}
		return nil
	}
	if known {
		return fmt.Errorf("%w: %q", ErrRepeated, name)
	}
	t.files[name] = true
	return nil
}

func (t *tree) note(name string) error {
	key := fold(name)
	if first, ok := t.spelling[key]; ok && first != name {
		return fmt.Errorf("%w: %q and %q differ only in letter case", ErrRepeated, first, name)
	}
	t.spelling[key] = name
	return nil
}

// fold maps names that differ only in letter case to one key.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		// The smallest rune of the orbit represents all of its cases.
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
