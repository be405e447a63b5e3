// SPDX-License-Identifier: Apache-2.0

package bench

import "fmt"

// Reach is what a case should reach: one of its kinds.
type Reach struct {
	TFLOPs     float64 // effective
	Seconds    float64
	DenseShare float64 // effective rate as a share of cuBLAS's rate at the dense product of the same matrix
	Share      float64 // effective rate as a share of that of the case Of
	Of         string
	By         string // Share is of the rate of this peer there
}

// String says it in words; "" where nothing is wanted.
func (r Reach) String() string {
	switch {
	case r.TFLOPs > 0:
		return fmt.Sprintf("%g TFLOP/s", r.TFLOPs)
	case r.Seconds > 0:
		return fmt.Sprintf("%.1f us", r.Seconds*1e6)
	case r.DenseShare > 0:
		return fmt.Sprintf("%.2f x cuBLAS's dense rate", r.DenseShare)
	case r.Share > 0 && r.By != "":
		return fmt.Sprintf("%g %% of %s in %s", 100*r.Share, r.By, r.Of)
	case r.Share > 0:
		return fmt.Sprintf("%g %% of %s", 100*r.Share, r.Of)
	}
	return ""
}

// rate is r as an effective rate of the result c in TFLOP/s; 0 where the run does not say it. rates are those of our
// launched products by case, and of peers by case and peer.
func (r Reach) rate(c *Result, rates map[string]float64) float64 {
	switch {
	case r.TFLOPs > 0:
		return r.TFLOPs
	case r.Seconds > 0:
		return c.EffectiveFLOP / r.Seconds / 1e12
	case r.DenseShare > 0:
		for _, name := range []string{CUBLAS, CUBLASFull} {
			if dense := c.Find(name); dense != nil {
				return r.DenseShare * dense.DenseEquivalent
			}
		}
		return 0
	}
	return r.Share * rates[r.Of+r.By]
}

// Goal is a Reach in a report.
type Goal struct {
	Text    string  `json:"text"`
	TFLOPs  float64 `json:"tflops,omitempty"` // the same as an effective rate, where the run says it
	Reached float64 `json:"reached,omitempty"`
}

// setGoals holds what was timed against what is wanted. It comes last: some goals depend on other cases.
func setGoals(results []*Result, cases []Case) {
	rates := map[string]float64{}
	byName := map[string]*Result{}
	for _, r := range results {
		byName[r.Name] = r
		if ours := r.Find(Ours); ours != nil {
			rates[r.Name] = ours.Effective
		}
		for _, t := range r.Timed[min(1, len(r.Timed)):] {
			rates[r.Name+t.Name] = t.Effective
			if t.Dense {
				rates[r.Name+t.Name] = t.DenseEquivalent
			}
		}
	}
	for _, c := range cases {
		r := byName[c.Name]
		if r == nil {
			continue
		}
		for name, reach := range map[string]Reach{Ours: c.Reach, OursGraph: c.GraphReach} {
			t := r.Find(name)
			if t == nil || reach == (Reach{}) {
				continue
			}
			t.Goal = &Goal{Text: reach.String(), TFLOPs: reach.rate(r, rates)}
			if t.Goal.TFLOPs > 0 {
				t.Goal.Reached = t.Effective / t.Goal.TFLOPs
			}
		}
	}
}
