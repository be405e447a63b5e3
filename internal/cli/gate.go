// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/blessed"
	"github.com/sparsek/sparsek/internal/gate/profile"
	gatereport "github.com/sparsek/sparsek/internal/gate/report"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// Where gate puts things.
const (
	againDir    = "build/profile-again"
	reportDir   = "build/gate"
	historyFile = "build/gate/history.jsonl"
)

// gateCommand is "sparsek gate".
type gateCommand struct {
	Root       string   `default:"." placeholder:"FOLDER" help:"The checkout, with ci/baseline in it."`
	Check      bool     `help:"Measure nothing: check whether the baseline is as it was blessed, and of this build."`
	LogBefore  string   `placeholder:"FILE" help:"The log of blessings as it was: the log may only add to it."`
	Profile    string   `placeholder:"FOLDER" help:"A profile to judge in place of measuring."`
	Again      string   `placeholder:"FOLDER" help:"A second profile, taken after it."`
	Recorded   bool     `help:"Compare counters with the recorded ones, and not times with those of the blessed library."`
	Blessed    string   `placeholder:"FOLDER" help:"Where blessed libraries are, by their hash (default: build/blessed, beside the program)."`
	NoCounters bool     `help:"Take no counters of cases that got slower."`
	Launches   count    `default:"${launches}" placeholder:"N" help:"Launches of each case that are measured with counters."`
	Reports    string   `placeholder:"FOLDER" help:"For the reports (default: build/gate, and none with --check)."`
	History    string   `default:"build/gate/history.jsonl" placeholder:"FILE" help:"Keeps every run."`
	Cases      []string `arg:"" optional:"" name:"case" help:"Cases of the suite gate (default: all)."`
	jsonFlag
}

func (*gateCommand) Help() string {
	return `Examples:
  sparsek gate
  sparsek gate --check`
}

// Run measures and judges.
func (o *gateCommand) Run(ctx context.Context, e *environment) error {
	if o.Reports == "" && !o.Check {
		o.Reports = reportDir
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
	result, err := o.judge(ctx, e, store, realMachine{o})
	if err != nil {
		return err
	}
	return o.finish(e, result, store)
}

func (o *gateCommand) validate() error {
	switch {
	case o.Check && (o.Profile != "" || o.Recorded || len(o.Cases) > 0):
		return failf(exitUsage, "gate: --check measures nothing and takes neither --profile nor --recorded nor cases")
	case o.Again != "" && o.Profile == "":
		return failf(exitUsage, "gate: --again goes with --profile")
	}
	if _, err := bench.GateCases(o.Cases); err != nil {
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

// judge measures, what got worse a second time, and compares. Where nothing can be measured the result says so, with all
// that can be said of the baseline.
func (o *gateCommand) judge(ctx context.Context, e *environment, store *gate.Store, m machine) (*gate.Result, error) {
	cases, err := o.names()
	if err != nil {
		return nil, err
	}
	if o.Profile != "" {
		return o.judgeFolders(store, cases)
	}
	var r *gate.Result
	if o.Recorded {
		r, err = o.judgeRecorded(ctx, e, store, m, cases)
	} else {
		r, err = o.judgePaired(ctx, e, store, m, cases)
		if errors.Is(err, blessed.ErrMissing) {
			missing := err
			if r, err = o.judgeRecorded(ctx, e, store, m, cases); err == nil {
				r.Notes = append(r.Notes, missing.Error()+": mage gate builds it")
			}
		}
	}
	var not *profile.NotMeasurable
	if errors.As(err, &not) {
		r = o.inspect(store)
		r.Block(not.Error())
		return r, nil
	}
	return r, err
}

// judgeRecorded takes profiles and compares them with the recorded baseline.
func (o *gateCommand) judgeRecorded(ctx context.Context, e *environment, store *gate.Store, m machine, cases []string) (*gate.Result, error) {
	t, err := m.profiler(ctx)
	if err != nil {
		return nil, err
	}
	bar := e.progress.Bar("gate", 1, term.Count)
	first, err := t.measure(ctx, profileDir, o.Cases)
	bar.End(err)
	if err != nil {
		return nil, err
	}
	r := gate.Judge(store, first, nil, cases)
	suspects := r.Suspects()
	if len(suspects) == 0 {
		return r, nil
	}
	bar = e.progress.Bar("gate, again", 1, term.Count)
	second, err := t.measure(ctx, againDir, suspects)
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

// judgePaired has the blessed library and the build take turns. Of the cases that got slower it takes a profile, which
// may say why.
func (o *gateCommand) judgePaired(ctx context.Context, e *environment, store *gate.Store, m machine, cases []string) (*gate.Result, error) {
	c, err := m.pairs(ctx, store)
	if err != nil {
		return nil, err
	}
	kernels, err := m.kernels()
	if err != nil {
		return nil, err
	}
	bar := e.progress.Bar("gate", 1, term.Count)
	first, err := c.compare(ctx, o.Cases, false)
	bar.Add(1)
	bar.End(err)
	if err != nil {
		return nil, err
	}
	r := gate.JudgePairs(store, first, nil, kernels, cases)
	suspects := r.PairSuspects()
	if len(suspects) == 0 {
		return r, nil
	}
	bar = e.progress.Bar("gate, again", 1, term.Count)
	second, err := c.compare(ctx, suspects, true)
	bar.Add(1)
	bar.End(err)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, "the second measurement failed: "+err.Error())
		return r, nil
	}
	r = gate.JudgePairs(store, first, second, kernels, cases)
	if slow := r.Slow(); !o.NoCounters && len(slow) > 0 {
		o.explain(ctx, e, store, m, r, slow[:min(len(slow), mostExplained)])
	}
	return r, ctx.Err()
}

// mostExplained is the number of cases of which counters are taken: the slowest. It takes about a second for each.
const mostExplained = 4

// explain adds counters of cases that got slower to the result, beside the recorded ones. Without them the verdict is
// the same.
func (o *gateCommand) explain(ctx context.Context, e *environment, store *gate.Store, m machine, r *gate.Result, slow []string) {
	t, err := m.profiler(ctx)
	var p *profile.Profile
	if err == nil {
		bar := e.progress.Bar("counters", 1, term.Count)
		p, err = t.measure(ctx, profileDir, slow)
		bar.End(err)
	}
	if err != nil {
		r.Notes = append(r.Notes, "no counters of the slower cases: "+err.Error())
		return
	}
	r.AddCounters(store, p)
}

// names are those of the cases that must be in a profile.
func (o *gateCommand) names() ([]string, error) {
	cases, err := bench.GateCases(o.Cases)
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
	if o.Reports != "" {
		if err := gatereport.Write(o.Reports, r, trend); err != nil {
			return fail(exitBadOutput, err)
		}
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
		gate.Drift: exitDrift,
	}
	code, bad := codes[v]
	if !bad || o.Check && v == gate.Stale {
		return nil
	}
	where := ""
	if o.Reports != "" {
		where = ": see " + o.Reports
	}
	return failf(code, "the gate's verdict is %s%s", v, where)
}
