// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"math"
	"unsafe"
)

// Dense is a row-major matrix in host memory: element (i, j) is Data[i*Stride + j].
type Dense[T Element] struct {
	Rows, Cols int
	Stride     int // elements from one row to the next, at least Cols; 0: Cols
	Data       []T // at least (Rows-1)*Stride + Cols
}

// DeviceDense is a row-major matrix in a buffer: element (i, j) is element Offset + i*Stride + j of it.
type DeviceDense[T Element] struct {
	Rows, Cols int
	Stride     int // elements from one row to the next, at least Cols; 0: Cols
	Buffer     *DeviceBuffer[T]
	Offset     int // elements
}

// Operand is B or C: a [Dense] or a [DeviceDense].
type Operand[T Element] interface {
	operand() operand[T]
}

// operand is either kind of dense matrix, its stride filled in.
type operand[T Element] struct {
	rows, cols, stride int
	host               []T
	buffer             *DeviceBuffer[T]
	offset             int
}

func (d Dense[T]) operand() operand[T] {
	return operand[T]{rows: d.Rows, cols: d.Cols, stride: strideOf(d.Stride, d.Cols), host: d.Data}
}

func (d DeviceDense[T]) operand() operand[T] {
	return operand[T]{rows: d.Rows, cols: d.Cols, stride: strideOf(d.Stride, d.Cols), buffer: d.Buffer, offset: d.Offset}
}

// operands are B and C with the types dropped. A pointer that is nil has no method to ask.
func operands[T Element](op string, b, c Operand[T]) (operand[T], operand[T], error) {
	for _, named := range []struct {
		name string
		o    Operand[T]
	}{{"B", b}, {"C", c}} {
		missing := named.o == nil
		switch o := named.o.(type) {
		case *Dense[T]:
			missing = o == nil
		case *DeviceDense[T]:
			missing = o == nil
		}
		if missing {
			return operand[T]{}, operand[T]{}, fault(op, ErrNullPointer, "%s is nil", named.name)
		}
	}
	return b.operand(), c.operand(), nil
}

func strideOf(stride, cols int) int {
	if stride == 0 {
		return cols
	}
	return stride
}

// span is the number of elements from the first to the last, gaps included.
func (o operand[T]) span() int {
	if o.rows == 0 || o.cols == 0 {
		return 0
	}
	return (o.rows-1)*o.stride + o.cols
}

// check makes sure that o is a rows x cols matrix with that stride (any, where stride is negative) that lies within
// its memory. name is "B" or "C".
func (o operand[T]) check(op, name string, rows, cols, stride int) error {
	if o.rows != rows || o.cols != cols {
		return fault(op, ErrBadSize, "%s is %d x %d where %d x %d is needed", name, o.rows, o.cols, rows, cols)
	}
	if o.stride < cols {
		return fault(op, ErrBadLeadingDimension, "%s's stride %d is below its %d columns", name, o.stride, cols)
	}
	if stride >= 0 && o.stride != stride {
		return fault(op, ErrBadLeadingDimension, "%s's stride %d is not the %d that was planned for: make another plan", name, o.stride, stride)
	}
	if rows > 0 && o.stride > (math.MaxInt-cols)/rows {
		return fault(op, ErrBadSize, "%s: %d rows of stride %d do not fit in memory", name, rows, o.stride)
	}
	have := len(o.host)
	if o.buffer != nil {
		if o.offset < 0 || o.offset > o.buffer.n {
			return fault(op, ErrBadSize, "%s's offset %d is not within its buffer of %d elements", name, o.offset, o.buffer.n)
		}
		have = o.buffer.n - o.offset
	}
	if need := o.span(); have < need {
		return fault(op, ErrBadSize, "%s has %d elements: %d x %d with stride %d need %d", name, have, rows, cols, o.stride, need)
	}
	return nil
}

// address is that of the first element; nil where there is none. A buffer must be in use.
func (o operand[T]) address() unsafe.Pointer {
	if o.buffer == nil {
		return addressOf(o.host[:min(len(o.host), o.span())])
	}
	return unsafe.Add(o.buffer.handle.pointer, o.offset*sizeOf[T]())
}
