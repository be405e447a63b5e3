// SPDX-License-Identifier: Apache-2.0

package bsr_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/half"
)

// A matrix in CSR, as most libraries have it, becomes blocks of 2 x 2 in bfloat16.
func ExampleFromCSR() {
	entries, err := bsr.FromCSR(4, 4, []int32{0, 2, 4, 5, 5}, []int32{0, 1, 0, 1, 3}, []float32{1, 2, 3, 4, 5})
	if err != nil {
		log.Fatal(err)
	}
	m, fill, err := bsr.Convert(entries, 2, 2, half.BFloat16From64)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.RowPtr, m.ColIdx)
	fmt.Println("blocks hold", fill.Stored, "elements for", fill.Nonzeros, "that are not zero")
	// Output:
	// [0 1 2] [0 1]
	// blocks hold 8 elements for 5 that are not zero
}

// Which size of blocks stores little more than the elements there are?
func ExampleCompareSizes() {
	entries, err := bsr.FromDense(4, 4, 0, []float32{
		1, 2, 0, 0,
		3, 4, 0, 0,
		0, 0, 5, 6,
		0, 0, 7, 8,
	})
	if err != nil {
		log.Fatal(err)
	}
	fits, err := bsr.CompareSizes(context.Background(), entries)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range fits {
		fmt.Printf("%dx%d: %d blocks, %.1f stored for each element\n", f.BlockM, f.BlockK, f.Blocks, f.FillIn)
	}
	// Output:
	// 1x1: 8 blocks, 1.0 stored for each element
	// 2x2: 2 blocks, 1.0 stored for each element
	// 4x4: 1 blocks, 2.0 stored for each element
}
