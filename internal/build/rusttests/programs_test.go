// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPrograms(t *testing.T) {
	o, _, calls := checkout(t, `
message() { echo "{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/x/$1/Cargo.toml\",\"target\":{\"kind\":[\"$2\"],\"name\":\"$3\"},\"executable\":$4,\"profile\":{\"test\":$5}}"; }
echo made >program
case "$1 $(basename "$PWD")" in
	"test rust") message half lib half null false; message sparsek lib sparsek '"program"' true
		message sparsek test ops '"program"' true; message sparsek example call_overhead '"program"' false ;;
	"build rust") message cudarc bin cudarc_pointers '"program"' false ;;
	"test sparsek-burn") message sparsek-burn test linear '"program"' true ;;
esac
echo '{"reason":"build-finished","success":true}'`)
	if err := os.Mkdir(filepath.Join(o.Root, "rust", "sparsek-burn"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "rust", "rust/sparsek-burn"} { // where this test and cargo take "program" from
		if dir != "" {
			if err := os.Symlink(filepath.Join(o.Root, "program"), filepath.Join(o.Root, dir, "program")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(o.Root)
	if err := Programs(t.Context(), o, true); err != nil {
		t.Fatalf("%v, after %q", err, calls())
	}
	made, err := os.ReadDir(filepath.Join(o.Build, programsDir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range made {
		names = append(names, file.Name())
		if info, err := file.Info(); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s is no program: %v", file.Name(), err)
		}
	}
	if want := []string{"cudarc_pointers", "sparsek-burn-linear", "sparsek-lib", "sparsek-ops"}; !slices.Equal(names, want) {
		t.Errorf("made %q, want %q", names, want)
	}
	silent, _, _ := checkout(t, "echo '{}'")
	if err := Programs(t.Context(), silent, false); err == nil || err.Error() != "cargo test made no programs" {
		t.Errorf("no programs: %v", err)
	}
}
