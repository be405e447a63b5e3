// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"errors"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	file, err := Open("cos", "no-such-library.so.1", "libm.so.6")
	if errors.Is(err, ErrNoCGO) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil || !strings.Contains(file, "libm") {
		t.Errorf("got %q, %v", file, err)
	}
	if _, err := Open("cos", "no-such-library.so.1"); err == nil || !strings.Contains(err.Error(), "no-such-library.so.1") {
		t.Errorf("got %v, want the library named", err)
	}
	if _, err := Open("no_such_function", "libm.so.6"); err == nil || !strings.Contains(err.Error(), "no_such_function") {
		t.Errorf("got %v, want the function named", err)
	}
}

func TestQuery(t *testing.T) {
	d, err := Query()
	if errors.Is(err, ErrNoCGO) || errors.Is(err, ErrNoDriver) {
		t.Skipf("skipped: %v", err)
	}
	if d.CUDA < 1000 || !strings.Contains(d.Library, "libcuda") {
		t.Errorf("got %+v, %v", d, err)
	}
	for _, device := range d.Devices {
		if device.Name == "" || device.Major == 0 {
			t.Errorf("got %+v", device)
		}
	}
}
