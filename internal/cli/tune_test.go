// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTune(t *testing.T) {
	needLibrary(t)
	cache := filepath.Join(t.TempDir(), "tuning.txt")
	t.Setenv("SPARSEK_TUNING_CACHE", cache)
	product := []string{"tune", "--device", "cpu", "--size", "256x32x256", "--block", "32x16", "--sparsity", "0.875", "--budget", "20ms"}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), product, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := "Auto-tuning sparse BSR for config 256_32_256_bs32x16_sp0.88:"; lines[0] != want {
		t.Errorf("%q, want %q", lines[0], want)
	}
	marked := 0
	for _, line := range lines {
		if strings.Contains(line, "✅") {
			marked++
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if want := "  Best: " + name + " ("; !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
	if marked != 1 || !strings.Contains(out.String(), "cpu_generic") {
		t.Errorf("not one winner of all:\n%s", out.String())
	}
	if text, err := os.ReadFile(cache); err != nil || !bytes.Contains(text, []byte("cpu_generic")) {
		t.Errorf("the cache: %q, %v", text, err)
	}

	out.Reset()
	if code := Main(t.Context(), append(product, "--json"), &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var result tuneResult
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	var best candidate
	for _, c := range result.Candidates {
		if c.Kernel == result.Best {
			best = c
		}
	}
	for _, c := range result.Candidates {
		if c.Runs > 0 && c.Seconds < 0.98*best.Seconds {
			t.Errorf("%s takes %v, the best %v", c.Kernel, c.Seconds, best.Seconds)
		}
	}
	if best.Runs == 0 || best.Effective <= 0 {
		t.Errorf("the best is %+v", best)
	}
}

func TestTuneGrid(t *testing.T) {
	needLibrary(t)
	cache := filepath.Join(t.TempDir(), "tuning.txt")
	t.Setenv("SPARSEK_TUNING_CACHE", cache)
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"tune", "--grid", "--device", "cpu", "--cases", "2", "--budget", "1ms", "--json"}, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var result gridResult
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Cases) != 2 || len(result.Unmatched) != 0 {
		t.Fatalf("%+v", result)
	}
	for _, c := range result.Cases {
		if c.Tuned.Slower < 0 || c.Predicted.Slower < 0 || c.Tuned.Seconds <= 0 || c.Fastest == "" {
			t.Errorf("%+v", c)
		}
	}
	if _, err := os.Stat(cache); err == nil {
		t.Error("a grid has no business in the cache")
	}
}

// The counting behind the verdicts, on cases made by hand.
func TestGridSummary(t *testing.T) {
	kernels := func(slow, fast float64) []candidate {
		return []candidate{{Kernel: cuSPARSE, Seconds: slow, Runs: 1}, {Kernel: "fast", Seconds: fast, Runs: 1}}
	}
	r := &gridResult{Cases: []gridCase{
		{Density: 0.1, Fastest: "fast", Candidates: kernels(400e-6, 40e-6), Tuned: gridChoice{Slower: 0.03}, Predicted: gridChoice{Slower: 0.06}},
		{Density: 0.5, Fastest: "fast", Candidates: kernels(399e-6, 40e-6), Tuned: gridChoice{Slower: 0.031}, Predicted: gridChoice{Slower: 0.05}},
		{Density: 0.6, Fastest: "fast", Candidates: kernels(399e-6, 40e-6)}, // too dense to count against cuSPARSE
		{Density: 0.1, Fastest: "fast", Candidates: kernels(199e-6, 40e-6)}, // too short
	}}
	r.summarise()
	want := [][2]int{{3, 4}, {3, 4}, {1, 2}}
	for i, s := range r.Summary {
		if got := [2]int{s.Holds, s.Of}; got != want[i] {
			t.Errorf("%s: %v, want %v", s.What, got, want[i])
		}
	}
}

// The list is for a GPU; on the CPU it would take hours.
func TestTuneTypicalOnTheCPU(t *testing.T) {
	needLibrary(t)
	wantRun(t, "tune --typical --device cpu", exitNoDevice, "products of a GPU's size")
}

func TestTuneRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--budget -1s", "--budget"},
		{"--cases 3", "--cases is for --grid"},
		{"--grid --block 16", "--block does not go with --grid"},
		{"--grid --cases 0", "--cases: 0"},
		{"--block 16", "give --matrix FILE, or --size MxNxK"},
		{"--matrix a.mtx --density 0.5", "--density is for --pattern"},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), append([]string{"tune"}, strings.Fields(c.args)...), &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs.String())
		}
	}
}

func TestConfigName(t *testing.T) {
	r := &tuneResult{M: 4096, N: 4096, K: 4096, BlockM: 64, BlockK: 64, Density: 0.125}
	if got := configName(r); got != "4096_4096_4096_bs64_sp0.88" {
		t.Error(got)
	}
}
