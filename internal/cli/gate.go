// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/profile"
	gatereport "github.com/sparsek/sparsek/internal/gate/report"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// Where gate puts things.
const (
	againDir    = "build/profile-again"
	reportDir   = "build/gate"
	checkDir    = "build/gate/check" // of --check, which must not take the place of what was measured
	historyFile = "build/gate/history.jsonl"
)

// gateCommand is "sparsek gate".
type gateCommand struct {
	Root      string   `default:"." placeholder:"FOLDER" help:"The checkout, with ci/baseline in it."`
	Check     bool     `help:"Measure nothing: check whether the baseline is as it was blessed, and of this build."`
	LogBefore string   `placeholder:"FILE" help:"The log of blessings as it was: the log may only add to it."`
	Profile   string   `placeholder:"FOLDER" help:"A profile to judge in place of measuring."`
	Again     string   `placeholder:"FOLDER" help:"A second profile, taken after it."`
	Launches  count    `default:"${launches}" placeholder:"N" help:"Launches of each case that are measured."`
	Reports   string   `placeholder:"FOLDER" help:"For the reports (default: build/gate, with --check build/gate/check)."`
	History   string   `default:"build/gate/history.jsonl" placeholder:"FILE" help:"Keeps every run."`
	Cases     []string `arg:"" optional:"" name:"case" help:"Cases of the roofline suite (default: all)."`
	jsonFlag
}

func (*gateCommand) Help() string {
	return `Examples:
  sparsek gate
  sparsek gate --check`
}

// Run measures and judges.
func (o *gateCommand) Run(ctx context.Context, e *environment) error {
	if o.Reports == "" {
		o.Reports = reportDir
		if o.Check {
			o.Reports = checkDir
		}
	}
	if err := o.validate(); err != nil {
		return err
	}
	store, err := gate.Open(o.Root)
	if errors.Is(err, gate.ErrNoBaseline) {
		return o.finish(e, gate.Unmeasurable(err, now()), &gate.Store{})
	}
	if err != nil {
		return fail(exitBadFile, err)
	}
	if o.LogBefore != "" {
		before, err := os.ReadFile(o.LogBefore)
		if err != nil {
			return fail(exitBadFile, err)
		}
		store.CheckFollows(before)
	}
	if o.Check {
		return o.finish(e, o.inspect(store), store)
	}
	result, err := o.judge(ctx, e, store, func(ctx context.Context) (taker, error) { return newMeasurer(ctx, int(o.Launches)) })
	if err != nil {
		return err
	}
	return o.finish(e, result, store)
}

func (o *gateCommand) validate() error {
	switch {
	case o.Check && (o.Profile != "" || len(o.Cases) > 0):
		return failf(exitUsage, "gate: --check measures nothing and takes no profile and no cases")
	case o.Again != "" && o.Profile == "":
		return failf(exitUsage, "gate: --again goes with --profile")
	}
	if _, err := bench.RooflineCases(o.Cases); err != nil {
		return failf(exitUsage, "gate: %w", err)
	}
	return nil
}

// inspect judges without a measurement. Where there is no build, hashes are all there is to check.
func (o *gateCommand) inspect(store *gate.Store) *gate.Result {
	_, kernels, err := kernelReport()
	if err != nil {
		kernels = nil
	}
	return gate.Inspect(store, kernels, now())
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// taker takes a profile of the cases, all where none is named, and writes it to a folder.
type taker interface {
	measure(ctx context.Context, dir string, cases []string) (*profile.Profile, error)
}

// judge measures, what got worse a second time, and compares. Where nothing can be measured the result says
// so, with all that can be said of the baseline.
func (o *gateCommand) judge(ctx context.Context, e *environment, store *gate.Store,
	start func(context.Context) (taker, error)) (*gate.Result, error) {
	cases, err := o.names()
	if err != nil {
		return nil, err
	}
	if o.Profile != "" {
		return o.judgeFolders(store, cases)
	}
	blocked := func(err error) (*gate.Result, error) {
		var not *profile.NotMeasurable
		if !errors.As(err, &not) {
			return nil, err
		}
		r := o.inspect(store)
		r.Block(not.Error())
		return r, nil
	}
	m, err := start(ctx)
	if err != nil {
		return blocked(err)
	}
	bar := e.progress.Bar("gate", 1, term.Count)
	first, err := m.measure(ctx, profileDir, o.Cases)
	if err != nil {
		bar.End(err)
		return blocked(err)
	}
	bar.Done()
	r := gate.Judge(store, first, nil, cases)
	suspects := r.Suspects()
	if len(suspects) == 0 {
		return r, nil
	}
	bar = e.progress.Bar("gate, again", 1, term.Count)
	second, err := m.measure(ctx, againDir, suspects)
	bar.End(err)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, "the second measurement failed: "+err.Error())
		return r, nil
	}
	return gate.Judge(store, first, second, cases), nil
}

// names are those of the cases that must be in a profile.
func (o *gateCommand) names() ([]string, error) {
	cases, err := bench.RooflineCases(o.Cases)
	var names []string
	for _, c := range cases {
		names = append(names, c.Name)
	}
	return names, err
}

func (o *gateCommand) judgeFolders(store *gate.Store, cases []string) (*gate.Result, error) {
	first, err := profile.Read(o.Profile)
	if err != nil {
		return nil, fail(exitBadFile, err)
	}
	var second *profile.Profile
	if o.Again != "" {
		if second, err = profile.Read(o.Again); err != nil {
			return nil, fail(exitBadFile, err)
		}
	}
	return gate.Judge(store, first, second, cases), nil
}

// finish writes the reports and the history, prints, and gives the verdict its exit code.
func (o *gateCommand) finish(e *environment, r *gate.Result, store *gate.Store) error {
	trend := store.Log.Records(r.GPU)
	if !o.Check {
		history, err := gate.AddToHistory(o.History, r)
		if err != nil {
			return fail(exitBadOutput, err)
		}
		for _, run := range history {
			if run.GPU == r.GPU {
				trend = append(trend, run)
			}
		}
	}
	if err := gatereport.Write(o.Reports, r, trend); err != nil {
		return fail(exitBadOutput, err)
	}
	var err error
	if o.JSON {
		err = printJSON(e.stdout, r)
	} else {
		err = fail(exitBadOutput, gatereport.Terminal(e.stdout, r))
	}
	return errors.Join(err, o.exit(r.Verdict))
}

// exit is the error of a verdict. What --check finds stale is a warning: only a machine with a GPU can fix it.
func (o *gateCommand) exit(v gate.Verdict) error {
	codes := map[gate.Verdict]int{
		gate.Fail: exitGateFail, gate.Ambiguous: exitAmbiguous, gate.Stale: exitStale, gate.NotMeasurable: exitNotMeasurable,
	}
	code, bad := codes[v]
	if !bad || o.Check && v == gate.Stale {
		return nil
	}
	return failf(code, "the gate's verdict is %s: %s tells more", v, o.Reports)
}
