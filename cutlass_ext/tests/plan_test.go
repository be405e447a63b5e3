// SPDX-License-Identifier: Apache-2.0

// Package tests runs checks of the C++ sources that need no GPU and, but for
// what happens when memory runs out, not the built library.
package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run compiles a check together with sources of the library and runs it.
func run(t *testing.T, check string, args ...string) {
	t.Helper()
	execute(t, compile(t, check, args...))
}

func compile(t *testing.T, check string, args ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "check")
	args = append([]string{"-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", "../include", "-I", "../src",
		"-o", program, check, "../src/abi/error.cpp"}, args...)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func execute(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// planner is its sources.
var planner = []string{"../src/plan/plan.cpp", "../src/plan/column_union.cpp", "../src/plan/row_groups.cpp",
	"../src/plan/row_order.cpp", "../src/plan/row_matching.cpp", "../src/plan/column_bits.cpp",
	"../src/plan/schedule_tiles.cpp", "../src/plan/split.cpp", "../src/plan/panel_ends.cpp", "../src/plan/chunk_plan.cpp"}

// The planner, also for tiles that only the GPU's kernels have.
func TestPlans(t *testing.T) { run(t, "testdata/plan_check.cpp", planner...) }

// Which block rows it puts together, run with the address sanitizer: a row too many would be written behind the others.
// And the same without the instructions of this machine's processor.
func TestMatching(t *testing.T) {
	for name, option := range map[string]string{"native": "-fsanitize=address,undefined", "portable": "-DSPARSEK_PORTABLE"} {
		t.Run(name, func(t *testing.T) {
			run(t, "testdata/matching_check.cpp", append([]string{option, "../src/plan/pattern_stats.cpp"}, planner...)...)
		})
	}
}

// How many threads work on a product.
func TestWorkers(t *testing.T) {
	run(t, "testdata/workers_check.cpp", append([]string{"-O0", "-pthread", "../src/cpu/cpu_plan.cpp", "../src/cpu/plan_shape.cpp",
		"../src/cpu/thread_pool.cpp", "../src/cpu/workspace.cpp", "../src/abi/fork.cpp", "../src/plan/bsr_index.cpp",
		"../src/plan/pattern_stats.cpp", "../src/plan/transpose_index.cpp", "../src/cpu/relayout.cpp"}, planner...)...)
}

// Jobs of several callers on one pool of threads.
func TestThreadPool(t *testing.T) {
	run(t, "testdata/thread_pool_check.cpp", "-pthread", "-fsanitize=thread", "../src/cpu/thread_pool.cpp", "../src/abi/fork.cpp")
}

// What it does with tiles that would keep one worker busy when the others are done.
func TestSplitTiles(t *testing.T) { run(t, "testdata/split_check.cpp", planner...) }

// Plans with chunks, for kernels that read the matrix once.
func TestChunks(t *testing.T) { run(t, "testdata/chunk_check.cpp", planner...) }

// How lanes share blocks.
func TestLaneLayout(t *testing.T) {
	run(t, "testdata/lane_layout_check.cpp", "../src/cuda/lane_layout.cpp", "../src/cuda/lane_ways.cpp")
}

// Into how many chunks kernels cut a matrix that they read once.
func TestChunkSizes(t *testing.T) {
	run(t, "testdata/chunk_sizes_check.cpp", "../src/cuda/chunk_sizes.cpp", "../src/cuda/lane_layout.cpp", "../src/cuda/lane_ways.cpp")
}

// How warps share a window of rows.
func TestWindowLayout(t *testing.T) {
	run(t, "testdata/window_layout_check.cpp", "../src/cuda/window_layout.cpp")
}

// The lists of A's elements by stages.
func TestStageLists(t *testing.T) {
	run(t, "testdata/stage_lists_check.cpp", "-I", "testdata/no_cuda", "-Wno-unknown-pragmas")
}

// When a walk over sums with NaN may end.
func TestNaNSums(t *testing.T) {
	run(t, "testdata/nan_sums_check.cpp", "-I", "testdata/no_cuda", "-Wno-unknown-pragmas")
}

// How numbers are split where zeros that stand for absent elements must not meet Inf and NaN.
func TestMarkedPairs(t *testing.T) {
	run(t, "testdata/marked_pairs_check.cpp", "-I", "testdata/no_cuda")
}

// The steps of the planner in device memory, against the planner on the host.
func TestDeviceSteps(t *testing.T) { run(t, "testdata/device_check.cpp", planner...) }

// Which CUDA kernel serves what.
func TestFindKernel(t *testing.T) {
	run(t, "testdata/find_kernel_check.cpp", "-I", "testdata/no_cuda", "../src/cuda/find_kernel.cpp")
}

// Of which kernels a plan keeps A's values as they read them.
func TestValueLayouts(t *testing.T) {
	run(t, "testdata/value_layout_check.cpp", "-I", "testdata/no_cuda", "../src/cuda/value_layout.cpp")
}

// Which operands are copied for it.
func TestFormCopies(t *testing.T) {
	run(t, "testdata/form_copies_check.cpp", "-I", "testdata/no_cuda", "../src/cuda/form_copies.cpp", "../src/cuda/find_kernel.cpp")
}

// costModel is its sources and those of the planner that it calls.
var costModel = append([]string{"-I", "testdata/no_cuda", "../src/cuda/cost_model.cpp", "../src/cuda/cost_of_chunks.cpp",
	"../src/cuda/cost_of_libraries.cpp", "../src/cuda/cost_of_rows.cpp", "../src/cuda/chunk_sizes.cpp", "../src/cuda/choose_cluster.cpp",
	"../src/cuda/lane_layout.cpp", "../src/cuda/lane_ways.cpp", "../src/cuda/window_layout.cpp", "../src/plan/pattern_stats.cpp"}, planner...)

// What the cost model predicts, as far as it must be so whatever its coefficients are.
func TestCostModel(t *testing.T) { run(t, "testdata/cost_model_check.cpp", costModel...) }

// What it predicts for products that were measured.
func TestCostModelOfMeasuredProducts(t *testing.T) {
	run(t, "testdata/cost_model_measured_check.cpp", costModel...)
}

// scripts/fit_cost_model.py finds what it calls, in the sources that it names.
func TestCostModelLibrary(t *testing.T) {
	script, err := os.ReadFile("../../scripts/fit_cost_model.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range costModel {
		if dir, file := filepath.Split(source); dir == "../src/cuda/" && !strings.Contains(string(script), `"src/cuda/`+file+`"`) {
			t.Errorf("fit_cost_model.py lacks %s", source)
		}
	}
	compile(t, "testdata/cost_model_library.cpp", append([]string{"-shared", "-fPIC"}, costModel...)...)
}

// What the CPU's cost model predicts for small blocks and large ones.
func TestCPUCostModel(t *testing.T) {
	run(t, "testdata/cpu_cost_check.cpp", "../src/cpu/cost_model.cpp", "../src/cpu/plan_shape.cpp")
}

// The tuner, on products whose times the test sets.
func TestTuner(t *testing.T) {
	run(t, "testdata/tuner_check.cpp", "../src/tune/tuner.cpp")
}

// The memory of plans, with a runtime that has the host's memory for the device's.
func TestPlanMemory(t *testing.T) {
	run(t, "testdata/memory_check.cpp", "-I", "testdata/cuda_on_host", "../src/cuda/plan_memory.cpp", "../src/cuda/memory_pool.cpp",
		"../src/cuda/releases.cpp", "../src/cuda/device_scope.cpp", "../src/cuda/driver.cpp", "../src/abi/fork.cpp")
}

// Tiles that the CTAs of a cluster share.
func TestClusters(t *testing.T) {
	run(t, "testdata/cluster_check.cpp", append([]string{"../src/cuda/choose_cluster.cpp"}, planner...)...)
}

// The steps of attention's tiles, with the address sanitizer.
func TestAttentionSteps(t *testing.T) {
	run(t, "testdata/attention_steps_check.cpp", "-fsanitize=address,undefined", "../src/plan/attention.cpp", "../src/plan/attention_steps.cpp", "../src/plan/attention_units.cpp")
}

// The steps of attention's backward kernels, with the address sanitizer.
func TestAttentionGradientSteps(t *testing.T) {
	run(t, "testdata/attention_gradient_steps_check.cpp", "-fsanitize=address,undefined", "../src/plan/attention.cpp", "../src/plan/attention_gradient_steps.cpp", "../src/plan/attention_steps.cpp", "../src/plan/attention_units.cpp")
}

// The place of each unit among the steps of a tile, with the address sanitizer.
func TestAttentionPlaces(t *testing.T) {
	run(t, "testdata/attention_places_check.cpp", "-fsanitize=address,undefined", "../src/plan/attention.cpp", "../src/plan/attention_gradient_steps.cpp", "../src/plan/attention_steps.cpp", "../src/plan/attention_units.cpp")
}

// The parts of tiles of few queries, with the address sanitizer.
func TestAttentionParts(t *testing.T) {
	run(t, "testdata/attention_parts_check.cpp", "-fsanitize=address,undefined", "../src/plan/attention_parts.cpp")
}

// The steps in pieces, of both passes, with the address sanitizer.
func TestAttentionPieces(t *testing.T) {
	run(t, "testdata/attention_pieces_check.cpp", "-fsanitize=address,undefined", "../src/plan/attention.cpp", "../src/plan/attention_pieces.cpp", "../src/plan/attention_steps.cpp", "../src/plan/attention_units.cpp")
}
