// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

func TestDescribe(t *testing.T) {
	w := newWorld(t)
	t.Setenv("GOFLAGS", "-modcacherw") // so that the folder can be removed
	wheel := w.lock.CUDA.Wheels[0]
	wheel.Name = "nvidia-cuda-runtime" // which is linked into the library
	files := []toolchain.File{{Package: w.lock.CUDA.Wheels[0]}, {Package: wheel, Path: filepath.Join(w.cache, "sha256", wheel.SHA256)}}
	got, err := Describe(t.Context(), DescribeOptions{Root: w.root, Version: "1.2.3", Commit: "abc", Program: "./cmd/main", Lock: &w.lock, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"modules/" + depPath + "@" + depVersion + "/LICENSE": []byte(mitText)}, got.Licences); diff != "" {
		t.Errorf("licences (-want +got):\n%s", diff)
	}
	var bill bom
	if err := json.Unmarshal(got.SBOM, &bill); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name)
		if c.Scope != required {
			t.Errorf("%s is %s", c.Name, c.Scope)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"cutlass", depPath, "nvidia-cuda-runtime"}, names); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if p := bill.Metadata.Component.Properties; len(p) != 1 || p[0].Value != "abc" {
		t.Errorf("the commit is not in %v", p)
	}
	w.lock = lock.Lock{}
	if _, err := Describe(t.Context(), DescribeOptions{Root: w.root, Program: "./cmd/none", Lock: &w.lock}); err == nil {
		t.Error("a program that is not there is described")
	}
}
