// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Epilogue is what happens to Alpha A B before it is C: act(Alpha A B + bias), rounded to a C of elements C. The zero
// value adds and changes nothing.
type Epilogue[C sparsek.Element] struct {
	BiasKind   sparsek.Bias
	Bias       []C // M by row, N by column
	Activation sparsek.Activation
}

// BiasLength is the number of values of a bias of that kind for a C of m x n.
func BiasLength(kind sparsek.Bias, m, n int) int {
	switch kind {
	case sparsek.RowBias:
		return m
	case sparsek.ColumnBias:
		return n
	}
	return 0
}

// RandomBias makes n values from [-1, 1).
func RandomBias[C sparsek.Element](n int, seed uint64) []C {
	bias := make([]C, n)
	rng.Fill(bias, rng.Split(seed, streamBias), sparsek.FromFloat32[C])
	return bias
}

// bias is the matrix that the wrapper takes.
func (e Epilogue[C]) bias() sparsek.Dense[C] {
	d := sparsek.Dense[C]{Rows: 1, Cols: len(e.Bias), Data: e.Bias}
	if e.BiasKind == sparsek.RowBias {
		d.Rows, d.Cols = d.Cols, 1
	}
	return d
}

// operand is the bias for a product in c, nil where there is none; on a GPU it is in a buffer, which release closes.
func (e Epilogue[C]) operand(ctx context.Context, engine *sparsek.Engine) (bias sparsek.Operand, release func() error, err error) {
	none := func() error { return nil }
	if e.BiasKind == sparsek.NoBias {
		return nil, none, nil
	}
	host := e.bias()
	if engine.Info().Backend == sparsek.CPU {
		return host, none, nil
	}
	buffer, err := sparsek.NewBuffer[C](engine, len(host.Data))
	if err != nil {
		return nil, nil, err
	}
	if err := buffer.Write(ctx, host.Data); err != nil {
		return nil, nil, errors.Join(err, buffer.Close())
	}
	on := sparsek.DeviceDense[C]{Rows: host.Rows, Cols: host.Cols, Buffer: buffer}
	return on, buffer.Close, nil
}
