// SPDX-License-Identifier: Apache-2.0

package kernels

import "fmt"

const (
	wmmaPartRows = 256 // of a tile that is taller a part is computed at a time
	wmmaPadding  = 8   // elements behind each row in shared memory
	wmmaColumns  = 128 // of a tile
	wmmaDepth    = 16  // of one fragment
)

// checkWMMA checks what cuda/wmma.cuh would refuse with far longer messages.
func (k Kernel) checkWMMA() error {
	if err := k.checkBaseline(); err != nil {
		return err
	}
	if rows := min(k.Tile[0], wmmaPartRows); rows < 1 || rows%128 != 0 || k.Tile[0]%rows != 0 || k.Tile[1] != wmmaColumns ||
		k.Tile[2]%wmmaDepth != 0 {
		return fmt.Errorf("tile %v: the wmma family takes heights of 128 or multiples of %d, widths of %d and depths in multiples of %d",
			k.Tile, wmmaPartRows, wmmaColumns, wmmaDepth)
	}
	return nil
}

// checkTMASandbox checks what cuda/tma_sandbox.cuh would.
func (k Kernel) checkTMASandbox() error {
	if err := k.checkBaseline(); err != nil {
		return err
	}
	if k.Tile != (Tile{128, 256, 64}) {
		return fmt.Errorf("tile %v: the tma_sandbox family has 128 x 256 x 64", k.Tile)
	}
	return nil
}

// checkBaseline checks what the families of baselines share: a block row fills
// whole tiles, and a block whole stages.
func (k Kernel) checkBaseline() error {
	if !k.Baseline {
		return fmt.Errorf("the %s family is a baseline: set baseline, or a plan could choose it", k.Family)
	}
	if k.DType != "bf16" {
		return fmt.Errorf("dtype %s: the %s family multiplies bf16", k.DType, k.Family)
	}
	if k.Tile[0] < 1 || k.Tile[0] > maxExtent {
		return fmt.Errorf("tile[0] is %d, must be 1 to %d", k.Tile[0], maxExtent)
	}
	if k.BlockM%k.Tile[0] != 0 {
		return fmt.Errorf("tile[0] = %d does not divide block_m = %d", k.Tile[0], k.BlockM)
	}
	if k.BlockKMultiple%k.Tile[2] != 0 {
		return fmt.Errorf("block_k_multiple = %d is no multiple of tile[2] = %d", k.BlockKMultiple, k.Tile[2])
	}
	return nil
}
