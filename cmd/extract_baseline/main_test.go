// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/ncu/ncutest"
)

// known is the hash of the normal form of these figures, from sha256sum.
const known = "6423f90297d27b7988e78f6bb4d49e67518e7480cae5896dc86b8c418e9f5cb4"

func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	f := ncu.Figures{"sm_active": 72.3, "tensor_core": 65.8, "dram_bw": 45.2, "cycles": 1234567}
	if err := os.WriteFile("ncu.csv", []byte(ncutest.Raw([]ncutest.Launch{{Kernel: "k", Figures: f}})), 0o666); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-in", "ncu.csv", "-out", "out"}, &out); err != nil {
		t.Fatal(err)
	}
	norm, err := os.ReadFile("out/nsight_baseline.norm.txt")
	if err != nil || string(norm) != "dram_bw: 45.20\nsm_active: 72.30\ntensor_core: 65.80\n\n" || out.String() != known+"\n" {
		t.Errorf("%q, %v, printed %q", norm, err, out.String())
	}
	if err := run(t.Context(), []string{"-in", "ncu.csv", "-out", "out", "-all"}, &out); err != nil {
		t.Fatal(err)
	}
	if norm, err = os.ReadFile("out/nsight_baseline.norm.txt"); err != nil || !strings.Contains(string(norm), "cycles: 1234567.00\n") {
		t.Errorf("%q, %v", norm, err)
	}
	for _, args := range [][]string{{}, {"-in", "ncu.csv"}, {"-in", "ncu.csv", "-out", "out", "more"}, {"-in", "nowhere", "-out", "out"}} {
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
