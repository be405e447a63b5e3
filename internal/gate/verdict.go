// SPDX-License-Identifier: Apache-2.0

package gate

import "slices"

// Verdict is what the gate says of a metric, a case or all.
type Verdict string

// The verdicts, the mildest first: that of a whole is the worst of its parts.
const (
	Pass          Verdict = "PASS"
	Intact        Verdict = "INTACT"         // nothing was measured; the baseline is as it was blessed
	Drift         Verdict = "DRIFT"          // figures are far worse, and neither machine code nor plan changed
	Stale         Verdict = "STALE"          // the baseline is of other machine code than the build gives
	Ambiguous     Verdict = "AMBIGUOUS"      // a regression that could not be shown twice, or that drowns in noise
	NotMeasurable Verdict = "NOT MEASURABLE" // here and now there are no figures to compare
	Fail          Verdict = "FAIL"           // a regression that showed twice, or a baseline that was changed by hand
)

var severity = []Verdict{Pass, Intact, Drift, Stale, Ambiguous, NotMeasurable, Fail}

// worse gives the worse of two; "" is none.
func worse(a, b Verdict) Verdict {
	if slices.Index(severity, a) >= slices.Index(severity, b) {
		return a
	}
	return b
}
