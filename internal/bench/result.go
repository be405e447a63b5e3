// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	"github.com/sparsek/sparsek/internal/sys/stats"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Names of ours among those that are timed.
const (
	Ours      = "sparsek"
	OursGraph = "sparsek_graph" // replayed as a CUDA graph: without the launch of each product
)

// Result is what was measured of a case.
type Result struct {
	Name        string `json:"name"`
	M           int    `json:"m"`
	N           int    `json:"n"`
	K           int    `json:"k"`
	BlockM      int    `json:"block_m"`
	BlockK      int    `json:"block_k"`
	DType       string `json:"dtype"`
	Op          string `json:"op,omitempty"`           // the product, where it is not A B
	ColumnMajor string `json:"column_major,omitempty"` // which of x, b and c lie so
	Pattern     string `json:"pattern,omitempty"`
	Shuffled    bool   `json:"shuffled,omitempty"`   // its block rows are permuted
	Transposed  bool   `json:"transposed,omitempty"` // it is the pattern's transpose
	Diagonal    int    `json:"diagonal,omitempty"`   // so many of the pattern along the diagonal
	Matrix      string `json:"matrix,omitempty"`     // path of the file

	// In place of a product, of which M and K are then queries and keys, N is the head size and Density the share of the pairs
	// of a query and a key that are kept.
	Attention *workload.Attention `json:"attention,omitempty"`
	// In place of a product, of which M is then the rows of X, N its width and K the columns of H of all experts. Operations are
	// those on rows that tokens have; dense ones are those of every expert on every token.
	Experts *workload.Experts `json:"experts,omitempty"`

	Seed    uint64  `json:"seed"`
	Blocks  int     `json:"blocks"`
	Density float64 `json:"density"` // share of blocks that are stored
	// Elements that are stored for each nonzero one, of a matrix from a file.
	FillIn float64 `json:"fill_in,omitempty"`

	Kernel            string  `json:"kernel"`
	KernelReason      string  `json:"kernel_reason"`
	PlanSeconds       float64 `json:"plan_seconds"`                  // to make the plan, on the host
	DevicePlanSeconds float64 `json:"device_plan_seconds,omitempty"` // on the GPU, for an index in its memory

	EffectiveFLOP float64          `json:"effective_flop"`   // on stored blocks
	DenseFLOP     float64          `json:"dense_flop"`       // of a dense product of the size
	Bytes         float64          `json:"bytes"`            // A's blocks and the rows of B that they meet once, and C once
	Bounds        []roofline.Bound `json:"bounds,omitempty"` // the one that binds first

	Timed []Timed `json:"timed"` // ours first

	Before nvsmi.State `json:"gpu_before"` // just before the first round
	After  nvsmi.State `json:"gpu_after"`  // while our product ran on, after the last
}

// Timed is one that took its turns.
type Timed struct {
	Name     string `json:"name"`               // "sparsek", "cublas"
	Kernel   string `json:"kernel,omitempty"`   // how it says that it computes
	Dense    bool   `json:"dense"`              // it multiplies absent blocks as zeros
	Full     bool   `json:"full,omitempty"`     // it multiplies a matrix without zeros in place of A
	Products int    `json:"products,omitempty"` // in a graph
	Held     int    `json:"held_sms,omitempty"` // SMs that another kernel held meanwhile
	Of       string `json:"of,omitempty"`       // the name of the same with no SM held

	Runs      int        `json:"runs"`
	Seconds   float64    `json:"seconds"` // the median
	Quartiles [2]float64 `json:"seconds_quartiles"`
	Spread    float64    `json:"spread"` // distance of the quartiles as a share of the median

	// Operations on stored blocks in that time, and of the dense product. 0 where it is the host's time alone.
	Effective       float64 `json:"effective_tflops"`
	DenseEquivalent float64 `json:"dense_equivalent_tflops"`

	Rounds [][]float64 `json:"rounds_seconds"` // all times, by rounds
	// Ours is so many times as fast: the median of this one over ours. Nil for ours.
	SpeedUp *SpeedUp `json:"speed_up,omitempty"`
	// It takes so many times as long as with no SM held: its median over that one's. Nil where no SM is held.
	Slowdown *SpeedUp `json:"slowdown,omitempty"`
	// Ours: the share of the time that the first of the bounds allows. Above 1 that bound is wrong.
	OfBound   float64    `json:"of_bound,omitempty"`
	Goal      *Goal      `json:"goal,omitempty"`
	Sustained *Sustained `json:"sustained,omitempty"`
}

// SpeedUp compares times. Where it is a tie, neither is to be called faster.
type SpeedUp struct {
	Ratio float64 `json:"ratio"`
	Tie   bool    `json:"tie"`
}

// Source says where A comes from.
func (r *Result) Source() string {
	switch {
	case r.Matrix != "":
		return r.Matrix
	case r.Shuffled:
		return r.Pattern + ", rows shuffled"
	case r.Transposed:
		return r.Pattern + ", transposed"
	case r.Diagonal > 0:
		return fmt.Sprintf("%s, %d along the diagonal", r.Pattern, r.Diagonal)
	}
	return r.Pattern
}

// held reports whether some were timed while SMs were held.
func (r *Result) held() bool {
	return slices.ContainsFunc(r.Timed, func(t Timed) bool { return t.Held > 0 })
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

// newTimed sums up the times of an entrant.
func newTimed(e entrant, times interleave.Series, effectiveFLOP, denseFLOP float64) Timed {
	t := stats.Summarise(times.All())
	out := Timed{
		Name: e.name, Kernel: e.kernel, Dense: e.dense, Full: e.full, Products: e.products, Held: e.held, Of: e.of,
		Runs: t.Runs, Seconds: t.Median.Seconds(),
		Quartiles: [2]float64{t.Quarter.Seconds(), t.ThreeQuarters.Seconds()}, Spread: t.Spread(),
	}
	if t.Median > 0 && !e.host {
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

// Summary are the times, in seconds.
func (t *Timed) Summary() stats.Summary[float64] {
	return stats.Summary[float64]{Runs: t.Runs, Median: t.Seconds, Quarter: t.Quartiles[0], ThreeQuarters: t.Quartiles[1]}
}

// compare fills in the speed-ups of ours over the others, each with as many SMs held, and the slowdowns of those with
// held SMs. Ours in a graph is not compared: it saves what the others were timed with.
func (r *Result) compare() {
	if len(r.Timed) == 0 || r.Timed[0].Seconds <= 0 {
		return
	}
	ours := map[int]*Timed{} // by the SMs that are held
	for i := range r.Timed {
		if t := &r.Timed[i]; t.Name == Ours || t.Of == Ours {
			ours[t.Held] = t
		}
	}
	for i := range r.Timed {
		if t := &r.Timed[i]; len(r.Bounds) > 0 && t.Seconds > 0 && (t.Name == Ours || t.Name == OursGraph) {
			t.OfBound = r.Bounds[0].Seconds / t.Seconds
		}
	}
	for i := 1; i < len(r.Timed); i++ {
		t := &r.Timed[i]
		if own := ours[t.Held]; t.Name != OursGraph && own != nil && own != t && own.Seconds > 0 {
			t.SpeedUp = &SpeedUp{t.Seconds / own.Seconds, own.Summary().Tie(t.Summary())}
		}
		if alone := r.Find(t.Of); t.Held > 0 && alone != nil && alone.Seconds > 0 {
			t.Slowdown = &SpeedUp{t.Seconds / alone.Seconds, alone.Summary().Tie(t.Summary())}
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
	Fix    string   `json:"fix"`
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

	Rounds    int      `json:"rounds"`
	Sustained float64  `json:"sustained_seconds,omitempty"` // at least, without a pause; 0: not timed
	NoEnergy  string   `json:"no_energy,omitempty"`         // why the energy of products is not known
	Method    []string `json:"method"`

	Planned     int         `json:"planned"` // cases
	Interrupted bool        `json:"interrupted"`
	Cases       []*Result   `json:"cases"`
	Failed      []Fault     `json:"failed"`
	Absent      []Absence   `json:"absent"`
	BreakEven   []BreakEven `json:"break_even,omitempty"`

	// Ceilings of the chip, where they are known.
	Chip *roofline.Ceilings `json:"ceilings,omitempty"`
	// Of the environment, what makes a peer slower than it need be.
	Narrowed []string `json:"narrowed,omitempty"`
}

// ReportFormat is Report.Format.
const ReportFormat = 2
