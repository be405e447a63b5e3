// SPDX-License-Identifier: Apache-2.0

// Package roofline has the bounds of block-sparse products: the work that they take, against what the chip allows.
package roofline

import (
	"slices"
	"strings"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Rates of memory, in bytes a second.
const (
	// Tiles from L2 into the shared memory of all SMs: the most that kernels which copy tiles by TMA and compute
	// nothing were measured to reach on an H200 (9.3 to 10.3 TB/s). Products on an H100 come to 8.8 TB/s, so the same
	// rate bounds it as well.
	l2Rate = 10.3e12
	// Device memory, read and written, by device-to-device copies of 2 GiB: an H200, and an H100 with HBM3.
	dramRateH200 = 4.3e12
	dramRateH100 = 2.98e12
)

// tensorFLOPPerCycle is what the tensor cores of one SM of Hopper do in a cycle with dense bfloat16 or float16: NVIDIA's
// 989 TFLOP/s are those of 132 SMs at 1.83 GHz.
const tensorFLOPPerCycle = 4096

// An H200 (SXM).
const (
	h200SMs     = 132
	h200ClockHz = 1.98e9 // the highest
)

// tensorRate is the rate in FLOP/s that the tensor cores of so many SMs cannot exceed, at their highest clock. Under load
// clocks are lower, and are a part of what is missing to it.
func tensorRate(sms int, clockHz float64) float64 { return tensorFLOPPerCycle * float64(sms) * clockHz }

// Ceilings are rates that the chip does not exceed: operations a second, and bytes a second out of L2 and DRAM.
type Ceilings struct {
	Tensor float64 `json:"tensor"`
	L2     float64 `json:"l2"`
	DRAM   float64 `json:"dram"`
}

// H200 are the ceilings of an H200.
func H200() Ceilings { return Ceilings{tensorRate(h200SMs, h200ClockHz), l2Rate, dramRateH200} }

// CeilingsOf are those of a device: its own tensor cores, and the memory of an H100 by its name, else of an H200. A zero
// DeviceInfo is taken for an H200.
func CeilingsOf(d sparsek.DeviceInfo) Ceilings {
	chip := H200()
	if d.ClockHz > 0 {
		chip.Tensor = tensorRate(d.SMs, float64(d.ClockHz))
	}
	if strings.Contains(d.Name, "H100") {
		chip.DRAM = dramRateH100
	}
	return chip
}

// Product is a block-sparse product: A is M x K in blocks of BlockM x BlockK, B is K x N and C is M x N.
type Product struct {
	M, N, K        int
	BlockM, BlockK int
	ElementBytes   int // of an element of A, B and C
}

// Work is what a product takes.
type Work struct {
	FLOP float64 // on stored blocks
	L2   float64 // bytes that the kernel moves from L2 into the SMs
	DRAM float64 // bytes that every kernel has to move: A's values and the rows of B that they meet once, and C once
}

// WorkOf counts the work of a product with its pattern under a plan.
func WorkOf(c Product, p bsr.Pattern, plan sparsek.PlanInfo) Work {
	block := float64(c.BlockM) * float64(c.BlockK)
	values := float64(p.Blocks()) * block
	n := float64(c.N)
	panels := (c.N + plan.TileN - 1) / plan.TileN
	size := float64(c.ElementBytes)
	used := map[int32]bool{}
	for _, col := range p.ColIdx {
		used[col] = true
	}
	rowsOfB := min(len(used)*c.BlockK, c.K)
	// Tiles that are parts of one block row share its entries, and each brings all of B that they name.
	loads := float64(plan.Entries) * max(1, float64(c.BlockM)/float64(plan.TileM))
	return Work{
		FLOP: 2 * values * n,
		// Each load brings a block row of B, panel by panel; each panel brings every block of A once.
		L2:   size * (loads*float64(c.BlockK)*n + values*float64(panels)),
		DRAM: size * (values + float64(rowsOfB)*n + float64(c.M)*n),
	}
}

// Operands are what every kernel has to touch of a product, in elements, and its columns.
type Operands struct {
	Values       float64 // of A's blocks
	Index        float64 // numbers of four bytes
	B, C         float64 // the rows of B that A's blocks meet, and C
	N            int
	ElementBytes int // of A, B and C
}

// OfAnyKernel is the bound of a product whatever its kernel and its plan: what it has to read and write once, or its
// operations.
func OfAnyKernel(chip Ceilings, o Operands) Bound {
	return OfFLOP(chip, 2*o.Values*float64(o.N), float64(o.ElementBytes)*(o.Values+o.B+o.C)+4*o.Index, o.ElementBytes)
}

// OfFLOP is the bound of so many operations on elements of so many bytes, of which as many bytes have to be read and written.
func OfFLOP(chip Ceilings, flop, bytes float64, elementBytes int) Bound {
	moving := Bound{"DRAM", bytes / chip.DRAM}
	computing := Bound{"tensor", flop / chip.rate(elementBytes)}
	if computing.Seconds > moving.Seconds {
		return computing
	}
	return moving
}

// rate is that of operations on elements of so many bytes: in fp32 of six products of bfloat16 for each, which are exact
// enough, and in fp64 of the tensor cores' own, a sixteenth of that in bfloat16.
func (c Ceilings) rate(elementBytes int) float64 {
	switch elementBytes {
	case 8:
		return c.Tensor / 16
	case 4:
		return c.Tensor / 6
	}
	return c.Tensor
}

// Bound is a time under which a product cannot come.
type Bound struct {
	Name    string  `json:"name"` // "tensor", "L2" or "DRAM"
	Seconds float64 `json:"seconds"`
}

// Bounds are those of the work on a chip, the one that binds first.
func (w Work) Bounds(chip Ceilings) []Bound {
	list := []Bound{{"tensor", w.FLOP / chip.Tensor}, {"L2", w.L2 / chip.L2}, {"DRAM", w.DRAM / chip.DRAM}}
	slices.SortStableFunc(list, func(a, b Bound) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	return list
}
