// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSandboxLibraryHasItsKernelAlone(t *testing.T) {
	tr := newTree(t)
	tr.opts.Sandbox = true
	if err := MakeLibrary(t.Context(), tr.opts); err == nil || !strings.Contains(err.Error(), "no kernel of the family tma_sandbox") {
		t.Errorf("without the kernel: %v", err)
	}
	tr.ran()

	text, err := os.ReadFile(filepath.Join(tr.root, kernelsFile))
	if err != nil {
		t.Fatal(err)
	}
	tr.write(kernelsFile, strings.Replace(string(text), `"kernels": [`, `"kernels": [{"name": "own", "family": "tma_sandbox",
		"dtype": "bf16", "tile": [128, 256, 64], "stages": 3, "block_m": 128, "block_m_multiple": true,
		"block_k_multiple": 64, "baseline": true, "why": "to try"},`, 1))
	tr.write("cutlass_ext/src/cuda/tma_sandbox.cuh", "#include \"cuda/kernel.h\"\n")
	const instance, registry, tuning = "build/sandbox/gen/own.cu", "build/sandbox/gen/registry.cpp", "build/sandbox/gen/tuning_table.cpp"
	shared := []string{buildInfoSource, validateSource, planSource}
	tr.expect("alone", append(slices.Clone(shared), instance, registry, tuning, "link")...)
	table, err := os.ReadFile(filepath.Join(tr.root, registry))
	if err != nil || strings.Contains(string(table), "simt") || !strings.Contains(string(table), "ops_own") {
		t.Errorf("the table is %s, %v", table, err)
	}
	tr.expect("alone again")

	// The whole library shares what is the same, and neither build undoes the other.
	tr.opts.Sandbox = false
	tr.expect("whole", registrySource, tuningSource, instanceSource, "build/gen/own.cu", "link")
	tr.opts.Sandbox = true
	tr.expect("alone after the whole")
	tr.opts.Sandbox = false
	tr.expect("whole again")
	if !tr.exists(SandboxLibrary) || !tr.exists(Library) {
		t.Error("a library is gone")
	}
}
