// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// caseColumn is one that many tables have.
func caseColumn() column { return column{heading: "case", left: true} }

// entry is a row of what was timed in a case.
type entry struct {
	c *bench.Result
	t *bench.Timed
}

// entries are all that was timed, for which pick holds.
func entries(r *bench.Report, pick func(*bench.Timed) bool) []entry {
	var list []entry
	for _, c := range r.Cases {
		for i := range c.Timed {
			if pick(&c.Timed[i]) {
				list = append(list, entry{c, &c.Timed[i]})
			}
		}
	}
	return list
}

// about are the columns that say what a case is.
func about(r *bench.Report) ([]column, []func(*bench.Result) string) {
	return []column{
			caseColumn(), {heading: sizeHeading(r), left: true, leave: 3, once: true}, {heading: "block", left: true, leave: 4, once: true},
			{heading: "type", left: true, leave: 2, once: true}, {heading: "pattern", left: true, leave: 5, once: true},
			{heading: keptHeading(r), left: true, leave: 6, once: true}, {heading: "kernel", left: true, leave: 7, once: true},
		}, []func(*bench.Result) string{
			func(c *bench.Result) string { return c.Name }, size, func(c *bench.Result) string { return block(c.BlockM, c.BlockK) },
			func(c *bench.Result) string { return c.DType }, source, func(c *bench.Result) string { return humanize.Percent(c.Density) },
			func(c *bench.Result) string { return c.Kernel },
		}
}

// source is where A comes from; a file has its name in the first column.
func source(c *bench.Result) string {
	if c.Matrix != "" {
		return "file"
	}
	return c.Source()
}

// rateUnit is the unit of rates in tables, and how many of it a TFLOP/s has: a CPU's are small.
func rateUnit(r *bench.Report) (unit string, scale float64) {
	for _, e := range entries(r, func(*bench.Timed) bool { return true }) {
		if e.t.Effective >= 1 {
			return "TFLOP/s", 1
		}
	}
	return "GFLOP/s", 1000
}

// times is the table of all that was timed, a row each.
func times(r *bench.Report) table {
	unit, scale := rateUnit(r)
	columns, cells := about(r)
	var of []func(entry) string
	for _, cell := range cells {
		of = append(of, func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return cell(e.c)
		})
	}
	columns = append(columns, column{heading: "by", left: true}, column{heading: "time"}, column{heading: "spread", leave: 9},
		column{heading: "effective\n" + unit}, column{heading: "dense-equiv.\n" + unit, leave: 1}, column{heading: "speed-up\nof ours"},
		column{heading: "SM clock\nMHz", leave: 2, once: true}, column{heading: "slowed\ndown by", leave: 1})
	of = append(of,
		func(e entry) string { return e.t.Name },
		func(e entry) string { return humanize.Seconds(e.t.Seconds) },
		func(e entry) string { return humanize.Percent(e.t.Spread) },
		func(e entry) string { return humanize.Digits(scale * e.t.Effective) },
		func(e entry) string { return humanize.Digits(scale * e.t.DenseEquivalent) },
		func(e entry) string { return speedUp(e.t.SpeedUp) },
		func(e entry) string {
			if !e.c.After.Known || e.t.Name != bench.Ours {
				return ""
			}
			return fmt.Sprintf("%.0f", e.c.After.SMClock)
		},
		func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return e.c.Before.Merge(e.c.After).Slowed()
		})
	return build("", entries(r, func(*bench.Timed) bool { return true }), columns, of...)
}

// beside is the table with a row for each case, and each peer's time and speed-up beside ours.
func beside(r *bench.Report) table {
	unit, scale := rateUnit(r)
	columns, cells := about(r)
	ours := func(text func(*bench.Timed) string) func(*bench.Result) string {
		return func(c *bench.Result) string {
			if t := c.Find(bench.Ours); t != nil {
				return text(t)
			}
			return ""
		}
	}
	columns = append(columns, column{heading: "time"}, column{heading: "spread"}, column{heading: "effective " + unit})
	cells = append(cells, ours(func(t *bench.Timed) string { return humanize.Seconds(t.Seconds) }),
		ours(func(t *bench.Timed) string { return humanize.Percent(t.Spread) }),
		ours(func(t *bench.Timed) string { return humanize.Digits(scale * t.Effective) }))
	for _, name := range peerNames(r) {
		if name == bench.OursGraph && slices.ContainsFunc(r.Cases, func(c *bench.Result) bool { return len(c.Bounds) > 0 }) {
			continue // the table of bounds has it
		}
		of := func(text func(*bench.Timed) string) func(*bench.Result) string {
			return func(c *bench.Result) string {
				if t := c.Find(name); t != nil {
					return text(t)
				}
				return ""
			}
		}
		columns = append(columns, column{heading: name + ", time"}, column{heading: "speed-up"})
		cells = append(cells, of(func(t *bench.Timed) string { return humanize.Seconds(t.Seconds) }),
			of(func(t *bench.Timed) string { return speedUp(t.SpeedUp) }))
	}
	return build("Times", r.Cases, columns, cells...)
}

// longNames are those of peers in a table for people who do not know the program.
var longNames = []struct{ name, text string }{
	{bench.Torch, "torch BSR"}, {"cusparse_bsr", "cuSPARSE BSR"}, {"cusparse_bell", "cuSPARSE Blocked-ELL"}, {"cusparse_csr", "cuSPARSE CSR"},
	{"cusparse_csr_vector", "cuSPARSE CSR by a vector"}, {bench.CUBLAS, "cuBLAS, dense"}, {bench.OpenBLAS, "OpenBLAS, dense"},
	{"onemkl_bsr", "oneMKL BSR"}, {"onemkl_csr", "oneMKL CSR"}, {bench.SciPy, "SciPy"},
}

// compact is a table with one column for each peer: its time, and how many times as fast ours is.
func compact(r *bench.Report) table {
	columns := []column{{heading: "A, blocks stored"}, {heading: "block", once: true}, {heading: "MxNxK", once: true}, {heading: "sparsek"}}
	cells := []func(*bench.Result) string{
		func(c *bench.Result) string { return source(c) + ", " + humanize.Percent(c.Density) },
		func(c *bench.Result) string { return block(c.BlockM, c.BlockK) }, size,
		func(c *bench.Result) string {
			if t := c.Find(bench.Ours); t != nil {
				return humanize.Seconds(t.Seconds)
			}
			return ""
		},
	}
	for _, peer := range longNames {
		columns = append(columns, column{heading: peer.text})
		cells = append(cells, func(c *bench.Result) string {
			t := c.Find(peer.name)
			switch {
			case t == nil:
				return ""
			case t.SpeedUp == nil || t.SpeedUp.Tie:
				return humanize.Seconds(t.Seconds) + " (tie)"
			}
			return fmt.Sprintf("%s (%sx)", humanize.Seconds(t.Seconds), humanize.Digits(t.SpeedUp.Ratio))
		})
	}
	return build("Time, and in brackets how many times as fast sparsek is", r.Cases, columns, cells...)
}

// peerNames are those that took turns with ours, in their order.
func peerNames(r *bench.Report) []string {
	var names []string
	for _, c := range r.Cases {
		for _, t := range c.Timed {
			if t.Name != bench.Ours && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// bounds is the table of the bounds of the chip and the goals; ok is false where the bounds are not known.
func bounds(r *bench.Report) (t table, ok bool) {
	rows := entries(r, func(t *bench.Timed) bool { return t.OfBound > 0 })
	launched := func(e entry) bool { return e.t.Name == bench.Ours }
	goal := func(e entry) bench.Goal {
		if e.t.Goal == nil {
			return bench.Goal{}
		}
		return *e.t.Goal
	}
	t = build("Goals, bounds and plans", rows, []column{
		caseColumn(), {heading: "", left: true}, {heading: "effective\nTFLOP/s"}, {heading: "goal", leave: 2}, {heading: "of\ngoal"},
		{heading: "bound"}, {heading: "of\nbound"}, {heading: "rate of\ndense", leave: 3}, {heading: "plan on\nhost", leave: 1}, {heading: "plan on\nGPU", leave: 1},
	},
		func(e entry) string { return e.c.Name },
		func(e entry) string {
			switch {
			case e.t.Name == bench.OursGraph:
				return "graph"
			case e.c.Find(bench.OursGraph) != nil:
				return "launch"
			}
			return ""
		},
		func(e entry) string { return humanize.Digits(e.t.Effective) },
		func(e entry) string { return goal(e).Text },
		func(e entry) string { return wholePercent(goal(e).Reached) },
		func(e entry) string { return e.c.Bounds[0].Name },
		func(e entry) string {
			if e.t.OfBound > 1 {
				return wholePercent(e.t.OfBound) + "!"
			}
			return wholePercent(e.t.OfBound)
		},
		func(e entry) string {
			dense := e.c.Find(bench.CUBLAS)
			if dense == nil || !launched(e) {
				return ""
			}
			return wholePercent(e.t.Effective / dense.DenseEquivalent)
		},
		func(e entry) string { return planTime(launched(e), e.c.PlanSeconds) },
		func(e entry) string { return planTime(launched(e), e.c.DevicePlanSeconds) })
	return t, len(rows) > 0
}

func planTime(launched bool, seconds float64) string {
	if !launched || seconds == 0 {
		return ""
	}
	return humanize.Seconds(seconds)
}

func wholePercent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// sustained is the table of products that ran without a pause; ok is false where none did.
func sustained(r *bench.Report) (t table, ok bool) {
	rows := entries(r, func(t *bench.Timed) bool { return t.Sustained != nil })
	unit, scale := rateUnit(r)
	digits := func(v float64) string {
		if v == 0 {
			return ""
		}
		return humanize.Digits(v)
	}
	t = build(fmt.Sprintf("Sustained load, %g s without a pause", r.Sustained), rows, []column{
		caseColumn(), {heading: "by", left: true}, {heading: "rested\n" + unit}, {heading: "sustained\n" + unit}, {heading: "speed-up\nof ours"},
		{heading: "power\nW", leave: 3}, {heading: "mJ a\nproduct"}, {heading: "TFLOP/s\na watt"},
		{heading: "SM clock\nMHz", leave: 2, once: true}, {heading: "slowed\ndown by", leave: 1},
	},
		func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return e.c.Name
		},
		func(e entry) string { return e.t.Name },
		func(e entry) string { return digits(scale * rate(e.t, e.t.Effective, e.t.DenseEquivalent)) },
		func(e entry) string {
			return digits(scale * rate(e.t, e.t.Sustained.Effective, e.t.Sustained.DenseEquivalent))
		},
		func(e entry) string { return digits(e.t.Sustained.SpeedUp) },
		func(e entry) string { return digits(e.t.Sustained.Watts) },
		func(e entry) string { return digits(1e3 * e.t.Sustained.Joules) },
		func(e entry) string { return digits(e.t.Sustained.EffectivePerWatt) },
		func(e entry) string {
			if !e.t.Sustained.State.Known {
				return ""
			}
			return fmt.Sprintf("%.0f", e.t.Sustained.State.SMClock)
		},
		func(e entry) string { return e.t.Sustained.State.Slowed() })
	return t, len(rows) > 0
}

// rate is dense where t is a dense product, else effective: the rate over the operations that it computes.
func rate(t *bench.Timed, effective, dense float64) float64 {
	if t.Dense {
		return dense
	}
	return effective
}

// breakEvens is the table of break-evens; ok is false where there are none. A suite whose densities were not chosen for
// it has none: two densities far apart do not locate a break-even.
func breakEvens(r *bench.Report) (t table, ok bool) {
	t = build("Break-even: the share of stored blocks up to which ours is faster", r.BreakEven, []column{
		{heading: "block", left: true}, {heading: "against", left: true}, {heading: "break-even", left: true},
	},
		func(b bench.BreakEven) string { return block(b.BlockM, b.BlockK) },
		func(b bench.BreakEven) string { return b.Against },
		breakEven)
	return t, len(r.BreakEven) > 0 && r.Suite != bench.Roofline
}

// tables are those of a report: the first is of times, `first` or that of the suite.
func tables(r *bench.Report, first table) []table {
	list := []table{first}
	switch r.Suite {
	case bench.PeerTable:
		return list
	case bench.Shared:
		list[0] = held(r)
	}
	for _, make := range []func(*bench.Report) (table, bool){bounds, sustained, breakEvens} {
		if t, ok := make(r); ok {
			list = append(list, t)
		}
	}
	return list
}

// noise says that times are rough; "" where they are not.
func noise(r *bench.Report) string {
	all := entries(r, func(*bench.Timed) bool { return true })
	if len(all) == 0 {
		return ""
	}
	worst := slices.MaxFunc(all, func(a, b entry) int { return cmp.Compare(a.t.Spread, b.t.Spread) })
	if worst.t.Spread < bench.Noisy {
		return ""
	}
	return fmt.Sprintf("the machine was busy: spreads up to %s (%s in %s), figures are rough", humanize.Percent(worst.t.Spread), worst.t.Name, worst.c.Name)
}

// names are the kernels of the peers, a line for each that names one.
func names(r *bench.Report) []string {
	var list []string
	for _, e := range entries(r, func(t *bench.Timed) bool {
		return t.Name != bench.Ours && t.Name != bench.OursGraph && t.Held == 0 && t.Kernel != t.Name
	}) {
		if text := e.t.Name + ": " + e.t.Kernel; e.t.Kernel != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
