// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"slices"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/machine/doctor"
)

// NotMeasurable is why there can be no figures here and now, and what to do about it.
type NotMeasurable struct {
	Cause error
	Fix   string
}

func (n *NotMeasurable) Error() string { return "not measurable: " + n.Cause.Error() + "; " + n.Fix }
func (n *NotMeasurable) Unwrap() error { return n.Cause }

// Ready looks for what keeps a machine from measuring, before anything is started. The error is a *NotMeasurable. Of the
// permission to read counters the profiler itself knows best: what the machine reports of it is only a guess.
func Ready(found doctor.Report) error {
	needed := []string{doctor.NameDriver, doctor.NameGPU, doctor.NameProfiler}
	for _, f := range found {
		if slices.Contains(needed, f.Name) && f.State != doctor.OK && f.State != doctor.Unknown {
			return &NotMeasurable{errors.New(f.Name + " " + string(f.State) + ": " + f.Detail), f.Fix}
		}
	}
	return nil
}

// Explain makes a *NotMeasurable of an error of Take that is one; others stay as they are.
func Explain(err error) error {
	for _, known := range []struct {
		err error
		fix string
	}{
		{ncu.ErrPermission, doctor.CountersFix},
		{ncu.ErrNoProfiler, "install Nsight Compute, or put the folder of ncu on PATH"},
		{ncu.ErrUnsupported, "use the version of Nsight Compute that the baseline names, or one that knows this GPU"},
		{ncu.ErrBusy, "end the other profiler, DCGM's profiling module among them (dcgmi profile --pause)"},
		{ErrThrottled, "let the GPU cool down, see to its cooling and power, and measure again"},
	} {
		if errors.Is(err, known.err) {
			return &NotMeasurable{err, known.fix}
		}
	}
	return err
}
