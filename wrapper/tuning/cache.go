// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Cache is what was measured of kernels, as it was when it was opened.
type Cache struct {
	Path    string // empty where there is no file: what is shipped with the library, or where the user's cache is off
	State   State
	Fault   string  // what is wrong with the file and what to do; empty where nothing is
	Build   string  // which build the library is
	Entries []Entry // the newest first

	opened *opened
}

// State is the result of reading a tuning cache.
type State int32

// The states of a tuning cache.
const (
	Absent     State = 0 // there is no file
	Whole      State = 1 // no fault
	Damaged    State = 2 // some lines are no entries; the others are there
	Foreign    State = 3 // no tuning cache, or one of another version: no entries
	Unreadable State = 4 // no ordinary file, or one that cannot be read: no entries
)

func (s State) String() string {
	names := []string{"absent", "whole", "damaged", "foreign", "unreadable"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", int32(s))
	}
	return names[s]
}

// ShippedBuild is the [Entry].Build of what serves every build of the library.
const ShippedBuild = "shipped"

// Entry is what was measured for products of one kind.
type Entry struct {
	ID             string // 16 letters from k to z, the same for the same products everywhere
	Device         string // the GPU's name; on the CPU the vector instructions in use
	SMs            int    // on the CPU: threads
	Build          string // of the library; entries of another are not used, but for those of ShippedBuild
	Op             string // "dsd"
	M, N, K        int
	BlockM, BlockK int
	DType, DTypeB  sparsek.DType // of A, and of B
	Output         sparsek.DType // of C
	Bias           sparsek.Bias
	Activation     sparsek.Activation
	DensityClass   int  // of the pattern: coarse classes of its density,
	SpreadClass    int  // of how much its block rows differ in length,
	UnionClass     int  // and of what neighbouring ones have in common
	KeptValues     bool // plans of some kernels kept the values as these read them
	Measured       time.Time
	Candidates     []Result // the best first
}

// Result is what was measured of one kernel.
type Result struct {
	Kernel string
	Median time.Duration // of a product
	Spread float64       // distance of the quartiles / Median
	Setup  time.Duration // of bringing new values into its layout
}

// Change is what a change of a tuning cache did.
type Change struct {
	Entries int    // merged: those that are new or newer; cleared: those that were removed
	Warning string // of a file that was set aside, why and where it is; empty where none was
}

// Open reads the tuning cache in a file or, where the path is empty, the user's: the file of the environment variable
// SPARSEK_TUNING_CACHE ("off" for none), else sparsek/tuning.txt in XDG_CACHE_HOME, else in HOME/.cache. A file that is
// missing or has a fault is no error: State and Fault say so.
func Open(lib *sparsek.Library, path string) (*Cache, error) { return open(lib, path, false) }

// Shipped is what comes with the library.
func Shipped(lib *sparsek.Library) (*Cache, error) { return open(lib, "", true) }

// Clear removes the file or, where the path is empty, the user's cache; where it has a fault, as [Cache.MergeInto] says.
func Clear(lib *sparsek.Library, path string) (Change, error) {
	change, err := bridge.Library(lib).CacheClear(path)
	return Change(change), err
}

func open(lib *sparsek.Library, path string, shipped bool) (*Cache, error) {
	l := bridge.Library(lib)
	pointer, err := l.CacheOpen(path, shipped)
	if err != nil {
		return nil, err
	}
	o := &opened{lib: l, pointer: pointer}
	read, err := l.CacheRead(pointer)
	if err != nil {
		o.close()
		return nil, err
	}
	c := &Cache{Path: read.Path, State: State(read.State), Fault: read.Fault, Build: read.Build, opened: o}
	for _, e := range read.Entries {
		entry := Entry{
			ID: e.ID, Device: e.Device, SMs: e.SMs, Build: e.Build, Op: e.Op,
			M: e.M, N: e.N, K: e.K, BlockM: e.BlockM, BlockK: e.BlockK,
			DType: sparsek.DType(e.DType), DTypeB: sparsek.DType(e.DTypeB), Output: sparsek.DType(e.Output), Bias: sparsek.Bias(e.Bias), Activation: sparsek.Activation(e.Activation),
			DensityClass: e.DensityClass, SpreadClass: e.SpreadClass, UnionClass: e.UnionClass, KeptValues: e.KeptValues,
			Measured: time.Unix(e.Measured, 0).UTC(),
		}
		for _, k := range e.Candidates {
			entry.Candidates = append(entry.Candidates, Result{k.Kernel, duration(k.Median), k.Spread, duration(k.Setup)})
		}
		c.Entries = append(c.Entries, entry)
	}
	runtime.AddCleanup(c, (*opened).close, o)
	return c, nil
}

// MergeInto takes the entries into a file or, where the path is empty, into the user's cache; where both have one for
// the same products, the newer stays. The file is replaced whole or, with [sparsek.ErrIO], stays as it was; no other
// writer's entries are lost. The user's cache is made where it is missing and, where it has a fault, set aside and its
// good entries kept; another file with a fault is refused, with [sparsek.ErrIO].
func (c *Cache) MergeInto(path string) (Change, error) { return c.opened.merge(path) }

// Close frees the cache; what was read stays. Closing again does nothing.
func (c *Cache) Close() error {
	c.opened.close()
	return nil
}

// opened is the native cache.
type opened struct {
	lib *native.Library

	mu      sync.Mutex
	pointer unsafe.Pointer // nil: closed
}

func (o *opened) merge(path string) (Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pointer == nil {
		return Change{}, fmt.Errorf("%w: the tuning cache is closed", sparsek.ErrClosed)
	}
	change, err := o.lib.CacheMerge(path, o.pointer)
	return Change(change), err
}

func (o *opened) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pointer != nil {
		o.lib.CacheClose(o.pointer)
		o.pointer = nil
	}
}
