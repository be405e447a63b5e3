// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/humanize"
	"github.com/sparsek/sparsek/internal/sys/stats"
)

// remarks are the lines with what a table of numbers does not contain, for formats that pass over lines with # in front.
func remarks(r *bench.Report) []string {
	list := []string{r.Title(), "command: " + r.Command}
	if r.Driver != "" {
		list = append(list, "driver: "+r.Driver)
	}
	for _, b := range r.BreakEven {
		list = append(list, fmt.Sprintf("break-even of blocks of %s with %s: %s", block(b.BlockM, b.BlockK), b.Against, breakEven(b)))
	}
	list = append(list, notes(r)...)
	for _, m := range r.Method {
		list = append(list, "method: "+m)
	}
	return list
}

func writeRemarks(out *strings.Builder, r *bench.Report) {
	for _, line := range remarks(r) {
		fmt.Fprintf(out, "# %s\n", humanize.OneLine(line))
	}
}

// csvColumns are those of CSV.
var csvColumns = []string{
	"suite", "case", "m", "n", "k", "block_m", "block_k", "dtype", "source", "seed", "blocks", "density", "by", "kernel", "dense", "runs",
	"seconds", "seconds_quarter", "seconds_three_quarters", "spread", "effective_tflops", "dense_equivalent_tflops", "speed_up", "tie",
	"sm_mhz_before", "sm_mhz_after", "slowed_down_by", "sustained_seconds", "sustained_joules", "sustained_watts",
	"held_sms", "slowdown",
}

// CSV writes a row for each that was timed in each case. Lines with # in front contain the rest.
func CSV(w io.Writer, r *bench.Report) error {
	var out strings.Builder
	writeRemarks(&out, r)
	c := csv.NewWriter(&out)
	if err := c.Write(csvColumns); err != nil {
		return err
	}
	real := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, one := range r.Cases {
		for _, t := range one.Timed {
			ratio, tie, held, slowdown := "", "", "", ""
			if t.SpeedUp != nil {
				ratio, tie = real(t.SpeedUp.Ratio), strconv.FormatBool(t.SpeedUp.Tie)
			}
			if t.Held > 0 && t.Slowdown != nil {
				held, slowdown = strconv.Itoa(t.Held), real(t.Slowdown.Ratio)
			}
			clock := func(known bool, mhz float64) string {
				if !known {
					return ""
				}
				return real(mhz)
			}
			err := c.Write([]string{
				r.Suite, one.Name, strconv.Itoa(one.M), strconv.Itoa(one.N), strconv.Itoa(one.K), strconv.Itoa(one.BlockM), strconv.Itoa(one.BlockK),
				one.DType, one.Source(), strconv.FormatUint(one.Seed, 10), strconv.Itoa(one.Blocks), real(one.Density), t.Name, t.Kernel,
				strconv.FormatBool(t.Dense), strconv.Itoa(t.Runs), real(t.Seconds), real(t.Quartiles[0]), real(t.Quartiles[1]), real(t.Spread),
				real(t.Effective), real(t.DenseEquivalent), ratio, tie,
				clock(one.Before.Known, one.Before.SMClock), clock(one.After.Known, one.After.SMClock), one.Before.Merge(one.After).Slowed(),
				under(t, func(s *bench.Sustained) float64 { return s.Seconds }), under(t, func(s *bench.Sustained) float64 { return s.Joules }),
				under(t, func(s *bench.Sustained) float64 { return s.Watts }), held, slowdown,
			})
			if err != nil {
				return err
			}
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return err
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// under is a figure of what ran without a pause; "" where it is not known.
func under(t bench.Timed, of func(*bench.Sustained) float64) string {
	if t.Sustained == nil || of(t.Sustained) == 0 {
		return ""
	}
	return strconv.FormatFloat(of(t.Sustained), 'g', -1, 64)
}

// GoBench writes the format of Go benchmarks: a line for each round of each that was timed, with the median of the round.
// What differs from run to run is in remarks, not in keys: benchstat compares runs that have the same keys.
func GoBench(w io.Writer, r *bench.Report) error {
	var out strings.Builder
	writeRemarks(&out, r)
	fmt.Fprintf(&out, "goos: %s\ngoarch: %s\npkg: github.com/sparsek/sparsek\ndevice: %s\n", runtime.GOOS, runtime.GOARCH, humanize.OneLine(r.Device))
	fmt.Fprint(&out, "Unit effective-TFLOP/s better=higher\nUnit dense-equivalent-TFLOP/s better=higher\n")
	for _, c := range r.Cases {
		for _, t := range c.Timed {
			for _, round := range t.Rounds {
				if len(round) == 0 {
					continue
				}
				seconds := stats.Median(round)
				fmt.Fprintf(&out, "Benchmark%s/case=%s/impl=%s %d %.1f ns/op", title(r.Suite), benchName(c.Name), benchName(t.Name), len(round), seconds*1e9)
				if seconds > 0 {
					fmt.Fprintf(&out, " %.6g effective-TFLOP/s %.6g dense-equivalent-TFLOP/s", c.EffectiveFLOP/seconds/1e12, c.DenseFLOP/seconds/1e12)
				}
				out.WriteString("\n")
			}
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func title(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// benchName makes a part of a benchmark's name, which has neither blanks nor slashes of its own.
func benchName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '/' || c <= ' ' {
			return '_'
		}
		return c
	}, name)
}
