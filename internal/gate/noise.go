// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

const (
	// fewestStarts of the machine must have been measured over for noise floors to be recorded.
	fewestStarts = 2
	// startsToFail are those over which they must have been measured for a metric to fail by them: what differs between
	// starts, such as where operands lie in memory, is more than what differs within one.
	startsToFail = 4
)

// noiseOf says what profiles of the same library were measured over; a run that is among them twice counts once.
func noiseOf(runs []*profile.Profile) (distinct []*profile.Profile, n Noise) {
	type key struct{ date, start string }
	seen, starts := map[key]bool{}, map[string]bool{}
	for _, p := range runs {
		k := key{p.Date.String(), p.Start}
		if seen[k] {
			continue
		}
		seen[k], starts[p.Start] = true, true
		distinct = append(distinct, p)
	}
	return distinct, Noise{len(distinct), len(starts)}
}

// floors are the noise floors of a case: of each metric the distance of the two runs that are furthest apart, as a
// share of the median of all. A run counts with its median.
func floors(runs []*profile.Profile, name string) map[string]float64 {
	medians := ncu.Samples{}
	for _, p := range runs {
		for i := range p.Cases {
			if p.Cases[i].Name != name {
				continue
			}
			for metric, v := range p.Cases[i].Figures() {
				medians[metric] = append(medians[metric], v)
			}
		}
	}
	floor := map[string]float64{}
	for metric, middle := range medians.Medians() {
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range medians[metric] {
			low, high = min(low, v), max(high, v)
		}
		// Four digits are plenty, and make the record readable.
		floor[metric] = math.Round(1e4*worsening(lower, middle, middle+high-low)) / 1e4
	}
	return floor
}
