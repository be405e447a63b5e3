// SPDX-License-Identifier: Apache-2.0

// Package tests runs checks of the C++ sources that need neither the built
// library nor a GPU.
package tests

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The planner, also for tiles that only the GPU's kernels have.
func TestPlans(t *testing.T) {
	program := filepath.Join(t.TempDir(), "plan_check")
	compile := exec.Command("g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", "../include", "-I", "../src",
		"-o", program, "testdata/plan_check.cpp", "../src/plan/plan.cpp", "../src/plan/column_union.cpp",
		"../src/abi/error.cpp")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
