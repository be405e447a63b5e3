// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/process"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// smallAttention are cases of each kind.
func smallAttention() []Case {
	base := workload.Attention{Batch: 1, HeadsQ: 2, HeadsK: 2, Seq: 128, HeadSize: 64, Pattern: workload.AllBlocks, Causal: true}
	layout := base
	layout.HeadsK, layout.BlockQ, layout.BlockK, layout.Pattern, layout.Density, layout.LayoutHeads = 1, 64, 64, "random", 0.5, 2
	list := []Case{attentionCase("causal", base, "bf16"), attentionCase("random", layout, "bf16"), attentionCase("backward", layout, "fp32")}
	list[2].Backward = true
	return list
}

func onCPU(t *testing.T, test func(t *testing.T, engine *sparsek.Engine)) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		if engine.Info().Backend != sparsek.CPU {
			t.Skip("skipped: on the CPU alone")
		}
		test(t, engine)
	})
}

// Attention is checked, timed and described, beside products in one run.
func TestRunAttention(t *testing.T) {
	onCPU(t, func(t *testing.T, engine *sparsek.Engine) {
		product := random("product", workload.Shape{M: 64, N: 8, K: 64}, 32, 32, 1, "bf16")
		cases := append(smallAttention(), product)
		r, err := NewRunner(engine, cases, Options{Rounds: 2, Repeats: 3, Against: []string{OpenBLAS}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		report := &Report{}
		report.Run(context.Background(), cases, r.Measure, func() {})
		if len(report.Failed) > 0 || len(report.Cases) != 4 {
			t.Fatalf("%+v", report.Failed)
		}
		for i, one := range report.Cases[:3] {
			ours := one.Timed[0]
			a := cases[i].Attention
			if len(one.Timed) != 1 || ours.Name != Ours || ours.Runs != 6 || ours.Seconds <= 0 || one.Kernel == "" || one.Kernel != ours.Kernel || one.Attention != a {
				t.Errorf("%+v", one)
			}
			products := 2.
			if cases[i].Backward {
				products = 5
			}
			pairs := one.Density * 2 * 128 * 128
			if want := products * 2 * 64 * pairs; math.Abs(one.EffectiveFLOP/want-1) > 1e-9 || math.Abs(one.DenseFLOP/one.EffectiveFLOP*pairs/(2*128*129/2)-1) > 1e-9 {
				t.Errorf("%s: %v operations of %v, want %v", one.Name, one.EffectiveFLOP, one.DenseFLOP, want)
			}
		}
		if one := report.Cases[3]; one.Attention != nil || one.N != 8 {
			t.Errorf("%+v", one)
		}
		i := slices.IndexFunc(r.Absent(), func(a Absence) bool { return a.Reason == "it computes no attention" })
		if i < 0 || len(r.Absent()[i].Cases) != 3 || r.Absent()[i].Fix == "" {
			t.Errorf("absent: %+v", r.Absent())
		}
		if _, err := r.Launch(context.Background(), cases[0], 3); err == nil {
			t.Error("attention was launched for a profiler")
		}
	})
}

// Cases of FP8 take turns with ours in bf16, and with nothing else.
func TestRunAttentionOfFP8(t *testing.T) {
	onCPU(t, func(t *testing.T, engine *sparsek.Engine) {
		cases := fp8Attention([]Case{attentionCase("dense", *smallAttention()[0].Attention, "fp16"), attentionCase("b128-random-25", *smallAttention()[1].Attention, "fp16"),
			attentionCase("b64-window", *smallAttention()[0].Attention, "fp16")})
		if len(cases) != 2 || cases[0].Name != "e4m3-dense" || cases[1].DType != "e4m3" {
			t.Fatalf("%+v", cases)
		}
		r, err := NewRunner(engine, cases, Options{Rounds: 2, Repeats: 3, Against: []string{SDPA}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, c := range cases {
			out, err := r.Measure(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			wide := out.Find(Wide)
			if len(out.Timed) != 2 || out.DType != "e4m3" || wide == nil || wide.Runs != 6 || wide.SpeedUp == nil || wide.Effective <= 0 || wide.Kernel == "" {
				t.Errorf("%+v", out)
			}
			// Q, K and V of one byte, and O of two.
			a := c.Attention
			if want := float64(a.Seq * a.HeadSize * (a.HeadsQ + 2*a.HeadsK + 2*a.HeadsQ)); out.Bytes != want {
				t.Errorf("%v bytes, want %v", out.Bytes, want)
			}
		}
		if len(r.Absent()) != 1 || r.Absent()[0].Peer != SDPA || len(r.Absent()[0].Cases) != 2 {
			t.Errorf("absent: %+v", r.Absent())
		}
	})
}

// Ways of the script take turns each by its name; what it cannot do is listed, and so are the peers beside products.
func TestAttentionPeers(t *testing.T) {
	onCPU(t, func(t *testing.T, engine *sparsek.Engine) {
		asked := filepath.Join(t.TempDir(), "asked")
		withPython(t, `
echo '{"version": "2.11.0"}'
while read request; do
  case "$request" in
    *'"path"'*) file=$(printf '%s' "$request" | cut -d'"' -f8); cat "$file" >> `+asked+`; echo '{}' ;;
    *'"op":"way","way":"sdpa"'*) echo '{"entry": "cuDNN", "dense": true}' ;;
    *'"op":"way","way":"flex"'*) echo '{"entry": "Flex"}' ;;
    *'"op":"way"'*) echo '{"error": "it is not installed"}' ;;
    *'"way":"sdpa","repeats":1'*) echo '{"seconds": [0.5]}' ;;
    *'"way":"sdpa"'*) echo '{"seconds": [0.5, 0.5]}' ;;
    *'"repeats":1'*) echo '{"seconds": [0.25]}' ;;
    *) echo '{"seconds": [0.25, 0.25]}' ;;
  esac
done`)
		cases := append(smallAttention()[1:2], random("product", workload.Shape{M: 64, N: 8, K: 64}, 32, 32, 1, "fp32"))
		r, err := NewRunner(engine, cases, Options{Rounds: 2, Repeats: 2, Against: attentionPeers})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		out, err := r.Measure(context.Background(), cases[0])
		if err != nil || len(out.Timed) != 3 {
			t.Fatalf("%+v, %v", out, err)
		}
		sdpa, flex := out.Find(SDPA), out.Find(Flex)
		if sdpa.Seconds != 0.5 || !sdpa.Dense || sdpa.Kernel != "cuDNN" || sdpa.Runs != 4 || flex.Seconds != 0.25 || flex.Dense || sdpa.SpeedUp == nil {
			t.Errorf("%+v, %+v", sdpa, flex)
		}
		if len(r.Absent()) != 1 || r.Absent()[0].Peer != FA3 || r.Absent()[0].Reason != "it is not installed" {
			t.Errorf("absent: %+v", r.Absent())
		}
		text, err := os.ReadFile(asked)
		var spec pythonAttention
		if err != nil || json.Unmarshal(text, &spec) != nil || spec.Heads != 2 || spec.KVHeads != 1 || spec.LayoutHeads != 2 || len(spec.RowPtr) != 2*2+1 || !spec.Causal {
			t.Errorf("%s, %v", text, err)
		}
		if out, err = r.Measure(context.Background(), cases[1]); err != nil || len(out.Timed) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		if len(r.Absent()) != 4 || !strings.Contains(r.Absent()[3].Reason, "this is a product") {
			t.Errorf("absent: %+v", r.Absent())
		}
	})
}

// The script says in its own form why there is no torch.
func TestAttentionWithoutTorch(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 not found")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"torch.py": "raise ImportError('none here')", "time_attention.py": attentionScript} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := process.Command{Args: []string{python, filepath.Join(folder, "time_attention.py"), "cpu"}}.Output(context.Background())
	var answer struct{ Error string }
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || !strings.HasPrefix(answer.Error, "torch is not installed") {
		t.Errorf("%q, %v", out, err)
	}
}
