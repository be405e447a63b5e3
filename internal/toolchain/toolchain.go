// SPDX-License-Identifier: Apache-2.0

// Package toolchain makes one usable CUDA tree and one CUTLASS tree out of what
// toolchain.lock.json pins.
//
// Both live in the cache under tree/<digest>, made once for each lock and
// shared by all checkouts:
//
//	cuda/           bin include lib lib64 -> lib nvvm
//	cutlass/        include tools/util/include
//	licenses/       the licence of each package
//	manifest.json   size, mode and sha256 of each file of cuda and licenses
//
// A tree comes to its name by a rename when all of it was checked. Each use
// checks it again: CUTLASS against the digests in the lock, the rest against
// the manifest, and what nvcc and version.h say against the lock. A tree that
// was damaged since is made anew.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparsek/sparsek/internal/fetch"
	"github.com/sparsek/sparsek/internal/lock"
	"github.com/sparsek/sparsek/internal/lock/cutlass"
	"github.com/sparsek/sparsek/internal/pyindex"
	"github.com/sparsek/sparsek/internal/term"
)

// Options say which toolchain is wanted and how it may be had.
type Options struct {
	// Lock has the pins; if it is nil they are read from LockPath.
	Lock     *lock.Lock
	LockPath string
	// CacheDir is the cache folder; "" stands for fetch's default.
	CacheDir string
	// Offline forbids the network.
	Offline bool
	// Progress shows downloads and unpacking; nil shows nothing.
	Progress *term.Reporter
}

// Toolchain is a checked toolchain. All paths are absolute.
type Toolchain struct {
	CUDA      string // root of the CUDA tree
	NVCC      string // the compiler driver
	Cuobjdump string // needs the folder of Nvdisasm on PATH for -sass
	Nvdisasm  string

	CUTLASSInclude string // for -I: has cutlass/ and cute/
	CUTLASSTools   string // for -I: has cutlass/util/

	CUDAVersion    string // as "nvcc --version" says, "13.0.88"
	CUTLASSVersion string // as version.h says, "4.3.0"
	CUTLASSCommit  string // 40 hex digits

	// Digest identifies all that the tools are made of, 64 hex digits: builds
	// with the same digest used the same bytes.
	Digest string
}

// Prepare returns the toolchain of the lock, which it fetches and unpacks if
// need be. Without need it uses no network and writes nothing.
func Prepare(ctx context.Context, opts Options) (*Toolchain, error) {
	l := opts.Lock
	if l == nil {
		var err error
		if l, err = lock.Load(opts.LockPath); err != nil {
			return nil, err
		}
	} else if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	index := pyindex.Open(pyindex.Environment{})
	cache, err := fetch.Open(fetch.Options{
		Dir: opts.CacheDir, Offline: opts.Offline, Progress: opts.Progress, Client: index.Client,
	})
	if err != nil {
		return nil, err
	}
	digest := Digest(l)
	t := at(filepath.Join(cache.Dir(), "tree", digest), l, digest)
	if err := ensure(ctx, t, l, cache, index, opts.Progress); err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	return t, nil
}

// layout names how the trees are put together; it changes with this package.
const layout = "1"

// Digest identifies the toolchain of a lock: its bytes, whoever carries them.
func Digest(l *lock.Lock) string {
	h := sha256.New()
	fmt.Fprintf(h, "layout %s\ncutlass %s %s %s %s\ncuda %s\n", layout,
		l.CUTLASS.Version, l.CUTLASS.Commit, l.CUTLASS.Include, l.CUTLASS.Tools, l.CUDA.Version)
	var wheels []string
	for _, w := range l.CUDA.Wheels {
		wheels = append(wheels, fmt.Sprintf("%s %s", w.SHA256, w.Name))
	}
	slices.Sort(wheels)
	for _, w := range wheels {
		fmt.Fprintln(h, w)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// at describes the toolchain of a tree folder.
func at(dir string, l *lock.Lock, digest string) *Toolchain {
	cuda, headers := filepath.Join(dir, cudaDir), filepath.Join(dir, cutlassDir)
	return &Toolchain{
		CUDA:           cuda,
		NVCC:           filepath.Join(cuda, "bin", "nvcc"),
		Cuobjdump:      filepath.Join(cuda, "bin", "cuobjdump"),
		Nvdisasm:       filepath.Join(cuda, "bin", "nvdisasm"),
		CUTLASSInclude: filepath.Join(headers, cutlass.Include),
		CUTLASSTools:   filepath.Join(headers, filepath.FromSlash(cutlass.Tools)),
		CUDAVersion:    l.CUDA.Version,
		CUTLASSVersion: l.CUTLASS.Version,
		CUTLASSCommit:  l.CUTLASS.Commit,
		Digest:         digest,
	}
}

// ensure makes sure that t is there and whole.
func ensure(ctx context.Context, t *Toolchain, l *lock.Lock, cache *fetch.Cache, index *pyindex.Resolver, progress *term.Reporter) error {
	dir := filepath.Dir(t.CUDA)
	state := check(ctx, dir, l)
	if state == nil || !remediable(state) {
		return state
	}
	unlock, err := cache.Lock(ctx, "tree-"+t.Digest, "toolchain")
	if err != nil {
		return err
	}
	defer unlock()
	// Whoever held the lock may have made it.
	if state = check(ctx, dir, l); state == nil || !remediable(state) {
		return state
	}
	if errors.Is(state, errDamaged) {
		progress.Printf("toolchain: %v; unpacking it again", state)
	}
	b := &builder{lock: l, cache: cache, index: index, progress: progress, dir: dir}
	if err := b.build(ctx); err != nil {
		return err
	}
	return checkTools(ctx, dir, l)
}

var (
	errMissing = errors.New("not unpacked yet")
	errDamaged = errors.New("damaged tree")
)

// remediable says whether unpacking again mends what check found.
func remediable(err error) bool {
	return errors.Is(err, errMissing) || errors.Is(err, errDamaged)
}

// check says whether the tree at dir is whole and what the lock wants:
// errMissing, errDamaged, or what is wrong with the tools themselves.
func check(ctx context.Context, dir string, l *lock.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return errMissing
	}
	err := checkManifest(ctx, dir)
	if ctx.Err() != nil {
		return ctx.Err() // nothing is known of the tree
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w", errDamaged, dir, err)
	}
	if err := cutlass.Verify(filepath.Join(dir, cutlassDir), wanted(l)); err != nil {
		return fmt.Errorf("%w %s: %w", errDamaged, dir, err)
	}
	return checkTools(ctx, dir, l)
}

// wanted is the CUTLASS tree of the lock.
func wanted(l *lock.Lock) cutlass.Tree {
	return cutlass.Tree{Version: l.CUTLASS.Version, Include: l.CUTLASS.Include, Tools: l.CUTLASS.Tools}
}
