// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const entry = `{"name": "k_1", "family": "collective", "dtype": "bf16", "tile": [128, 256, 64], "stages": 4,
	"block_m": 64, "block_m_multiple": false, "block_k_multiple": 64, "why": "two \"rows\" share a tile"}`

func list(entries ...string) []byte {
	return []byte(`{"comment": "c", "kernels": [` + strings.Join(entries, ",") + `]}`)
}

func TestParse(t *testing.T) {
	got, err := Parse(list(entry))
	if err != nil {
		t.Fatal(err)
	}
	want := &List{Comment: "c", Kernels: []Kernel{{Name: "k_1", Family: Collective, DType: "bf16",
		Tile: Tile{128, 256, 64}, Stages: 4, BlockM: 64, BlockKMultiple: 64, Why: `two "rows" share a tile`}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if bytes := got.Kernels[0].PipelineBytes(); bytes != 4*(128+256)*64*2 {
		t.Errorf("pipeline of %d bytes", bytes)
	}
}

func TestParseRefuses(t *testing.T) {
	change := func(old, new string) []byte {
		if !strings.Contains(entry, old) {
			t.Fatalf("the entry has no %s", old)
		}
		return list(strings.Replace(entry, old, new, 1))
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"no JSON":                {[]byte(`{`), "EOF"},
		"trailing text":          {append(list(entry), '1'), "follows the list"},
		"no kernel":              {list(), "names no kernel"},
		"unknown field":          {change(`"stages"`, `"stage"`), `"stage"`},
		"missing field":          {change(`"stages": 4,`, ``), "stages is 0"},
		"same name":              {list(entry, entry), `"k_1" is taken`},
		"no identifier":          {change(`"k_1"`, `"k-1"`), "name must be"},
		"digit first":            {change(`"k_1"`, `"1k"`), "name must be"},
		"reserved":               {change(`"k_1"`, `"k__1"`), "name must be"},
		"path":                   {change(`"k_1"`, `"../k"`), "name must be"},
		"dtype":                  {change(`"bf16"`, `"bf15"`), `dtype "bf15"`},
		"type of B":              {change(`"bf16"`, `"bf16", "dtype_b": "bf15"`), `dtype_b "bf15"`},
		"narrower type of B":     {change(`"bf16"`, `"bf16", "dtype_b": "fp16"`), "no type that is wider than dtype bf16"},
		"family of two types":    {change(`"bf16"`, `"bf16", "dtype_b": "fp32"`), "takes A and B of one type"},
		"family":                 {change(`"collective"`, `"collectiv"`), `family "collectiv"`},
		"negative":               {change(`256`, `-256`), "tile[1] is -256"},
		"huge":                   {change(`256`, `1000000000`), "tile[1] is 1000000000"},
		"two tiles":              {change(`[128, 256, 64]`, `[128, 256]`), "3 extents, not 2"},
		"four tiles":             {change(`[128, 256, 64]`, `[128, 256, 64, 1]`), "3 extents, not 4"},
		"no rows":                {change(`[128, 256, 64]`, `[0, 256, 64]`), "tile[0] is 0"},
		"rows of simt":           {change(`"collective"`, `"simt"`), "tile[0] is 128"},
		"width of wgmma_gather":  {list(strings.NewReplacer(`"collective"`, `"wgmma_gather"`, `"block_k_multiple": 64`, `"block_k_multiple": 4`).Replace(entry)), "multiples of 8"},
		"tile of wgmma_scatter":  {list(strings.NewReplacer(`"collective"`, `"wgmma_scatter"`, `256`, `128`).Replace(entry)), "[128, 64, 64] and [128, 256, 64]"},
		"block of wgmma_scatter": {change(`"collective"`, `"wgmma_scatter"`), "are 1, true and 1"},
		"width of row_window":    {list(strings.NewReplacer(`"collective"`, `"row_window"`, `"bf16"`, `"fp32"`, `"block_m": 64`, `"block_m": 6`).Replace(entry)), "square blocks of one size"},
		"no reason":              {change(`"two \"rows\" share a tile"`, `""`), "why must"},
		"reason of 2 lines":      {change(`two `, `two\n`), "why must"},
		"type of wgmma_tf32":     {change(`"collective"`, `"wgmma_tf32"`), "multiplies fp32"},
		"wide type":              {change(`"bf16"`, `"fp32"`), "16-bit"},
		"block height":           {change(`"block_m": 64`, `"block_m": 48`), "height 48"},
		"multiples":              {change(`false`, `true`), "block_m_multiple"},
		"block width":            {change(`"block_k_multiple": 64`, `"block_k_multiple": 32`), "block_k_multiple = 32"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// An fp32 number takes six bytes of shared memory: three planes.
func TestPlanes(t *testing.T) {
	planes := strings.NewReplacer("collective", "wgmma_planes", "bf16", "fp32", "256, 64", "128, 32").Replace(entry)
	l, err := Parse(list(planes))
	if err != nil {
		t.Fatal(err)
	}
	if bytes := l.Kernels[0].PipelineBytes(); bytes != 4*(128+128)*32*6 {
		t.Errorf("pipeline of %d bytes", bytes)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"type":         {"fp32", "bf16", "multiplies fp32"},
		"tile":         {"[128, 128, 32]", "[128, 256, 32]", "128 x 128 x 32"},
		"block height": {`"block_m": 64`, `"block_m": 4`, "multiples of 8 x 32"},
		"block width":  {`"block_k_multiple": 64`, `"block_k_multiple": 8`, "multiples of 8 x 32"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(planes, c.old, c.new, 1)
			if _, err := Parse(list(text)); text == planes || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q for\n%s", err, c.want, text)
			}
		})
	}
}

// A kernel of skinny_fma has no pipeline, and its tiles are 128 bytes deep.
func TestSkinnyFMA(t *testing.T) {
	skinny := strings.NewReplacer("collective", "skinny_fma", "bf16", "fp64", "128, 256, 64", "16, 8, 16", `"block_k_multiple": 64`, `"block_k_multiple": 2`).Replace(entry)
	l, err := Parse(list(skinny))
	if err != nil {
		t.Fatal(err)
	}
	if bytes := l.Kernels[0].PipelineBytes(); bytes != 0 {
		t.Errorf("pipeline of %d bytes", bytes)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"type":         {"fp64", "bf16", "multiplies fp32 and fp64"},
		"tile":         {"[16, 8, 16]", "[16, 8, 32]", "128 bytes of depth"},
		"block height": {`"block_m": 64`, `"block_m": 4`, "multiples of 8 rows"},
		"block width":  {`"block_k_multiple": 2`, `"block_k_multiple": 1`, "16 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(skinny, c.old, c.new, 1)
			if _, err := Parse(list(text)); text == skinny || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q for\n%s", err, c.want, text)
			}
		})
	}
}

// A kernel of row_mma has no pipeline, and its tiles are as tall as a block row.
func TestRowMMA(t *testing.T) {
	row := strings.NewReplacer("collective", "row_mma", "128, 256, 64", "0, 64, 32", `"block_m": 64`, `"block_m": 1`, `"block_k_multiple": 64`, `"block_k_multiple": 1`).Replace(entry)
	l, err := Parse(list(row))
	if err != nil {
		t.Fatal(err)
	}
	if bytes := l.Kernels[0].PipelineBytes(); bytes != 0 {
		t.Errorf("pipeline of %d bytes", bytes)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"type": {"bf16", "fp32", "of 32 columns and 16 deep"},
		"tile": {"[0, 64, 32]", "[0, 32, 16]", "of 64 columns and 32 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(row, c.old, c.new, 1)
			if _, err := Parse(list(text)); text == row || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q for\n%s", err, c.want, text)
			}
		})
	}
}

func TestDMMA(t *testing.T) {
	dmma := strings.NewReplacer("collective", "dmma", "bf16", "fp64", "128, 256, 64", "64, 128, 16").Replace(entry)
	l, err := Parse(list(dmma))
	if err != nil {
		t.Fatal(err)
	}
	if bytes := l.Kernels[0].PipelineBytes(); bytes != 4*(64+128)*16*8 {
		t.Errorf("pipeline of %d bytes", bytes)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"type":         {"fp64", "bf16", "multiplies fp64"},
		"fp32":         {"fp64", "fp32", "of fp32 at most 64 columns"},
		"tile":         {"[64, 128, 16]", "[64, 96, 16]", "64 x 32, 64 or 128 x 16"},
		"block height": {`"block_m": 64`, `"block_m": 4`, "multiples of 8"},
		"block width":  {`"block_k_multiple": 64`, `"block_k_multiple": 4`, "multiples of 8"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(dmma, c.old, c.new, 1)
			if _, err := Parse(list(text)); text == dmma || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q for\n%s", err, c.want, text)
			}
		})
	}
}

// The template of a kernel for two types has one parameter for both.
func TestMixed(t *testing.T) {
	mixed := strings.NewReplacer("collective", "simt", `"bf16"`, `"fp32", "dtype_b": "fp64"`, "[128", "[0").Replace(entry)
	l, err := Parse(list(mixed))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(Instance(l.Kernels[0])); !strings.Contains(text, "using Element = Mixed<float, double>;") {
		t.Errorf("the types are not in\n%s", text)
	}
	if text := string(RegistryText(l)); !strings.Contains(text, "SPARSEK_FP32, SPARSEK_FP64, 0,") {
		t.Errorf("the types are not in\n%s", text)
	}
}

func TestInstance(t *testing.T) {
	l, err := Parse(list(entry))
	if err != nil {
		t.Fatal(err)
	}
	text := string(Instance(l.Kernels[0]))
	for _, want := range []string{
		`#include "cuda/collective.cuh"`, "struct k_1 {", "using Element = cutlass::bfloat16_t;",
		"kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kBlockM = 64;",
		"extern const KernelOps ops_k_1 = collective_ops<config::k_1>();",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestRegistry(t *testing.T) {
	l, err := Parse(list(entry, strings.NewReplacer("k_1", "k_2", `"why"`, `"baseline": true, "why"`).Replace(entry)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(RegistryText(l))
	row := `{"k_%d", "collective", "two \"rows\" share a tile", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, %t, &ops_k_%[1]d},`
	first, second := strings.Index(text, fmt.Sprintf(row, 1, false)), strings.Index(text, fmt.Sprintf(row, 2, true))
	if first < 0 || second < first {
		t.Errorf("rows missing or out of order in\n%s", text)
	}
	if !strings.Contains(text, "kKernelCount = 2;") {
		t.Errorf("wrong count in\n%s", text)
	}
}

func TestFiles(t *testing.T) {
	l, err := Parse(list(entry, strings.Replace(entry, "k_1", "k_2", 1)))
	if err != nil {
		t.Fatal(err)
	}
	files := Files(l)
	if diff := cmp.Diff([]string{"k_1.cu", "k_2.cu", Registry}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !bytes.Equal(files["k_2.cu"], Instance(l.Kernels[1])) || !bytes.Equal(files[Registry], RegistryText(l)) {
		t.Error("a file has another's text")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(list(entry))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		for _, k := range l.Kernels {
			if k.PipelineBytes() < 0 || len(Instance(k)) == 0 {
				t.Errorf("bad kernel %+v", k)
			}
		}
	})
}
