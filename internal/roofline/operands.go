// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"errors"

	"github.com/sparsek/sparsek/internal/product"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// setCount is how many sets of dense operands there are, taken in turn.
const setCount = 3

// stagger is the distance, in elements, of the places in the random numbers from which the operands are filled: an
// odd number of rows of no size that is timed.
const stagger = 4099

type element = sparsek.BFloat16

// operands are random dense matrices in device memory, made once for the largest case and used by all.
type operands struct {
	host   []element // random
	result []element // room for a C on the host
	sets   [setCount]struct {
		a, b, c *sparsek.DeviceBuffer[element]
	}
}

func newOperands(c *sparsek.Context, cases []Case) (*operands, error) {
	var a, b, out int
	for _, one := range cases {
		a, b, out = max(a, one.M*one.K), max(b, one.K*one.N), max(out, one.M*one.N)
	}
	o := &operands{host: product.RandomB[element](1, max(a, b)+2*setCount*stagger, Seed).Data, result: make([]element, out)}
	for i := range o.sets {
		set := &o.sets[i]
		var err [5]error
		if set.a, err[0] = sparsek.NewBuffer[element](c, a); err[0] == nil {
			err[1] = set.a.Write(o.hostA(i)[:a])
		}
		if set.b, err[2] = sparsek.NewBuffer[element](c, b); err[2] == nil {
			err[3] = set.b.Write(o.hostB(i)[:b])
		}
		set.c, err[4] = sparsek.NewBuffer[element](c, out)
		if failed := errors.Join(err[:]...); failed != nil {
			return nil, errors.Join(failed, o.close())
		}
	}
	return o, nil
}

// hostA and hostB are what the operands of a set hold.
func (o *operands) hostA(set int) []element { return o.host[2*set*stagger:] }
func (o *operands) hostB(set int) []element { return o.host[(2*set+1)*stagger:] }

// sparse are B and C of a case.
func (o *operands) sparse(c Case) []sparsek.Operands[element] {
	var list []sparsek.Operands[element]
	for _, d := range o.dense(c) {
		list = append(list, sparsek.Operands[element]{B: d.B, C: d.C})
	}
	return list
}

// dense are A, B and C of the dense product of a case's size.
func (o *operands) dense(c Case) []sparsek.DenseOperands[element] {
	var list []sparsek.DenseOperands[element]
	for _, set := range o.sets {
		list = append(list, sparsek.DenseOperands[element]{
			A: sparsek.DeviceDense[element]{Rows: c.M, Cols: c.K, Buffer: set.a},
			B: sparsek.DeviceDense[element]{Rows: c.K, Cols: c.N, Buffer: set.b},
			C: sparsek.DeviceDense[element]{Rows: c.M, Cols: c.N, Buffer: set.c},
		})
	}
	return list
}

func (o *operands) close() error {
	var all []error
	for _, set := range o.sets {
		for _, buffer := range []*sparsek.DeviceBuffer[element]{set.a, set.b, set.c} {
			if buffer != nil {
				all = append(all, buffer.Close())
			}
		}
	}
	return errors.Join(all...)
}
