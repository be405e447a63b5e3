// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"fmt"
	"runtime"
	"time"
)

// TuningCache is what was measured of kernels, as it was when it was opened.
type TuningCache struct {
	Path    string // empty where there is no file: what came with the library, or where the user's cache is off
	State   TuningState
	Fault   string        // what is wrong with the file and what to do; empty where nothing is
	Build   string        // which build the library is
	Entries []TuningEntry // the newest first

	handle *handle
	lib    *Library
}

// TuningState is what became of reading a tuning cache.
type TuningState int32

const (
	TuningAbsent     TuningState = 0 // there is no file
	TuningWhole      TuningState = 1
	TuningDamaged    TuningState = 2 // some lines are no entries; the others are there
	TuningForeign    TuningState = 3 // no tuning cache, or one of another version: no entries
	TuningUnreadable TuningState = 4 // no ordinary file, or one that cannot be read: no entries
)

func (s TuningState) String() string {
	names := []string{"absent", "whole", "damaged", "foreign", "unreadable"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("TuningState(%d)", int32(s))
	}
	return names[s]
}

// ShippedBuild is the [TuningEntry].Build of what serves every build of the library.
const ShippedBuild = "shipped"

// TuningEntry is what was measured for products of one kind.
type TuningEntry struct {
	ID             string // 16 letters from k to z, the same for the same products everywhere
	Device         string // the GPU's name; on the CPU the vector instructions in use
	SMs            int    // on the CPU: threads
	Build          string // of the library; entries of another are not used, but for those of ShippedBuild
	Op             string // "dsd"
	M, N, K        int64
	BlockM, BlockK int64
	DType, Output  DType // of A and B, and of C
	Bias           Bias
	Activation     Activation
	DensityClass   int // of the pattern: coarse classes of its density,
	SpreadClass    int // of how unlike its block rows are in length,
	UnionClass     int // and of what neighbouring ones have in common
	Measured       time.Time
	Candidates     []TuningCandidate // the best first
}

// TuningCandidate is what was measured of one kernel.
type TuningCandidate struct {
	Kernel       string
	Seconds      float64 // of a product, the median
	Spread       float64 // distance of the quartiles / Seconds
	SetupSeconds float64 // of bringing new values into its layout
}

// TuningChange is what a change of a tuning cache did.
type TuningChange struct {
	Entries int64  // merged: those that are new or newer; cleared: those that were removed
	Warning string // of a file that was set aside, why and where it is; empty where none was
}

// TuningCache reads the tuning cache in a file or, where the path is empty, the user's: the file of the environment
// variable SPARSEK_TUNING_CACHE ("off" for none), else sparsek/tuning.txt in XDG_CACHE_HOME, else in HOME/.cache. A file
// that is not there, or has a fault, is no error: State and Fault tell.
func (l *Library) TuningCache(path string) (*TuningCache, error) { return l.openTuning(path, false) }

// ShippedTuning is what came with the library.
func (l *Library) ShippedTuning() (*TuningCache, error) { return l.openTuning("", true) }

func (l *Library) openTuning(path string, shipped bool) (*TuningCache, error) {
	pointer, err := l.tuningOpen(path, shipped)
	if err != nil {
		return nil, err
	}
	h := newHandle("tuning cache", pointer, nil, func() { l.tuningClose(pointer) })
	c := &TuningCache{handle: h, lib: l}
	runtime.AddCleanup(c, (*handle).close, h)
	if err := l.tuningRead(pointer, c); err != nil {
		h.close()
		return nil, err
	}
	return c, nil
}

// MergeInto takes the entries into a file or, where the path is empty, into the user's cache; where both have one for
// the same products, the newer stays. The file is replaced whole or, with [ErrIO], stays as it was; no other writer's
// entries are lost. The user's cache is made where it is missing and, where it has a fault, set aside and its good
// entries kept; another file with a fault is refused, with [ErrIO].
func (c *TuningCache) MergeInto(path string) (TuningChange, error) {
	if err := c.handle.acquire(); err != nil {
		return TuningChange{}, err
	}
	defer c.handle.release()
	return c.lib.tuningMerge(path, c.handle.pointer)
}

// Close frees the cache; what was read stays. Closing again does nothing.
func (c *TuningCache) Close() error {
	c.handle.close()
	return nil
}

// ClearTuningCache removes the file or, where the path is empty, the user's cache; where it has a fault, as
// [TuningCache.MergeInto] says.
func (l *Library) ClearTuningCache(path string) (TuningChange, error) { return l.tuningClear(path) }
