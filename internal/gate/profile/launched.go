// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/sparsek/sparsek/internal/bench"

// Launched is what `sparsek bench --suite roofline --launches N --json` prints, and what a profile is read by: the
// profiler's rows are those of these launches, in this order.
type Launched struct {
	GPU    string         `json:"gpu"`
	Commit string         `json:"commit"` // of the library's sources, "-dirty" behind it where they were changed
	Cases  []LaunchedCase `json:"cases"`
}

// LaunchedCase is one case.
type LaunchedCase struct {
	Name     string  `json:"name"`
	Launches int     `json:"launches"` // of the product's kernel, the first of which was checked
	Kernel   string  `json:"kernel"`   // by its name in the list of kernels
	Plan     Plan    `json:"plan"`
	FLOP     float64 `json:"flop"` // on stored blocks, of one launch
}

// Plan is what of a plan decides how much work a kernel has.
type Plan struct {
	Tile    [3]int `json:"tile"`
	Tiles   int64  `json:"tiles"`
	Entries int64  `json:"entries"`
}

// NewLaunchedCase takes over what was launched.
func NewLaunchedCase(l *bench.Launched) LaunchedCase {
	return LaunchedCase{
		Name: l.Case.Name, Launches: l.Launches, Kernel: l.Plan.Kernel, FLOP: l.Work.FLOP,
		Plan: Plan{[3]int{l.Plan.TileM, l.Plan.TileN, l.Plan.TileK}, l.Plan.Tiles, l.Plan.Entries},
	}
}
