// SPDX-License-Identifier: Apache-2.0

// Package report writes the report of a bench for people and for other programs.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// JSON writes all there is.
func JSON(w io.Writer, r *bench.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Read reads a report that JSON wrote to a file.
func Read(path string) (*bench.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r bench.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no report of sparsek bench --json: %w", path, err)
	}
	if r.Format != bench.ReportFormat {
		return nil, fmt.Errorf("%s is of format %d, and this program reads %d: measure again", path, r.Format, bench.ReportFormat)
	}
	return &r, nil
}

// List prints the cases of a suite.
func List(w io.Writer, s bench.Suite, cases []bench.Case) error {
	if _, err := fmt.Fprintf(w, "%s: %s\n", s.Name, s.Summary); err != nil {
		return err
	}
	t := &humanize.Table{Left: 5}
	for _, c := range cases {
		pattern := c.Pattern
		if c.Density > 0 {
			pattern += " " + humanize.Percent(c.Density)
		}
		if c.Shuffled {
			pattern += ", rows shuffled"
		}
		size := fmt.Sprintf("%dx%dx%d", c.Shape.M, c.Shape.N, c.Shape.K)
		if c.Attention != nil {
			size = attentionSize(c.Attention)
		}
		t.Add("  "+c.Name, size, block(c.BlockM, c.BlockK), c.DType, pattern)
	}
	return t.Print(w)
}

// size is MxNxK or, of attention, what attentionSize gives.
func size(c *bench.Result) string {
	if c.Attention != nil {
		return attentionSize(c.Attention)
	}
	return fmt.Sprintf("%dx%dx%d", c.M, c.N, c.K)
}

// attentionSize is heads, those of keys behind a colon where they are others, queries and head size.
func attentionSize(a *workload.Attention) string {
	text := fmt.Sprintf("%sx%dx%d", a.HeadsText(), a.Seq, a.HeadSize)
	if a.Batch > 1 {
		text = fmt.Sprintf("%dx%s", a.Batch, text)
	}
	return text
}

// sizeHeading and keptHeading are those of the columns of size and density.
func sizeHeading(r *bench.Report) string {
	if isAttention(r) {
		return "heads x S x D"
	}
	return "MxNxK"
}

func keptHeading(r *bench.Report) string {
	if isAttention(r) {
		return "kept"
	}
	return "stored"
}

func isAttention(r *bench.Report) bool {
	return slices.ContainsFunc(r.Cases, func(c *bench.Result) bool { return c.Attention != nil })
}

// block is a size of blocks. Attention has none without a layout.
func block(m, k int) string {
	if m == 0 {
		return "none"
	}
	return fmt.Sprintf("%dx%d", m, k)
}

// speedUp is a ratio, or a tie.
func speedUp(s *bench.SpeedUp) string {
	switch {
	case s == nil:
		return ""
	case s.Tie:
		return "tie"
	}
	return humanize.Digits(s.Ratio)
}

// breakEven says where one is.
func breakEven(b bench.BreakEven) string {
	tie := ""
	switch {
	case b.TieTo == 0:
	case b.TieFrom == b.TieTo:
		tie = "a tie at " + humanize.Percent(b.TieFrom)
	default:
		tie = fmt.Sprintf("a tie from %s to %s", humanize.Percent(b.TieFrom), humanize.Percent(b.TieTo))
	}
	var text string
	switch {
	case b.Where == bench.Found && tie != "":
		text = fmt.Sprintf("%s (%s)", humanize.Percent(b.Density), tie)
	case b.Where == bench.Found:
		text = fmt.Sprintf("%s (faster at %s, slower at %s)", humanize.Percent(b.Density), humanize.Percent(b.Faster), humanize.Percent(b.Slower))
	case b.Where == bench.NotReached:
		text = "not reached: faster up to " + humanize.Percent(b.Faster)
		if tie != "" {
			text += ", " + tie
		}
	case b.Where == bench.AllTies:
		text = fmt.Sprintf("a tie at every density from %s to %s", humanize.Percent(b.Lowest), humanize.Percent(b.Highest))
	case tie != "":
		text = fmt.Sprintf("%s, slower from %s on", tie, humanize.Percent(b.Slower))
	default:
		text = "slower at every density from " + humanize.Percent(b.Lowest) + " on"
	}
	for _, odd := range []struct {
		what string
		at   []float64
	}{{"tie", b.OddTies}, {"slower", b.OddSlower}} {
		if len(odd.at) > 0 {
			text += "; " + odd.what + " at " + densities(odd.at)
		}
	}
	return text
}

func densities(list []float64) string {
	var words []string
	for _, d := range list {
		words = append(words, humanize.Percent(d))
	}
	return strings.Join(words, ", ")
}

// Clocks says which clocks were seen while products ran, and what slowed them down; "" where it is not known.
func Clocks(r *bench.Report) string {
	low, high := 0.0, 0.0
	var why []string
	for _, c := range r.Cases {
		if !c.After.Known {
			continue
		}
		if low == 0 {
			low = c.After.SMClock
		}
		low, high = min(low, c.After.SMClock), max(high, c.After.SMClock)
		if s := c.Before.Merge(c.After).Slowed(); s != "" {
			for one := range strings.SplitSeq(s, ", ") {
				if !slices.Contains(why, one) {
					why = append(why, one)
				}
			}
		}
	}
	if high == 0 {
		return ""
	}
	text := fmt.Sprintf("SM clocks under load: %.0f to %.0f MHz", low, high)
	if len(why) > 0 {
		text += "; slowed down by: " + strings.Join(why, ", ")
	}
	return text
}

// notes are what the tables do not say: noise, clocks, the peers' names, and what is missing.
func notes(r *bench.Report) []string {
	var list []string
	if s := State(r); s != "" {
		list = append(list, s)
	}
	if s := noise(r); s != "" {
		list = append(list, s)
	}
	if s := Clocks(r); s != "" {
		list = append(list, s)
	}
	list = append(list, names(r)...)
	list = append(list, r.Narrowed...)
	if len(entries(r, func(t *bench.Timed) bool { return t.Name == bench.OursGraph })) > 0 {
		list = append(list, bench.OursGraph+": a product's share of the time of a CUDA graph of many, replayed")
	}
	if len(entries(r, func(t *bench.Timed) bool { return t.OfBound > 1 })) > 0 {
		list = append(list, "! faster than the bound allows: the bound is wrong")
	}
	if r.NoEnergy != "" {
		list = append(list, "power and energy are not known: "+r.NoEnergy)
	}
	for _, a := range r.Absent {
		text := a.Peer + " is not there"
		if len(a.Cases) < r.Planned {
			text += " in " + strings.Join(a.Cases, ", ")
		}
		text += ": " + a.Reason
		if a.Fix != "" {
			text += "; to fix it: " + a.Fix
		}
		list = append(list, text)
	}
	for _, f := range r.Failed {
		list = append(list, f.Name+" has no result: "+f.Error)
	}
	return list
}

// State says that a report is not whole; "" where it is.
func State(r *bench.Report) string {
	if !r.Interrupted {
		return ""
	}
	return fmt.Sprintf("interrupted after %d of %d cases", len(r.Cases), r.Planned)
}
