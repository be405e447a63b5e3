// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// Contents is what the library and the program are made of.
type Contents struct {
	SBOM     []byte            // all that is in them, and nothing that only makes them
	Licences map[string][]byte // of the Go modules in the program, by the names of files
}

// DescribeOptions says what to describe.
type DescribeOptions struct {
	Root            string // of the checkout
	Version, Commit string // of sparsek
	Program         string // its package, as in "./cmd/sparsek"
	Lock            *lock.Lock
	Files           []toolchain.File // of all packages of the lock
}

// Describe says what is in the library and in the program.
func Describe(ctx context.Context, o DescribeOptions) (Contents, error) {
	c, err := o.describe(ctx)
	if err != nil {
		return Contents{}, fmt.Errorf("listing what is in the library and the program: %w", err)
	}
	return c, nil
}

func (o DescribeOptions) describe(ctx context.Context) (Contents, error) {
	bom := newBOM(o.Version, o.Commit)
	bom.addCUTLASS(o.Lock.CUTLASS)
	for _, f := range o.Files {
		if !slices.Contains(inLibrary, f.Package.Name) {
			continue
		}
		expression, err := wheelLicence(f.Path)
		if err != nil {
			return Contents{}, err
		}
		bom.addPackage(f.Package, expression)
	}
	modules, err := linkedModules(ctx, o.Root, o.Program)
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Licences: map[string][]byte{}}
	for _, m := range modules {
		sum, err := fileSum(m.Zip)
		if err != nil {
			return Contents{}, err
		}
		bom.addModule(m, sum)
		for _, text := range m.licences {
			c.Licences[path.Join("modules", m.Path+"@"+m.Version, text.name)] = text.text
		}
	}
	c.SBOM, err = bom.encode()
	return c, err
}

// linkedModules are the modules in a program, from Go's own cache where they
// are there.
func linkedModules(ctx context.Context, root, program string) ([]module, error) {
	list, err := process.Command{Args: []string{"go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}",
		program}, Dir: root}.Output(ctx)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(list)
	slices.Sort(names)
	out, err := process.Command{Args: append([]string{"go", "mod", "download", "-json"}, slices.Compact(names)...), Dir: root}.Output(ctx)
	if err != nil {
		return nil, err
	}
	modules, err := decodeModules(out)
	if err != nil {
		return nil, err
	}
	for i := range modules {
		m := &modules[i]
		m.linked = true
		if m.licences, err = readLicences(m.Zip, m.Path+"@"+m.Version+"/"); err != nil {
			return nil, fmt.Errorf("the licence of %s: %w", m.Path, err)
		}
	}
	return modules, nil
}
