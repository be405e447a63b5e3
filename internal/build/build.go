// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/build/checkout"
	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/jobs"
	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
)

// Options says what to build with.
type Options struct {
	Root      string               // of the checkout
	Toolchain *toolchain.Toolchain // prepared
	CXX       string               // host compiler; empty: g++
	TempDir   string               // for the compilers' temporary files; empty: what the environment says
	Cache     string               // compiler cache: "off" or a program; empty: what SPARSEK_COMPILER_CACHE says
	Limits    jobs.Limits          // what compilers may take; zero: what the machine has
	Sanitize  bool                 // make SanitizedLibrary instead, for tests
	Sandbox   bool                 // make SandboxLibrary instead, with the kernel of the family tma_sandbox alone
	Progress  *term.Reporter       // nil: silent
}

// MakeLibrary makes build/lib/libsparsek.so, its provenance, the header, the
// licences beside it and the report of the kernels: whatever of them is not up
// to date. With Options.Sanitize it makes build/sanitize/lib/libsparsek.so and
// nothing beside it, with Options.Sandbox build/sandbox/lib/libsparsek.so.
func MakeLibrary(ctx context.Context, o Options) (err error) {
	defer func() { err = explainFullDisk(err) }()
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, root, o.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	release, err := o.Toolchain.Use()
	if err != nil {
		return err
	}
	defer release()
	b, err := newBuilder(ctx, root, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.path(tempDir))

	list, err := kernels.Load(filepath.Join(root, kernelsFile))
	if err != nil {
		return err
	}
	if err := generate(root, genDir, list); err != nil {
		return err
	}
	units, err := findUnits(root, genDir, list)
	if err != nil {
		return err
	}
	if err := prune(root, units); err != nil {
		return err
	}
	if o.Sandbox {
		if units, err = sandboxUnits(root, list); err != nil {
			return err
		}
		if err := b.compileAll(ctx, units); err != nil {
			return err
		}
		return b.link(ctx, units, SandboxLibrary, nil)
	}
	if o.Sanitize {
		units = sanitize(units)
		if err := b.compileAll(ctx, units); err != nil {
			return err
		}
		return b.link(ctx, units, SanitizedLibrary, nil)
	}
	if err := b.compileAll(ctx, units); err != nil {
		return err
	}
	made, err := b.predicate(units)
	if err != nil {
		return err
	}
	note, err := made.Encode()
	if err != nil {
		return err
	}
	if err := b.link(ctx, units, Library, note); err != nil {
		return err
	}
	if err := b.writeProvenance(made); err != nil {
		return err
	}
	if err := b.writeReport(ctx, list, units); err != nil {
		return err
	}
	return b.copyTexts()
}

// builder is one run of a build.
type builder struct {
	tools
	toolchain *toolchain.Toolchain
	host      hostTools
	identity  string // of the programs that compile and link
	info      buildInfo
	env       []string
	launcher  launcher
	limits    jobs.Limits
	progress  *term.Reporter
	hasher    *stamp.Hasher
	temp      string // a folder of this run, relative to root
}

// newBuilder examines the host compiler and the source tree and makes the
// folder of this run. It removes what an earlier run left unfinished.
func newBuilder(ctx context.Context, root string, o Options) (*builder, error) {
	b := &builder{
		tools: tools{root: root, cxx: o.CXX, nvcc: o.Toolchain.NVCC, cuda: o.Toolchain.CUDA,
			cutlass: o.Toolchain.CUTLASSInclude},
		toolchain: o.Toolchain, env: compilerEnv(os.Environ(), o.TempDir), limits: o.Limits, progress: o.Progress,
		hasher: stamp.NewHasher(),
	}
	if b.cxx == "" {
		b.cxx = "g++"
	}
	if b.limits == (jobs.Limits{}) {
		b.limits = jobs.Machine(os.DirFS("/"))
	}
	var err error
	if b.launcher, err = findLauncher(cmp.Or(o.Cache, os.Getenv(LauncherVariable))); err != nil {
		return nil, err
	}
	host, err := askHostTools(ctx, b.cxx, b.env)
	if err != nil {
		return nil, err
	}
	b.host = host
	b.identity = stamp.Key(host.compiler, host.linker, o.Toolchain.Digest)
	commit, err := checkout.Commit(ctx, root)
	if err != nil {
		return nil, err
	}
	b.info = buildInfo{o.Toolchain.CUTLASSVersion, o.Toolchain.CUTLASSCommit, o.Toolchain.CUDAVersion, commit}

	if err := os.RemoveAll(filepath.Join(root, tempDir)); err != nil {
		return nil, fmt.Errorf("removing what an earlier build left: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, tempDir), 0o777); err != nil {
		return nil, fmt.Errorf("making the build's folder: %w", err)
	}
	// A name of this run alone: a compiler that outlived a killed build may
	// still write to that one's.
	temp, err := os.MkdirTemp(filepath.Join(root, tempDir), "")
	if err != nil {
		return nil, fmt.Errorf("making the build's folder: %w", err)
	}
	b.temp, err = filepath.Rel(root, temp)
	return b, err
}

// path is the absolute path of a path relative to the root.
func (b *builder) path(relative string) string { return filepath.Join(b.root, relative) }
