// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// DefaultRounds is how often ours and its peers take turns.
const DefaultRounds = 6

// Options say how cases are timed.
type Options struct {
	Rounds  int      // at least 1
	Repeats int      // products that each times in a round; 0: by their time, 8 at most
	Against []string // peers, by name
	SMI     string   // nvidia-smi; "": the one on PATH
}

// Runner times cases in one back-end. Operands are made once for the largest case of each element type.
type Runner struct {
	context *sparsek.Engine
	device  sparsek.DeviceInfo // none on the CPU
	chip    *roofline.Ceilings
	cases   []Case
	options Options
	byType  map[string]measurer
	absent  []Absence
	torch   torchProcess
}

type measurer interface {
	measure(ctx context.Context, c Case) (*Result, error)
	close() error
}

// NewRunner prepares to time some of the cases in c.
func NewRunner(c *sparsek.Engine, cases []Case, o Options) (*Runner, error) {
	if len(cases) == 0 {
		return nil, errors.New("there is nothing to time")
	}
	r := &Runner{context: c, cases: cases, options: o, byType: map[string]measurer{}}
	if o.SMI == "" {
		r.options.SMI = nvsmi.Program
	}
	if c.Info().Backend == sparsek.CUDA {
		devices, err := c.Library().Devices()
		if err != nil {
			return nil, err
		}
		r.device = devices[c.Info().Device]
		chip := roofline.CeilingsOf(r.device)
		r.chip = &chip
	}
	return r, nil
}

// Chip are the ceilings of the GPU, nil on the CPU.
func (r *Runner) Chip() *roofline.Ceilings { return r.chip }

// Absent lists the peers that were asked for and were not there.
func (r *Runner) Absent() []Absence { return r.absent }

// Close ends what was started and frees the operands.
func (r *Runner) Close() error {
	err := r.torch.end()
	for _, m := range r.byType {
		err = errors.Join(err, m.close())
	}
	return err
}

// Measure checks and times a case.
func (r *Runner) Measure(ctx context.Context, c Case) (*Result, error) {
	m := r.byType[c.DType]
	if m == nil {
		var err error
		switch c.DType {
		case workload.BFloat16.Name:
			m, err = newTyped(r, workload.BFloat16)
		case workload.Float16.Name:
			m, err = newTyped(r, workload.Float16)
		case workload.Float32.Name:
			m, err = newTyped(r, workload.Float32)
		default:
			err = fmt.Errorf("there is no element type %q", c.DType)
		}
		if err != nil {
			return nil, err
		}
		r.byType[c.DType] = m
	}
	return m.measure(ctx, c)
}

// miss notes that a peer was not there in a case.
func (r *Runner) miss(m *missing, name string) {
	for i := range r.absent {
		if a := &r.absent[i]; a.Peer == m.peer && a.Reason == m.reason {
			a.Cases = append(a.Cases, name)
			return
		}
	}
	r.absent = append(r.absent, Absence{m.peer, m.reason, m.mend, []string{name}})
}

// look asks how the GPU stands.
func (r *Runner) look(ctx context.Context) nvsmi.State {
	return workload.GPUState(ctx, r.context, r.options.SMI)
}

// Ends tells whether no case after one with that error can have a result.
func Ends(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sparsek.ErrCUDA) || errors.Is(err, sparsek.ErrOutOfMemory)
}

// Run measures the cases into the report, one after the other, and calls step after each. One that fails costs no other,
// unless nothing can be measured any more: then the report has what was.
func (r *Report) Run(ctx context.Context, cases []Case, measure func(context.Context, Case) (*Result, error), step func()) {
	r.Planned = len(cases)
	for _, c := range cases {
		result, err := measure(ctx, c)
		if err == nil {
			r.Cases = append(r.Cases, result)
		} else if ctx.Err() != nil {
			r.Interrupted = true
			return
		} else {
			r.Failed = append(r.Failed, Fault{c.Name, err.Error(), err})
		}
		if Ends(ctx, err) {
			r.Interrupted = ctx.Err() != nil && len(r.Cases) < len(cases)
			return
		}
		step()
	}
}

// Title is one line that says what the report is of.
func (r *Report) Title() string {
	return fmt.Sprintf("sparsek bench, suite %s: %s, commit %s, %s", r.Suite, r.Device, short7(r.Commit), r.Date)
}

// short7 is a commit as people write it, with what tells that the sources were changed.
func short7(commit string) string {
	const length, dirty = 12, "-dirty"
	if len(commit) > length {
		end := ""
		if len(commit) > len(dirty) && commit[len(commit)-len(dirty):] == dirty {
			end = dirty
		}
		return commit[:length] + end
	}
	return commit
}
