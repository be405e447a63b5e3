// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench"
)

// heldSample is a report of the suite shared with one case.
func heldSample() *bench.Report {
	r := sample()
	r.Suite, r.Interrupted, r.Failed, r.Absent, r.BreakEven, r.Sustained = bench.Shared, false, nil, nil, nil, 0
	c := r.Cases[0]
	for i := range c.Timed {
		c.Timed[i].Sustained, c.Timed[i].Goal, c.Timed[i].OfBound = nil, nil, 0
	}
	for _, one := range []struct {
		of             string
		held           int
		seconds, ratio float64
	}{{bench.Ours, 1, 173e-6, 1.73}, {bench.CUBLAS, 1, 198e-6, 1.1}, {bench.Ours, 16, 182e-6, 1.82}, {bench.CUBLAS, 16, 240e-6, 4. / 3}} {
		t := timed(one.of+"_held", "", one.of != bench.Ours, one.seconds, c.EffectiveFLOP, c.DenseFLOP)
		t.Of, t.Held, t.Slowdown = one.of, one.held, &bench.SpeedUp{Ratio: one.ratio}
		if one.of != bench.Ours {
			t.SpeedUp = &bench.SpeedUp{Ratio: 1.14}
		}
		c.Timed = append(c.Timed, t)
	}
	r.Cases = []*bench.Result{c}
	return r
}

// The table has a row for each number of SMs, with both times and both ratios.
func TestHeldTable(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, heldSample(), 0, false); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(out.String()) {
		if words := strings.Fields(line); len(words) > 4 && (slices.Contains(words, "us") || strings.Contains(line, " us")) {
			rows = append(rows, words)
		}
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows in\n%s", len(rows), out.String())
	}
	for i, want := range [][]string{{"b32-d10", " 0 ", "100", "180", "1.80"}, {" 1 ", "173", "1.73", "198", "1.10", "1.14"}, {" 16 ", "182", "1.82", "240", "1.33", "1.14"}} {
		line := " " + strings.Join(rows[i], " ") + " "
		for _, word := range want {
			if !strings.Contains(line, word) {
				t.Errorf("row %q has no %q", line, word)
			}
		}
	}
}

// Its picture has a line for each product, from a ratio of 1 on, and no bars of rates.
func TestHeldPicture(t *testing.T) {
	r := heldSample()
	list, err := pictures(r)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.name)
		if _, err := drawSVG(&p); err != nil {
			t.Error(err)
		}
	}
	if !slices.Contains(names, "held") || slices.Contains(names, "rates") {
		t.Errorf("pictures %v", names)
	}
	p, err := heldPicture(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.plot.X.Max < 16 || p.plot.Y.Min > 1 || p.plot.Y.Max < 1.82 {
		t.Errorf("axes from %v to %v and from %v to %v", p.plot.X.Min, p.plot.X.Max, p.plot.Y.Min, p.plot.Y.Max)
	}
	text, err := drawSVG(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"b32-d10, sparsek", "b32-d10, cublas"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the picture has no %q", want)
		}
	}
}
