// SPDX-License-Identifier: Apache-2.0

package foreign

/*
#include "driver.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"strings"
)

// CaptureMode says which calls of CUDA spoil a capture. The numbers are those of CUstreamCaptureMode.
type CaptureMode int32

// The modes: unsafe calls of any thread spoil a capture, or those of the thread that captures, or none.
const (
	CaptureGlobal CaptureMode = iota
	CaptureThreadLocal
	CaptureRelaxed
)

// Graph is an executable CUDA graph.
type Graph struct {
	library *Library
	exec    C.uintptr_t
	kernels []string
}

// Kernels are the mangled names of the graph's kernels.
func (g *Graph) Kernels() []string { return g.kernels }

// Capture makes a graph of what enqueue puts into the library's stream. The calling thread runs nothing else meanwhile.
// It needs a GPU.
func (l *Library) Capture(mode CaptureMode, enqueue func() error) (*Graph, error) {
	if l.driver == nil {
		return nil, errors.New("capture: there are no graphs on the CPU")
	}
	runtime.LockOSThread() // a capture ends on the thread on which it began
	defer runtime.UnlockOSThread()
	if err := failed("begin a capture", C.driver_begin_capture(l.driver, l.stream, C.int(mode))); err != nil {
		return nil, err
	}
	enqueueErr := enqueue()
	g := &Graph{library: l}
	var names [16384]C.char
	err := failed("end a capture", C.driver_end_capture(l.driver, l.stream, &g.exec, &names[0], C.size_t(len(names))))
	g.kernels = strings.Fields(C.GoString(&names[0]))
	if err := errors.Join(enqueueErr, err); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Launch runs the graph in the library's stream and does not wait.
func (g *Graph) Launch() error {
	return failed("launch a graph", C.driver_launch(g.library.driver, g.exec, g.library.stream))
}

// Wait returns when all work in the stream is done.
func (l *Library) Wait() error {
	if l.driver == nil {
		return nil
	}
	return failed("wait for the stream", C.driver_wait(l.driver, l.stream))
}

// Close destroys the graph, whose executions may be in progress. Closing again does nothing.
func (g *Graph) Close() error {
	exec := g.exec
	g.exec = 0
	if exec == 0 {
		return nil
	}
	return failed("destroy a graph", C.driver_destroy_exec(g.library.driver, exec))
}
