// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/build/checkout"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// Options says what to bundle.
type Options struct {
	Root      string               // of the checkout
	Version   string               // of sparsek
	Toolchain *toolchain.Toolchain // prepared: its licences go in
	Files     []toolchain.File     // of all packages of the lock
	Offline   bool                 // take Go modules from Go's own cache alone
	Program   string               // package, as in "./cmd/sparsek", whose modules end up with the user
	Out       string               // the file to write; its sha256 goes to Out.sha256
	Progress  *term.Reporter       // nil: silent
}

// Result is what was written.
type Result struct {
	SHA256 string
	Bytes  int64
	Commit string // of the sources; ends in -dirty where they were changed since, or "unknown"
}

//go:embed build.sh
var script []byte

//go:embed README.txt.in
var readme string

// Write writes the bundle, whole or not at all.
func Write(ctx context.Context, o Options) (Result, error) {
	stage, err := os.MkdirTemp("", "sparsek-bundle-")
	if err != nil {
		return Result{}, fmt.Errorf("bundling: %w", err)
	}
	defer os.RemoveAll(stage)
	b := &bundler{Options: o, stage: stage}
	result, err := b.write(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("bundling: %w", err)
	}
	return result, nil
}

// bundler is one bundle under way.
type bundler struct {
	Options
	stage   string // a folder of this run
	entries []entry
}

func (b *bundler) write(ctx context.Context) (Result, error) {
	sources := filepath.Join(b.stage, "source")
	commit, err := checkout.Export(ctx, b.Root, sources)
	if err != nil {
		return Result{}, err
	}
	if err := b.addTree("source", sources); err != nil {
		return Result{}, err
	}
	modules, err := b.collectModules(ctx, sources)
	if err != nil {
		return Result{}, err
	}
	for _, m := range modules {
		base := path.Join("modules", m.escaped)
		b.add(base+".mod", m.GoMod)
		b.add(base+".zip", m.Zip)
	}
	for _, f := range b.Files {
		b.add("cache/sha256/"+f.SHA256, f.Path)
	}
	if err := b.addLicences(sources, modules); err != nil {
		return Result{}, err
	}
	sbom, err := b.billOfMaterials(commit, modules)
	if err != nil {
		return Result{}, err
	}
	b.addText("sbom.cdx.json", 0o644, sbom)
	b.addText("build.sh", 0o755, script)
	b.addText("README.txt", 0o644, []byte(strings.NewReplacer("{version}", b.Version, "{commit}", orUnknown(commit)).Replace(readme)))
	sum, size, err := b.archive(ctx)
	return Result{sum, size, orUnknown(commit)}, err
}

// addLicences adds the licence of each part.
func (b *bundler) addLicences(sources string, modules []module) error {
	names, err := filepath.Glob(filepath.Join(sources, "LICENSE*"))
	if err != nil {
		return err
	}
	notices, err := filepath.Glob(filepath.Join(sources, "THIRD_PARTY*")) // has CUTLASS's
	if err != nil {
		return err
	}
	for _, name := range append(names, notices...) {
		b.add("licenses/"+filepath.Base(name), name)
	}
	if err := b.addTree("licenses/packages", b.Toolchain.Licenses()); err != nil {
		return err
	}
	for _, m := range modules {
		for _, text := range m.licences {
			b.addText(path.Join("licenses/modules", m.Path+"@"+m.Version, text.name), 0o644, text.text)
		}
	}
	return nil
}

func orUnknown(commit string) string {
	if commit == "" {
		return "unknown"
	}
	return commit
}

// billOfMaterials is the bundle's contents as CycloneDX has them.
func (b *bundler) billOfMaterials(commit string, modules []module) ([]byte, error) {
	l := b.Toolchain.Lock
	bom := newBOM(b.Version, commit)
	bom.addCUTLASS(l.CUTLASS)
	for _, f := range b.Files {
		if isCarrier(l, f.Package) {
			continue // only CUTLASS is taken from it
		}
		licence, err := wheelLicence(f.Path)
		if err != nil {
			return nil, err
		}
		bom.addPackage(f.Package, licence)
	}
	for _, m := range modules {
		sum, err := fileSum(m.Zip)
		if err != nil {
			return nil, err
		}
		bom.addModule(m, sum)
	}
	return bom.encode()
}

// isCarrier says whether a package is there only because CUTLASS lies in it.
func isCarrier(l *lock.Lock, p lock.Package) bool {
	for _, c := range l.CUTLASS.Carriers {
		if c.Package != nil && *c.Package == p {
			return true
		}
	}
	return false
}
