// SPDX-License-Identifier: Apache-2.0

package buildenv

import (
	"errors"
	"fmt"
	goversion "go/version"
	"strings"

	"github.com/sparsek/sparsek/internal/machine/doctor"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// oldestGCC is the first with a complete C++17 library.
const oldestGCC = 9

// platform is what CUDA's packages are for.
const platform = "linux/amd64"

// Judge checks the facts for a build.
func (f *Facts) Judge() doctor.Report {
	r := doctor.Report{f.platform(), f.goLanguage(), f.compiler(), f.cutlass(), f.nvcc(), f.index()}
	for _, d := range f.Disks {
		r = append(r, d.judge())
	}
	return r
}

// stops is an error with all that Preflight found in the way of a build.
func (f *Facts) stops() error {
	r := doctor.Report{f.platform(), f.goLanguage(), f.compiler()}
	for _, d := range f.Disks {
		r = append(r, d.judge())
	}
	var errs []error
	for _, one := range r {
		if !(doctor.Report{one}).Works(doctor.Build) {
			errs = append(errs, fmt.Errorf("%s: %s: %s; to fix it: %s", one.Name, one.State, one.Detail, one.Fix))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("this machine cannot build yet (go tool mage doctor shows more):\n%w", errors.Join(errs...))
}

func (f *Facts) platform() doctor.Finding {
	if f.Platform == platform {
		return doctor.Finding{Name: "platform", State: doctor.OK, Detail: f.Platform, Needed: doctor.Build}
	}
	return doctor.Finding{Name: "platform", State: doctor.Missing, Detail: f.Platform, Needed: doctor.Build,
		Fix: "build on Linux on x86-64: the compiler's packages are for it"}
}

func (f *Facts) goLanguage() doctor.Finding {
	g, out := f.Go, doctor.Finding{Name: "Go", State: doctor.OK, Detail: f.Go.Version, Needed: doctor.Build}
	switch {
	case g.Err != nil:
		out.State, out.Detail, out.Fix = doctor.Missing, g.Err.Error(), "install Go "+g.Wanted+" and put it on PATH"
	case goversion.Compare("go"+g.Version, "go"+g.Wanted) < 0:
		out.State, out.Detail = doctor.TooOld, g.Version+"; go.mod requires "+g.Wanted
		out.Fix = "install Go " + g.Wanted + ", or let Go fetch it: GOTOOLCHAIN=auto"
	case !g.Cgo:
		out.State, out.Detail, out.Fix = doctor.Off, g.Version+" without cgo", "install gcc, and unset CGO_ENABLED: the Go package opens the library with it"
	}
	return out
}

func (f *Facts) compiler() doctor.Finding {
	c := f.Compiler
	taken := fmt.Sprintf("nvcc %s takes g++ %d to %d", f.Lock.CUDA.Version, oldestGCC, c.Newest)
	out := doctor.Finding{Name: "g++", State: doctor.OK, Detail: c.Version + " (" + c.Name + "); " + taken, Needed: doctor.Build}
	another := fmt.Sprintf("install g++-%d, say, and set CXX=g++-%d", c.Newest, c.Newest)
	switch {
	case c.Err != nil:
		out.State, out.Detail, out.Fix = doctor.Missing, c.Err.Error(), "install g++ (package g++, or build-essential), or name one with CXX"
	case c.Clang > 0:
		out.State, out.Detail = doctor.Unknown, fmt.Sprintf("%s is clang %d; builds are tested with g++", c.Name, c.Clang)
		out.Fix = "where it fails, name a g++ with CXX"
	case c.GNU == 0:
		out.State, out.Detail, out.Fix = doctor.Missing, c.Name+" is not a g++", "install g++, or name one with CXX"
	case c.GNU > c.Newest:
		out.State, out.Fix = doctor.TooNew, another
	case c.GNU < oldestGCC:
		out.State, out.Fix = doctor.TooOld, another
	}
	return out
}

// fetchFix is the command that fetches the toolchain.
const fetchFix = "go tool mage fetch (a build does it too)"

func (f *Facts) cutlass() doctor.Finding {
	c := f.Lock.CUTLASS
	out := doctor.Finding{Name: "CUTLASS", State: doctor.OK, Detail: c.Version + ", commit " + c.Commit[:min(12, len(c.Commit))]}
	switch {
	case errors.Is(f.Tree, toolchain.ErrMissing):
		out.State, out.Detail, out.Fix = doctor.Missing, c.Version+" is not fetched yet", fetchFix
	case errors.Is(f.Tree, cutlass.ErrDigest):
		out.State, out.Detail, out.Fix = doctor.Damaged, f.Tree.Error(), fetchFix
	}
	return out
}

func (f *Facts) nvcc() doctor.Finding {
	out := doctor.Finding{Name: "nvcc", State: doctor.OK, Detail: f.Lock.CUDA.Version}
	switch {
	case f.Tree == nil, errors.Is(f.Tree, cutlass.ErrDigest):
	case errors.Is(f.Tree, toolchain.ErrMissing):
		out.State, out.Detail, out.Fix = doctor.Missing, f.Lock.CUDA.Version+" is not fetched yet", fetchFix
	case toolchain.Repairable(f.Tree):
		out.State, out.Detail, out.Fix = doctor.Damaged, f.Tree.Error(), fetchFix
	default:
		out.State, out.Detail, out.Needed = doctor.Damaged, f.Tree.Error(), doctor.Build
		out.Fix = "do what it says; " + fetch.CacheVariable + " moves the cache"
	}
	return out
}

// The index is needed only for files that are neither unpacked nor in the cache.
func (f *Facts) index() doctor.Finding {
	out := doctor.Finding{Name: "package index", State: doctor.OK, Detail: f.Index.From}
	if f.Tree != nil && len(f.Uncached) > 0 {
		out.Needed = doctor.Build
	}
	var names []string
	for _, p := range f.Uncached {
		names = append(names, p.String())
	}
	missing := "to be fetched: " + strings.Join(names, ", ")
	switch {
	case !f.Index.Asked && out.Needed == doctor.Build:
		out.State, out.Detail, out.Fix = doctor.Off, "offline; "+missing, "go online once, or bring the cache from another machine"
	case !f.Index.Asked:
		out.State, out.Detail = doctor.Off, "offline; nothing is to be fetched"
	case f.Index.Err != nil:
		out.State, out.Detail = doctor.Missing, f.Index.Err.Error()
		out.Fix = "set PIP_INDEX_URL, or install pip; HTTPS_PROXY for a proxy"
		if out.Needed == doctor.Optional {
			out.Detail = "nothing is to be fetched; " + out.Detail
		}
	}
	return out
}

func (d Disk) judge() doctor.Finding {
	out := doctor.Finding{Name: d.Name, State: doctor.OK, Needed: doctor.Build,
		Detail: fmt.Sprintf("%s free, up to %s needed (%s)", term.FormatBytes(d.Free), term.FormatBytes(d.Need), d.Path)}
	switch {
	case d.Err != nil:
		out.State, out.Detail, out.Fix = doctor.Off, d.Err.Error(), "give the right to write, or take another folder"
		if d.Name == cacheDisk {
			out.Fix += " (" + fetch.CacheVariable + ")"
		}
	case d.Free < d.Need:
		out.State, out.Fix = doctor.TooLittle, "free some space"
		if d.Name == cacheDisk {
			out.Fix += ": go tool mage cachePrune, or another folder (" + fetch.CacheVariable + ")"
		}
	}
	return out
}
