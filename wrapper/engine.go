// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Backend is where products are computed.
type Backend int32

const (
	// Auto is a Hopper GPU where there is one, else the CPU.
	Auto Backend = 0
	// CPU computes on the cores of the host, with its vector instructions. Device memory is host memory there.
	CPU Backend = 1
	// CUDA computes on an NVIDIA GPU of compute capability 9.0.
	CUDA Backend = 2
)

func (b Backend) String() string {
	switch b {
	case Auto:
		return "auto"
	case CPU:
		return "cpu"
	case CUDA:
		return "cuda"
	}
	return fmt.Sprintf("Backend(%d)", int32(b))
}

// EngineOptions say which back-end an engine has. The zero value: the best there is.
type EngineOptions struct {
	Backend Backend
	Device  int // CUDA ordinal; with Auto, the one preferred
	Threads int // of the CPU back-end; 0: one for each core this process may use
	Workers int // of plans that set no PlanOptions.Workers of their own
}

// EngineInfo says which back-end an engine got.
type EngineInfo struct {
	Backend Backend // CPU or CUDA
	Device  int     // CUDA ordinal
	Threads int     // of the CPU back-end
	Reason  string  // why this back-end
	ISA     string  // of the CPU back-end: the vector instructions in use
	// GPUFault: [Auto] gave the CPU although there is an NVIDIA driver, and Reason says what is wrong with it. Programs
	// should show that to their users.
	GPUFault bool
}

// Engine is a back-end and its device: what matrices, buffers and streams are made in.
type Engine struct {
	handle *handle
	lib    *Library
	info   EngineInfo
	pool   *streamPool

	workers int // EngineOptions.Workers
}

// NewEngine makes an engine in the library that [Default] finds.
func NewEngine(opts EngineOptions) (*Engine, error) {
	lib, err := Default()
	if err != nil {
		return nil, err
	}
	return lib.NewEngine(opts)
}

// NewEngine makes an engine. With [CUDA] and no usable device the error is [ErrNoDevice]; with [Auto] it is an engine
// of the CPU, and [EngineInfo].Reason says why.
func (l *Library) NewEngine(opts EngineOptions) (*Engine, error) {
	lib := l.native
	pointer, err := lib.ContextCreate(native.ContextOptions{Backend: int32(opts.Backend), Device: opts.Device, Threads: opts.Threads})
	if err != nil {
		return nil, err
	}
	info, err := lib.ContextInfo(pointer)
	if err != nil {
		lib.ContextDestroy(pointer)
		return nil, err
	}
	pool := &streamPool{lib: lib, context: pointer}
	h := newHandle("engine", pointer, nil, func() {
		pool.destroy()
		lib.ContextDestroy(pointer)
	})
	e := &Engine{handle: h, lib: l, pool: pool, workers: opts.Workers, info: EngineInfo{
		Backend: Backend(info.Backend), Device: info.Device, Threads: info.Threads, Reason: info.Reason, ISA: info.ISA,
		GPUFault: info.GPUFault}}
	runtime.AddCleanup(e, (*handle).close, h)
	return e, nil
}

// Library is the library the engine was made in.
func (e *Engine) Library() *Library { return e.lib }

// Info says which back-end this is, and why.
func (e *Engine) Info() EngineInfo { return e.info }

// Close waits for the calls in progress and for the streams' work. What was made in the engine can then only be closed;
// with the last of it the engine is freed. Closing again does nothing.
func (e *Engine) Close() error {
	if e.made("close") == nil {
		e.handle.close()
	}
	return nil
}

// made refuses a nil engine and the zero value.
func (e *Engine) made(op string) error {
	if e == nil || e.handle == nil {
		return fault(op, ErrNullPointer, "there is no engine: make one by NewEngine")
	}
	return nil
}

// checkContext refuses a nil context and one that has ended.
func checkContext(op string, ctx context.Context) error {
	if ctx == nil {
		return fault(op, ErrNullPointer, "ctx is nil: pass context.Background() where nothing ends the call early")
	}
	return ctx.Err()
}

// streamPool keeps streams for calls that were given none, so that goroutines do not wait for each other's work. On
// the CPU a stream is nothing, and 0 serves all.
type streamPool struct {
	lib     *native.Library
	context unsafe.Pointer

	mu   sync.Mutex
	free []uintptr
}

func (p *streamPool) get() (uintptr, error) {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		stream := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		return stream, nil
	}
	p.mu.Unlock()
	return p.lib.StreamCreate(p.context)
}

func (p *streamPool) put(stream uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, stream)
}

func (p *streamPool) destroy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.free {
		// Nothing can be done about a stream that cannot be destroyed, and nothing runs in it.
		_ = p.lib.StreamDestroy(p.context, stream)
	}
	p.free = nil
}
