// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/provenance"
	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/build/version"
	pins "github.com/sparsek/sparsek/internal/toolchain/lock"
)

// exportsFile is where exports comes from.
const exportsFile = "internal/build/exports.map"

// predicate says what the library is made of and how. The units' objects are
// up to date.
func (b *builder) predicate(units []unit) (provenance.Predicate, error) {
	materials, err := toolchainMaterials(b.toolchain.Lock)
	if err != nil {
		return provenance.Predicate{}, fmt.Errorf("recording the toolchain: %w", err)
	}
	sources, err := b.sources(units)
	if err != nil {
		return provenance.Predicate{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		materials = append(materials, provenance.Resource{Name: name, Digest: map[string]string{"sha256": sources[name]}})
	}
	compilers := map[string]string{"host": b.host.compiler, "linker": b.host.linker, "nvcc": b.toolchain.CUDAVersion}
	return provenance.Predicate{
		BuildDefinition: provenance.BuildDefinition{
			BuildType:            provenance.BuildType,
			ExternalParameters:   provenance.ExternalParameters{Commit: b.info.commit, Target: path.Base(Library)},
			InternalParameters:   provenance.InternalParameters{Compilers: compilers, Commands: b.commands(units)},
			ResolvedDependencies: materials,
		},
		RunDetails: provenance.RunDetails{Builder: provenance.BuilderID{ID: provenance.Builder,
			Version: map[string]string{"sparsek": version.Sparsek}}},
	}, nil
}

// commands are those that make the library, written such that they are the
// same on every machine.
func (b *builder) commands(units []unit) []provenance.Command {
	// Only the name of the host compiler: where it lies says nothing.
	anywhere := b.tools
	anywhere.cxx = filepath.Base(b.cxx)
	var commands []provenance.Command
	for _, u := range units {
		args := anywhere.compileArgs(u, u.object(), u.object()+".d", b.info.defines(u.source))
		commands = append(commands, provenance.Command{Makes: u.object(), Arguments: b.logical(args)})
	}
	slices.SortFunc(commands, func(a, b provenance.Command) int { return strings.Compare(a.Makes, b.Makes) })
	args := anywhere.linkArgs(append(objects(units), noteObject), Library, "{exports}", false)
	return append(commands, provenance.Command{Makes: Library, Arguments: b.logical(args)})
}

// sources are the digests of the files of the checkout that went into units'
// objects. The toolchain's files stand under its own digests, and those of the
// host under what its compiler says it is.
func (b *builder) sources(units []unit) (map[string]string, error) {
	sum := sha256.Sum256(exports)
	sources := map[string]string{exportsFile: hex.EncodeToString(sum[:])}
	for _, u := range units {
		s, ok := stamp.Load(b.path(stampPath(u.object())))
		if !ok {
			return nil, fmt.Errorf("recording what %s was made of: its stamp is gone: build again", u.object())
		}
		for _, file := range s.Inputs {
			if !filepath.IsAbs(file.Path) {
				sources[path.Clean(file.Path)] = file.SHA256
			}
		}
	}
	return sources, nil
}

// toolchainMaterials are the packages and the CUTLASS tree that the lock pins.
func toolchainMaterials(l *pins.Lock) ([]provenance.Resource, error) {
	materials := []provenance.Resource{}
	for _, part := range []struct{ folder, digest string }{
		{"include", l.CUTLASS.Include}, {"tools/util/include", l.CUTLASS.Tools},
	} {
		sum, err := provenance.DirHash(part.digest)
		if err != nil {
			return nil, err
		}
		materials = append(materials, provenance.Resource{
			URI:    "git+https://github.com/NVIDIA/cutlass@" + l.CUTLASS.Commit + "#" + part.folder,
			Name:   "CUTLASS " + l.CUTLASS.Version + " " + part.folder,
			Digest: map[string]string{"dirHash": sum},
		})
	}
	for _, w := range l.CUDA.Wheels {
		materials = append(materials, provenance.Resource{URI: w.PURL(), Name: w.File, Digest: map[string]string{"sha256": w.SHA256}})
	}
	return materials, nil
}

// writeProvenance writes the statement about the library just made beside it,
// unless it is there.
func (b *builder) writeProvenance(p provenance.Predicate) error {
	sum, err := b.hasher.File(b.path(Library))
	if err != nil {
		return fmt.Errorf("writing %s: %w", Provenance, err)
	}
	text, err := p.About(path.Base(Library), sum).Encode()
	if err != nil {
		return fmt.Errorf("writing %s: %w", Provenance, err)
	}
	if old, err := os.ReadFile(b.path(Provenance)); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := renameio.WriteFile(b.path(Provenance), text, 0o666); err != nil {
		return fmt.Errorf("writing %s: %w", Provenance, err)
	}
	return nil
}
