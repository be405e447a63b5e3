// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Backend is where products are computed.
type Backend int32

const (
	Auto Backend = 0 // a Hopper GPU if there is one, else the CPU
	CPU  Backend = 1
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

// EngineOptions say which back-end a context has. The zero value: the best there is.
type EngineOptions struct {
	Backend Backend
	Device  int // CUDA ordinal; with Auto, the one preferred
	Threads int // of the CPU back-end; 0: one for each core this process may use
}

// EngineInfo says which back-end a context got.
type EngineInfo struct {
	Backend Backend // CPU or CUDA
	Device  int     // CUDA ordinal
	Threads int     // of the CPU back-end
	Reason  string  // why this back-end
	ISA     string  // of the CPU back-end: the vector instructions in use
}

// Engine is a back-end and its device: what matrices, buffers and streams are made in.
type Engine struct {
	handle *handle
	lib    *Library
	info   EngineInfo
	pool   *streamPool
}

// NewEngine makes a context in the library that [Default] finds.
func NewEngine(opts EngineOptions) (*Engine, error) {
	lib, err := Default()
	if err != nil {
		return nil, err
	}
	return lib.NewEngine(opts)
}

// NewEngine makes a context. With [CUDA] and no usable device the error is [ErrNoDevice]; with [Auto] it is a CPU
// context, and [EngineInfo].Reason says why.
func (l *Library) NewEngine(opts EngineOptions) (*Engine, error) {
	pointer, err := l.contextCreate(opts)
	if err != nil {
		return nil, err
	}
	info, err := l.contextInfo(pointer)
	if err != nil {
		l.contextDestroy(pointer)
		return nil, err
	}
	pool := &streamPool{lib: l, context: pointer}
	h := newHandle("context", pointer, nil, func() {
		pool.destroy()
		l.contextDestroy(pointer)
	})
	c := &Engine{handle: h, lib: l, info: info, pool: pool}
	runtime.AddCleanup(c, (*handle).close, h)
	return c, nil
}

// Library is the library the context was made in.
func (c *Engine) Library() *Library { return c.lib }

// Info says which back-end this is, and why.
func (c *Engine) Info() EngineInfo { return c.info }

// Close waits for the calls in progress. What was made in the context can then only be closed; with the last of it the
// context is freed. Closing again does nothing.
func (c *Engine) Close() error {
	c.handle.close()
	return nil
}

// streamPool keeps streams for calls that were given none, so that goroutines do not wait for each other's work. On
// the CPU a stream is nothing, and nil serves all.
type streamPool struct {
	lib     *Library
	context unsafe.Pointer

	mu   sync.Mutex
	free []unsafe.Pointer
}

func (p *streamPool) get() (unsafe.Pointer, error) {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		stream := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		return stream, nil
	}
	p.mu.Unlock()
	return p.lib.streamCreate(p.context)
}

func (p *streamPool) put(stream unsafe.Pointer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, stream)
}

func (p *streamPool) destroy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.free {
		// Nothing can be done about a stream that does not go away, and nothing runs in it.
		_ = p.lib.streamDestroy(p.context, stream)
	}
	p.free = nil
}
