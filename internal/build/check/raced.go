// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// goPackage is a package of the module, as "go list -json" writes it.
type goPackage struct {
	ImportPath, Dir                              string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

// listPackages lists the packages of the module at root.
func listPackages(ctx context.Context, root string) ([]goPackage, error) {
	list, err := process.Command{Args: []string{"go", "list",
		"-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles", "./..."}, Dir: root}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(list)); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("listing packages: %w", err)
		}
		packages = append(packages, p)
	}
}

// raced says whether the package or its tests start goroutines. The tests of
// such packages run under the race detector, the others', being quicker,
// without.
func (p goPackage) raced() (bool, error) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if startsGoroutines(file) {
			return true, nil
		}
	}
	return false, nil
}

// startsGoroutines looks for go statements and for calls of a method Go, which
// sync.WaitGroup and errgroup.Group have.
func startsGoroutines(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" && len(n.Args) == 1 {
				found = true
			}
		}
		return !found
	})
	return found
}
