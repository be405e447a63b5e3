// SPDX-License-Identifier: Apache-2.0

package pair

/*
#cgo linux LDFLAGS: -ldl
#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../../../cutlass_ext/include
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Every call into C is in this file. Memory of the device goes around as uintptr.

func failure(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(message))
	return errors.New(C.GoString(message))
}

// library is an opened build of the library, with a context on the device.
type library struct{ c *C.pair_library }

func openLibrary(path string) (*library, error) {
	l := &library{(*C.pair_library)(C.calloc(1, C.sizeof_pair_library))} // for good, as what was opened
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	if err := failure(C.pair_open(text, l.c)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return l, nil
}

// start makes the library's context: on the GPU, or with so many threads on the CPU.
func (l *library) start(gpu bool, threads int) error {
	backend := C.int32_t(C.SPARSEK_CPU)
	if gpu {
		backend = C.SPARSEK_CUDA
	}
	return failure(C.pair_context(l.c, backend, C.int32_t(threads)))
}

// device is what both libraries work in. Its methods are for one OS thread.
type device struct {
	c *C.pair_device
}

func openDevice(gpu bool) (*device, error) {
	d := &device{}
	flag := C.int(0)
	if gpu {
		flag = 1
	}
	runtime.LockOSThread() // the driver's context is current for a thread
	if err := failure(C.pair_device_open(0, flag, &d.c)); err != nil {
		d.close()
		return nil, fmt.Errorf("open the GPU: %w", err)
	}
	return d, nil
}

func (d *device) close() {
	C.pair_device_close(d.c)
	runtime.UnlockOSThread()
}

func (d *device) allocate(bytes int) (uintptr, error) {
	var out C.uintptr_t
	err := failure(C.pair_allocate(d.c, C.size_t(bytes), &out))
	return uintptr(out), err
}

func (d *device) release(memory uintptr) { C.pair_release(d.c, C.uintptr_t(memory)) }

func (d *device) write(to uintptr, from []uint16) error {
	return failure(C.pair_write(d.c, C.uintptr_t(to), unsafe.Pointer(unsafe.SliceData(from)), C.size_t(2*len(from))))
}

func (d *device) copy(to, from uintptr, bytes int) error {
	return failure(C.pair_copy(d.c, C.uintptr_t(to), C.uintptr_t(from), C.size_t(bytes)))
}

// errUnknown means that a library does not serve the product of a plan, wrapped.
var errUnknown = errors.New("the library does not know this product")

// plan is a library's matrix with a plan for products with it.
type plan struct {
	of     *library
	matrix *C.sparsek_matrix
	plan   *C.sparsek_plan
}

func (d *device) plan(l *library, p *Product, pattern bsr.Pattern, values uintptr) (*plan, error) {
	made := &plan{of: l}
	c := C.pair_product{
		rows: C.int64_t(p.M), cols: C.int64_t(p.K), block_m: C.int64_t(p.BlockM), block_k: C.int64_t(p.BlockK),
		nnzb: C.int64_t(pattern.Blocks()), n: C.int64_t(p.N), dtype: C.int32_t(p.DType), op: C.int32_t(p.Form.Op),
		order_x: C.int32_t(p.Form.OrderX), order_b: C.int32_t(p.Form.OrderB), order_c: C.int32_t(p.Form.OrderC),
	}
	var unknown C.int32_t
	err := failure(C.pair_plan(l.c, d.c, &c, (*C.int32_t)(unsafe.SliceData(pattern.RowPtr)), (*C.int32_t)(unsafe.SliceData(pattern.ColIdx)),
		C.uintptr_t(values), &made.matrix, &made.plan, &unknown))
	if err != nil {
		made.close()
		if unknown != 0 {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return nil, err
	}
	return made, nil
}

func (p *plan) close() { C.pair_unplan(p.of.c, p.matrix, p.plan) }

func (p *plan) info() (Plan, error) {
	var out C.sparsek_plan_info
	if err := failure(C.pair_plan_info(p.of.c, p.plan, &out)); err != nil {
		return Plan{}, err
	}
	digest := ""
	if out.digest != 0 { // a library that does not know of it leaves it as it was
		digest = fmt.Sprintf("%016x", uint64(out.digest))
	}
	return Plan{C.GoString(out.kernel), profile.Plan{
		Digest: digest, Tile: [3]int{int(out.tile_m), int(out.tile_n), int(out.tile_k)}, Tiles: int64(out.tiles), Entries: int64(out.entries),
	}}, nil
}

// turn is some products of one library that follow each other.
type turn struct {
	d *device
	c *C.pair_turn
}

// launch is one product of a turn.
type launch struct {
	plan    *plan
	x, b, c uintptr // x is SDD's
}

func (d *device) turn(list []launch) (*turn, error) {
	var plans, x, b, c []C.uintptr_t
	for _, l := range list {
		plans = append(plans, C.uintptr_t(uintptr(unsafe.Pointer(l.plan.plan))))
		x, b, c = append(x, C.uintptr_t(l.x)), append(b, C.uintptr_t(l.b)), append(c, C.uintptr_t(l.c))
	}
	t := &turn{d: d}
	err := failure(C.pair_turn_make(d.c, list[0].plan.of.c, &plans[0], &x[0], &b[0], &c[0], C.int32_t(len(list)), &t.c))
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *turn) close() { C.pair_turn_free(t.d.c, t.c) }

// run runs turns, the first `before` of them once ahead of all, untimed, and gives the seconds of each.
func (d *device) run(turns []*turn, before int) ([]float64, error) {
	list := make([]C.uintptr_t, len(turns))
	for i, t := range turns {
		list[i] = C.uintptr_t(uintptr(unsafe.Pointer(t.c)))
	}
	seconds := make([]float64, len(turns))
	err := failure(C.pair_run(d.c, &list[0], C.int32_t(len(list)), C.int32_t(before), (*C.double)(&seconds[0])))
	return seconds, err
}
