// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Dense is a row-major matrix in host memory: element (i, j) is Data[i*Stride + j]. Its fields are those of
// gonum.org/v1/gonum/blas/blas32.General, in this order: Dense[float32](g) converts one.
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

// Operand is a dense matrix of a product: a [Dense] or a [DeviceDense] of any type of elements, or a pointer to one.
type Operand interface {
	operand() operand
}

// operand is either kind of dense matrix without its type, its stride filled in.
type operand struct {
	given              bool // false: the product has none
	rows, cols, stride int
	order              Order // column-major: stride is from one column to the next
	dtype              DType
	elements           int            // in memory, from the first of the matrix to the last that is there
	host               unsafe.Pointer // nil: in a buffer, or nothing
	buffer             *handle        // nil: in host memory
	engine             *Engine        // of the buffer
	offset             int            // into the buffer, elements
}

func (d Dense[T]) operand() operand {
	return operand{given: true, rows: d.Rows, cols: d.Cols, stride: strideOf(d.Stride, d.Cols), dtype: DTypeOf[T](),
		elements: len(d.Data), host: addressOf(d.Data)}
}

func (d DeviceDense[T]) operand() operand {
	o := operand{given: true, rows: d.Rows, cols: d.Cols, stride: strideOf(d.Stride, d.Cols), dtype: DTypeOf[T]()}
	if d.Buffer != nil {
		o.elements, o.buffer, o.engine, o.offset = d.Buffer.n-d.Offset, d.Buffer.handle, d.Buffer.engine, d.Offset
	}
	return o
}

// missing returns whether o is nil or a nil pointer, which has no method to ask.
func missing(o Operand) bool {
	if o == nil {
		return true
	}
	v := reflect.ValueOf(o)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// of makes x the operand without its type. name is "B", "C" or the like.
func (x *operand) of(op, name string, o Operand) error {
	if missing(o) {
		return fault(op, ErrNullPointer, "%s is nil", name)
	}
	*x = o.operand()
	return nil
}

func strideOf(stride, cols int) int {
	if stride == 0 {
		return cols
	}
	return stride
}

// lines are the rows, or of a column-major matrix the columns: how many there are, and their length.
func (o *operand) lines() (count, length int) {
	if o.order == ColumnMajor {
		return o.cols, o.rows
	}
	return o.rows, o.cols
}

// span is the number of elements from the first to the last, gaps included.
func (o *operand) span() int {
	count, length := o.lines()
	if count == 0 || length == 0 {
		return 0
	}
	return (count-1)*o.stride + length
}

// check makes sure that o is a rows x cols matrix with that stride (any, where stride is negative) that lies within
// its memory. name is "B", "C" or the like.
func (o *operand) check(op, name string, rows, cols, stride int) error {
	if o.rows != rows || o.cols != cols {
		return fault(op, ErrBadSize, "%s is %d x %d where %d x %d is needed", name, o.rows, o.cols, rows, cols)
	}
	count, length := o.lines()
	if o.stride < length {
		of := "columns"
		if o.order == ColumnMajor {
			of = "rows"
		}
		return fault(op, ErrBadLeadingDimension, "%s's stride %d is below its %d %s", name, o.stride, length, of)
	}
	if stride >= 0 && o.stride != stride {
		return fault(op, ErrBadLeadingDimension, "%s's stride %d is not the %d that was planned for: make another plan", name, o.stride, stride)
	}
	if count > 0 && o.stride > (math.MaxInt-length)/count {
		return fault(op, ErrBadSize, "%s: %d x %d with stride %d does not fit in memory", name, rows, cols, o.stride)
	}
	if o.buffer != nil && (o.offset < 0 || o.elements < 0) {
		return fault(op, ErrBadSize, "%s's offset %d is not within its buffer of %d elements", name, o.offset, o.offset+o.elements)
	}
	if need := o.span(); o.elements < need {
		return fault(op, ErrBadSize, "%s has %d elements: %d x %d with stride %d need %d", name, o.elements, rows, cols, o.stride, need)
	}
	return nil
}

// overlaps returns whether the two have memory in common, going by what lies between the first and the last element.
// Their buffers must be in use.
func (o *operand) overlaps(other *operand) bool {
	a, b := uintptr(o.address()), uintptr(other.address())
	return a < b+uintptr(other.bytes()) && b < a+uintptr(o.bytes())
}

// bytes are those from the first element to the last.
func (o *operand) bytes() int { return o.span() * o.dtype.size() }

// native is what the library is given of it.
func (o *operand) native() native.Operand {
	return native.Operand{Data: o.address(), Stride: o.stride}
}

// address is that of the first element; nil where there is none. A buffer must be in use.
func (o *operand) address() unsafe.Pointer {
	if o.buffer != nil {
		return unsafe.Add(o.buffer.pointer, o.offset*o.dtype.size())
	}
	if o.span() == 0 {
		return nil
	}
	return o.host
}
