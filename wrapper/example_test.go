// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// A is 4 x 4 with two blocks of 2 x 2 on the diagonal, B is 4 x 3.
var (
	a = sparsek.BSR[float32, int32]{
		Rows: 4, Cols: 4, BlockM: 2, BlockK: 2,
		RowPtr: []int32{0, 1, 2},
		ColIdx: []int32{0, 1},
		Values: []float32{
			1, 2,
			3, 4,

			5, 6,
			7, 8,
		},
	}
	b = sparsek.Dense[float32]{Rows: 4, Cols: 3, Data: []float32{
		1, 0, 1,
		0, 1, 1,
		1, 0, 2,
		0, 1, 2,
	}}
)

func Example() {
	background := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(background, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(background, sparsek.PlanOptions{N: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	c := sparsek.Dense[float32]{Rows: 4, Cols: 3, Data: make([]float32, 12)}
	if err := plan.Multiply(background, 1, 0, sparsek.Operands{B: b, C: c}); err != nil {
		log.Fatal(err)
	}
	for row := range 4 {
		fmt.Println(c.Data[row*3 : row*3+3])
	}
	// Output:
	// [1 2 3]
	// [3 4 7]
	// [5 6 22]
	// [7 8 30]
}

// A layer of a network: C = ReLU(A B + bias), with a value of the bias for each row, and C in bfloat16.
func ExampleOperands() {
	background := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(background, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(background, sparsek.PlanOptions{N: 3,
		Output: sparsek.BF16, Bias: sparsek.RowBias, Activation: sparsek.ReLU})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	bias := sparsek.Dense[sparsek.BFloat16]{Rows: 4, Cols: 1, Data: make([]sparsek.BFloat16, 4)}
	for row, v := range []float32{0.5, -4, 0, -20} {
		bias.Data[row] = sparsek.ToBFloat16(v)
	}
	c := sparsek.Dense[sparsek.BFloat16]{Rows: 4, Cols: 3, Data: make([]sparsek.BFloat16, 12)}
	if err := plan.Multiply(background, 1, 0, sparsek.Operands{B: b, C: c, Bias: bias}); err != nil {
		log.Fatal(err)
	}
	for row := range 4 {
		fmt.Println(c.Data[row*3].Float32(), c.Data[row*3+1].Float32(), c.Data[row*3+2].Float32())
	}
	// Output:
	// 1.5 2.5 3.5
	// 0 0 3
	// 5 6 22
	// 0 0 10
}

// The kernels are measured for this plan, unless a similar product was measured before: then its fastest is taken.
func ExamplePlanOptions() {
	background := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(background, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(background, sparsek.PlanOptions{N: 3, Tuning: 10 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	info := plan.Info() // its Kernel is the fastest, ChosenBy says how that is known
	fmt.Println(info.ChosenBy != sparsek.ChosenByModel, info.Measured > 0)

	c := sparsek.Dense[float32]{Rows: 4, Cols: 3, Data: make([]float32, 12)}
	if err := plan.Multiply(background, 1, 0, sparsek.Operands{B: b, C: c}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Data[9:])
	// Output:
	// true true
	// [7 8 30]
}

// One plan serves new values of the same pattern.
func ExampleSetValues() {
	background := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(background, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(background, sparsek.PlanOptions{N: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	c := sparsek.Dense[float32]{Rows: 4, Cols: 3, Data: make([]float32, 12)}
	for _, values := range [][]float32{{1, 0, 0, 1, 1, 0, 0, 1}, {2, 0, 0, 2, 2, 0, 0, 2}} {
		if err := sparsek.SetValues(background, matrix, values); err != nil {
			log.Fatal(err)
		}
		if err := plan.Multiply(background, 1, 0, sparsek.Operands{B: b, C: c}); err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Data[:3])
	}
	// Output:
	// [1 0 1]
	// [2 0 2]
}

// Operands that stay in the back-end's memory are not copied: this is the way to many products on a GPU.
func ExampleDeviceBuffer() {
	background := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(background, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(background, sparsek.PlanOptions{N: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	in, err := sparsek.NewBuffer[float32](engine, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	out, err := sparsek.NewBuffer[float32](engine, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	if err := in.Write(background, b.Data); err != nil {
		log.Fatal(err)
	}
	from := sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: in}
	to := sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: out}
	for range 2 {
		if err := plan.Multiply(background, 1, 0, sparsek.Operands{B: from, C: to}); err != nil {
			log.Fatal(err)
		}
		from, to = to, from
	}
	result := make([]float32, 3)
	if err := in.Read(background, result); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output:
	// [7 10 17]
}

// Every fault has its own status.
func ExampleError() {
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{Backend: sparsek.CPU})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	wrong := a
	wrong.ColIdx = []int32{0, 2}
	_, err = sparsek.NewMatrix(context.Background(), engine, wrong)
	var fault *sparsek.Error
	fmt.Println(errors.Is(err, sparsek.ErrColIdxRange), errors.As(err, &fault))
	fmt.Println(fault.Op)
	// Output:
	// true true
	// create matrix
}
