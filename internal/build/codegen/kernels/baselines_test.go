// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	wmmaEntry = `{"name": "w", "family": "wmma", "dtype": "bf16", "tile": [512, 128, 112], "stages": 2,
		"block_m": 512, "block_m_multiple": true, "block_k_multiple": 112, "baseline": true, "why": "to compare"}`
	sandboxEntry = `{"name": "s", "family": "tma_sandbox", "dtype": "bf16", "tile": [128, 256, 64], "stages": 3,
		"block_m": 128, "block_m_multiple": true, "block_k_multiple": 64, "baseline": true, "why": "to compare"}`
)

func TestBaselines(t *testing.T) {
	l, err := Parse(list(wmmaEntry, sandboxEntry))
	if err != nil {
		t.Fatal(err)
	}
	// 256 rows of A at a time, with 8 elements behind each.
	if bytes := l.Kernels[0].PipelineBytes(); bytes != 2*(256*120+112*136)*2 {
		t.Errorf("wmma: pipeline of %d bytes", bytes)
	}
	if bytes := l.Kernels[1].PipelineBytes(); bytes != 3*(128+256)*64*2 {
		t.Errorf("tma_sandbox: pipeline of %d bytes", bytes)
	}
	for name, c := range map[string]struct{ entry, old, new, want string }{
		"to be chosen":   {wmmaEntry, `true, "why"`, `false, "why"`, "is a baseline"},
		"type of wmma":   {wmmaEntry, "bf16", "fp16", "multiplies bf16"},
		"no tile":        {wmmaEntry, "[512", "[0", "tile[0] is 0"},
		"height of wmma": {wmmaEntry, `[512, 128, 112]`, `[64, 128, 112]`, "heights of 128"},
		"odd parts":      {strings.Replace(wmmaEntry, `"block_m": 512`, `"block_m": 384`, 1), `[512, `, `[384, `, "heights of 128"},
		"width of wmma":  {wmmaEntry, `128, 112]`, `64, 112]`, "widths of 128"},
		"depth of wmma":  {wmmaEntry, `112]`, `8]`, "depths in multiples of 16"},
		"tall tile":      {wmmaEntry, `"block_m": 512`, `"block_m": 256`, "does not divide block_m = 256"},
		"block width":    {wmmaEntry, `"block_k_multiple": 112`, `"block_k_multiple": 64`, "block_k_multiple = 64"},
		"sandbox's tile": {sandboxEntry, `[128, 256, 64]`, `[128, 128, 64]`, "128 x 256 x 64"},
		"sandbox's type": {sandboxEntry, "bf16", "fp16", "multiplies bf16"},
		"type of flag":   {sandboxEntry, `true, "why"`, `1, "why"`, "baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(c.entry, c.old, c.new, 1)
			if _, err := Parse(list(text)); text == c.entry || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q for\n%s", err, c.want, text)
			}
		})
	}
}

// The baselines that progress is measured by are there, and for each type a kernel that is chosen for every block.
func TestListOfThisTree(t *testing.T) {
	l, err := Load("../../../../cutlass_ext/kernels.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("skipped: not run in the source tree")
	}
	if err != nil {
		t.Fatal(err)
	}
	var baselines []string
	every := make(map[string]bool)
	for _, k := range l.Kernels {
		if k.Baseline {
			baselines = append(baselines, k.Name)
		} else if k.BlockM == 1 && k.BlockMMultiple && k.BlockKMultiple == 1 {
			every[k.DType+k.DTypeB] = true
		}
	}
	if diff := cmp.Diff([]string{"wmma_bf16_128x128x32", "wmma_bf16_512x128x112", "tma_sandbox"}, baselines); diff != "" {
		t.Errorf("baselines (-want +got):\n%s", diff)
	}
	want := map[string]bool{"bf16": true, "fp16": true, "fp32": true, "fp64": true,
		"bf16fp32": true, "fp16fp32": true, "bf16fp64": true, "fp16fp64": true, "fp32fp64": true}
	if diff := cmp.Diff(want, every); diff != "" {
		t.Errorf("types that have a kernel for every block (-want +got):\n%s", diff)
	}
}
