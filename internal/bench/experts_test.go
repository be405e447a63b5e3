// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// A layer of experts is checked, timed and described, with torch's beside it; operations are those on rows of tokens.
func TestRunExperts(t *testing.T) {
	onCPU(t, func(t *testing.T, engine *sparsek.Engine) {
		asked := filepath.Join(t.TempDir(), "asked")
		withPython(t, `
echo '{"version": "2.11.0"}'
while read request; do
  case "$request" in
    *'"path"'*) file=$(printf '%s' "$request" | cut -d'"' -f8); cat "$file" > `+asked+`; echo '{"entry": "_grouped_mm"}' ;;
    *'"repeats":1'*) echo '{"seconds": [0.5]}' ;;
    *) echo '{"seconds": [0.5, 0.5]}' ;;
  esac
done`)
		small := workload.Experts{Count: 4, Tokens: 90, Width: 24, Hidden: 48, Block: 16}
		cases := []Case{expertsCase("bf16", small, "bf16"), expertsCase("fp32", small, "fp32")}
		r, err := NewRunner(engine, cases, Options{Rounds: 2, Repeats: 2, Against: []string{OpenBLAS, Torch}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, c := range cases {
			out, err := r.Measure(context.Background(), c)
			if err != nil || len(out.Timed) != 2 {
				t.Fatalf("%+v, %v", out, err)
			}
			ours, torch := out.Timed[0], out.Find(Torch)
			if ours.Name != Ours || ours.Runs != 4 || ours.Seconds <= 0 || torch.Seconds != 0.5 || torch.Kernel != "torch 2.11.0, _grouped_mm" || torch.SpeedUp == nil {
				t.Errorf("%+v, %+v", ours, torch)
			}
			if out.EffectiveFLOP != 2*2*90*24*48 || out.DenseFLOP != 4*out.EffectiveFLOP || out.Experts == nil || out.Blocks%3 != 0 || out.Blocks < 3*90/16 || out.Blocks > 3*(90/16+4) {
				t.Errorf("%+v", out)
			}
			var spec pythonExperts
			text, err := os.ReadFile(asked)
			if err != nil || json.Unmarshal(text, &spec) != nil || spec.Op != "experts" || spec.DType != c.DType || spec.Width != 24 || spec.Hidden != 48 || len(spec.Counts) != 4 {
				t.Errorf("%s, %v", text, err)
			}
			var rows int32
			for _, n := range spec.Counts {
				rows += n
			}
			if rows != 90 {
				t.Errorf("%d tokens: %v", rows, spec.Counts)
			}
		}
		if a := r.Absent(); len(a) != 1 || a[0].Peer != OpenBLAS || len(a[0].Cases) != 2 {
			t.Errorf("absent: %+v", a)
		}
		if _, err := r.Launch(context.Background(), cases[0], 3); err == nil {
			t.Error("experts were launched for a profiler")
		}
	})
}
