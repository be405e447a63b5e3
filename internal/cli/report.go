// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/humanize"
	sparsek "github.com/sparsek/sparsek/wrapper"
	reference "github.com/sparsek/sparsek/wrapper/check"
)

// report describes one product, as JSON and in words.
type report struct {
	Pattern string `json:"pattern,omitempty"`
	Matrix  string `json:"matrix,omitempty"`
	Seed    uint64 `json:"seed"`
	M       int    `json:"m"`
	N       int    `json:"n"`
	K       int    `json:"k"`
	BlockM  int    `json:"block_m"`
	BlockK  int    `json:"block_k"`
	DType   string `json:"dtype"`
	ADType  string `json:"a_dtype,omitempty"` // of A, where DType is of B alone

	Compute     string `json:"compute,omitempty"` // "tf32"
	Op          string `json:"op"`
	ColumnMajor string `json:"column_major,omitempty"` // letters of x, b and c
	CopiesA     bool   `json:"copies_a,omitempty"`     // transposed blocks, with each product
	CopiesB     bool   `json:"copies_b,omitempty"`     // to rows, with each product
	CopiesC     bool   `json:"copies_c,omitempty"`     // from rows

	OutDType   string `json:"out_dtype"`
	Bias       string `json:"bias,omitempty"` // "row" or "column"
	Activation string `json:"activation,omitempty"`

	Blocks  int      `json:"blocks"`
	Density float64  `json:"density"`        // share of blocks that are stored
	Fill    *fill    `json:"fill,omitempty"` // of a matrix from a file
	Over    overflow `json:"overflow"`
	// Values that are infinite or NaN in the files already.
	NotFinite int64 `json:"not_finite,omitempty"`

	Backend       string `json:"backend"`
	BackendReason string `json:"backend_reason"`
	Kernel        string `json:"kernel"`
	KernelReason  string `json:"kernel_reason"`
	Recomputed    int64  `json:"recomputed"` // slabs of C, because a sum was NaN

	Runs            int        `json:"runs"`
	Seconds         float64    `json:"seconds"` // the median
	Quartiles       [2]float64 `json:"seconds_quartiles"`
	Effective       float64    `json:"effective_tflops"`        // operations on stored blocks
	DenseEquivalent float64    `json:"dense_equivalent_tflops"` // operations of a dense product

	Check *check `json:"check,omitempty"`
	Out   string `json:"out,omitempty"`
}

type fill struct {
	Nonzeros int64   `json:"nonzeros"`
	Stored   int64   `json:"stored"`
	Ratio    float64 `json:"ratio"` // stored for each nonzero
}

// overflow counts the finite values that the element type made infinite.
type overflow struct {
	A    int64 `json:"a"`
	B    int64 `json:"b"`
	Bias int64 `json:"bias,omitempty"`
}

// check is the report of a check, in JSON.
type check struct {
	Elements   int    `json:"elements"`
	Failures   int    `json:"failures"`
	MaxAbsC    number `json:"max_abs_c"`
	MaxError   number `json:"max_error"`
	MaxRatio   number `json:"max_error_over_bound"`
	WorstRow   int    `json:"worst_row"`
	WorstCol   int    `json:"worst_col"`
	WorstC     number `json:"worst_c"`
	WorstWant  number `json:"worst_want"`
	WorstBound number `json:"worst_bound"`
	FirstRow   int    `json:"first_failure_row"`
	FirstCol   int    `json:"first_failure_col"`
}

// closest is the error of the element that is closest to its bound, or furthest beyond it, and the bound.
func (k *check) closest() string {
	if math.IsInf(float64(k.WorstC), 0) && k.WorstC == k.WorstWant {
		return "0 of 0" // the same infinity
	}
	return digits(math.Abs(float64(k.WorstC-k.WorstWant))) + " of " + digits(float64(k.WorstBound))
}

// number is a float64 that JSON can hold: NaN and infinities become strings.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// newReport fills in what follows from the problem and its solution.
func newReport[T, C sparsek.Element](p *workload.Problem[T], e workload.Epilogue[C], s *workload.Solution[C], in workload.Element[T], c sparsek.EngineInfo) *report {
	t := s.Timing
	r := &report{
		M: p.A.Rows, N: p.N(), K: p.A.Cols, BlockM: p.A.BlockM, BlockK: p.A.BlockK, DType: in.Name,
		OutDType: sparsek.DTypeOf[C]().String(), Op: p.Op.String(), CopiesA: s.Plan.CopiesA, CopiesB: s.Plan.CopiesB, CopiesC: s.Plan.CopiesC,
		ColumnMajor: p.ColumnMajor(),
		Blocks:      p.A.Blocks(), Density: p.A.Density(),
		Backend: backendName(c), BackendReason: c.Reason, Kernel: s.Plan.Kernel, KernelReason: s.Plan.Reason,
		Recomputed: s.Recomputed,
		Runs:       t.Runs, Seconds: t.Median.Seconds(), Quartiles: [2]float64{t.Quarter.Seconds(), t.ThreeQuarters.Seconds()},
		Effective:       rate(p.EffectiveFLOP(), t.Median),
		DenseEquivalent: rate(p.DenseFLOP(), t.Median),
	}
	if e.BiasKind != sparsek.NoBias {
		r.Bias = e.BiasKind.String()
	}
	if e.Activation != sparsek.NoActivation {
		r.Activation = e.Activation.String()
	}
	return r
}

// checkSolution fills in r.Check. The error is a wrong result, with its place, or why none could be checked.
func checkSolution[T, C sparsek.Element](r *report, engine *sparsek.Engine, p *workload.Problem[T], e workload.Epilogue[C], s *workload.Solution[C]) error {
	found, err := workload.Check(engine, p, e, s)
	if err != nil && !errors.Is(err, sparsek.ErrCheckFailed) {
		return fmt.Errorf("check the result: %w", err)
	}
	r.Check = newCheck(found)
	if err != nil || found.Failures > 0 {
		return fail(exitWrongResult, wrongResult(found))
	}
	return nil
}

func newCheck(found reference.Report) *check {
	return &check{
		found.Elements, found.Failures, number(found.MaxAbsC), number(found.MaxError), number(found.MaxRatio),
		found.WorstRow, found.WorstCol, number(found.WorstC), number(found.WorstRef), number(found.WorstBound),
		found.FirstRow, found.FirstCol,
	}
}

// wrongResult says where elements are beyond their bounds.
func wrongResult(found reference.Report) error {
	return fmt.Errorf("wrong result: %d of %d elements are beyond their bound, the first at row %d, column %d; "+
		"the worst at row %d, column %d: got %v, want %v within %v",
		found.Failures, found.Elements, found.FirstRow, found.FirstCol,
		found.WorstRow, found.WorstCol, found.WorstC, found.WorstRef, found.WorstBound)
}

// rate is in TFLOP/s.
func rate(flop float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return flop / d.Seconds() / 1e12
}

func backendName(c sparsek.EngineInfo) string {
	if c.Backend == sparsek.CUDA {
		return "GPU"
	}
	return "CPU"
}

// backendLine says which back-end runs and why.
func backendLine(c sparsek.EngineInfo) string {
	if c.Backend == sparsek.CUDA {
		return fmt.Sprintf("GPU %d: %s", c.Device, c.Reason)
	}
	return fmt.Sprintf("CPU, %d threads, %s: %s", c.Threads, c.ISA, c.Reason)
}

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

func formatSeconds(s float64) string { return humanize.Seconds(s) }
func digits(v float64) string        { return humanize.Digits(v) }
func percent(share float64) string   { return humanize.Percent(share) }
