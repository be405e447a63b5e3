// SPDX-License-Identifier: Apache-2.0

package cutlass

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const versionH = "#pragma once\n#define CUTLASS_MAJOR 4\n #  define CUTLASS_MINOR\t3\n#define CUTLASS_PATCH 0 \n#define CUTLASS_BUILD 7\n"

// tree makes a CUTLASS tree.
func tree(t *testing.T, header string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "include/cutlass/version.h", header)
	write(t, dir, "include/cute/x.hpp", "x")
	write(t, dir, "tools/util/include/cutlass/util/y.h", "y")
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	dir := tree(t, versionH)
	want, err := Inspect(dir)
	if err != nil || want.Version != "4.3.0" || want.Include == want.Tools {
		t.Fatalf("%+v, %v", want, err)
	}
	if err := Verify(dir, want); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(dir string){
		"claims 4.3.0, but include": func(dir string) { write(t, dir, "include/cute/x.hpp", "X") },
		"include has the digest":    func(dir string) { write(t, dir, "include/more.h", "") },
		"says 4.3.5 and not 4.3.0": func(dir string) {
			write(t, dir, "include/cutlass/version.h", strings.Replace(versionH, "PATCH 0", "PATCH 5", 1))
		},
		"tools/util/include has the digest": func(dir string) { write(t, dir, "tools/util/include/cutlass/util/y.h", "Y") },
	} {
		dir := tree(t, versionH)
		change(dir)
		if err := Verify(dir, want); !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	lies := want
	lies.Version = "4.3.9"
	if err := Verify(dir, lies); !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), "fix the lock") {
		t.Errorf("a lock that states another version: got %v", err)
	}
}

func TestInspectOfWhatIsNoTree(t *testing.T) {
	if _, err := Inspect(t.TempDir()); err == nil {
		t.Error("an empty folder passes")
	}
	if _, err := Inspect(tree(t, "#define CUTLASS_MAJOR 4\n")); err == nil || !strings.Contains(err.Error(), "version.h") {
		t.Errorf("half a version: got %v", err)
	}
}
