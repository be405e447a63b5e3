// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sparsek/sparsek/internal/bench/blas"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvml"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Options say how cases are timed.
type Options struct {
	Rounds    int           // at least 1
	Repeats   int           // products that each times in a round; 0: by their time, 8 at most
	Against   []string      // peers, by name
	Sustained time.Duration // how long ours and the dense product run without a pause; 0: they do not
	SMI       string        // nvidia-smi; "": the one on PATH
}

// Runner times cases in one back-end. Operands are made once for the largest case of each element type.
type Runner struct {
	engine  *sparsek.Engine
	device  sparsek.DeviceInfo // none on the CPU
	chip    *roofline.Ceilings
	cases   []Case
	options Options
	byType  map[string]measurer
	absent  []Absence
	torch   pythonProcess
	scipy   pythonProcess
	heads   pythonProcess // of peers in attention

	counter  *nvml.Device // of energy; nil where there is none
	noEnergy error        // why
}

type measurer interface {
	measure(ctx context.Context, c Case) (*Result, error)
	launch(ctx context.Context, c Case, launches int) (*Launched, error)
	close() error
}

// NewRunner prepares to time some of the cases in c.
func NewRunner(engine *sparsek.Engine, cases []Case, o Options) (*Runner, error) {
	if len(cases) == 0 {
		return nil, errors.New("there is nothing to time")
	}
	r, err := newRunner(engine, o)
	if err != nil {
		return nil, err
	}
	r.cases = cases
	return r, nil
}

// newRunner is one without cases.
func newRunner(engine *sparsek.Engine, o Options) (*Runner, error) {
	r := &Runner{engine: engine, options: o, byType: map[string]measurer{}, torch: newTorchProcess(), scipy: newSciPyProcess(), heads: newAttentionProcess()}
	if o.SMI == "" {
		r.options.SMI = nvsmi.Program
	}
	if engine.Info().Backend == sparsek.CUDA {
		devices, err := engine.Library().Devices()
		if err != nil {
			return nil, err
		}
		r.device = devices[engine.Info().Device]
		chip := roofline.CeilingsOf(r.device)
		r.chip = &chip
	}
	if o.Sustained > 0 {
		r.counter, r.noEnergy = openCounter(engine)
	}
	return r, nil
}

// openCounter finds the energy counter of what c runs on.
func openCounter(engine *sparsek.Engine) (*nvml.Device, error) {
	if engine.Info().Backend != sparsek.CUDA {
		return nil, errors.New("the CPU has no energy counter that is read here")
	}
	return nvml.Open(nvsmi.VisibleDevice(engine.Info().Device))
}

// NoEnergy is why the energy of products is not known; nil where it is, or was not asked for.
func (r *Runner) NoEnergy() error { return r.noEnergy }

// Chip are the ceilings of the GPU, nil on the CPU.
func (r *Runner) Chip() *roofline.Ceilings { return r.chip }

// Narrowed says what of the environment may make a peer slower than it is by itself.
func (r *Runner) Narrowed() []string {
	if r.device.Name == "" && slices.Contains(r.options.Against, OpenBLAS) {
		return blas.Narrowed(os.Environ())
	}
	return nil
}

// Absent lists the peers that were asked for and were not there.
func (r *Runner) Absent() []Absence { return r.absent }

// Close ends what was started and frees the operands.
func (r *Runner) Close() error {
	err := errors.Join(r.torch.end(), r.scipy.end(), r.heads.end())
	for _, m := range r.byType {
		err = errors.Join(err, m.close())
	}
	return err
}

// Measure checks and times a case.
func (r *Runner) Measure(ctx context.Context, c Case) (*Result, error) {
	m, err := r.of(ctx, c)
	if err != nil {
		return nil, err
	}
	return m.measure(ctx, c)
}

// of gives what times such cases.
func (r *Runner) of(ctx context.Context, c Case) (m measurer, err error) {
	if c.Attention != nil {
		return r.ofAttention(c.DType)
	}
	if c.Experts != nil {
		return r.ofExperts(c.DType)
	}
	if m := r.byType[c.DType]; m != nil {
		return m, nil
	}
	switch c.DType {
	case workload.BFloat16.Name:
		m, err = newTyped(ctx, r, workload.BFloat16)
	case workload.Float16.Name:
		m, err = newTyped(ctx, r, workload.Float16)
	case workload.Float32.Name:
		m, err = newTyped(ctx, r, workload.Float32)
	case workload.Float64.Name:
		m, err = newTyped(ctx, r, workload.Float64)
	default:
		err = fmt.Errorf("there is no element type %q", c.DType)
	}
	if err != nil {
		return nil, err
	}
	r.byType[c.DType] = m
	return m, nil
}

// miss notes that a peer was not there in a case.
func (r *Runner) miss(m *missing, name string) {
	for i := range r.absent {
		if a := &r.absent[i]; a.Peer == m.peer && a.Reason == m.reason {
			a.Cases = append(a.Cases, name)
			return
		}
	}
	r.absent = append(r.absent, Absence{m.peer, m.reason, m.fix, []string{name}})
}

// look asks for the state of the GPU.
func (r *Runner) look(ctx context.Context) nvsmi.State {
	return workload.GPUState(ctx, r.engine, r.options.SMI)
}

// Ends reports whether no case after one with that error can have a result.
func Ends(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sparsek.ErrCUDA) || errors.Is(err, sparsek.ErrOutOfMemory)
}

// Run measures the cases into the report, one after the other, and calls step after each. One that fails costs no other,
// unless nothing can be measured any more: then the report has what was.
func (r *Report) Run(ctx context.Context, cases []Case, measure func(context.Context, Case) (*Result, error), step func()) {
	r.Planned = len(cases)
	defer func() {
		setGoals(r.Cases, cases)
		r.BreakEven = BreakEvens(r.Cases)
	}()
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
	return fmt.Sprintf("sparsek bench, suite %s: %s, commit %s, %s", r.Suite, r.Device, ShortCommit(r.Commit), r.Date)
}

// ShortCommit is a commit as people write it, with the mark of changed sources.
func ShortCommit(commit string) string {
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
