// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sparsek/sparsek/internal/bench/workload"
	reference "github.com/sparsek/sparsek/wrapper/check"
)

func TestAttentionFlags(t *testing.T) {
	for _, c := range []struct{ args, speak string }{
		{"--kv-heads 3", "--kv-heads 3 is no divisor of --heads 8"},
		{"--block 64", "--block is for a --pattern of blocks"},
		{"--density 0.5", "--density is for a --pattern of blocks"},
		{"--sparsity 0.5", "--sparsity is for a --pattern of blocks"},
		{"--layout-heads 2", "--layout-heads is for a --pattern of blocks"},
		{"--pattern none", "take one of dense, random"},
		{"--pattern causal --density 0.5", "pattern causal has its own density"},
		{"--pattern random --layout-heads 3", "--layout-heads 3 is no divisor of --heads 8"},
		{"--heads 0", "--heads: 0"},
		{"--window 0", "--window: 0"},
		{"--soft-cap 0", "--soft-cap: 0: want a number above 0"},
		{"--dtype int8", "want one of bf16"},
	} {
		code, _, stderr := invoke(append([]string{"attention", "run"}, strings.Fields(c.args)...)...)
		if code != exitUsage || !strings.Contains(stderr, c.speak) {
			t.Errorf("%s: code %d, %q, want it to speak of %q", c.args, code, stderr, c.speak)
		}
	}
}

func TestAttentionTooLarge(t *testing.T) {
	needLibrary(t)
	for args, want := range map[string]int{
		"--batch 2000000 --seq 2000000 --heads 1000 --kv-heads 1":                                             exitNoMemory,
		"--pattern random --seq 2000000000 --block 1 --heads 1 --head-size 1 --density 0.5":                   exitUsage,
		"--batch 2147483647 --seq 2147483647 --heads 2147483647 --kv-heads 2147483647 --head-size 2147483647": exitNoMemory,
		"--kernel none --seq 64": exitUnsupported,
		"--pattern random --seq 100000000 --block 100 --heads 1 --kv-heads 1 --head-size 1 --density 0.5": exitUsage,
	} {
		code, _, stderr := invoke(append([]string{"attention", "run", "--device", "cpu"}, strings.Fields(args)...)...)
		if code != want {
			t.Errorf("%s: code %d, want %d: %s", args, code, want, stderr)
		}
	}
}

func TestAttentionRun(t *testing.T) {
	needLibrary(t)
	shape := []string{"attention", "run", "--device", "cpu", "--seq", "192", "--heads", "4", "--kv-heads", "2", "--head-size", "32", "--block", "64", "--pattern", "random",
		"--density", "0.5", "--layout-heads", "2", "--causal", "--window", "100", "--soft-cap", "20", "--repeats", "2", "--check", "--backward", "--any-order", "--seed", "3"}
	code, stdout, stderr := invoke(shape...)
	if code != exitOK {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, want := range []string{"1 x 4 heads (2 of K and V), 192 queries", "random, blocks of 64x64, seed 3, 2 layouts", "causal, a window of 100 keys, scores bounded by 20, gradients of Q in any order",
		"forward", "backward", "effective TFLOP/s", "GradV: all 12288 elements are within their bounds"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing:\n%s", want, stdout)
		}
	}
	code, stdout, stderr = invoke(append(shape, "--json", "--dtype", "fp64")...)
	var r attentionReport
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	if r.HeadsQ != 4 || r.HeadsK != 2 || r.Window != 100 || !r.AnyOrder || r.DType != "fp64" || len(r.Passes) != 2 || r.Passes[1].Pass != "backward" || r.Passes[1].Runs != 2 ||
		r.Passes[0].Kernel == "" || len(r.Check) != 5 || r.Check[4].Output != "GradV" || r.Check[4].Elements != 2*192*32 {
		t.Errorf("%+v", r)
	}
	if pairs := float64(r.Pairs); pairs <= 0 || r.Kept != pairs/(4*192*192) {
		t.Errorf("%v pairs, %v kept", pairs, r.Kept)
	}
	p := r.Passes[1]
	if want := 5 * 2 * 32 * float64(r.Pairs) / p.Seconds / 1e12; math.Abs(p.Effective/want-1) > 1e-9 {
		t.Errorf("%v TFLOP/s, want %v", p.Effective, want)
	}
	if ratio, want := p.DenseEquivalent/p.Effective, 4.*192*193/2/float64(r.Pairs); math.Abs(ratio/want-1) > 1e-9 {
		t.Errorf("the rates are as %v, want %v", ratio, want)
	}
}

// Every case passes, and the table fits a terminal.
func TestAttentionCheck(t *testing.T) {
	needLibrary(t)
	args := []string{"attention", "check", "--device", "cpu", "--seq", "100", "--heads", "2", "--head-size", "20"}
	code, stdout, stderr := invoke(args...)
	if code != exitOK || !strings.Contains(stdout, "every element is within its error bound") {
		t.Fatalf("code %d: %s\n%s", code, stderr, stdout)
	}
	for line := range strings.Lines(stdout) {
		if n := utf8.RuneCountInString(line); n > 80 && !strings.HasPrefix(line, "back-end") {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	code, stdout, stderr = invoke(append(args, "--any-order", "--json", "--dtype", "fp32")...)
	var r attentionCheckResult
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil || !r.Passed || len(r.Cases) != 7 {
		t.Fatalf("code %d, %v, %+v: %s", code, err, r, stderr)
	}
	for _, c := range r.Cases {
		if len(c.Check) != 5 || c.Seq != 100 || !c.AnyOrder || c.DType != "fp32" {
			t.Errorf("%+v", c)
		}
	}
}

// FP8 has the forward pass alone, checked with the scales of each head.
func TestAttentionOfFP8(t *testing.T) {
	needLibrary(t)
	run := []string{"attention", "run", "--device", "cpu", "--dtype", "e4m3", "--heads", "4", "--kv-heads", "2", "--seq", "192", "--head-size", "32", "--pattern", "random",
		"--block", "64", "--density", "0.5", "--layout-heads", "2", "--repeats", "2", "--check"}
	code, stdout, stderr := invoke(append(run, "--json")...)
	var r attentionReport
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	if r.DType != "e4m3" || len(r.Passes) != 1 || len(r.Check) != 2 || r.Check[0].Output != "O" || r.Check[0].Elements != 4*192*32 {
		t.Errorf("%+v", r)
	}
	if code, _, stderr = invoke(append(run, "--backward")...); code != exitUsage || !strings.Contains(stderr, "it has the forward pass alone") {
		t.Errorf("code %d: %s", code, stderr)
	}
	code, stdout, stderr = invoke("attention", "check", "--device", "cpu", "--dtype", "e4m3", "--seq", "100", "--heads", "2", "--head-size", "20")
	if code != exitOK || !strings.Contains(stdout, "backward   not served by this kernel") || !strings.Contains(stdout, "every element is within its error bound") {
		t.Errorf("code %d: %s\n%s", code, stderr, stdout)
	}
}

// An element beyond its bound gives the exit code, and names its output.
func TestAttentionWrong(t *testing.T) {
	r := &attentionReport{}
	err := r.add([]workload.AttentionChecked{{Output: reference.LSE, Report: reference.Report{Elements: 8}},
		{Output: reference.GradK, Report: reference.Report{Elements: 8, Failures: 2, FirstRow: 3, FirstCol: 1}}})
	if exitCode(err) != exitWrongResult || !strings.Contains(err.Error(), "GradK: wrong result: 2 of 8 elements are beyond their bound, the first at row 3, column 1") || len(r.Check) != 2 {
		t.Errorf("%v, %+v", err, r)
	}
}
