// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/unpack"
)

// clangFormatProgram is where its wheel has the program.
const clangFormatProgram = "clang_format/data/bin/clang-format"

// ClangFormat unpacks the clang-format that the lock pins into the folder dir,
// and fetches it before if need be. It returns the path of the program.
func ClangFormat(ctx context.Context, opts Options, dir string) (string, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return "", err
	}
	pin, err := b.lock.Tool(lock.ClangFormat)
	if err != nil {
		return "", err
	}
	archive, err := b.cache.Get(ctx, b.file(pin))
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	const name = "clang-format"
	err = unpack.File(ctx, archive, pin.File, root, unpack.Options{
		Select: func(file string) (string, bool) { return name, file == clangFormatProgram },
	})
	if err == nil {
		err = root.Chmod(name, 0o755)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s has no %s: correct the lock", pin.File, clangFormatProgram)
	}
	return filepath.Join(dir, name), err
}
