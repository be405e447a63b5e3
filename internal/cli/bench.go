// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/blas"
	"github.com/sparsek/sparsek/internal/product"
	"github.com/sparsek/sparsek/internal/roofline"
	"github.com/sparsek/sparsek/internal/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// benchCase is a product that bench times.
type benchCase struct {
	name     string
	size     sizeFlag
	block    int
	pattern  string
	density  float64
	dtype    dtypeFlag
	cpu, gpu bool // whether it is run there without being named
}

func cube(n int) sizeFlag { return sizeFlag{n, n, n} }

var benchCases = []benchCase{
	{"random-64", cube(4096), 64, "random", 0.125, "bf16", true, true},
	{"random-128", cube(8192), 128, "random", 0.125, "bf16", false, true},
	{"window-64", cube(4096), 64, "window", 0.125, "bf16", true, true},
	{"causal-64", cube(4096), 64, "causal", 0, "bf16", false, true},
	{"zipf-64", cube(4096), 64, "zipf", 0.125, "bf16", false, true},
	{"fp16-64", cube(4096), 64, "random", 0.125, "fp16", false, true},
	{"fp32-64", cube(2048), 64, "random", 0.125, "fp32", true, false},
	{"fp32-128", cube(2048), 128, "random", 0.25, "fp32", true, false},
}

// benchResult is what bench prints as JSON.
type benchResult struct {
	Cases []*benchReport `json:"cases"`
}

type benchReport struct {
	Name string `json:"name"`
	*report
	Spread   float64   `json:"spread"` // distance of the quartiles as a share of the median
	OpenBLAS *openBLAS `json:"openblas,omitempty"`
}

// openBLAS is the dense product of the same size, by sgemm.
type openBLAS struct {
	Config  string  `json:"config"`
	Seconds float64 `json:"seconds"`
	TFLOPs  float64 `json:"tflops"`
	// Effective rate of the block-sparse product as a share of sgemm's.
	RateShare float64 `json:"rate_share"`
}

// The suites.
const (
	suiteBasic    = "basic"
	suiteRoofline = "roofline"
)

type benchFlags struct {
	suite          string
	device         deviceFlag
	threads        int
	seed           uint64
	repeats        int
	rounds         int
	launch         int
	cases          []string
	json, markdown bool
}

// onlyOf says to which suite a flag belongs; the others are for both.
var onlyOf = map[string]string{
	"threads": suiteBasic, "seed": suiteBasic, "repeats": suiteBasic,
	"rounds": suiteRoofline, "markdown": suiteRoofline, "launch": suiteRoofline,
}

func bench(ctx context.Context, e *environment, args []string) error {
	flags := newFlags("bench")
	var o benchFlags
	flags.StringVar(&o.suite, "suite", suiteBasic, "`name`: basic, or roofline, which times a GPU beside cuBLAS")
	flags.Var(&o.device, "device", "`name`: auto, cpu, gpu or gpu:N")
	flags.IntVar(&o.threads, "threads", 0, "of the CPU back-end (default: one for each core)")
	flags.Uint64Var(&o.seed, "seed", 0, "of patterns, values and B (default 0); roofline's is fixed")
	flags.IntVar(&o.repeats, "repeats", 0, "timed products of each case (default: 5 on the CPU, 30 on a GPU)")
	flags.IntVar(&o.rounds, "rounds", roofline.DefaultRounds, "of roofline: how often a case and cuBLAS take turns")
	flags.IntVar(&o.launch, "launch", 0, "of roofline: launch each case that often and time nothing, under a profiler; with --json")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.BoolVar(&o.markdown, "markdown", false, "of roofline: print Markdown, with commit, GPU, driver and date")
	if err := parse(e, flags, args, true); err != nil {
		return err
	}
	o.cases = flags.Args()
	if err := o.validate(flags); err != nil {
		return err
	}
	if o.suite == suiteRoofline {
		return benchRoofline(ctx, e, o, args)
	}
	return benchBasic(ctx, e, o)
}

// validate refuses what does not go together.
func (o *benchFlags) validate(flags *flag.FlagSet) (err error) {
	if o.suite != suiteBasic && o.suite != suiteRoofline {
		return failf(exitUsage, "bench: --suite %s: want %s or %s", o.suite, suiteBasic, suiteRoofline)
	}
	flags.Visit(func(f *flag.Flag) {
		if suite := onlyOf[f.Name]; suite != "" && suite != o.suite && err == nil {
			err = failf(exitUsage, "bench: --%s is for --suite %s", f.Name, suite)
		}
	})
	switch {
	case err != nil:
		return err
	case o.repeats < 0:
		return failf(exitUsage, "bench: --repeats %d: want a positive number", o.repeats)
	case o.rounds < 1:
		return failf(exitUsage, "bench: --rounds %d: want a positive number", o.rounds)
	case o.launch < 0:
		return failf(exitUsage, "bench: --launch %d: want a positive number", o.launch)
	case o.launch > 0 && !o.json:
		return failf(exitUsage, "bench: --launch wants --json: it prints what was launched")
	case o.json && o.markdown:
		return failf(exitUsage, "bench: --json and --markdown exclude each other")
	}
	return nil
}

func benchBasic(ctx context.Context, e *environment, o benchFlags) (err error) {
	named, err := findCases(o.cases)
	if err != nil {
		return err
	}
	c, err := newContext(o.device, o.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	cases := selectCases(named, c.Info().Backend)

	bar := e.progress.Bar("bench", int64(len(cases)), term.Count)
	var result benchResult
	var notes []string
	for _, b := range cases {
		r, note, err := benchOne(ctx, c, o, b)
		if err != nil {
			endBar(bar, err)
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
		result.Cases = append(result.Cases, r)
		bar.Add(1)
	}
	bar.Done()
	if o.json {
		return printJSON(e.stdout, result)
	}
	return printBench(e, c.Info(), result, notes)
}

// findCases looks up the names.
func findCases(names []string) ([]benchCase, error) {
	var list []benchCase
	for _, name := range names {
		i := slices.IndexFunc(benchCases, func(b benchCase) bool { return b.name == name })
		if i < 0 {
			var known []string
			for _, b := range benchCases {
				known = append(known, b.name)
			}
			return nil, failf(exitUsage, "bench: there is no case %q: take some of %s", name, strings.Join(known, ", "))
		}
		list = append(list, benchCases[i])
	}
	return list, nil
}

// selectCases gives the named cases, or without any those that suit the back-end.
func selectCases(named []benchCase, backend sparsek.Backend) []benchCase {
	if len(named) > 0 {
		return named
	}
	var list []benchCase
	for _, b := range benchCases {
		if b.gpu && backend == sparsek.CUDA || b.cpu && backend == sparsek.CPU {
			list = append(list, b)
		}
	}
	return list
}

// benchOne times a case; the note says why a comparison could not be made.
func benchOne(ctx context.Context, c *sparsek.Context, o benchFlags, b benchCase) (r *benchReport, note string, err error) {
	switch b.dtype {
	case "bf16":
		r, _, err = benchTyped(ctx, c, o, b, product.BFloat16)
		return r, "", err
	case "fp16":
		r, _, err = benchTyped(ctx, c, o, b, product.Float16)
		return r, "", err
	}
	r, p, err := benchTyped(ctx, c, o, b, product.Float32)
	if err != nil || c.Info().Backend != sparsek.CPU {
		return r, "", err
	}
	dense, err := timeOpenBLAS(ctx, c.Info().Threads, p, r.Runs)
	if errors.Is(err, blas.ErrNotInstalled) {
		return r, "no comparison with sgemm: " + err.Error(), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("compare with OpenBLAS: %w", err)
	}
	dense.RateShare = r.Effective / dense.TFLOPs
	r.OpenBLAS = dense
	return r, "", nil
}

func benchTyped[T sparsek.Element](ctx context.Context, c *sparsek.Context, o benchFlags, b benchCase, e product.Element[T]) (*benchReport, *product.Problem[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p, err := generate(patternSpec{b.pattern, b.size, blockFlag{b.block, b.block}, b.density, o.seed, e.Size}, e, nil)
	if err != nil {
		return nil, nil, err
	}
	plain := product.Epilogue[T]{}
	s, err := product.Solve(ctx, c, p, plain, product.Options{Repeats: o.repeats})
	if err != nil {
		return nil, nil, err
	}
	r := newReport(p, plain, s, e, c.Info())
	r.Pattern, r.Seed = b.pattern, o.seed
	return &benchReport{Name: b.name, report: r, Spread: s.Timing.Spread()}, p, nil
}

// timeOpenBLAS times sgemm on a dense A of the same size.
func timeOpenBLAS(ctx context.Context, threads int, p *product.Problem[float32], repeats int) (*openBLAS, error) {
	l, err := blas.Open(threads)
	if err != nil {
		return nil, err
	}
	m, n, k := p.A.Rows, p.B.Cols, p.A.Cols
	a := product.RandomB[float32](m, k, 1).Data
	c := make([]float32, m*n)
	var times []time.Duration
	for i := range repeats + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := l.Sgemm(m, n, k, a, p.B.Data, c); err != nil {
			return nil, err
		}
		if i > 0 { // the first warms up
			times = append(times, time.Since(start))
		}
	}
	median := product.Summarise(times).Median
	return &openBLAS{Config: l.Config(), Seconds: median.Seconds(), TFLOPs: rate(p.DenseFLOP(), median)}, nil
}

func printBench(e *environment, c sparsek.ContextInfo, result benchResult, notes []string) error {
	fmt.Fprintf(e.stdout, "back-end  %s\n\n", backendLine(c))
	t := &table{left: 4}
	t.add("", "", "", "", "", "", "effective", "dense-equivalent")
	t.add("case", "MxNxK", "pattern", "kernel", "median", "spread", "TFLOP/s", "TFLOP/s")
	for _, r := range result.Cases {
		size := sizeFlag{r.M, r.N, r.K}
		t.add(r.Name, size.String(), r.Pattern+" "+percent(r.Density), r.Kernel, formatSeconds(r.Seconds),
			percent(r.Spread), digits(r.Effective), digits(r.DenseEquivalent))
		if d := r.OpenBLAS; d != nil {
			t.add("", size.String(), "dense", "OpenBLAS sgemm", formatSeconds(d.Seconds), "", digits(d.TFLOPs), "")
			notes = append(notes, fmt.Sprintf("%s runs at %s of sgemm's rate for each nonzero block", r.Name, percent(d.RateShare)))
		}
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(e.stdout, "\n%s", note)
	}
	if len(notes) > 0 {
		fmt.Fprintln(e.stdout)
	}
	return nil
}
