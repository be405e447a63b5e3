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
// A tree gets its name by a rename after all of it was checked. Each use
// checks it again: CUTLASS against the digests in the lock, the rest against
// the manifest, and the versions of nvcc and version.h against the lock. A
// damaged tree is made again.
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

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// Options select a toolchain and the ways to get it.
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

	// Lock is the lock that it was made from.
	Lock *lock.Lock

	// Digest identifies all that the tools are made of, 64 hex digits: builds
	// with the same digest used the same bytes.
	Digest string

	cache *fetch.Cache // that it is in, if any
}

// Prepare returns the toolchain of the lock, which it fetches and unpacks if
// necessary. Otherwise it uses no network and writes nothing.
func Prepare(ctx context.Context, opts Options) (*Toolchain, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	t := Place(b.cache, b.lock)
	if err := b.ensure(ctx, t); err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	return t, nil
}

// Check returns the toolchain of the lock without fetching or repairing anything.
// The error is ErrMissing where it has not been made yet.
func Check(ctx context.Context, opts Options) (*Toolchain, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	t := Place(b.cache, b.lock)
	return t, check(ctx, t.Dir(), b.lock)
}

// newBuilder finds the lock, the cache and the index that opts name.
func newBuilder(opts Options) (*builder, error) {
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
	return &builder{lock: l, cache: cache, index: index, progress: opts.Progress}, err
}

// Place is the toolchain of a lock, unchecked, where it is in the cache or is
// to be.
func Place(cache *fetch.Cache, l *lock.Lock) *Toolchain {
	digest := Digest(l)
	t := at(filepath.Join(cache.Dir(), "tree", digest), l, digest)
	t.cache = cache
	return t
}

// layout names how the trees are put together; it changes with this package.
const layout = "1"

// Digest identifies the toolchain of a lock: its bytes, from whichever carrier.
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
		Lock:           l,
		Digest:         digest,
	}
}

// Dir is the folder of the tree.
func (t *Toolchain) Dir() string { return filepath.Dir(t.CUDA) }

// Moved is the same toolchain in another folder.
func (t *Toolchain) Moved(dir string) *Toolchain { return at(dir, t.Lock, t.Digest) }

// ensure makes sure that t exists and is whole.
func (b *builder) ensure(ctx context.Context, t *Toolchain) error {
	b.dir = t.Dir()
	state := check(ctx, b.dir, b.lock)
	if state == nil || !Repairable(state) {
		return state
	}
	unlock, err := b.cache.Lock(ctx, treeKey(t.Digest), "toolchain")
	if err != nil {
		return err
	}
	defer unlock()
	// The previous holder of the lock may have made it.
	if state = check(ctx, b.dir, b.lock); state == nil || !Repairable(state) {
		return state
	}
	if errors.Is(state, errDamaged) {
		b.progress.Printf("toolchain: %v; unpacking it again", state)
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	return checkTools(ctx, b.dir, b.lock)
}

// ErrMissing means that there is no tree yet.
var ErrMissing = errors.New("not unpacked yet")

var errDamaged = errors.New("damaged tree")

// Repairable reports whether Prepare repairs the fault that Check found.
func Repairable(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, errDamaged)
}

// check reports whether the tree at dir is whole and matches the lock; the
// error is ErrMissing, errDamaged, or a fault of the tools themselves.
func check(ctx context.Context, dir string, l *lock.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
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
