// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sparsek/sparsek/internal/machine/doctor"
	"github.com/sparsek/sparsek/internal/machine/doctor/buildenv"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// Doctor shows what building and running need and how to fix what is missing.
func (c Checkout) Doctor(ctx context.Context, json bool) error {
	facts, err := buildenv.Look(ctx, root, hostCompiler(), c.Offline)
	if err != nil {
		return err
	}
	report := append(facts.Judge(), doctor.Look(ctx, os.DirFS("/")).Judge(facts.Lock.CUDA.Version)...)
	show := report.Print
	if json {
		show = report.PrintJSON
	}
	if err := show(c.Out); err != nil {
		return err
	}
	switch {
	case !report.Works(doctor.Build):
		return errors.New("a build cannot work here")
	case !report.Works(doctor.GPU):
		return coder{errors.New("builds and CPU jobs work here; GPU jobs do not (exit code 3)"), noGPUJob}
	}
	return nil
}

// PruneCache removes from the cache what the lock has no use for; with dryRun
// it only lists that.
func (c Checkout) PruneCache(ctx context.Context, dryRun bool) error {
	found, err := toolchain.FindUnused(ctx, c.toolchain())
	if err != nil {
		return err
	}
	found.Print(c.Out)
	if dryRun {
		return nil
	}
	freed, err := found.Remove(ctx)
	fmt.Fprintf(c.Out, "freed %s\n", term.FormatBytes(freed))
	return err
}

// pinned is the lock, and what its packages are looked for in.
type pinned struct {
	pins  *lock.Lock
	index *pyindex.Resolver
	cache *fetch.Cache
}

func (c Checkout) openLock() (p pinned, err error) {
	if p.pins, err = lock.Load(lock.FileName); err != nil {
		return p, err
	}
	p.index = pyindex.Open(pyindex.Environment{})
	p.cache, err = fetch.Open(fetch.Options{Progress: c.Progress, Client: p.index.Client})
	return p, err
}

// VerifyLock asks whether every pinned file is still available as it was
// pinned. Nothing is downloaded.
func (c Checkout) VerifyLock(ctx context.Context) error {
	p, err := c.openLock()
	if err != nil {
		return err
	}
	checks, err := lock.Verify(ctx, p.pins, p.index, p.cache)
	for _, check := range checks {
		fmt.Fprintf(c.Out, "%-12s %s  %s  %s\n", check.State, check.Name, check.Detail, check.Cached)
	}
	return err
}

// UpdateLock moves the pins to the versions in wants, "NAME=VERSION,...", or
// else to newer releases, and shows each change. With dryRun it writes nothing.
func (c Checkout) UpdateLock(ctx context.Context, wants string, dryRun bool) error {
	chosen, err := parseWants(wants)
	if err != nil {
		return err
	}
	p, err := c.openLock()
	if err != nil {
		return err
	}
	next, err := lock.Update(ctx, p.pins, chosen, p.index, p.cache)
	if err != nil {
		return err
	}
	return c.replaceLock(lock.FileName, p.pins, next, dryRun)
}

// replaceLock shows what changes, writes it unless dryRun is set, and says
// what to do next.
func (c Checkout) replaceLock(path string, from, to *lock.Lock, dryRun bool) error {
	if dryRun {
		changed, err := lock.Show(path, from, to, c.Out)
		if err == nil && changed {
			fmt.Fprintf(c.Out, "%s is not written; without -dryrun it is\n", path)
		}
		return err
	}
	changed, err := lock.Replace(path, from, to, c.Out)
	if err == nil && changed {
		fmt.Fprintf(c.Out, "%s is written; next: go tool mage verify, go tool mage test, then commit it\n", path)
	}
	return err
}

// parseWants reads "NAME=VERSION,..."; the empty text has none.
func parseWants(text string) (lock.Wants, error) {
	chosen := lock.Wants{}
	if text == "" {
		return chosen, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, version, ok := strings.Cut(pair, "=")
		if !ok || name == "" || version == "" {
			return nil, fmt.Errorf("-wants: %q is not NAME=VERSION", pair)
		}
		chosen[name] = version
	}
	return chosen, nil
}
