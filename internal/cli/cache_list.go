// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sparsek/sparsek/wrapper/tuning"
)

// cacheResult is what `cache list` prints as JSON, and `cache show` an entry of.
type cacheResult struct {
	Path    string       `json:"path"` // empty: the table that ships with the library
	State   string       `json:"state"`
	Fault   string       `json:"fault"`
	Build   string       `json:"build"` // of the library
	Entries []cacheEntry `json:"entries"`
}

type cacheEntry struct {
	Key          string           `json:"key"`
	Measured     time.Time        `json:"measured"`
	Device       string           `json:"device"`
	SMs          int              `json:"sms"` // on the CPU: threads
	Build        string           `json:"build"`
	Used         bool             `json:"used"` // by this build of the library
	Op           string           `json:"op"`
	M            int              `json:"m"`
	N            int              `json:"n"`
	K            int              `json:"k"`
	BlockM       int              `json:"block_m"`
	BlockK       int              `json:"block_k"`
	DType        string           `json:"dtype"`             // of A
	DTypeB       string           `json:"b_dtype,omitempty"` // of B where it is another
	Output       string           `json:"out_dtype"`
	Bias         string           `json:"bias"`
	Activation   string           `json:"activation"`
	DensityClass int              `json:"density_class"`
	SpreadClass  int              `json:"spread_class"`
	UnionClass   int              `json:"union_class"`
	KeptValues   bool             `json:"kept_values,omitempty"` // in the layouts of kernels
	Candidates   []cacheCandidate `json:"candidates"`
}

type cacheCandidate struct {
	Kernel       string  `json:"kernel"`
	Seconds      float64 `json:"seconds"`
	Spread       float64 `json:"spread"`
	SetupSeconds float64 `json:"setup_seconds"`
}

func newCacheEntry(t tuning.Entry, build string) cacheEntry {
	entry := cacheEntry{
		Key: t.ID, Measured: t.Measured, Device: t.Device, SMs: t.SMs, Build: t.Build,
		Used: t.Build == build || t.Build == tuning.ShippedBuild,
		Op:   t.Op, M: t.M, N: t.N, K: t.K, BlockM: t.BlockM, BlockK: t.BlockK,
		DType: t.DType.String(), Output: t.Output.String(), Bias: t.Bias.String(), Activation: t.Activation.String(),
		DensityClass: t.DensityClass, SpreadClass: t.SpreadClass, UnionClass: t.UnionClass, KeptValues: t.KeptValues,
	}
	if t.DTypeB != t.DType {
		entry.DTypeB = t.DTypeB.String()
	}
	for _, c := range t.Candidates {
		entry.Candidates = append(entry.Candidates, cacheCandidate{c.Kernel, c.Median.Seconds(), c.Spread, c.Setup.Seconds()})
	}
	return entry
}

// best is what a plan takes that may take any.
func (c cacheEntry) best() cacheCandidate { return c.Candidates[0] }

func (c cacheEntry) size() string  { return fmt.Sprintf("%dx%dx%d", c.M, c.N, c.K) }
func (c cacheEntry) block() string { return fmt.Sprintf("%dx%d", c.BlockM, c.BlockK) }

// density is the middle of the entry's class of densities: classes are quarters of a power of two (tune/choice.cpp).
func (c cacheEntry) density() string {
	share := min(1, math.Exp2(float64(c.DensityClass)/4))
	if share < 0.1 {
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// pattern says in words what products the entry is for, by its classes (tune/choice.cpp).
func (c cacheEntry) pattern() string {
	spreads := []string{"block rows of about the same length", "block rows of different lengths",
		"block rows of very different lengths", "most blocks in a few block rows"}
	spread := spreads[min(max(c.SpreadClass, 0), len(spreads)-1)]
	return fmt.Sprintf("about %s of the blocks stored; %s; of neighbouring block rows, %.0f %% use a block column that one uses",
		c.density(), spread, 100*min(1, float64(c.UnionClass)/8))
}

func (c cacheEntry) types() string {
	types := c.DType
	if c.DTypeB != "" {
		types += "*" + c.DTypeB
	}
	if c.Output == or(c.DTypeB, c.DType) {
		return types
	}
	return types + "-" + c.Output
}

// readCache opens the user's cache, or the table that ships with the library, and prepares it for printing.
func readCache(e *environment, shipped bool) (r cacheResult, err error) {
	c, err := openShipped(e, shipped)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r = cacheResult{Path: c.Path, State: c.State.String(), Fault: c.Fault, Build: c.Build, Entries: []cacheEntry{}}
	for _, t := range c.Entries {
		r.Entries = append(r.Entries, newCacheEntry(t, c.Build))
	}
	return r, nil
}

// Run lists.
func (o *cacheListCommand) Run(e *environment) error {
	r, err := readCache(e, o.Shipped)
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(e.stdout, r)
	}
	return printCache(e, r)
}

// printCache prints a table that fits a terminal of 88 columns, unless names or sizes are long.
func printCache(e *environment, r cacheResult) error {
	if len(r.Entries) == 0 {
		return say(e, "nothing was measured yet\n")
	}
	t := &table{left: 5}
	t.add("", "key", "device", "MxNxK", "block", "stored", "type", "time", "kernel")
	others := 0
	for i, entry := range r.Entries {
		number := strconv.Itoa(i + 1)
		if !entry.Used {
			number += "*"
			others++
		}
		best := entry.best()
		t.add(number, entry.Key[:5], strings.TrimPrefix(entry.Device, "NVIDIA "), entry.size(), entry.block(), entry.density(), entry.types(),
			formatSeconds(best.Seconds), best.Kernel)
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	if others > 0 {
		return say(e, "* of another build of the library, which this one does not use: %d of %d\n", others, len(r.Entries))
	}
	return nil
}

// Run shows.
func (o *cacheShowCommand) Run(e *environment) error {
	r, err := readCache(e, o.Shipped)
	if err != nil {
		return err
	}
	entry, err := findEntry(r.Entries, o.Entry)
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(e.stdout, entry)
	}
	return printEntry(e, entry)
}

// findEntry finds an entry by its number in the list, or by its key or how that begins. Keys have no digits.
func findEntry(list []cacheEntry, which string) (cacheEntry, error) {
	if n, err := strconv.Atoi(which); err == nil {
		if n < 1 || n > len(list) {
			return cacheEntry{}, failf(exitUsage, "cache show: there is no entry %d: \"sparsek cache list\" shows %d", n, len(list))
		}
		return list[n-1], nil
	}
	var found []cacheEntry
	for _, entry := range list {
		if strings.HasPrefix(entry.Key, which) {
			found = append(found, entry)
		}
	}
	switch len(found) {
	case 0:
		return cacheEntry{}, failf(exitUsage, "cache show: no key begins with %q: \"sparsek cache list\" shows the keys", which)
	case 1:
		return found[0], nil
	}
	return cacheEntry{}, failf(exitUsage, "cache show: the keys of %d entries begin with %q: give more of one, as %s", len(found), which, found[0].Key)
}

func printEntry(e *environment, entry cacheEntry) error {
	t := &table{left: 2}
	t.add("key", entry.Key)
	t.add("measured", entry.Measured.Format(time.DateTime)+" UTC")
	units := "SMs"
	if !strings.HasPrefix(entry.Device, "NVIDIA") {
		units = "threads"
	}
	t.add("device", fmt.Sprintf("%s, %d %s", entry.Device, entry.SMs, units))
	build := entry.Build
	if !entry.Used {
		build += ", which is not this one: the entry is not used"
	}
	t.add("build", build)
	t.add("product", fmt.Sprintf("%s (MxNxK) in blocks of %s", entry.size(), entry.block()))
	t.add("types", fmt.Sprintf("%s, C in %s", or(entry.DTypeB, entry.DType), entry.Output))
	t.add("epilogue", fmt.Sprintf("bias %s, activation %s", entry.Bias, entry.Activation))
	t.add("pattern", entry.pattern())
	if err := t.print(e.stdout); err != nil {
		return err
	}
	k := &table{left: 1}
	k.add("kernel", "time", "spread", "setup", "of the fastest")
	best := entry.best()
	for _, c := range entry.Candidates {
		ratio := "1"
		if c.Seconds != best.Seconds {
			ratio = digits(c.Seconds / best.Seconds)
		}
		k.add(c.Kernel, formatSeconds(c.Seconds), percent(c.Spread), formatSeconds(c.SetupSeconds), ratio)
	}
	if err := say(e, "\n"); err != nil {
		return err
	}
	return k.print(e.stdout)
}
