// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

// noiseDir is where profiles of the same library are looked for that tell the noise.
const noiseDir = "build/noise"

func bless(_ context.Context, e *environment, args []string) error {
	flags := newFlags("bless")
	reason := flags.String("reason", "", "`text` for the log: why these figures are right")
	root := flags.String("root", ".", "`folder` of the checkout, with ci/baseline in it")
	folder := flags.String("profile", profileDir, "`folder` of the profile, or of several, taken together")
	noise := flags.String("noise", noiseDir, "`folder` of more profiles of the same library, for the noise floors")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := parse(e, flags, args, false); err != nil {
		return err
	}
	if *reason == "" {
		return failf(exitUsage, "bless: --reason is missing: it says in the log why these figures are right")
	}
	o := gate.BlessOptions{Root: *root, Reason: *reason, Date: now()}
	for _, c := range roofline.Cases() {
		o.Cases = append(o.Cases, c.Name)
	}
	var err error
	if o.Runs, err = profile.ReadAll(*folder); err != nil {
		return fail(exitBadFile, err)
	}
	o.Noise, err = profile.ReadAll(*noise)
	if err != nil && !(errors.Is(err, profile.ErrNoProfile) && *noise == noiseDir) {
		return fail(exitBadFile, err)
	}
	b, err := gate.Bless(o)
	if errors.Is(err, gate.ErrNotBlessed) {
		return fail(exitBadFile, err)
	}
	if err != nil {
		return fail(exitBadOutput, err)
	}
	if *asJSON {
		return printJSON(e.stdout, b)
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %d cases of commit %s, medians of %d runs with %d launches each\nnoise: %s\n",
		b.GPU, len(b.Cases), b.Commit, b.Runs, b.Launches, noiseLine(b.Noise))
	return fail(exitBadOutput, err)
}

func noiseLine(n gate.Noise) string {
	if n.Starts == 0 {
		return "not known: it takes runs over two starts of the machine (sparsek profile --runs)"
	}
	return fmt.Sprintf("over %d runs and %d starts of the machine", n.Runs, n.Starts)
}
