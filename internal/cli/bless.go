// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/blessed"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/gate/profile"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// noiseDir is where profiles of the same library are looked for, from which the noise is estimated.
const noiseDir = "build/noise"

// blessCommand is "sparsek bless".
type blessCommand struct {
	Reason  string `required:"" placeholder:"TEXT" help:"Why these figures are right, for the log."`
	Root    string `default:"." placeholder:"FOLDER" help:"The checkout, with ci/baseline in it."`
	Profile string `default:"build/profile" placeholder:"FOLDER" help:"The profile, or several, taken together."`
	Noise   string `default:"build/noise" placeholder:"FOLDER" help:"More profiles of the same library, for the noise floors."`
	jsonFlag
}

func (*blessCommand) Help() string {
	return `Examples:
  sparsek bless --reason "wgmma_gather loads B once for two tiles"
  sparsek bless --reason "driver 580" --noise build/noise`
}

// Run blesses.
func (o *blessCommand) Run(e *environment) error {
	options := gate.BlessOptions{Root: o.Root, Reason: o.Reason, Date: now(), Cases: bench.GateNames()}
	var err error
	if options.Runs, err = profile.ReadAll(o.Profile); err != nil {
		return fail(exitBadFile, err)
	}
	options.Noise, err = profile.ReadAll(o.Noise)
	if err != nil && !(errors.Is(err, profile.ErrNoProfile) && o.Noise == noiseDir) {
		return fail(exitBadFile, err)
	}
	b, err := gate.Bless(options)
	if errors.Is(err, gate.ErrNotBlessed) {
		return fail(exitBadFile, err)
	}
	if err != nil {
		return fail(exitBadOutput, err)
	}
	kept, err := keepLibrary(b)
	if err != nil {
		return fail(exitBadOutput, err)
	}
	if o.JSON {
		return printJSON(e.stdout, b)
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %d cases of commit %s, medians of %d runs with %d launches each\nnoise: %s\nlibrary: %s\n",
		b.GPU, len(b.Cases), b.Commit, b.Runs, b.Launches, noiseLine(b.Noise), kept)
	return fail(exitBadOutput, err)
}

// keepLibrary keeps the library of a baseline for the gate, if it is the one that this program uses, and says where it is.
func keepLibrary(b *gate.Baseline) (string, error) {
	lib, err := sparsek.Default()
	if err == nil {
		var now pair.Library
		if now, err = pair.Describe(lib.Path()); err == nil && now.SHA256 != b.Library {
			err = blessed.ErrMissing
		}
	}
	if err != nil {
		return fmt.Sprintf("%s is not here; mage blessed builds it from commit %s", b.Library, b.Commit), nil
	}
	folder := filepath.Join(filepath.Dir(lib.Path()), "..", blessed.Folder)
	sum, err := blessed.Keep(folder, lib.Path())
	return blessed.Place(filepath.Clean(folder), sum), err
}

func noiseLine(n gate.Noise) string {
	if n.Starts == 0 {
		return "not known: it takes runs over two starts of the machine (sparsek profile --runs)"
	}
	return fmt.Sprintf("over %d runs and %d starts of the machine", n.Runs, n.Starts)
}
