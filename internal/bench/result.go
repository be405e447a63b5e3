// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Names of ours among those that are timed.
const (
	Ours      = "sparsek"
	OursGraph = "sparsek_graph" // replayed as a CUDA graph: without the launch of each product
)

// Result is what was measured of a case.
type Result struct {
	Name    string  `json:"name"`
	M       int     `json:"m"`
	N       int     `json:"n"`
	K       int     `json:"k"`
	BlockM  int     `json:"block_m"`
	BlockK  int     `json:"block_k"`
	DType   string  `json:"dtype"`
	Pattern string  `json:"pattern,omitempty"`
	Matrix  string  `json:"matrix,omitempty"` // path of the file
	Seed    uint64  `json:"seed"`
	Blocks  int     `json:"blocks"`
	Density float64 `json:"density"` // share of blocks that are stored
	// Elements that are stored for each nonzero one, of a matrix from a file.
	FillIn float64 `json:"fill_in,omitempty"`

	Kernel       string  `json:"kernel"`
	KernelReason string  `json:"kernel_reason"`
	PlanSeconds  float64 `json:"plan_seconds"` // on the host

	EffectiveFLOP float64          `json:"effective_flop"` // on stored blocks
	DenseFLOP     float64          `json:"dense_flop"`     // of a dense product of the size
	Bytes         float64          `json:"bytes"`          // A's blocks and the rows of B that they meet once, and C once
	Bounds        []roofline.Bound `json:"bounds,omitempty"`

	Timed []Timed `json:"timed"` // ours first

	Before nvsmi.State `json:"gpu_before"` // just before the first round
	After  nvsmi.State `json:"gpu_after"`  // while our product ran on, after the last
}

// Timed is one that took its turns.
type Timed struct {
	Name     string `json:"name"`             // "sparsek", "cublas"
	Kernel   string `json:"kernel,omitempty"` // how it says that it computes
	Dense    bool   `json:"dense"`            // it multiplies all blocks
	Products int    `json:"products,omitempty"`

	Runs      int        `json:"runs"`
	Seconds   float64    `json:"seconds"` // the median
	Quartiles [2]float64 `json:"seconds_quartiles"`
	Spread    float64    `json:"spread"` // distance of the quartiles as a share of the median

	Effective       float64 `json:"effective_tflops"`        // operations on stored blocks in that time
	DenseEquivalent float64 `json:"dense_equivalent_tflops"` // operations of the dense product in that time

	Rounds [][]float64 `json:"rounds_seconds"` // all times, by rounds
	// Ours is so many times as fast: the median of this one over ours. Nil for ours.
	SpeedUp *SpeedUp `json:"speed_up,omitempty"`
}

// SpeedUp compares times. Where it is a tie, neither is to be called faster: they differ by no more than the spread.
type SpeedUp struct {
	Ratio float64 `json:"ratio"`
	Tie   bool    `json:"tie"`
}

// Source is where A comes from.
func (r *Result) Source() string {
	if r.Matrix != "" {
		return r.Matrix
	}
	return r.Pattern
}

// Find gives the one of that name, nil where it took no turns.
func (r *Result) Find(name string) *Timed {
	for i := range r.Timed {
		if r.Timed[i].Name == name {
			return &r.Timed[i]
		}
	}
	return nil
}

// newTimed sums up the times of one.
func newTimed(name, kernel string, dense bool, times interleave.Series, effectiveFLOP, denseFLOP float64) Timed {
	t := workload.Summarise(times.All())
	out := Timed{
		Name: name, Kernel: kernel, Dense: dense, Runs: t.Runs, Seconds: t.Median.Seconds(),
		Quartiles: [2]float64{t.Quarter.Seconds(), t.ThreeQuarters.Seconds()}, Spread: t.Spread(),
	}
	if t.Median > 0 {
		out.Effective, out.DenseEquivalent = effectiveFLOP/t.Median.Seconds()/1e12, denseFLOP/t.Median.Seconds()/1e12
	}
	for _, round := range times {
		var seconds []float64
		for _, d := range round {
			seconds = append(seconds, d.Seconds())
		}
		out.Rounds = append(out.Rounds, seconds)
	}
	return out
}

// Timing is what newTimed summed up.
func (t *Timed) timing() workload.Timing {
	of := func(seconds float64) time.Duration { return time.Duration(seconds*1e9 + 0.5) }
	return workload.Timing{Runs: t.Runs, Median: of(t.Seconds), Quarter: of(t.Quartiles[0]), ThreeQuarters: of(t.Quartiles[1])}
}

// compare fills in the speed-ups of ours, the first, over the others. Ours in a graph is not compared: it saves what the
// others were timed with.
func (r *Result) compare() {
	if len(r.Timed) == 0 || r.Timed[0].Seconds <= 0 {
		return
	}
	ours := r.Timed[0].timing()
	for i := 1; i < len(r.Timed); i++ {
		t := &r.Timed[i]
		if t.Name != OursGraph {
			t.SpeedUp = &SpeedUp{t.Seconds / r.Timed[0].Seconds, ours.Tie(t.timing())}
		}
	}
}

// fillIn is that of a matrix from a file.
func fillIn(f *bsr.Fill) float64 {
	if f == nil {
		return 0
	}
	return f.Ratio()
}

// Fault is a case without a result.
type Fault struct {
	Name  string `json:"name"`
	Error string `json:"error"`
	Err   error  `json:"-"`
}

// Absence is a peer that was asked for and is not there.
type Absence struct {
	Peer   string   `json:"peer"`
	Reason string   `json:"reason"`
	Mend   string   `json:"mend"`
	Cases  []string `json:"cases"` // without it
}

// Report is all there is to know of a run.
type Report struct {
	Format  int    `json:"format"` // of this document
	Command string `json:"command"`
	Version string `json:"version"`
	Commit  string `json:"commit"` // of the library's sources
	Suite   string `json:"suite"`
	Backend string `json:"backend"` // "GPU" or "CPU"
	Device  string `json:"device"`
	Driver  string `json:"driver,omitempty"`
	Date    string `json:"date"` // UTC

	Rounds int      `json:"rounds"`
	Method []string `json:"method"`

	Planned     int         `json:"planned"` // cases
	Interrupted bool        `json:"interrupted"`
	Cases       []*Result   `json:"cases"`
	Failed      []Fault     `json:"failed"`
	Absent      []Absence   `json:"absent"`
	BreakEven   []BreakEven `json:"break_even,omitempty"`

	// Ceilings of the chip, where they are known.
	Chip *roofline.Ceilings `json:"-"`
}

// ReportFormat is Report.Format.
const ReportFormat = 1
