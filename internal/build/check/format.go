// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Format fails where a Go file in the tree at root is not as gofmt writes it,
// and names each such file. Folders that Go does not look into are left out,
// and so is build/.
func Format(root string) error {
	tree := os.DirFS(root)
	var wrong []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := path.Base(name)
			hidden := name != "." && (base[0] == '.' || base[0] == '_')
			if hidden || base == "testdata" || base == "vendor" || name == "build" {
				return fs.SkipDir
			}
			return nil
		}
		// The file that mage writes while it runs is not ours.
		if path.Ext(name) != ".go" || name == "mage_output_file.go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		formatted, err := format.Source(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(text, formatted) {
			wrong = append(wrong, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("checking the format: %w", err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not formatted: run gofmt -w %s", strings.Join(wrong, " "))
	}
	return nil
}
