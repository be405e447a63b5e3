// SPDX-License-Identifier: Apache-2.0

package build

import (
	"sync/atomic"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// tally shows how many units of one sort are compiled. Its bar is nil, and so
// silent, where there are none.
type tally struct {
	bar  *term.Bar
	left atomic.Int64
}

// newTally counts those of the units that are of the sort.
func newTally(progress *term.Reporter, name string, units []unit, ofSort func(unit) bool) *tally {
	t := &tally{}
	for _, u := range units {
		if ofSort(u) {
			t.left.Add(1)
		}
	}
	if total := t.left.Load(); total > 0 {
		t.bar = progress.Bar(name, total, term.Count)
	}
	return t
}

// done counts one more; the last one ends the bar.
func (t *tally) done() {
	t.bar.Add(1)
	if t.left.Add(-1) == 0 {
		t.bar.Done()
	}
}
