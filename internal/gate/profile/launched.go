// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/sparsek/sparsek/internal/bench"

// Launched is what `sparsek bench --suite gate --launches N --json` prints, and what a profile is read by: the
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

// Plan is what of a plan decides how much work a kernel has, and in which order.
type Plan struct {
	Tile    [3]int `json:"tile"`
	Tiles   int64  `json:"tiles"`
	Entries int64  `json:"entries"`
	Digest  string `json:"digest,omitempty"` // of the work list; empty where the library does not give it
}

// Same says whether two plans are the same, as far as is known of both.
func (p Plan) Same(other Plan) bool {
	if p.Digest == "" || other.Digest == "" {
		p.Digest, other.Digest = "", ""
	}
	return p == other
}

// NewLaunchedCase takes over what was launched.
func NewLaunchedCase(l *bench.Launched) LaunchedCase {
	return LaunchedCase{
		Name: l.Case.Name, Launches: l.Launches, Kernel: l.Plan.Kernel, FLOP: l.Work.FLOP,
		Plan: Plan{Tile: [3]int{l.Plan.TileM, l.Plan.TileN, l.Plan.TileK}, Tiles: l.Plan.Tiles, Entries: l.Plan.Entries},
	}
}
