// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	buildreport "github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/blessed"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/sys/process"
)

// machine is what the gate measures with. Where it cannot measure, errors are *profile.NotMeasurable, wrapped.
type machine interface {
	profiler(ctx context.Context) (taker, error)
	// pairs finds the blessed library. The error is blessed.ErrMissing, wrapped, where it is not at hand.
	pairs(ctx context.Context, store *gate.Store) (comparer, error)
	// kernels are those of the build.
	kernels() (*buildreport.Report, error)
}

// taker takes a profile of the cases, all where none is named, and writes it to a folder.
type taker interface {
	measure(ctx context.Context, dir string, cases []string) (*profile.Profile, error)
}

// comparer compares the blessed library with the build in the cases, all where none is named; `again` with other operands
// and with the libraries opened in the opposite order.
type comparer interface {
	compare(ctx context.Context, cases []string, again bool) (*pair.Comparison, error)
}

// realMachine is this one.
type realMachine struct{ o *gateCommand }

func (m realMachine) profiler(ctx context.Context) (taker, error) {
	return newMeasurer(ctx, int(m.o.Launches))
}

func (realMachine) kernels() (*buildreport.Report, error) {
	_, kernels, err := kernelReport()
	return kernels, err
}

func (m realMachine) pairs(_ context.Context, store *gate.Store) (comparer, error) {
	lib, _, err := kernelReport()
	if err != nil {
		return nil, err
	}
	devices, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	if len(devices) == 0 || !devices[0].Usable {
		return nil, fail(exitNotMeasurable, &profile.NotMeasurable{
			Cause: errors.New("there is no GPU that the kernels run on"), Fix: "run the gate on a Hopper GPU",
		})
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program's own file: %w", err)
	}
	sum, _, ok := store.BlessedLibrary(devices[0].Name)
	if !ok {
		return nil, fmt.Errorf("%w: no baseline names one", blessed.ErrMissing)
	}
	folder := m.o.Blessed
	if folder == "" {
		folder = filepath.Join(filepath.Dir(self), "..", blessed.Folder)
	}
	file, err := blessed.Find(sum, folder)
	if err != nil && !errors.Is(err, blessed.ErrMissing) {
		return nil, fail(exitBadFile, err)
	}
	return &childComparer{self, file, lib.Path()}, err
}

// childComparer runs "sparsek pair" in a process of its own: each measurement has the libraries elsewhere in memory.
type childComparer struct{ program, blessed, candidate string }

func (c *childComparer) compare(ctx context.Context, cases []string, again bool) (*pair.Comparison, error) {
	args := []string{c.program, "pair", "--json", "--against", c.blessed, "--library", c.candidate}
	if again {
		args = append(args, "--swap", "--seed", strconv.Itoa(secondSeed))
	}
	text, err := process.Command{Args: append(args, cases...)}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("comparing the libraries: %w", err)
	}
	var r pair.Comparison
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("comparing the libraries: the result cannot be read: %w", err)
	}
	return &r, nil
}

// secondSeed is that of a second measurement; the first one has the default.
const secondSeed = 2
