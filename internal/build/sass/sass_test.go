// SPDX-License-Identifier: Apache-2.0

package sass

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:embed testdata/two.sass
var twoFunctions string

func TestParse(t *testing.T) {
	functions, err := Parse(strings.NewReader(twoFunctions))
	if err != nil {
		t.Fatal(err)
	}
	if len(functions) != 2 {
		t.Fatalf("got %d functions, want 2", len(functions))
	}
	anonymous, scale := functions[0], functions[1]
	if anonymous.Symbol != "_ZN35_GLOBAL__N__792045ff_4_k_cu__Z2goPf4anonEPfi" || scale.Symbol != "_Z5scaleIfEvPT_i" {
		t.Errorf("got symbols %q and %q", anonymous.Symbol, scale.Symbol)
	}
	// EXIT stands there twice, once under a predicate.
	want := map[string]int{"LDC": 2, "S2R": 1, "ULDC": 2, "ISETP": 1, "EXIT": 2, "IMAD": 1, "LDG": 1, "FADD": 1,
		"STG": 1, "BRA": 1, "NOP": 11}
	if diff := cmp.Diff(want, anonymous.Opcodes); diff != "" {
		t.Errorf("opcodes (-want +got):\n%s", diff)
	}
	if anonymous.Total() != 24 {
		t.Errorf("total %d, want 24", anonymous.Total())
	}
	if scale.Opcodes["STS"] == 0 || scale.Opcodes["BAR"] != 1 {
		t.Errorf("shared memory or barrier missing: %v", scale.Opcodes)
	}
}

func TestParsePredicatesAndSuffixes(t *testing.T) {
	functions, err := Parse(strings.NewReader("\t\tFunction : f\n" +
		"        /*0000*/              @!PT LDS.64 RZ, [RZ] ;   /* 0x0 */\n" +
		"        /*0010*/              @UP0 UTMALDG.3D [UR8], [UR4], desc[UR6] ;  /* 0x0 */\n" +
		"        /*10020*/                  HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24 ;  /* 0x0 */\n" +
		"                                                       /* 0x000fe20000000800 */\n"))
	if err != nil {
		t.Fatal(err)
	}
	// printf '0x0\n0x0\n0x0\n0x000fe20000000800\n' | sha256sum
	const sum = "6db61789691158b3b8db0d5e66abc73042eaba7bad3ffece25609a8fb9a978d4"
	want := []Function{{Symbol: "f", Opcodes: map[string]int{"LDS": 1, "UTMALDG": 1, "HGMMA": 1}, SHA256: sum}}
	if diff := cmp.Diff(want, functions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefusesInstructionsOutsideAFunction(t *testing.T) {
	if _, err := Parse(strings.NewReader("  /*0000*/  NOP ;\n")); err == nil {
		t.Error("no error")
	}
}

const ptxasOutput = `a.cuh(12): warning #177-D: variable "x" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1av' for 'sm_90a'
ptxas info    : Function properties for _Z1av
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 4.252 ms
ptxas info    : Function properties for _Z6calledv
    32 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads
ptxas info    : (C7510) Potential Performance Loss
ptxas warning : Registers are spilled to local memory in function '_Z1av'
ptxas info    : Compiling entry function '_Z1bv' for 'sm_90a'
ptxas info    : Function properties for _Z1bv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
`

func TestParseUsage(t *testing.T) {
	kernels, notes, err := ParseUsage(ptxasOutput)
	if err != nil {
		t.Fatal(err)
	}
	want := []Usage{
		{Symbol: "_Z1av", Registers: 168, Barriers: 1, StaticShared: 1024, Stack: 48, SpillStores: 12, SpillLoads: 12},
		{Symbol: "_Z1bv", Registers: 8},
	}
	if diff := cmp.Diff(want, kernels); diff != "" {
		t.Errorf("kernels (-want +got):\n%s", diff)
	}
	wantNotes := []string{
		`a.cuh(12): warning #177-D: variable "x" was declared but never referenced`,
		`ptxas info    : (C7510) Potential Performance Loss`,
		`ptxas warning : Registers are spilled to local memory in function '_Z1av'`,
	}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if _, _, err := ParseUsage("ptxas info    : Used 8 registers\n"); err == nil {
		t.Error("figures without a kernel: no error")
	}
}

func FuzzParseUsage(f *testing.F) {
	f.Add(ptxasOutput)
	f.Fuzz(func(t *testing.T, text string) {
		kernels, _, err := ParseUsage(text)
		if err == nil && len(kernels) > strings.Count(text, "Compiling entry function") {
			t.Errorf("%d kernels from %q", len(kernels), text)
		}
	})
}

// The hash is that of the encodings alone, function by function: names and addresses do not count, an encoding does.
func TestHashOfTheMachineCode(t *testing.T) {
	hashes := func(text string) (list []string) {
		functions, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range functions {
			list = append(list, f.SHA256)
		}
		return list
	}
	original := hashes(twoFunctions)
	renamed := hashes(strings.ReplaceAll(twoFunctions, "_Z5scaleIfEvPT_i", "other"))
	if !slices.Equal(original, renamed) || len(original) != 2 || original[0] == original[1] {
		t.Errorf("hashes %q, under another name %q", original, renamed)
	}
	changed := hashes(strings.Replace(twoFunctions, "0x000fe20000000800", "0x000fe20000000801", 1))
	if changed[0] == original[0] || changed[1] != original[1] {
		t.Errorf("hashes %q, with another instruction in the first %q", original, changed)
	}
}

func TestBaseName(t *testing.T) {
	for symbol, want := range map[string]string{
		"_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalEEEvNT_6ParamsE":                   "device_kernel",
		"_ZN7sparsek4cuda19wgmma_gather_kernel6kernelIN7cutlass10bfloat16_tELi8ELi4EEEvNS1_6ParamsE": "kernel",
		"_ZN7sparsek4cuda12_GLOBAL__N_16kernelIfEEvNS0_10LaunchArgsE":                                "kernel",
		"_ZN7sparsek4cuda11simt_kernelIfEEvNS0_10LaunchArgsEi":                                       "simt_kernel",
		"_Z5scaleIfEvPT_i":      "scale",
		"_ZL5scalePf":           "scale",
		"_ZN7sparsekL5scaleEPf": "scale",
		"plain":                 "plain",
		"_Z":                    "",
		"_ZN99x":                "",
	} {
		if got := BaseName(symbol); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}
