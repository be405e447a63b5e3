// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"slices"

	"github.com/sparsek/sparsek/internal/bench/tunereval"
)

// Key names a point of the map.
type Key struct {
	DType   string `json:"dtype"`
	Pattern string `json:"pattern"`
	Block   int    `json:"block"`
	N       int    `json:"n"`
}

// Cell is what was measured of a point. Times are seconds.
type Cell struct {
	Key
	M       int     `json:"m"`
	K       int     `json:"k"`
	Blocks  int     `json:"blocks"`
	Density float64 `json:"density"` // share of blocks that are stored

	// What the cost model reads of the pattern.
	LongestRow int                  `json:"longest_row"`
	Rows64     tunereval.GroupLoads `json:"groups_of_64_rows"`
	Rows128    tunereval.GroupLoads `json:"groups_of_128_rows"`
	Ordered    int64                `json:"ordered_loads"`

	Kernel   string  `json:"kernel"`           // that the library chose
	ChosenBy string  `json:"chosen_by"`        // how
	Seconds  float64 `json:"seconds"`          // of that kernel; on the CPU beside peers in turn with them, not as it is in Timed
	Checked  bool    `json:"checked"`          // whether its result was compared with float64
	Bound    float64 `json:"bound,omitempty"`  // a time that the chip cannot come under; 0: not known
	Binds    string  `json:"binds,omitempty"`  // what that bound is of
	Failed   string  `json:"failed,omitempty"` // why there is no time
	Wrong    bool    `json:"wrong,omitempty"`  // it failed, since the result was wrong

	Timed []Timed `json:"timed"` // ours and rivals, in no order
}

// Timed is a kernel, or another library's product, that was measured.
type Timed struct {
	Name      string  `json:"name"`
	Rival     bool    `json:"rival,omitempty"` // another library's
	Runs      int     `json:"runs"`
	Seconds   float64 `json:"seconds"` // the median
	Spread    float64 `json:"spread"`  // distance of the quartiles as a share of it
	Predicted float64 `json:"predicted,omitempty"`
}

// Find gives the one of that name, nil where there is none.
func (c *Cell) Find(name string) *Timed {
	if i := slices.IndexFunc(c.Timed, func(t Timed) bool { return t.Name == name }); i >= 0 {
		return &c.Timed[i]
	}
	return nil
}

// BestOfOurs is the fastest of our kernels, and BestRival that of other libraries; nil where there is none.
func (c *Cell) BestOfOurs() *Timed { return c.fastest(func(t *Timed) bool { return !t.Rival }) }
func (c *Cell) BestRival() *Timed  { return c.fastest(func(t *Timed) bool { return t.Rival }) }

func (c *Cell) fastest(counts func(*Timed) bool) (best *Timed) {
	for i := range c.Timed {
		if t := &c.Timed[i]; counts(t) && t.Seconds > 0 && (best == nil || t.Seconds < best.Seconds) {
			best = t
		}
	}
	return best
}

// The figures of a map: each gives what it is of a cell, and false where that is not known.

// OfBound is the share of the time that the bound allows.
func (c *Cell) OfBound() (float64, bool) { return ratio(c.Bound, c.Seconds) }

// OfRival is the time of the best rival over that of the chosen kernel: above 1 ours is faster.
func (c *Cell) OfRival() (float64, bool) {
	if best := c.BestRival(); best != nil {
		return ratio(best.Seconds, c.Seconds)
	}
	return 0, false
}

// OfChoice is the time of the chosen kernel over that of the fastest of ours: 1 where the choice is the best.
func (c *Cell) OfChoice() (float64, bool) {
	if best, chosen := c.BestOfOurs(), c.Find(c.Kernel); best != nil && chosen != nil {
		return ratio(chosen.Seconds, best.Seconds)
	}
	return 0, false
}

func ratio(a, b float64) (float64, bool) {
	if a <= 0 || b <= 0 {
		return 0, false
	}
	return a / b, true
}
