// SPDX-License-Identifier: Apache-2.0

package matio_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/half"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// A file of SciPy becomes blocks in bfloat16. Any io.ReaderAt does: a file, an object of a store, bytes in memory.
func ExampleReadSciPy() {
	data, err := os.ReadFile("testdata/scipy/csr.npz")
	if err != nil {
		log.Fatal(err)
	}
	entries, err := matio.ReadSciPy(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		log.Fatal(err)
	}
	m, fill, err := bsr.Convert(entries, 2, 2, half.BFloat16From64)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d x %d, %d blocks of %d x %d, %.2f stored for each element\n", m.Rows, m.Cols, m.Blocks(), m.BlockM, m.BlockK, fill.Ratio())
	// Output:
	// 13 x 11, 28 blocks of 2 x 2, 2.60 stored for each element
}

func ExampleReadMatrixMarket() {
	text := `%%MatrixMarket matrix coordinate real symmetric
3 3 3
1 1 2.0
2 1 -1.0
3 3 5e-1
`
	entries, err := matio.ReadMatrixMarket(strings.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entries.Row, entries.Col, entries.Value)
	// Output:
	// [0 1 0 2] [0 0 1 2] [2 -1 -1 0.5]
}

// A dense matrix goes out as NumPy reads it, and comes back.
func ExampleWriteNPY() {
	var file bytes.Buffer
	if err := matio.WriteNPY(&file, matio.Dense[float32]{Rows: 2, Cols: 2, Data: []float32{1, 2, 3, 4}}, matio.Float32); err != nil {
		log.Fatal(err)
	}
	d, err := matio.ReadNPY(&file, int64(file.Len()), func(x float64) float32 { return float32(x) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
	// Output:
	// {2 2 [1 2 3 4]}
}
