// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the snippets of the pages use without saying where it comes from.
const snippetPrelude = `package snippets

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/half"
	"github.com/sparsek/sparsek/wrapper/matio"
	"github.com/sparsek/sparsek/wrapper/timing"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

func snippets(m, k, n int, rowPtr, colIdx []int32, values, bData, cData []sparsek.BFloat16, biasData, yData []float32) {
`

// What a page has beside that, from what comes before its first snippet.
var snippetsOfPage = map[string]string{
	"docs/tuning.md": "var ctx context.Context\nvar matrix *sparsek.Matrix\n",
}

// snippetsIn are the Go snippets of a page.
func snippetsIn(text string) (list []string) {
	for {
		_, rest, found := strings.Cut(text, "\n```go\n")
		if !found {
			return list
		}
		code, rest, _ := strings.Cut(rest, "\n```")
		list, text = append(list, code+"\n"), rest
	}
}

// pages are README.md and docs/*.md, by their paths in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, path := range append(paths, "../README.md") {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			t.Skip("skipped: not run in the source tree")
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimPrefix(path, "../")] = string(text)
	}
	return texts
}

// exported finds the packages that a snippet may import, compiled.
func exported(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...", "log", "fmt", "os", "time").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no package %s", path)
		}
		return os.Open(files[path])
	}
}

// The snippets of a page compile one after the other, as a reader pastes them; whole programs compile alone.
func TestSnippetsCompile(t *testing.T) {
	needGo(t)
	lookup := exported(t)
	count := 0
	for path, text := range pages(t) {
		source := snippetPrelude + snippetsOfPage[path]
		for _, code := range snippetsIn(text) {
			count++
			if strings.HasPrefix(code, "package ") {
				for _, err := range compile(lookup, code) {
					t.Errorf("%s: %v\n%s", path, err, code)
				}
				continue
			}
			source += code
		}
		for _, err := range compile(lookup, source+"}\n") {
			t.Errorf("%s: %v\n%s", path, err, numbered(source))
		}
	}
	if count < 4 {
		t.Errorf("only %d snippets were found", count)
	}
}

// compile gives the errors in a file. What is not used is none: a page shows how a thing comes to be.
func compile(lookup importer.Lookup, source string) (faults []error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "page.go", source, 0)
	if err != nil {
		return []error{err}
	}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", lookup), Error: func(err error) {
		if fault, ok := err.(types.Error); !ok || !fault.Soft {
			faults = append(faults, err)
		}
	}}
	config.Check("snippets", files, []*ast.File{file}, nil)
	return faults
}

func numbered(source string) string {
	var b strings.Builder
	for i, line := range strings.Split(source, "\n") {
		fmt.Fprintf(&b, "%3d %s\n", i+1, line)
	}
	return b.String()
}

// README asks for the Go of go.mod.
func TestGoVersionOfReadme(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Skip("skipped: not run in the source tree")
	}
	for line := range strings.Lines(string(mod)) {
		if version, found := strings.CutPrefix(strings.TrimSpace(line), "go "); found {
			if !strings.Contains(pages(t)["README.md"], "Go "+version) {
				t.Errorf("README.md does not ask for Go %s, as go.mod does", version)
			}
			return
		}
	}
	t.Error("go.mod asks for no version of Go")
}
