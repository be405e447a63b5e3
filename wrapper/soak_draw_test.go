// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// draw is a product of TestSoak, and how it is computed.
type draw struct {
	opShape                 // density is that of most block rows, see pattern
	typeA, typeC     DType  // of A and B, and of C
	index64          bool   // int64 indices
	pattern          string // one of soakPatterns
	spoilt           string // where B holds NaN and Inf
	index            string // where it comes from, one of soakIndices
	operandsOnDevice bool
	alignment        int // PlanOptions.Alignment
	offsetB, offsetC int // of the operands in their buffers, elements; X has B's
	streams          [2]string
	products         int  // that each stream, or each graph, makes
	newValues        bool // once more with other values of A
	capture          foreign.CaptureMode
	closeFirst       bool // the plan is closed before the graph
	valuesStatic     bool // PlanOptions.ValuesStatic
	workers          int  // PlanOptions.Workers
}

var soakPatterns = []string{"bernoulli", "zipf", "one long row", "window", "same columns"}

// Where an index comes from. With all but soakIndexHost it is in device memory, and the values as well.
const (
	soakIndexHost   = "host"
	soakIndexDevice = "device"
	soakIndexStream = "stream" // plans are made in its order
	soakIndexMask   = "mask"   // of blocks: the index and the plans are made in the order of a stream. On the CPU it is read from there.
)

var soakIndices = []string{soakIndexHost, soakIndexDevice, soakIndexStream, soakIndexMask}

func pick[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

// between is from least to most.
func between(random *rand.Rand, least, most int) int { return least + random.IntN(most-least+1) }

func newDraw(s *soak, random *rand.Rand) *draw {
	onGPU := s.engine.Info().Backend == CUDA
	d := &draw{typeA: pick(random, BF16, FP16, FP32, FP64), index64: random.IntN(4) == 0}
	d.op = pick(random, s.ops...)
	tileM, tileN := 128, 256
	block := drawBlock(random)
	if *soakKernels != "" || random.IntN(2) == 0 {
		kernel := pick(random, s.kernels...)
		d.kernel = kernel.Name
		if kernel.DType != 0 {
			d.typeA = kernel.DType
		}
		block = drawBlockFor(random, kernel)
		tileM, tileN = max(kernel.TileM, 1), max(kernel.TileN, 1)
		if kernel.TileM == 0 {
			tileM = block[0]
		}
	}
	d.blockM, d.blockK = block[0], block[1]
	d.typeC = d.typeA
	if random.IntN(2) == 0 { // kernels without an epilogue of their own have their turn in most products
		if d.typeA != FP64 { // whose C is of fp64 too
			d.typeC = pick(random, BF16, FP16, FP32)
		}
		d.bias, d.activation = pick(random, NoBias, RowBias, ColumnBias), pick(random, NoActivation, ReLU, GELU, SiLU)
	}
	d.pattern = pick(random, soakPatterns...)
	d.density = pick(random, 0, 0.02, 0.1, 0.3, 0.6, 1)
	d.drawSizes(s, random, tileM, tileN)
	d.drawForm(s, random)
	if d.op == SDD && onGPU { // whose kernels Library.Kernels does not have
		d.kernel = pick(random, "", "sampled_wgmma_", "sampled_mma_", "sampled_simt_")
		if d.kernel != "" {
			d.kernel += d.typeA.String()
		}
	}
	d.alpha, d.beta = pick[float32](random, 1, 1, -1, 0.5, 0), pick[float32](random, 0, 0, 1, -1, 2.25)
	d.seed = random.Uint64()
	d.spoilt = pick(random, "nowhere", "nowhere", "nowhere", "where no block reads", "anywhere", "both")
	if onGPU {
		d.index = pick(random, append(soakIndices, soakIndexHost)...)
	} else {
		d.index = pick(random, soakIndexHost, soakIndexMask)
	}
	d.operandsOnDevice = random.IntN(4) > 0
	d.drawAlignment(random, onGPU)
	for i := range d.streams {
		d.streams[i] = pick(random, "pool", "own", "own", "foreign", "default")
	}
	d.products = between(random, 1, 4)
	d.newValues = random.IntN(3) == 0
	d.capture = pick(random, foreign.CaptureGlobal, foreign.CaptureThreadLocal, foreign.CaptureRelaxed)
	d.closeFirst = random.IntN(2) == 0
	d.valuesStatic = random.IntN(2) == 0
	d.workers = pick(random, 0, 0, 0, 1, 3, 50)
	return d
}

// drawBlock is of any size from 1 x 1 to 512 x 112, or one of those that kernels are made for.
func drawBlock(random *rand.Rand) [2]int {
	switch random.IntN(4) {
	case 0:
		return [2]int{between(random, 1, 40), between(random, 1, 40)}
	case 1:
		return [2]int{8 * between(random, 1, 64), 8 * between(random, 1, 14)}
	}
	return pick(random, [2]int{1, 1}, [2]int{1, 4}, [2]int{3, 3}, [2]int{8, 8}, [2]int{16, 16}, [2]int{32, 32}, [2]int{48, 80}, [2]int{64, 64},
		[2]int{64, 128}, [2]int{128, 64}, [2]int{128, 128}, [2]int{256, 64}, [2]int{512, 112})
}

// drawBlockFor is of a size that a kernel serves.
func drawBlockFor(random *rand.Rand, kernel Kernel) [2]int {
	blockM, blockK := leastBlock(kernel)
	if isForOneBlock(kernel) {
		return [2]int{blockM, blockK}
	}
	most := 1
	if kernel.BlockM == 0 || kernel.BlockMMultiples {
		most = max(1, min(512/blockM, 64))
	}
	return [2]int{blockM * pick(random, 1, 1, between(random, 1, min(4, most)), between(random, 1, most)),
		blockK * pick(random, 1, 1, 2, between(random, 1, max(1, min(112/blockK, 14))))}
}

func sizeOfType(t DType) int {
	switch t {
	case FP64:
		return 8
	case FP32:
		return 4
	default:
		return 2
	}
}

// blockColumns are the columns of the blocks of each block row.
func (d *draw) blockColumns(random *rand.Rand) [][]int {
	rows := make([][]int, (d.rows+d.blockM-1)/d.blockM)
	cols := (d.cols + d.blockK - 1) / d.blockK
	some := func(density float64) (list []int) {
		for col := range cols {
			if random.Float64() < density {
				list = append(list, col)
			}
		}
		return list
	}
	same := some(max(d.density, 0.3))
	long := random.IntN(max(1, len(rows)))
	for i := range rows {
		switch {
		case random.IntN(8) == 0: // empty
		case d.pattern == "zipf":
			rows[i] = some(min(1, d.density*4/float64(1+random.IntN(16))))
		case d.pattern == "one long row" && i == long:
			rows[i] = some(1)
		case d.pattern == "one long row":
			rows[i] = some(d.density / 8)
		case d.pattern == "window":
			width := int(d.density*float64(cols)/2) + 1
			for col := max(0, i*cols/len(rows)-width); col < min(cols, i*cols/len(rows)+width); col++ {
				rows[i] = append(rows[i], col)
			}
		case d.pattern == "same columns":
			rows[i] = slices.Clone(same)
		default:
			rows[i] = some(d.density)
		}
	}
	return rows
}

// run computes the draw in its types.
func (d *draw) run(t soakTB, s *soak, lane *soakLane) {
	switch d.typeA {
	case BF16:
		runDrawOf[BFloat16](t, s, lane, d)
	case FP16:
		runDrawOf[Float16](t, s, lane, d)
	case FP32:
		runDrawOf[float32](t, s, lane, d)
	case FP64:
		runDrawTo[float64, float64](t, s, lane, d)
	default:
		panic(fmt.Sprintf("no element type %v", d.typeA))
	}
}

func runDrawOf[T Element](t soakTB, s *soak, lane *soakLane, d *draw) {
	switch d.typeC {
	case BF16:
		runDrawTo[T, BFloat16](t, s, lane, d)
	case FP16:
		runDrawTo[T, Float16](t, s, lane, d)
	default:
		runDrawTo[T, float32](t, s, lane, d)
	}
}

func runDrawTo[T, C Element](t soakTB, s *soak, lane *soakLane, d *draw) {
	if d.index64 {
		runDraw[T, C, int64](t, s, lane, d)
	} else {
		runDraw[T, C, int32](t, s, lane, d)
	}
}
