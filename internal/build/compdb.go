// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
)

// compileCommand is an entry of a compilation database, as Clang's tools read
// it.
type compileCommand struct {
	Directory string   `json:"directory"`
	File      string   `json:"file"`
	Output    string   `json:"output"`
	Arguments []string `json:"arguments"`
}

// WriteCompileCommands writes CompileCommands: the command that compiles each
// source, among them the generated ones, which it generates; for what nvcc
// compiles, the same search paths and macros as Clang takes them. Nothing is
// compiled. It returns the number of sources.
func WriteCompileCommands(ctx context.Context, o Options) (int, error) {
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return 0, err
	}
	unlock, err := lock(ctx, root, o.Progress)
	if err != nil {
		return 0, err
	}
	defer unlock()
	b, err := newBuilder(ctx, root, o)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(b.path(tempDir))
	list, err := kernels.Load(b.path(kernelsFile))
	if err != nil {
		return 0, err
	}
	if err := generate(root, genDir, list); err != nil {
		return 0, err
	}
	units, err := findUnits(root, genDir, list)
	if err != nil {
		return 0, err
	}
	var commands []compileCommand
	for _, u := range units {
		object := u.object()
		args := b.compileArgs(u, object, object+".d", b.info.defines(u.source))
		if u.device {
			args = b.clangArgs(u, object)
		}
		commands = append(commands, compileCommand{Directory: root, File: u.source, Output: object, Arguments: args})
	}
	text, err := json.MarshalIndent(commands, "", " ")
	if err != nil {
		return 0, err
	}
	if err := renameio.WriteFile(b.path(CompileCommands), append(text, '\n'), 0o666); err != nil {
		return 0, fmt.Errorf("writing %s: %w", CompileCommands, err)
	}
	return len(commands), nil
}
