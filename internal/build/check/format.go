// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/build/checkout"
	"github.com/sparsek/sparsek/internal/sys/process"
)

// clangFormatted are the endings of the files that clang-format formats.
var clangFormatted = []string{".h", ".hpp", ".cuh", ".c", ".cpp", ".cu"}

// Format checks that each Go file among the sources at root is as gofmt writes
// it, and each C, C++ and CUDA file as the program clangFormat does with the
// checkout's .clang-format. It fails with the names of those that are not.
// With fix it formats them instead.
func Format(ctx context.Context, root, clangFormat string, fix bool) error {
	files, err := checkout.Files(ctx, root)
	if err != nil {
		return err
	}
	var goFiles, cFiles []string
	for _, name := range files {
		switch ext := path.Ext(name); {
		case strings.Contains(name, "/testdata/") && ext == ".go": // Go does not look into it
		case name == "mage_output_file.go": // mage writes it while it runs
		case ext == ".go":
			goFiles = append(goFiles, name)
		case slices.Contains(clangFormatted, ext):
			cFiles = append(cFiles, name)
		}
	}
	wrong, err := gofmt(root, goFiles, fix)
	if err == nil && len(cFiles) > 0 {
		var more []string
		more, err = runClangFormat(ctx, root, clangFormat, cFiles, fix)
		wrong = append(wrong, more...)
	}
	if err != nil {
		return fmt.Errorf("checking the format: %w", err)
	}
	if len(wrong) > 0 && !fix {
		return fmt.Errorf("not formatted: run go tool mage format, which changes %s", strings.Join(wrong, " "))
	}
	return nil
}

// gofmt returns the files that are not as gofmt writes them, and with fix
// formats them.
func gofmt(root string, files []string, fix bool) (wrong []string, err error) {
	for _, name := range files {
		file := filepath.Join(root, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		formatted, err := format.Source(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(text, formatted) {
			continue
		}
		wrong = append(wrong, name)
		if fix {
			if err := os.WriteFile(file, formatted, 0o666); err != nil {
				return nil, err
			}
		}
	}
	return wrong, nil
}

// clangComplaint is a line of clang-format's about a place that it would
// change.
var clangComplaint = regexp.MustCompile(`(?m)^(.+?):\d+:\d+: error: code should be clang-formatted`)

// runClangFormat returns the files that clang-format would change, and with
// fix has it change them.
func runClangFormat(ctx context.Context, root, program string, files []string, fix bool) (wrong []string, err error) {
	args := append([]string{program, "--style=file", "--dry-run", "--Werror"}, files...)
	if fix {
		args = append([]string{program, "--style=file", "-i"}, files...)
	}
	var said bytes.Buffer
	err = process.Command{Args: args, Dir: root, Stdout: &said, Stderr: &said}.Run(ctx)
	for _, m := range clangComplaint.FindAllStringSubmatch(said.String(), -1) {
		wrong = append(wrong, m[1])
	}
	var failed *process.Error
	if errors.As(err, &failed) && len(wrong) > 0 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimSpace(said.String()))
	}
	return slices.Compact(wrong), nil
}
