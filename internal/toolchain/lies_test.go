// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// refused prepares, expects an error with all of parts in it, and nothing that
// looks like a toolchain.
func (w *world) refused(t *testing.T, parts ...string) error {
	t.Helper()
	_, err := Prepare(t.Context(), w.options())
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	for _, pattern := range []string{"tree/*", "tree/.*", "tmp/*"} {
		if left, _ := filepath.Glob(filepath.Join(w.cache, pattern)); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	return err
}

func TestLyingVersionIsNamed(t *testing.T) {
	newer := maps.Clone(headers)
	newer["include/cutlass/version.h"] = strings.ReplaceAll(headers["include/cutlass/version.h"], "PATCH 0", "PATCH 5")
	lying := maps.Clone(newer)
	lying["include/cutlass/version.h"] = headers["include/cutlass/version.h"]
	lying["include/cute/x.hpp"] = "of 4.3.5"
	for name, c := range map[string]struct {
		headers map[string]string
		says    string
	}{
		"another release that says so":         {newer, "version.h says 4.3.5 and not 4.3.0"},
		"another release that claims this one": {lying, "version.h claims 4.3.0, but include has the digest"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			carrier := w.lock.CUTLASS.Carriers[1]
			carrier.Package = w.add("carrier", "1.0", "carrier-1.0.tar.gz", tarGz(t, carrier.Prefix, c.headers))
			w.lock.CUTLASS.Carriers = w.lock.CUTLASS.Carriers[1:]
			w.lock.CUTLASS.Carriers[0] = carrier
			err := w.refused(t, c.says, inspect(t, c.headers).Include, w.lock.CUTLASS.Include, "carrier-1.0.tar.gz")
			if !errors.Is(err, cutlass.ErrDigest) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrongHash(t *testing.T) {
	w := newWorld(t)
	wheel := w.lock.CUDA.Wheels[0]
	right := w.files[wheel.File]
	wrong := bytes.Clone(right)
	wrong[len(wrong)/2] ^= 1
	w.files[wheel.File] = wrong
	if err := w.refused(t, wheel.String(), wheel.SHA256); !errors.Is(err, fetch.ErrChecksum) {
		t.Errorf("got %v", err)
	}
	w.files[wheel.File] = right
	w.prepare(t)
}

func TestDamagedArchivesAreFetchedAgain(t *testing.T) {
	w := newWorld(t)
	tc := w.prepare(t)
	archives, err := filepath.Glob(filepath.Join(w.cache, "sha256", "*"))
	if err != nil || len(archives) != 3 {
		t.Fatalf("%q, %v", archives, err)
	}
	for _, archive := range archives {
		data, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/3] ^= 4
		if err := errors.Join(os.Remove(archive), os.WriteFile(archive, data, 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	removeAll(t, filepath.Dir(tc.CUDA))
	opts := w.options()
	opts.Offline = true
	var off *fetch.OfflineError
	if _, err := Prepare(context.Background(), opts); !errors.As(err, &off) || !off.Bad {
		t.Errorf("offline: got %v", err)
	}
	w.recover(t, "damaged archives")
	w.checkNoLies(t, "damaged archives")
}
