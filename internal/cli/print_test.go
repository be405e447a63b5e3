// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

func TestNumbersInJSON(t *testing.T) {
	b, err := json.Marshal([]number{1.5, number(math.NaN()), number(math.Inf(-1))})
	if err != nil || string(b) != `[1.5,"NaN","-Inf"]` {
		t.Errorf("%s, %v", b, err)
	}
}

// The count of slabs that were computed again is printed where it is not 0.
func TestRunTellsOfSlabs(t *testing.T) {
	for recomputed, want := range map[int64]bool{0: false, 12: true} {
		var out bytes.Buffer
		r := &report{Pattern: "window", Kernel: "gather_bf16_128_256", Recomputed: recomputed}
		if err := printRun(&environment{stdout: &out}, r, sparsek.EngineInfo{Backend: sparsek.CUDA, Reason: "NVIDIA H200"}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "12 slabs were computed again"); got != want || !want && strings.Contains(out.String(), "again") {
			t.Errorf("%d slabs:\n%s", recomputed, out.String())
		}
	}
}

// The table of verify must fit a terminal, with the longest names and numbers there are.
func TestVerifyFits(t *testing.T) {
	r := &report{
		Pattern: "window", Density: 0.1367, Backend: "GPU", Kernel: "tma_bf16_64x2_256", Seconds: 123.4e-6, Effective: 415.2, DenseEquivalent: 3321,
		Check: &check{MaxAbsC: 0.123, MaxError: 1e-5, WorstC: 1.1e-5, WorstBound: 1.7e-5},
	}
	var out bytes.Buffer
	e := &environment{stdout: &out}
	o := &verifyCommand{Size: sizeFlag{4096, 4096, 4096}, Block: blockFlag{64, 64}, DType: "bf16"}
	if err := printVerify(e, o, sparsek.EngineInfo{Backend: sparsek.CUDA, Reason: "NVIDIA H200"}, verifyResult{true, []*report{r, r}}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 121 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"effective", "dense-equivalent", "|C|max", "tma_bf16_64x2_256", "1.1e-05 of 1.7e-05", "window 13.7 %", "123 us", "within its error bound"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}
