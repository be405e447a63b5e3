// SPDX-License-Identifier: Apache-2.0

package buildenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// Facts holds the facts about a checkout and its machine.
type Facts struct {
	Platform string // "linux/amd64"
	Lock     *lock.Lock
	Go       Go
	Compiler Compiler
	// Tree is the state of the toolchain: nil, toolchain.ErrMissing or its
	// fault.
	Tree     error
	Uncached []lock.Package // not in the cache, or damaged there
	Index    Index
	Disks    []Disk
}

// Go is the installed Go.
type Go struct {
	Version string // "1.26.8"
	Wanted  string // by go.mod
	Cgo     bool
	Err     error
}

// Compiler is the host compiler.
type Compiler struct {
	Name    string
	GNU     int // __GNUC__; 0: not a GNU compiler
	Clang   int // __clang_major__; 0: it is not clang
	Version string
	Newest  int // the newest g++ that nvcc takes
	Err     error
}

// Index is the answer of the package index about a file of the lock.
type Index struct {
	Asked bool
	From  string
	Err   error
}

// Disk is the file system under a folder.
type Disk struct {
	Name, Path string
	Free, Need int64
	Err        error // it cannot be written to
}

// newestGCC is the limit in host_config.h of CUDA 13.0; it is used as long as
// the toolchain is not unpacked.
const newestGCC = 15

// The disk space that a build needs, in bytes: measured, rounded up.
const (
	treeBytes  = 400 << 20
	buildBytes = 300 << 20
)

// build is where a build puts what it makes, in the checkout.
const build = "build"

// The names of disks.
const (
	checkoutDisk = "disk of the checkout"
	cacheDisk    = "disk of the cache"
)

// indexTimeout bounds the question to the package index.
const indexTimeout = 20 * time.Second

// Look gathers the facts about the checkout at root. With offline it does not
// ask the package index. cxx is the host compiler; empty: g++.
func Look(ctx context.Context, root, cxx string, offline bool) (*Facts, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	l, err := lock.Load(filepath.Join(root, lock.FileName))
	if err != nil {
		return nil, err
	}
	cache, err := fetch.Open(fetch.Options{Offline: offline})
	if err != nil {
		return nil, err
	}
	f := &Facts{Platform: runtime.GOOS + "/" + runtime.GOARCH, Lock: l}
	f.Go = askGo(ctx, root)
	tools, err := toolchain.Check(ctx, toolchain.Options{Lock: l, Offline: true})
	if tools == nil {
		return nil, err
	}
	f.Tree = err
	f.Compiler = askCompiler(ctx, cxx, filepath.Join(tools.CUDA, "include", "crt", "host_config.h"))
	f.Disks = []Disk{{Name: checkoutDisk, Path: root, Need: buildBytes}}
	var missing int64
	for _, p := range l.Packages() {
		if cache.Check(ctx, p.Bytes, p.SHA256) != nil {
			f.Uncached = append(f.Uncached, p)
			missing += p.Bytes
		}
	}
	if f.Tree != nil {
		f.Disks = append(f.Disks, Disk{Name: cacheDisk, Path: cache.Dir(), Need: missing + treeBytes})
	}
	for i := range f.Disks {
		f.Disks[i].measure()
	}
	if !offline {
		f.Index = askIndex(ctx, f.Uncached, l)
	}
	return f, ctx.Err()
}

// askGo asks the go command that mage would run.
func askGo(ctx context.Context, root string) (g Go) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return Go{Err: err}
	}
	if mod, err := modfile.ParseLax("go.mod", text, nil); err == nil && mod.Go != nil {
		g.Wanted = mod.Go.Version
	}
	out, err := process.Command{Args: []string{"go", "env", "GOVERSION", "CGO_ENABLED"}, Dir: root}.Output(ctx)
	words := strings.Fields(out)
	if err == nil && len(words) != 2 {
		err = fmt.Errorf("go env says %q", out)
	}
	if err != nil {
		g.Err = err
		return g
	}
	g.Version, g.Cgo = strings.TrimPrefix(words[0], "go"), words[1] == "1"
	return g
}

// askCompiler reads the compiler's macros, which identify it whatever its name,
// and hostConfig for the newest g++ that nvcc accepts.
func askCompiler(ctx context.Context, cxx, hostConfig string) Compiler {
	if cxx == "" {
		cxx = "g++"
	}
	c := Compiler{Name: cxx, Newest: newestGCC}
	if text, err := os.ReadFile(hostConfig); err == nil {
		if n, ok := newestTaken(string(text)); ok {
			c.Newest = n
		}
	}
	macros, err := process.Command{Args: []string{cxx, "-dM", "-E", "-x", "c++", os.DevNull}}.Output(ctx)
	if err != nil {
		c.Err = err
		return c
	}
	c.GNU, c.Clang = macro(macros, "__GNUC__"), macro(macros, "__clang_major__")
	c.Version = fmt.Sprintf("%d.%d.%d", c.GNU, macro(macros, "__GNUC_MINOR__"), macro(macros, "__GNUC_PATCHLEVEL__"))
	return c
}

var gnuLimit = regexp.MustCompile(`(?m)^#if __GNUC__ > (\d+)\s*$`)

// newestTaken reads from host_config.h the newest g++ that nvcc accepts.
func newestTaken(text string) (int, bool) {
	m := gnuLimit.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// macro is the value of a macro, 0 where it is not defined.
func macro(text, name string) int {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "#define" && words[1] == name {
			n, _ := strconv.Atoi(words[2])
			return n
		}
	}
	return 0
}

// askIndex asks for the first file that is missing, or of the lock.
func askIndex(ctx context.Context, missing []lock.Package, l *lock.Lock) Index {
	wanted := append(missing, l.Packages()...)[0]
	ctx, cancel := context.WithTimeoutCause(ctx, indexTimeout, fmt.Errorf("no answer within %s", indexTimeout))
	defer cancel()
	links, err := pyindex.Open(pyindex.Environment{}).Find(ctx, pyindex.Coordinate{Name: wanted.Name, Version: wanted.Version, File: wanted.File})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return Index{Asked: true, Err: err}
	}
	return Index{Asked: true, From: links[0].From}
}

// Preflight finds out in a moment what would end a build of the checkout at
// root only after minutes: Go without cgo, no g++ that nvcc takes, too little
// space on a disk. cxx is the host compiler; empty: g++. The error names each
// with the fix, as the doctor does.
func Preflight(ctx context.Context, root, cxx string) error {
	f := &Facts{Platform: runtime.GOOS + "/" + runtime.GOARCH}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if f.Lock, err = lock.Load(filepath.Join(root, lock.FileName)); err != nil {
		return err
	}
	cache, err := fetch.Open(fetch.Options{})
	if err != nil {
		return err
	}
	tree := toolchain.Place(cache, f.Lock)
	f.Go = askGo(ctx, root)
	f.Compiler = askCompiler(ctx, cxx, filepath.Join(tree.CUDA, "include", "crt", "host_config.h"))
	if _, err := os.Stat(filepath.Join(root, build)); err != nil {
		f.Disks = append(f.Disks, Disk{Name: checkoutDisk, Path: root, Need: buildBytes})
	}
	if _, err := os.Stat(tree.Dir()); err != nil {
		need := int64(treeBytes)
		for _, p := range f.Lock.Packages() {
			if info, err := os.Stat(cache.Path(p.SHA256)); err != nil || info.Size() != p.Bytes {
				need += p.Bytes
			}
		}
		f.Disks = append(f.Disks, Disk{Name: cacheDisk, Path: cache.Dir(), Need: need})
	}
	for i := range f.Disks {
		f.Disks[i].measure()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.stops()
}

// writeAndEnter are the rights of access(2) that a folder must give.
const writeAndEnter = 2 | 1

// measure examines the file system of the folder, or of its nearest existing
// parent.
func (d *Disk) measure() {
	dir := d.Path
	for {
		var stat syscall.Statfs_t
		err := syscall.Statfs(dir, &stat)
		if err == nil {
			d.Free = int64(stat.Bavail) * stat.Bsize
			if err := syscall.Access(dir, writeAndEnter); err != nil {
				d.Err = &os.PathError{Op: "write to", Path: dir, Err: err}
			}
			return
		}
		if parent := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		d.Err = &os.PathError{Op: "look at", Path: dir, Err: err}
		return
	}
}
