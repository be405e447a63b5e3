// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// List is the content of kernels.json.
type List struct {
	Comment string   `json:"comment"`
	Kernels []Kernel `json:"kernels"` // in the order of priority
}

// Kernel is one entry of the list.
type Kernel struct {
	Name   string `json:"name"`              // a C identifier
	Family string `json:"family"`            // the template it is made from: cutlass_ext/src/cuda/<family>.cuh
	DType  string `json:"dtype"`             // of A, and of B and C where there is no DTypeB: "bf16", "fp16", "fp32" or "fp64"
	DTypeB string `json:"dtype_b,omitempty"` // of B and C where it is wider than A's
	Tile   Tile   `json:"tile"`              // of a CTA: rows and columns of C, depth of one stage
	Stages int    `json:"stages"`            // of the shared-memory pipeline

	BlockM         int  `json:"block_m"`          // block height served
	BlockMMultiple bool `json:"block_m_multiple"` // every multiple of BlockM too
	BlockKMultiple int  `json:"block_k_multiple"` // block widths served: multiples of this

	Baseline bool `json:"baseline,omitempty"` // there to be compared with: only taken by name

	Why string `json:"why"` // the case for which it exists
}

// Tile is the rows and columns of C that a CTA makes at once and the depth of
// one stage. Rows are 0 in the SIMT family, whose tiles are as tall as a block
// row.
type Tile [3]int

// UnmarshalJSON takes three numbers, no more and no fewer.
func (t *Tile) UnmarshalJSON(text []byte) error {
	var extents []int
	if err := json.Unmarshal(text, &extents); err != nil {
		return err
	}
	if len(extents) != len(t) {
		return fmt.Errorf("a tile has %d extents, not %d", len(t), len(extents))
	}
	*t = Tile(extents)
	return nil
}

// dtype is the generator's description of an element type.
type dtype struct {
	element string // in C++
	status  string // its sparsek_dtype
	bytes   int
}

// dtypeOf returns false for a name that does not exist.
func dtypeOf(name string) (dtype, bool) {
	switch name {
	case "bf16":
		return dtype{"cutlass::bfloat16_t", "SPARSEK_BF16", 2}, true
	case "fp16":
		return dtype{"cutlass::half_t", "SPARSEK_FP16", 2}, true
	case "fp32":
		return dtype{"float", "SPARSEK_FP32", 4}, true
	case "fp64":
		return dtype{"double", "SPARSEK_FP64", 8}, true
	}
	return dtype{}, false
}

// Kernel families.
const (
	Collective   = "collective"    // tensor cores by warpgroup, TMA; CUTLASS's kernel
	WgmmaBlocks  = "wgmma_blocks"  // tensor cores by warpgroup, TMA; CTAs of a cluster may share A
	WgmmaGather  = "wgmma_gather"  // tensor cores by warpgroup, TMA for B, A gathered by cp.async
	WgmmaPacked  = "wgmma_packed"  // tensor cores by warpgroup, TMA for B, A packed into dense tiles before
	WgmmaScatter = "wgmma_scatter" // tensor cores by warpgroup, TMA for B, A read sparse and multiplied dense
	WgmmaPlanes  = "wgmma_planes"  // tensor cores by warpgroup: fp32 as three planes of bf16
	PlanesPacked = "planes_packed" // the same, A packed into dense tiles before
	WgmmaTF32    = "wgmma_tf32"    // tensor cores by warpgroup, TMA: fp32 cut off to TF32
	DMMA         = "dmma"          // tensor cores by warp, TMA: fp64, and fp32 as fp64
	DMMAPacked   = "dmma_packed"   // the same for fp64, A packed into dense tiles before
	Skinny       = "skinny"        // tensor cores by warp, TMA: few columns
	SkinnyFMA    = "skinny_fma"    // ordinary cores: fp32 and fp64, few columns
	FewColumns   = "few_columns"   // ordinary cores, small blocks: few columns
	RowWindow    = "row_window"    // ordinary cores, small squares: neighbouring rows share B
	RowMMA       = "row_mma"       // tensor cores by warp: tens of columns
	SIMT         = "simt"          // ordinary cores, every block shape

	// Baselines.
	WMMA       = "wmma"        // tensor cores by warp, cp.async
	TMASandbox = "tma_sandbox" // tensor cores by warpgroup, TMA; all by hand
)

// planeBytes are those of an fp32 number in the wgmma_planes family: three of bf16.
const planeBytes = 6

// PipelineBytes is the shared memory that the stages of a kernel's pipeline
// take: a tile of A and one of B each, in the wmma family part of a tile of A
// and rows that are padded. A SIMT, row_mma or skinny_fma kernel has none, and
// what a few_columns or row_window kernel has goes by the block and the rows.
func (k Kernel) PipelineBytes() int {
	d, _ := dtypeOf(k.DType)
	switch k.Family {
	case WMMA:
		rows := min(k.Tile[0], wmmaPartRows)
		return k.Stages * (rows*(k.Tile[2]+wmmaPadding) + k.Tile[2]*(k.Tile[1]+wmmaPadding)) * d.bytes
	case SkinnyFMA, FewColumns, RowWindow, RowMMA, SIMT:
		return 0
	case WgmmaPlanes, PlanesPacked:
		return k.Stages * (k.Tile[0] + k.Tile[1]) * k.Tile[2] * planeBytes
	}
	return k.Stages * (k.Tile[0] + k.Tile[1]) * k.Tile[2] * d.bytes
}

// Load reads and checks the list at path.
func Load(path string) (*List, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of kernels: %w", err)
	}
	list, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Parse reads and checks a list. A field that it does not know is an error,
// as is one that is missing.
func Parse(text []byte) (*List, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var list List
	if err := decoder.Decode(&list); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	if len(list.Kernels) == 0 {
		return nil, errors.New(`"kernels" names no kernel`)
	}
	seen := make(map[string]bool)
	for i, k := range list.Kernels {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("kernels[%d] (%q): %w", i, k.Name, err)
		}
		if seen[k.Name] {
			return nil, fmt.Errorf("kernels[%d]: the name %q is taken by one before it", i, k.Name)
		}
		seen[k.Name] = true
	}
	return &list, nil
}

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// maxExtent keeps the products of extents far from overflow.
const maxExtent = 1 << 14

func (k Kernel) check() error {
	// Two underscores are reserved in C++; the name becomes a part of others.
	if !identifier.MatchString(k.Name) || strings.Contains(k.Name, "__") {
		return errors.New("name must be lower-case letters, digits and single underscores, a letter first, 64 at most")
	}
	d, ok := dtypeOf(k.DType)
	if !ok {
		return fmt.Errorf(`dtype %q is none of "bf16", "fp16", "fp32", "fp64"`, k.DType)
	}
	if err := k.checkDTypeB(d); err != nil {
		return err
	}
	for _, extent := range []struct {
		name  string
		value int
	}{
		{"tile[1]", k.Tile[1]}, {"tile[2]", k.Tile[2]}, {"stages", k.Stages},
		{"block_m", k.BlockM}, {"block_k_multiple", k.BlockKMultiple},
	} {
		if extent.value < 1 || extent.value > maxExtent {
			return fmt.Errorf("%s is %d, must be 1 to %d", extent.name, extent.value, maxExtent)
		}
	}
	if k.Why == "" || !utf8.ValidString(k.Why) || strings.ContainsFunc(k.Why, unicode.IsControl) {
		return errors.New("why must say in one line for which case the kernel exists")
	}
	switch k.Family {
	case RowWindow:
		return k.checkRowWindow(d)
	case RowMMA:
		return k.checkRowMMA(d)
	case FewColumns, SIMT:
		if k.Tile[0] != 0 {
			return fmt.Errorf("tile[0] is %d: a tile of the %s family is as tall as a block row, written 0", k.Tile[0], k.Family)
		}
		return nil
	case Collective, WgmmaBlocks:
		if d.bytes != 2 {
			return fmt.Errorf("dtype %s: the %s family multiplies 16-bit types", k.DType, k.Family)
		}
		return k.checkBlocks()
	case WgmmaTF32:
		if k.DType != "fp32" {
			return fmt.Errorf("dtype %s: the %s family multiplies fp32", k.DType, k.Family)
		}
		return k.checkBlocks()
	case WgmmaPlanes:
		return k.checkPlanes()
	case PlanesPacked:
		return k.checkPlanesPacked()
	case WgmmaGather:
		return k.checkMultiples(d, 8) // half the rows of a warp; the 16 bytes of a copy
	case WgmmaPacked:
		return k.checkPacked(d)
	case WgmmaScatter:
		return k.checkScatter(d)
	case Skinny:
		return k.checkMultiples(d, 16) // the rows of a warp; the depth of an instruction
	case SkinnyFMA:
		return k.checkSkinnyFMA(d)
	case DMMA, DMMAPacked:
		return k.checkDMMA()
	case WMMA:
		return k.checkWMMA()
	case TMASandbox:
		return k.checkTMASandbox()
	}
	return fmt.Errorf("family %q is none of %q", k.Family, []string{Collective, WgmmaBlocks, WgmmaGather, WgmmaPacked, WgmmaScatter, WgmmaPlanes, PlanesPacked, WgmmaTF32, DMMA, DMMAPacked, Skinny, SkinnyFMA, FewColumns, RowWindow, RowMMA, SIMT, WMMA, TMASandbox})
}

// checkScatter checks a kernel for blocks of every size: two warpgroups have the rows of a tile, or one where it is
// narrow.
func (k Kernel) checkScatter(d dtype) error {
	if d.bytes != 2 {
		return fmt.Errorf("dtype %q: the %s family multiplies elements of 16 bits", k.DType, k.Family)
	}
	if k.Tile[0] != 128 || (k.Tile[1] != 64 && k.Tile[1] != 256) || k.Tile[2] != 64 {
		return fmt.Errorf("tile is %v: the %s family has tiles of [128, 64, 64] and [128, 256, 64]", k.Tile, k.Family)
	}
	if k.BlockM != 1 || !k.BlockMMultiple || k.BlockKMultiple != 1 {
		return fmt.Errorf("block_m, block_m_multiple and block_k_multiple of the %s family are 1, true and 1", k.Family)
	}
	return nil
}

// checkPacked checks a kernel for blocks of every width: it packs A into stages, and takes up to 32 slots in a tile.
func (k Kernel) checkPacked(d dtype) error {
	if d.bytes != 2 {
		return fmt.Errorf("dtype %q: the %s family multiplies elements of 16 bits", k.DType, k.Family)
	}
	if k.BlockM != 4 || !k.BlockMMultiple || k.BlockKMultiple != 1 {
		return fmt.Errorf("block_m, block_m_multiple and block_k_multiple of the %s family are 4, true and 1", k.Family)
	}
	return nil
}

// checkRowWindow checks a kernel for square blocks of one size, in pieces of 16 bytes of C.
func (k Kernel) checkRowWindow(d dtype) error {
	if d.bytes < 4 {
		return fmt.Errorf("dtype %q: the %s family multiplies fp32 and fp64", k.DType, k.Family)
	}
	if k.BlockMMultiple || k.BlockKMultiple != k.BlockM || k.Tile[0] != 0 {
		return fmt.Errorf("blocks of %d x %d, tile[0] %d: the %s family takes square blocks of one size, and a tile is as tall as they are, written 0",
			k.BlockM, k.BlockKMultiple, k.Tile[0], k.Family)
	}
	return nil
}

// checkRowMMA checks a kernel for blocks of every size, whose tiles are as tall as a block row.
func (k Kernel) checkRowMMA(d dtype) error {
	tile := Tile{0, 32, 16}
	if d.bytes == 2 {
		tile = Tile{0, 64, 32}
	}
	if k.Tile != tile {
		return fmt.Errorf("tile %v: the %s family has tiles as tall as a block row, written 0, and for dtype %s of %d columns and %d deep", k.Tile, k.Family, k.DType, tile[1], tile[2])
	}
	return nil
}

// checkDTypeB checks the type of B, where it has one of its own.
func (k Kernel) checkDTypeB(a dtype) error {
	if k.DTypeB == "" {
		return nil
	}
	b, ok := dtypeOf(k.DTypeB)
	if !ok || b.bytes <= a.bytes {
		return fmt.Errorf(`dtype_b %q is no type that is wider than dtype %s: leave it out where A and B have one type`, k.DTypeB, k.DType)
	}
	if k.Family != FewColumns && k.Family != SIMT {
		return fmt.Errorf("dtype_b %s: the %s family takes A and B of one type", k.DTypeB, k.Family)
	}
	return nil
}

// typeOfB is the type of B, and that of C where it is not another's.
func (k Kernel) typeOfB() dtype {
	d, _ := dtypeOf(cmp.Or(k.DTypeB, k.DType))
	return d
}

// element is the type in C++ that a kernel's template takes.
func (k Kernel) element() string {
	a, _ := dtypeOf(k.DType)
	if k.DTypeB == "" {
		return a.element
	}
	return "Mixed<" + a.element + ", " + k.typeOfB().element + ">"
}

// checkBlocks checks what the templates would refuse with far longer
// messages.
func (k Kernel) checkBlocks() error {
	if k.Tile[0] < 1 || k.Tile[0] > maxExtent {
		return fmt.Errorf("tile[0] is %d, must be 1 to %d", k.Tile[0], maxExtent)
	}
	if k.Tile[0]%k.BlockM != 0 && k.BlockM%k.Tile[0] != 0 {
		return fmt.Errorf("tile[0] = %d neither holds whole blocks of height %d nor divides one", k.Tile[0], k.BlockM)
	}
	if k.BlockMMultiple && k.BlockM%k.Tile[0] != 0 {
		return fmt.Errorf("block_m_multiple: tile[0] = %d does not divide block_m = %d", k.Tile[0], k.BlockM)
	}
	if k.BlockKMultiple%k.Tile[2] != 0 {
		return fmt.Errorf("block_k_multiple = %d is no multiple of tile[2] = %d", k.BlockKMultiple, k.Tile[2])
	}
	return nil
}

// checkMultiples checks kernels for 16-bit types and blocks that are multiples
// of step high and wide.
func (k Kernel) checkMultiples(d dtype, step int) error {
	if d.bytes != 2 {
		return fmt.Errorf("dtype %s: the %s family multiplies 16-bit types", k.DType, k.Family)
	}
	if k.BlockM%step != 0 || k.BlockKMultiple%step != 0 {
		return fmt.Errorf("blocks of %d x %d: the %s family takes multiples of %d", k.BlockM, k.BlockKMultiple, k.Family, step)
	}
	return nil
}

// checkPlanes checks what cuda/wgmma_planes.cuh would.
func (k Kernel) checkPlanes() error {
	if k.DType != "fp32" {
		return fmt.Errorf("dtype %s: the %s family multiplies fp32", k.DType, k.Family)
	}
	if k.Tile != (Tile{128, 128, 32}) && k.Tile != (Tile{128, 128, 16}) {
		return fmt.Errorf("tile %v: the %s family has 128 x 128 x 32 and 128 x 128 x 16", k.Tile, k.Family)
	}
	if k.BlockM%8 != 0 || k.BlockKMultiple%k.Tile[2] != 0 {
		return fmt.Errorf("blocks of %d x %d: the %s family takes multiples of 8 x %d", k.BlockM, k.BlockKMultiple, k.Family, k.Tile[2])
	}
	return nil
}

// checkPlanesPacked checks what cuda/planes_packed.cuh would: blocks may have every size.
func (k Kernel) checkPlanesPacked() error {
	if k.DType != "fp32" {
		return fmt.Errorf("dtype %s: the %s family multiplies fp32", k.DType, k.Family)
	}
	if k.Tile != (Tile{128, 128, 16}) {
		return fmt.Errorf("tile %v: the %s family has 128 x 128 x 16", k.Tile, k.Family)
	}
	return nil
}

// checkSkinnyFMA checks what cuda/skinny_fma.cuh would.
func (k Kernel) checkSkinnyFMA(d dtype) error {
	if d.bytes < 4 {
		return fmt.Errorf("dtype %s: the %s family multiplies fp32 and fp64", k.DType, k.Family)
	}
	if k.Tile != (Tile{16, 64 / d.bytes, 128 / d.bytes}) {
		return fmt.Errorf("tile %v: the %s family has 16 rows, 64 bytes of columns, and 128 bytes of depth", k.Tile, k.Family)
	}
	if k.BlockM%8 != 0 || k.BlockKMultiple*d.bytes%16 != 0 {
		return fmt.Errorf("blocks of %d x %d: the %s family takes multiples of 8 rows and of 16 bytes", k.BlockM, k.BlockKMultiple, k.Family)
	}
	return nil
}

// checkDMMA checks what cuda/dmma.cuh would. Of fp32, whose A is not packed, a warp has no registers for the widest tile.
func (k Kernel) checkDMMA() error {
	most, multiple := 128, 8
	switch {
	case k.Family == DMMAPacked:
		multiple = 1
	case k.DType == "fp32":
		most = 64
	}
	if k.DType != "fp64" && (k.DType != "fp32" || k.Family == DMMAPacked) {
		return fmt.Errorf("dtype %s: the %s family multiplies fp64, and dmma fp32", k.DType, k.Family)
	}
	if k.Tile[0] != 64 || k.Tile[1] != 32 && k.Tile[1] != 64 && k.Tile[1] != 128 || k.Tile[1] > most || k.Tile[2] != 16 {
		return fmt.Errorf("tile %v: the %s family has 64 x 32, 64 or 128 x 16, and of fp32 at most 64 columns", k.Tile, k.Family)
	}
	if k.BlockM%multiple != 0 || k.BlockKMultiple%multiple != 0 {
		return fmt.Errorf("blocks of %d x %d: the %s family takes multiples of %d", k.BlockM, k.BlockKMultiple, k.Family, multiple)
	}
	return nil
}
