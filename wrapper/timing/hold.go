// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
)

// ErrHoldExpired is the error of [SMHold.Release] where the SMs were free before.
var ErrHoldExpired = errors.New("the time for which SMs are held had passed: what was measured meanwhile is not valid")

// SMHold are SMs of a GPU that nothing else runs on: a kernel occupies them. Release must be called.
type SMHold struct {
	engine  *bridge.Engine
	limit   time.Duration
	mutex   sync.Mutex
	pointer unsafe.Pointer // nil once they were released
}

// HoldSMs occupies `count` SMs of the engine's GPU, from 1 to all but one, as another program or a communication kernel
// would, so that products beside it can be timed. It returns when each of them is occupied. They are free again with
// Release, or when limit, of a minute at most, has passed. A call that waits for the whole device waits for that: make
// plans, buffers and streams before, and run each kernel once, since CUDA loads it then. An engine has one hold at a time. On the CPU the error is
// [sparsek.ErrNoDevice]. ctx is looked at before it begins.
func HoldSMs(ctx context.Context, engine *sparsek.Engine, count int, limit time.Duration) (*SMHold, error) {
	use, err := bridge.BeginEngine(ctx, "hold SMs", engine)
	if err != nil {
		return nil, err
	}
	pointer, err := use.Native.SMsHold(use.Context, count, limit.Seconds())
	if err != nil {
		use.End()
		return nil, err
	}
	return &SMHold{engine: use, limit: limit, pointer: pointer}, nil
}

// Release frees the SMs and waits until they are free. Calls after the first do nothing.
func (h *SMHold) Release() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.pointer == nil {
		return nil
	}
	defer h.engine.End()
	expired, err := h.engine.Native.SMsRelease(h.pointer)
	h.pointer = nil
	if err == nil && expired {
		return fmt.Errorf("release SMs after %v: %w", h.limit, ErrHoldExpired)
	}
	return err
}
