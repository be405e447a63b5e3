// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// module is a Go module as "go mod download -json" describes it.
type module struct {
	Path    string
	Version string
	Error   string
	GoMod   string // the go.mod file
	Zip     string
	Sum     string // as in go.sum

	escaped  string // path and version, where a proxy has its files, without their endings
	linked   bool   // in the program that users get
	licences []licence
}

// collectModules brings all Go modules of the sources into a module cache of
// this run and shows that Go finds everything there.
func (b *bundler) collectModules(ctx context.Context, sources string) ([]module, error) {
	proxy, err := b.proxy(ctx)
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(), "GOMODCACHE="+filepath.Join(b.stage, "modules"), "GOFLAGS=-mod=readonly -modcacherw",
		"GOWORK=off", "GO111MODULE=on")
	b.Progress.Printf("collecting Go modules")
	list, err := process.Command{Args: []string{"go", "mod", "download", "-json"}, Dir: sources,
		Env: append(env, "GOPROXY="+proxy)}.Output(ctx)
	modules, decodeErr := decodeModules(list) // explains a failure better than Go's exit status
	if err := errors.Join(decodeErr, err); err != nil {
		return nil, fmt.Errorf("collecting Go modules: %w", err)
	}
	alone := append(env, "GOPROXY=off", "GOSUMDB=off")
	// The tag brings in the magefile, the word the programs that "go tool" runs.
	_, err = process.Command{Args: []string{"go", "list", "-deps", "-test", "-tags=mage", "./...", "tool"}, Dir: sources,
		Env: alone}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("the Go modules collected do not suffice: %w", err)
	}
	linked, err := process.Command{Args: []string{"go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", b.Program},
		Dir: sources, Env: alone}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the modules of the program: %w", err)
	}
	paths := strings.Fields(linked)
	for i := range modules {
		m := &modules[i]
		m.linked = slices.Contains(paths, m.Path)
		if m.licences, err = readLicences(m.Zip, m.Path+"@"+m.Version+"/"); err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", m.Path, err)
		}
	}
	return modules, nil
}

// proxy is where Go modules come from: Go's own cache first and then, unless
// that is forbidden, wherever the user gets them from.
func (b *bundler) proxy(ctx context.Context) (string, error) {
	out, err := process.Command{Args: []string{"go", "env", "GOMODCACHE", "GOPROXY"}, Dir: b.Root}.Output(ctx)
	if err != nil {
		return "", fmt.Errorf("asking Go for its settings: %w", err)
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if b.Offline {
		others = "off"
	}
	return fetch.FileURL(filepath.Join(cache, "cache", "download")) + "," + others, nil
}

// decodeModules reads what "go mod download -json" prints, sorted by path and
// version.
func decodeModules(list string) ([]module, error) {
	var modules []module
	for d := json.NewDecoder(strings.NewReader(list)); ; {
		var m module
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.Error != "" {
			return nil, fmt.Errorf("%s %s: %s", m.Path, m.Version, m.Error)
		}
		path, err := gomodule.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := gomodule.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		m.escaped = path + "/@v/" + version
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.escaped, b.escaped) })
	return modules, nil
}
