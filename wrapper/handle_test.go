// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"runtime"
	"slices"
	"testing"
)

func TestNativeObjectsAreFreedLastToFirst(t *testing.T) {
	var freed []string
	object := func(kind string, parent *handle) *handle {
		return newHandle(kind, nil, parent, func() { freed = append(freed, kind) })
	}
	parent := object("context", nil)
	child := object("matrix", parent)
	grandchild := object("plan", child)
	parent.close()
	child.close()
	if len(freed) > 0 {
		t.Fatalf("%v freed under a living child", freed)
	}
	grandchild.close()
	if want := []string{"plan", "matrix", "context"}; !slices.Equal(freed, want) {
		t.Errorf("freed %v, want %v", freed, want)
	}
}

func TestCloseWaitsForUsers(t *testing.T) {
	freed := make(chan struct{})
	h := newHandle("plan", nil, nil, func() { close(freed) })
	if err := h.acquire(); err != nil {
		t.Fatal(err)
	}
	go h.close()
	for h.acquire() == nil { // until close has begun
		h.release()
		runtime.Gosched()
	}
	select {
	case <-freed:
		t.Fatal("freed while in use")
	default:
	}
	h.release()
	<-freed
}
